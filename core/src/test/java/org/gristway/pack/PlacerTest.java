package org.gristway.pack;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.gristway.pack.Packs.assertFails;
import static org.gristway.pack.Packs.assertHolds;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CancellationException;
import org.gristway.Failure.Kind;
import org.gristway.Progress;
import org.gristway.dataset.Dataset;
import org.gristway.dataset.Portion;
import org.gristway.dataset.Rebuilder;
import org.gristway.dataset.Sample;
import org.gristway.dataset.Unpacker;
import org.gristway.dataset.Verifier;
import org.gristway.os.Folders;
import org.gristway.pack.Placer.Placed;
import org.gristway.plan.SampleLayout;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Chunks that are dealt to the folders of nodes, and what can be done with such a folder. */
@Tag("java")
class PlacerTest {

  private static final int NODES = 3;

  @TempDir Path folder;
  private Path dataset;
  private final List<Path> nodes = new ArrayList<>();

  @BeforeEach
  void pack() {
    dataset = Packs.pack(tree(0, 200), folder.resolve("dataset"));
    delete(folder.resolve("dataset-source"));
    for (int node = 0; node < NODES; node++) {
      nodes.add(folder.resolve("node" + node));
    }
  }

  /** Enough for some ten chunks. */
  private static TreeMap<String, byte[]> tree(int first, int count) {
    Random random = new Random(Seeds.of("PlacerTest") + first);
    TreeMap<String, byte[]> tree = new TreeMap<>();
    for (int i = first; i < first + count; i++) {
      tree.put("folder" + i % 3 + "/sample" + i, Trees.bytes(random, random.nextInt(6000)));
    }
    return tree;
  }

  private static void delete(Path tree) {
    try {
      Folders.deleteTree(tree);
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }

  private List<Placed> place() {
    return Placer.place(dataset, nodes, Progress.NONE);
  }

  @Test
  void the_folders_together_hold_the_dataset() {
    List<Placed> placed = place();
    TreeMap<String, byte[]> union = new TreeMap<>();
    int chunks = 0;
    for (Placed each : placed) {
      assertThat(each.wasThere()).isFalse();
      chunks += each.chunks();
      TreeMap<String, byte[]> files = new TreeMap<>(Trees.read(each.target()));
      assertThat(files.remove("portion.gwp")).hasSize(64);
      assertThat(files).containsKey("snapshot-000001.gws");
      assertThat(files).hasSize(each.chunks() + 1);
      union.putAll(files);
    }
    Packs.assertSameFiles(union, Trees.read(dataset));
    assertThat(chunks).isEqualTo(union.size() - 1).isGreaterThan(2 * NODES);
    assertHolds(folder, "dataset", "node0", "node1", "node2");
  }

  @Test
  void nodes_get_about_as_many_bytes() {
    List<Placed> placed = place();
    long most = placed.stream().mapToLong(Placed::bytes).max().orElseThrow();
    long least = placed.stream().mapToLong(Placed::bytes).min().orElseThrow();
    assertThat(most - least).isLessThanOrEqualTo(2 * (64 << 10));
  }

  @Test
  void plans_and_folders_agree_on_what_is_where() {
    try (Dataset open = Dataset.open(dataset)) {
      SampleLayout layout = SampleLayout.of(open.snapshot());
      for (int chunk = 0; chunk < layout.chunkCount(); chunk++) {
        assertThat(layout.chunkBytes(chunk)).isEqualTo(open.snapshot().chunkDataBytes(chunk));
      }
    }
  }

  @Test
  void a_sample_is_read_where_its_chunk_is_and_refused_elsewhere() {
    place();
    Set<String> read = new HashSet<>();
    for (int node = 0; node < NODES; node++) {
      String name = "node " + node + " of 3";
      try (Dataset whole = Dataset.open(dataset);
          Dataset open = Dataset.open(nodes.get(node))) {
        Portion portion = open.portion().orElseThrow();
        assertThat(portion).hasToString(name);
        Set<Integer> here = new HashSet<>(portion.chunks(open.snapshot()).boxed().toList());
        for (Sample sample : open) {
          if (here.contains(open.snapshot().location(sample.id()).chunk())) {
            assertThat(open.read(sample)).isEqualTo(whole.read(sample));
            assertThat(read.add(sample.key())).isTrue();
          } else {
            assertFails(
                Kind.WRONG_CALL, () -> open.read(sample), sample.key(), "another node", name);
          }
        }
      }
    }
    assertThat(read).hasSize(200);
  }

  @Test
  void each_folder_is_verified_for_itself() throws IOException {
    for (Placed each : place()) {
      Verifier.Report report = Verifier.verify(each.target(), Progress.NONE);
      assertThat(report.faults()).isEmpty();
      assertThat(report.chunks()).isEqualTo(each.chunks());
    }
    List<String> names = new ArrayList<>(Packs.names(nodes.get(1)));
    Files.delete(nodes.get(1).resolve(names.getFirst()));
    assertThat(Verifier.verify(nodes.get(1), Progress.NONE).faults())
        .singleElement()
        .asString()
        .contains(names.getFirst(), "missing");
  }

  @Test
  void a_folder_that_does_not_tell_whose_it_is_is_refused() throws IOException {
    place();
    Path portion = nodes.getFirst().resolve("portion.gwp");
    for (int at = 0; at < 64; at++) {
      flip(portion, at);
      assertFails(Kind.DAMAGED, () -> Dataset.open(nodes.getFirst()), "portion.gwp", "damaged");
      flip(portion, at);
    }
    flip(portion, 33);
    assertThat(Verifier.verify(nodes.getFirst(), Progress.NONE).faults())
        .singleElement()
        .asString()
        .contains("portion.gwp");
    Files.write(portion, new byte[10]);
    assertFails(Kind.DAMAGED, () -> Dataset.open(nodes.getFirst()), "portion.gwp");
  }

  private static void flip(Path path, int at) throws IOException {
    try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw")) {
      file.seek(at);
      int value = file.read();
      file.seek(at);
      file.write(value ^ 0x20);
    }
  }

