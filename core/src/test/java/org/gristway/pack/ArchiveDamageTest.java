package org.gristway.pack;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;
import static org.gristway.pack.Packs.assertHolds;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.SortedMap;
import java.util.zip.GZIPOutputStream;
import org.gristway.Failure;
import org.gristway.Failure.Kind;
import org.gristway.os.Folders;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Tag("java")
class ArchiveDamageTest {

  private static final SortedMap<String, byte[]> TREE =
      Trees.of(
          "a/",
          "",
          "a/1.jpg",
          "1".repeat(700),
          "a/1.json",
          "{}",
          "b/",
          "",
          "b/2.jpg",
          "",
          "b/" + "long".repeat(40) + ".jpg",
          "3",
          "c/",
          "",
          "é/4.jpg",
          "4".repeat(512),
          "é/5.cls",
          "7");

  @TempDir Path folder;

  /** Every block boundary of a tar is tried; that is where a cut is hardest to see. */
  @Test
  void a_tar_that_is_cut_off_is_refused() throws IOException {
    Random random = new Random(Seeds.of("a_tar_that_is_cut_off_is_refused"));
    Path tar = Trees.tar(TREE, folder.resolve("source.tar"));
    byte[] whole = Files.readAllBytes(tar);
    int content = whole.length;
    while (whole[content - 1] == 0) {
      content--;
    }
    int end = (content + 511) / 512 * 512;
    for (int at = 0; at < end; at += 512) {
      assertCutOff(tar, whole, at);
    }
    for (int i = 0; i < Thorough.count(50, 1000); i++) {
      assertCutOff(tar, whole, random.nextInt(end + 511));
    }
    Files.write(tar, Arrays.copyOf(whole, end + 512));
    Packs.pack(tar, folder.resolve("dataset"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"source.tar.gz", "source.zip"})
  void a_compressed_archive_that_is_cut_off_is_refused(String name) throws IOException {
    Random random = new Random(Seeds.of("a_compressed_archive_that_is_cut_off_is_refused"));
    Path file = folder.resolve(name);
    byte[] whole =
        Files.readAllBytes(name.endsWith("zip") ? Trees.zip(TREE, file) : Trees.tar(TREE, file));
    for (int i = 0; i < Thorough.count(60, 1000); i++) {
      assertCutOff(file, whole, random.nextInt(whole.length));
    }
    for (int missing = 1; missing <= 10; missing++) {
      assertCutOff(file, whole, whole.length - missing);
    }
  }

  private void assertCutOff(Path file, byte[] whole, int length) throws IOException {
    Files.write(file, Arrays.copyOf(whole, length));
    assertFails(Kind.DAMAGED, () -> Packs.pack(file, folder.resolve("dataset")), file.toString());
    assertHolds(folder, file.getFileName().toString());
  }

  @ParameterizedTest
  @ValueSource(strings = {"source.tar", "source.tar.gz", "source.tgz", "source.zip"})
  void what_is_no_archive_is_refused(String name) throws IOException {
    Random random = new Random(Seeds.of("what_is_no_archive_is_refused " + name));
    Path file = folder.resolve(name);
    List<byte[]> contents =
        List.of(
            new byte[0],
            "hello\n".getBytes(StandardCharsets.UTF_8),
            "no archive, but long enough for one\n".repeat(1000).getBytes(StandardCharsets.UTF_8),
            Trees.bytes(random, 100),
            Trees.bytes(random, 100_000));
    for (byte[] content : contents) {
      Files.write(file, content);
      assertFails(Kind.DAMAGED, () -> Packs.pack(file, folder.resolve("dataset")), name);
      assertHolds(folder, name);
    }
  }

  @Test
  void an_archive_under_the_name_of_another_kind_is_refused() {
    Path zip = Trees.zip(TREE, folder.resolve("zip.tar"));
    assertFails(Kind.DAMAGED, () -> Packs.pack(zip, folder.resolve("dataset")), "zip.tar");
    Path tar = Trees.tar(TREE, folder.resolve("tar.zip"));
    assertFails(Kind.DAMAGED, () -> Packs.pack(tar, folder.resolve("dataset")), "tar.zip");
    Path plain = Trees.tar(TREE, folder.resolve("plain"));
    Programs.sh(folder, "mv plain plain.tgz");
    assertFails(
        Kind.DAMAGED,
        () -> Packs.pack(plain.resolveSibling("plain.tgz"), folder.resolve("dataset")),
        "plain.tgz");
  }

  @Test
  void a_tar_that_goes_on_behind_its_end_is_refused() throws IOException {
    Path one = Trees.tar(Trees.of("a.txt", "1"), folder.resolve("one.tar"));
    Path two = Trees.tar(Trees.of("b.txt", "2"), folder.resolve("two.tar"));
    byte[] both = Files.readAllBytes(one);
    int front = both.length;
    both = Arrays.copyOf(both, front + (int) Files.size(two));
    System.arraycopy(Files.readAllBytes(two), 0, both, front, both.length - front);
    Path tar = folder.resolve("both.tar");
    Files.write(tar, both);
    assertFails(Kind.DAMAGED, () -> Packs.pack(tar, folder.resolve("out")), "both.tar", "behind");
    Path gzip = folder.resolve("both.tar.gz");
    try (OutputStream out = new GZIPOutputStream(Files.newOutputStream(gzip))) {
      out.write(both);
    }
    assertFails(Kind.DAMAGED, () -> Packs.pack(gzip, folder.resolve("out")), "both.tar.gz");
  }

  @Test
  void a_compressed_tar_without_its_end_or_with_something_behind_it_is_refused()
      throws IOException {
    Path tar = Trees.tar(Trees.of("a.txt", "1".repeat(512)), folder.resolve("one.tar"));
    byte[] whole = Files.readAllBytes(tar);
    Path cut = folder.resolve("cut.tar.gz");
    try (OutputStream out = new GZIPOutputStream(Files.newOutputStream(cut))) {
      out.write(whole, 0, 1024); // a header and its file, and no end
    }
    assertFails(Kind.DAMAGED, () -> Packs.pack(cut, folder.resolve("out")), "cut.tar.gz");
    Path more = folder.resolve("more.tar.gz");
    try (OutputStream file = Files.newOutputStream(more)) {
      GZIPOutputStream out = new GZIPOutputStream(file);
      out.write(whole);
      out.finish();
      file.write("what a damaged second member looks like".getBytes(StandardCharsets.UTF_8));
    }
    assertFails(Kind.DAMAGED, () -> Packs.pack(more, folder.resolve("out")), "more.tar.gz");
  }

  @Test
  void a_zip_whose_directory_does_not_add_up_is_refused() throws IOException {
    Path zip = Trees.zip(Trees.of("a.txt", "1", "b.txt", "2"), folder.resolve("source.zip"));
    byte[] bytes = Files.readAllBytes(zip);
    int end = bytes.length - 22;
    bytes[end + 10] = 1; // says one entry where there are two
    Files.write(zip, bytes);
    assertFails(Kind.DAMAGED, () -> Packs.pack(zip, folder.resolve("out")), "source.zip");
  }

  @Test
  void a_flipped_bit_in_a_header_of_a_tar_is_found() throws IOException {
    Random random = new Random(Seeds.of("a_flipped_bit_in_a_header_of_a_tar_is_found"));
    Path tar = Trees.tar(TREE, folder.resolve("source.tar"));
    byte[] whole = Files.readAllBytes(tar);
    for (int i = 0; i < Thorough.count(50, 1000); i++) {
      byte[] flipped = whole.clone();
      int field = random.nextInt(492); // all but the checksum's own, at 148, has one spelling
      flipped[512 + (field < 148 ? field : field + 8)] ^= (byte) (1 << random.nextInt(8));
      Files.write(tar, flipped);
      assertFails(Kind.DAMAGED, () -> Packs.pack(tar, folder.resolve("dataset")), "source.tar");
    }
  }

  /** Whatever is in an archive: a dataset or a failure that can be understood, and soon. */
  @ParameterizedTest
  @ValueSource(strings = {"source.tar", "source.tar.gz", "source.zip"})
  void nothing_but_failures_comes_out_of_mutated_archives(String name) throws IOException {
    Random random = new Random(Seeds.of("nothing_but_failures " + name));
    Path file = folder.resolve(name);
    byte[] whole =
        Files.readAllBytes(name.endsWith("zip") ? Trees.zip(TREE, file) : Trees.tar(TREE, file));
    for (int i = 0; i < Thorough.count(150, 5000); i++) {
      byte[] mutated = whole.clone();
      for (int flips = 1 + random.nextInt(4); flips > 0; flips--) {
        int at = random.nextInt(mutated.length);
        if (random.nextBoolean() && name.endsWith("zip")) {
          at = mutated.length - 1 - random.nextInt(400); // the directory and its end
        }
        mutated[at] = (byte) (random.nextBoolean() ? random.nextInt(256) : -1);
      }
      Files.write(file, mutated);
      assertTimeoutPreemptively(
          Duration.ofSeconds(60),
          () -> {
            Path dataset = folder.resolve("dataset");
            try {
              Packs.pack(List.of(file), dataset, Packs.SMALL_CHUNKS.withSkipUnreadable(true));
              Packs.contents(dataset);
              Folders.deleteTree(dataset);
            } catch (Failure expected) {
              assertThat(expected).hasMessageNotContaining("\n");
            }
            assertHolds(folder, name);
          });
    }
  }
}
