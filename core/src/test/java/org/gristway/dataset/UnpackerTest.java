package org.gristway.dataset;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.SortedMap;
import org.gristway.Failure.Kind;
import org.gristway.Progress;
import org.gristway.os.Folders;
import org.gristway.pack.Packs;
import org.gristway.pack.Trees;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("java")
class UnpackerTest {

  @TempDir Path folder;

  @Test
  void unpacking_goes_only_into_an_empty_folder() throws IOException {
    Path dataset = Packs.pack(Trees.of("a/1", "one"), folder.resolve("dataset"));
    Path target = Trees.write(Trees.of("precious", "text"), folder.resolve("target"));
    assertFails(
        Kind.WRONG_CALL, () -> Unpacker.unpack(dataset, target, Progress.NONE), "not empty");
    Packs.assertHolds(target, "precious");
    Path file = target.resolve("precious");
    assertFails(Kind.WRONG_CALL, () -> Unpacker.unpack(dataset, file, Progress.NONE), "precious");
    Path empty = Files.createDirectory(folder.resolve("empty"));
    assertThat(Unpacker.unpack(dataset, empty, Progress.NONE)).isEqualTo(1);
    assertThat(empty.resolve("a/1")).hasContent("one");
  }

  @Test
  void a_folder_may_be_named_in_any_way() throws IOException {
    Path dataset = Packs.pack(Trees.of("a/1", "one"), folder.resolve("dataset"));
    Path real = Files.createDirectories(folder.resolve("real/deep"));
    Files.createSymbolicLink(folder.resolve("link"), real);
    for (Path target :
        List.of(
            Path.of("").toAbsolutePath().relativize(folder.resolve("relative")),
            folder.resolve("x/./y/../y"),
            folder.resolve("link"),
            // Where the link leads there is no 'z' beside it, and 'link/..' is not this folder.
            folder.resolve("link/../z"),
            folder.resolve("link/new"))) {
      assertThat(Unpacker.unpack(dataset, target, Progress.NONE)).isEqualTo(1);
      assertThat(target.resolve("a/1")).as("%s", target).hasContent("one");
      Folders.deleteTree(target.toRealPath().resolve("a"));
    }
    assertThat(folder.resolve("real/z")).isDirectory();
  }

  @Test
  void large_samples_are_unpacked_and_written_in_pieces() throws IOException {
    Random random = new Random(Seeds.of("large_samples_are_unpacked_and_written_in_pieces"));
    SortedMap<String, byte[]> tree = Trees.of("big.txt", "small part");
    tree.put("big.bin", Trees.bytes(random, 9_000_001));
    tree.put("big.x", Trees.bytes(random, 4_200_000));
    Path dataset = folder.resolve("dataset");
    Path tar = Trees.tar(tree, folder.resolve("source.tar"));
    Packs.pack(List.of(tar), dataset, Packs.SMALL_CHUNKS);
    Unpacker.unpack(dataset, folder.resolve("target"), Progress.NONE);
    Packs.assertSameFiles(Trees.read(folder.resolve("target")), tree);
    try (Dataset open = Dataset.open(dataset)) {
      Sample sample = open.find("big").orElseThrow();
      for (Sample.Part part : sample.parts()) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        open.writeTo(sample, part, out);
        assertThat(Arrays.equals(out.toByteArray(), tree.get(sample.path(part)))).isTrue();
      }
    }
    Path chunk = dataset.resolve("chunk-000000.gwc");
    byte[] damaged = Files.readAllBytes(chunk);
    damaged[damaged.length - 100] ^= 1;
    Files.write(chunk, damaged);
    try (Dataset open = Dataset.open(dataset)) {
      Sample sample = open.find("big").orElseThrow();
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      assertFails(Kind.DAMAGED, () -> open.writeTo(sample, sample.part("bin"), out), "'big'");
      assertThat(out.size()).isZero();
    }
  }

  @Test
  void keys_that_cannot_be_files_side_by_side_are_told() {
    Path tar =
        Trees.tar(Map.of("a", new byte[1], "a/b", new byte[1]), folder.resolve("source.tar"));
    Path dataset = folder.resolve("dataset");
    Packs.pack(tar, dataset);
    try (Dataset open = Dataset.open(dataset)) {
      assertThat(open.list("")).containsExactly("a", "a/");
      assertThat(open.list("a")).containsExactly("b");
    }
    assertFails(
        Kind.WRONG_CALL,
        () -> Unpacker.unpack(dataset, folder.resolve("target"), Progress.NONE),
        "a");
  }

  @Test
  void damage_stops_unpacking() throws IOException {
    Path dataset = Packs.pack(Trees.of("a/1", "one"), folder.resolve("dataset"));
    Path chunk = dataset.resolve("chunk-000000.gwc");
    byte[] damaged = Files.readAllBytes(chunk);
    damaged[4096] ^= 1;
    Files.write(chunk, damaged);
    assertFails(
        Kind.DAMAGED,
        () -> Unpacker.unpack(dataset, folder.resolve("target"), Progress.NONE),
        "'a/1'");
  }
}