  @Test
  void what_needs_all_chunks_is_refused() {
    place();
    Path node = nodes.get(2);
    String name = "node 2 of 3";
    Path target = folder.resolve("files");
    assertFails(Kind.WRONG_CALL, () -> Unpacker.unpack(node, target, Progress.NONE), name);
    assertThat(target).doesNotExist();
    Path more = Trees.write(tree(1000, 3), folder.resolve("more"));
    assertFails(Kind.WRONG_CALL, () -> Packs.append(more, node), name, "changed");
    assertFails(Kind.WRONG_CALL, () -> Rebuilder.rebuild(node, Progress.NONE), name, "changed");
    List<Path> others = List.of(folder.resolve("a"), folder.resolve("b"));
    assertFails(Kind.WRONG_CALL, () -> Placer.place(node, others, Progress.NONE), name, "placed");
    assertHolds(folder, "dataset", "more", "node0", "node1", "node2");
  }

  @Test
  void what_is_there_already_is_left_as_it_is() throws IOException {
    place();
    delete(nodes.get(1));
    Object before = Files.getLastModifiedTime(nodes.get(0).resolve("snapshot-000001.gws"));
    assertThat(place()).extracting(Placed::wasThere).containsExactly(true, false, true);
    assertThat(Files.getLastModifiedTime(nodes.get(0).resolve("snapshot-000001.gws")))
        .isEqualTo(before);
    assertThat(Verifier.verify(nodes.get(1), Progress.NONE).faults()).isEmpty();
  }

  @Test
  void a_folder_that_holds_anything_else_is_refused_before_anything_is_written()
      throws IOException {
    Files.createDirectory(nodes.get(0)); // empty: it becomes the node's
    Files.createDirectory(nodes.get(2));
    Files.writeString(nodes.get(2).resolve("precious"), "text");
    assertFails(Kind.WRONG_CALL, this::place, nodes.get(2).toString(), "exists already");
    assertHolds(nodes.get(0));
    assertHolds(folder, "dataset", "node0", "node2");
    delete(nodes.get(2));
    place();
    List<Path> swapped = List.of(nodes.get(1), nodes.get(0), nodes.get(2));
    assertFails(
        Kind.WRONG_CALL,
        () -> Placer.place(dataset, swapped, Progress.NONE),
        nodes.get(1).toString(),
        "node 0 of 3");
    Files.delete(nodes.get(1).resolve(Packs.names(nodes.get(1)).getFirst()));
    assertFails(Kind.WRONG_CALL, this::place, nodes.get(1).toString(), "exists already");
  }

