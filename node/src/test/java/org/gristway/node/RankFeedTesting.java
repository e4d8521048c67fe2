package org.gristway.node;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import org.gristway.dataset.Dataset;
import org.gristway.read.Admission;
import org.gristway.read.PeerCaches;
import org.gristway.read.PostOffice;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A dataset of small samples, and what a feed gives of it. */
@Tag("java")
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
abstract class RankFeedTesting {

  static final int EPOCHS = 4;
  static final long LAST = 28; // 203 samples in batches of 7

  @TempDir static Path folder;
  static Packed packed;
  static Dataset dataset;
  static Settings settings;
  static List<List<List<Long>>> order;

  List<String> memoryBefore = List.of();

  @BeforeAll
  static void pack() {
    packed = Packed.in(folder);
    dataset = Dataset.open(packed.path());
    settings = packed.settings();
    order = packed.order(settings, 0, EPOCHS);
    assertThat(order.getFirst()).hasSize((int) LAST + 1);
  }

  @AfterAll
  static void close() {
    dataset.close();
  }

  @BeforeEach
  void look() {
    memoryBefore = Packed.memoryFiles();
  }

  static RankFeed open(Settings of) {
    return open(of, dataset);
  }

  static RankFeed open(Settings of, Dataset from) {
    return new RankFeed(
        0, of, from, PostOffice.alone(1, 2), PeerCaches.NONE, new Admission(1), line -> {});
  }

  static RankFeed open() {
    RankFeed feed = open(settings);
    feed.attach(client("client"), 2);
    return feed;
  }

  private record Named(Object name) implements RankFeed.Client {
    @Override
    public void check() {}
  }

  static RankFeed.Client client(Object name) {
    return new Named(name);
  }

  /** The samples of a batch, which is given back. */
  static List<Long> take(RankFeed feed, Object client, long epoch, long step, int workers)
      throws InterruptedException {
    return take(feed, client, epoch, step, 1, 1, workers);
  }

  static List<Long> take(
      RankFeed feed, Object client, long epoch, long start, int count, int atOnce, int workers)
      throws InterruptedException {
    List<Piece> pieces = feed.take(client(client), epoch, start, count, atOnce, workers);
    List<Long> samples = Packed.samples(pieces);
    pieces.forEach(piece -> feed.release(client(client), piece));
    return samples;
  }

  static List<Long> expected(long epoch, long step) {
    return step > LAST ? List.of() : order.get((int) epoch).get((int) step);
  }
}
