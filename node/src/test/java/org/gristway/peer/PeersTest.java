package org.gristway.peer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.EOFException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.gristway.Failure;
import org.gristway.dataset.Dataset;
import org.gristway.node.Packed;
import org.gristway.plan.Caching;
import org.gristway.plan.World;
import org.gristway.read.Parcel;
import org.gristway.read.PeerCaches;
import org.gristway.read.PostOffice;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Node 0 of three, each of which has two ranks. */
@Tag("java")
class PeersTest {

  private static final int WINDOW = 2;

  @TempDir static Path folder;
  private static Dataset dataset;

  private final List<Failure> losses = new ArrayList<>();
  private final Peers peers =
      new Peers(new World(6, 3, 0), dataset.snapshot(), 4, WINDOW, PeerCaches.NONE, losses::add);
  private final Recorder first = new Recorder();
  private final Recorder second = new Recorder();

  @BeforeAll
  static void pack() {
    dataset = Dataset.open(Packed.in(folder).path());
  }

  @AfterAll
  static void closeDataset() {
    dataset.close();
  }

  @AfterEach
  void closeOffice() {
    peers.office().close();
  }

  /** Writes down what is said. */
  private static final class Recorder implements Line {
    final List<String> said = new ArrayList<>();
    long heard;
    boolean isHeard = true;

    @Override
    public void start() {
      said.add("start");
    }

    @Override
    public long heard() {
      return heard;
    }

    @Override
    public void moved(int rank, PostOffice.Place place) {
      said.add("rank " + rank + " at " + place.step());
    }

    @Override
    public void send(Parcel parcel) {
      said.add("parcel for rank " + parcel.to());
    }

    @Override
    public void ask(Wanted sample) {
      said.add("rank " + sample.rank() + " keeps sample " + sample.sample());
      if (sample.begin()) {
        sample.target().fill((byte) 7);
        sample.end(true);
      }
    }

    @Override
    public void bye() {
      said.add("bye");
    }

    @Override
    public void lost(String why) {
      said.add(why);
    }

    @Override
    public void stopHearing() {
      isHeard = false;
    }

    @Override
    public void abort() {
      said.add("abort");
    }
  }

  private void connect() {
    assertThat(peers.connect(1, first)).isTrue();
    assertThat(peers.connect(2, second)).isTrue();
    peers.areAt(List.of("a:1", "b:1", "c:1"));
  }

  private void assertLost(String name) {
    assertThat(losses).hasSize(1);
    assertThatThrownBy(() -> peers.office().rank(0).await(3, 0, 0))
        .isSameAs(losses.getFirst())
        .hasMessageContaining(name + " is lost");
    assertThat(first.said).containsExactly("start", losses.getFirst().getMessage());
    assertThat(second.said).containsExactly("start", losses.getFirst().getMessage());
  }

  @Test
  void a_node_has_one_line() {
    connect();
    assertThat(peers.connect(1, second)).isFalse();
    assertThat(first.said).containsExactly("start");
  }

  @Test
  void silence_is_borne_up_to_a_limit() {
    connect();
    second.heard = 100;
    assertThat(peers.watch(Peers.SILENCE_NANOS)).isTrue();
    assertThat(losses).isEmpty();
    assertThat(peers.watch(Peers.SILENCE_NANOS + 1)).isTrue();
    assertLost("node 1 at b:1");
    assertThat(first.isHeard).isFalse();
    assertThat(second.isHeard).isTrue();
  }

  @Test
  void a_node_that_has_stood_still_first_hears_what_the_others_have_said() {
    connect();
    long woken = 20_000_000_000L;
    assertThat(peers.watch(0)).isTrue();
    assertThat(peers.watch(woken)).isTrue();
    assertThat(peers.watch(woken + Peers.SILENCE_NANOS / 3)).isTrue();
    assertThat(peers.watch(woken + Peers.SILENCE_NANOS * 2 / 3)).isTrue();
    assertThat(losses).isEmpty();
    assertThat(peers.watch(woken + Peers.SILENCE_NANOS + 1)).isTrue();
    assertLost("node 1 at b:1");
  }

  @Test
  void several_signs_of_life_fit_into_the_limit() {
    assertThat(Peers.SILENCE_NANOS).isGreaterThan(10 * Peers.SIGN_NANOS);
  }

  @Test
  void a_line_that_breaks_is_a_node_that_is_lost_and_all_are_told_once() {
    connect();
    peers.listener(2).broken(new EOFException("it is gone"));
    peers.listener(2).broken(new EOFException("it is gone"));
    peers.listener(1).lost("node 2 at c:1 is lost: so they say");
    assertLost("node 2 at c:1");
    assertThat(peers.leave()).isTrue();
    assertThat(peers.watch(Long.MAX_VALUE)).isFalse();
  }

  @Test
  void what_others_say_is_lost_is_passed_on() {
    connect();
    peers.listener(1).lost("node 2 at c:1 is lost: so they say");
    assertLost("node 2 at c:1");
  }

  @Test
  void a_node_that_is_done_is_not_missed_and_not_talked_to() throws Exception {
    connect();
    peers.listener(1).left();
    peers.listener(1).broken(new EOFException("it is gone"));
    second.heard = 1;
    assertThat(peers.watch(Peers.SILENCE_NANOS + 1)).isTrue();
    peers.office().rank(0).done(0, 0);
    for (int to : new int[] {2, 5}) {
      peers.office().rank(0).send(peers.office().rank(0).begin(to, 0, 0));
    }
    assertThat(first.said).containsExactly("start", "abort");
    assertThat(second.said).containsExactly("start", "rank 0 at 0", "parcel for rank 5");
    assertThat(losses).isEmpty();
  }

  @Test
  void who_is_done_says_so_once_and_misses_nobody() {
    connect();
    assertThat(peers.leave()).isTrue();
    assertThat(peers.leave()).isFalse();
    peers.listener(1).broken(new EOFException("it is gone"));
    assertThat(peers.watch(Long.MAX_VALUE)).isFalse();
    assertThat(losses).isEmpty();
    assertThat(first.said).containsExactly("start", "bye");
    assertThat(peers.connect(1, first)).isFalse();
  }

  @Test
  void what_a_rank_keeps_is_asked_for_at_its_node_while_that_is_there() {
    connect();
    byte[] target = new byte[5];
    assertThat(peers.fetch(3, 8, Caching.MEMORY, MemorySegment.ofArray(target))).isTrue();
    assertThat(target).containsOnly(7);
    peers.listener(1).left();
    assertThat(peers.fetch(3, 8, Caching.MEMORY, MemorySegment.ofArray(target))).isFalse();
    assertThat(peers.fetch(4, 9, Caching.DISK, MemorySegment.ofArray(target))).isTrue();
    assertThat(first.said).containsExactly("start", "rank 3 keeps sample 8", "abort");
    assertThat(second.said).containsExactly("start", "rank 4 keeps sample 9");
  }

  @Test
  void nobody_is_asked_for_anything_when_the_job_is_over() {
    connect();
    peers.listener(1).lost("node 2 at c:1 is lost: so they say");
    assertThat(peers.fetch(4, 9, Caching.MEMORY, MemorySegment.NULL)).isFalse();
    assertThat(second.said).hasSize(2);
  }

  @Test
  void a_rank_that_gives_up_ends_the_job_in_the_name_of_its_node() {
    connect();
    peers.office().giveUp(Failure.damaged("sample 'a' is damaged"));
    assertThat(first.said)
        .containsExactly("start", "node 0 at a:1 has given the job up: sample 'a' is damaged");
    assertThat(losses).hasSize(1);
  }
}