  @Test
  void folders_that_cannot_be_are_refused() {
    List<Path> one = List.of(nodes.getFirst());
    assertFails(Kind.WRONG_CALL, () -> Placer.place(dataset, one, Progress.NONE), "2 nodes");
    List<Path> twice = List.of(nodes.getFirst(), folder.resolve("x/../node0"));
    assertFails(Kind.WRONG_CALL, () -> Placer.place(dataset, twice, Progress.NONE), "twice");
    List<Path> inside = List.of(nodes.getFirst(), dataset.resolve("node"));
    assertFails(Kind.WRONG_CALL, () -> Placer.place(dataset, inside, Progress.NONE), "inside");
    List<Path> nowhere = List.of(nodes.getFirst(), folder.resolve("no/such/node"));
    assertFails(Kind.WRONG_CALL, () -> Placer.place(dataset, nowhere, Progress.NONE), "no folder");
    List<Path> root = List.of(nodes.getFirst(), Path.of("/"));
    assertFails(Kind.WRONG_CALL, () -> Placer.place(dataset, root, Progress.NONE), "/ exists");
    assertHolds(folder, "dataset");
  }

  @Test
  void an_interrupt_leaves_what_is_complete_and_nothing_else() {
    long first = place().getFirst().bytes();
    nodes.forEach(PlacerTest::delete);
    Progress impatient = interruptAfter(first);
    assertThatThrownBy(() -> Placer.place(dataset, nodes, impatient))
        .isInstanceOf(CancellationException.class);
    assertThat(Thread.interrupted()).isTrue();
    assertHolds(folder, "dataset", "node0");
    assertThat(place()).extracting(Placed::wasThere).containsExactly(true, false, false);
  }

  /** Interrupts the thread that it is made in once more than so much is done. */
  private static Progress interruptAfter(long bytes) {
    Thread thread = Thread.currentThread();
    return new Progress() {
      private long done;

      @Override
      public void begin(String what, Unit unit, long total) {}

      @Override
      public synchronized void advance(long amount) {
        done += amount;
        if (done > bytes) {
          thread.interrupt();
        }
      }

      @Override
      public void end() {}
    };
  }

  @Test
  void what_a_killed_run_left_is_cleared() throws IOException {
    Path debris = Files.createDirectories(folder.resolve(".node1.packing/dataset"));
    Files.writeString(debris.resolve("chunk-000000.gwc"), "half");
    place();
    assertHolds(folder, "dataset", "node0", "node1", "node2");
    assertThat(Verifier.verify(nodes.get(1), Progress.NONE).faults()).isEmpty();
  }

  @Test
  void earlier_versions_stay_readable() {
    Path more = Trees.write(tree(1000, 100), folder.resolve("more"));
    Packs.append(more, dataset);
    Set<String> read = new HashSet<>();
    for (Placed each : place()) {
      assertThat(Verifier.verify(each.target(), Progress.NONE).faults()).isEmpty();
      try (Dataset open = Dataset.open(each.target(), 1)) {
        Set<Integer> here =
            new HashSet<>(open.portion().orElseThrow().chunks(open.snapshot()).boxed().toList());
        for (Sample sample : open) {
          if (here.contains(open.snapshot().location(sample.id()).chunk())) {
            assertThat(open.read(sample)).hasSize((int) sample.length());
            assertThat(read.add(sample.key())).isTrue();
          }
        }
      }
    }
    assertThat(read).hasSize(200);
  }

  @Test
  void more_nodes_than_chunks_leave_some_without() {
    for (int node = NODES; node < 20; node++) {
      nodes.add(folder.resolve("node" + node));
    }
    List<Placed> placed = place();
    assertThat(placed.getLast().chunks()).isZero();
    assertThat(Verifier.verify(nodes.getLast(), Progress.NONE).faults()).isEmpty();
  }

  @Test
  void a_damaged_chunk_is_not_placed() throws IOException {
    flip(dataset.resolve("chunk-000000.gwc"), 50);
    assertFails(Kind.DAMAGED, this::place, "chunk-000000.gwc");
    assertHolds(folder, "dataset");
  }
}
