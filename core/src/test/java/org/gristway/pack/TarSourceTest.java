package org.gristway.pack;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.zip.GZIPOutputStream;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;
import org.apache.commons.compress.archivers.tar.TarConstants;
import org.gristway.Failure.Kind;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@Tag("java")
class TarSourceTest {

  @TempDir Path folder;

  /** Names that tars store in different ways: short, over 100 bytes, not ASCII, both. */
  private static SortedMap<String, byte[]> awkwardNames() {
    return Trees.of(
        "plain.txt",
        "1",
        "été/café.txt",
        "2",
        "中文/文件.txt",
        "3",
        "long/" + "n".repeat(150) + ".txt",
        "4",
        "é".repeat(60) + "/" + "ü".repeat(80) + ".txt",
        "5",
        "deep/" + "d/".repeat(80) + "file.txt",
        "6",
        "empty.bin",
        "");
  }

  @ParameterizedTest
  @CsvSource({"gnu, tar", "pax, tar", "gnu, tar.gz", "pax, tar.gz", "posix, tgz"})
  void tars_of_the_system_program_are_read(String format, String ending) {
    SortedMap<String, byte[]> tree = awkwardNames();
    Path source = Trees.write(tree, folder.resolve("source"));
    String tar = "../source." + ending;
    String compress = ending.equals("tar") ? "" : "z";
    Programs.sh(
        source, "tar --sort=name --format=" + format + " -c" + compress + "f " + tar + " .");
    assertHolds(folder.resolve("source." + ending), tree);
  }

  @ParameterizedTest
  @ValueSource(ints = {TarArchiveOutputStream.LONGFILE_GNU, TarArchiveOutputStream.LONGFILE_POSIX})
  void tars_of_commons_compress_are_read(int longNames) {
    SortedMap<String, byte[]> tree = awkwardNames();
    assertHolds(Trees.tar(tree, folder.resolve("source.tar"), longNames), tree);
  }

  @Test
  void a_name_in_front_of_which_stands_a_dot_and_a_slash_is_the_same_name() {
    Map<String, byte[]> tree = awkwardNames();
    Path tar = Trees.tar(Trees.renamed(tree, name -> "./" + name), folder.resolve("source.tar"));
    assertHolds(tar, tree);
  }

  private void assertHolds(Path tar, Map<String, byte[]> tree) {
    Path dataset = folder.resolve("dataset");
    Packs.pack(tar, dataset);
    assertThat(Packs.contents(dataset)).isEqualTo(Model.of(new Model.Files(tree, true, false)));
  }

  @Test
  void parts_of_a_sample_are_the_files_in_a_row_that_share_their_stem() {
    Map<String, byte[]> tree = new LinkedHashMap<>();
    List<String> names =
        List.of("x.jpg", "x.seg.png", "d.v1/x.jpg", ".hidden", ".dot.jpg", "y", "z.", "d.v1/w..b");
    names.forEach(name -> tree.put(name, name.getBytes(StandardCharsets.UTF_8)));
    Path dataset = folder.resolve("dataset");
    Packs.pack(Trees.tar(tree, folder.resolve("source.tar")), dataset);
    Map<String, List<String>> parts = new TreeMap<>();
    Packs.contents(dataset)
        .forEach((key, content) -> parts.put(key, List.copyOf(content.parts().keySet())));
    assertThat(parts)
        .isEqualTo(
            Map.of(
                "x", List.of("jpg", "seg.png"),
                "d.v1/x", List.of("jpg"),
                ".hidden", List.of(""),
                ".dot", List.of("jpg"),
                "y", List.of(""),
                "z.", List.of(""),
                "d.v1/w", List.of(".b")));
  }

  @Test
  void sparse_files_are_read_whole_or_not_at_all() {
    Path source = Trees.write(Trees.of("small.txt", "small"), folder.resolve("source"));
    Programs.sh(source, "dd if=/dev/zero of=holes.bin bs=1 count=0 seek=300000 2>&1");
    Programs.sh(source, "printf end >> holes.bin");
    byte[] holes = Trees.read(source).get("holes.bin");
    for (String format : List.of("gnu", "pax")) {
      Programs.sh(source, "tar --sparse --format=" + format + " -czf ../" + format + ".tgz *");
      Path dataset = folder.resolve(format);
      Packs.pack(folder.resolve(format + ".tgz"), dataset);
      byte[] packed = Packs.contents(dataset).get("holes").parts().get("bin");
      assertThat(Arrays.equals(packed, holes)).as(format).isTrue();

      Programs.sh(source, "tar --sparse --format=" + format + " -cf ../" + format + ".tar *");
      Path tar = folder.resolve(format + ".tar");
      Path none = folder.resolve("none");
      assertFails(Kind.DAMAGED, () -> Packs.pack(tar, none), "1 file could not be read");
      assertThat(Packs.packTelling(tar, none, Packs.SMALL_CHUNKS.withSkipUnreadable(true)))
          .singleElement()
          .asString()
          .contains("holes.bin", "sparse");
      Programs.sh(folder, "rm -r none");
    }
  }

  @Test
  void symbolic_links_and_special_files_in_a_tar_are_left_out_and_told() {
    Path source = Trees.write(Trees.of("a.txt", "a", "b.txt", "b"), folder.resolve("source"));
    Programs.sh(source, "ln -s a.txt link.txt && ln b.txt z-hard.txt && mkfifo pipe");
    Programs.sh(source, "tar --sort=name -cf ../source.tar .");
    Path dataset = folder.resolve("dataset");
    List<String> lines =
        Packs.packTelling(folder.resolve("source.tar"), dataset, Packs.SMALL_CHUNKS);
    assertThat(lines).hasSize(2).anyMatch(line -> line.contains("link.txt: it is a symbolic link"));
    assertThat(lines).anyMatch(line -> line.contains("pipe")).allMatch(line -> line.contains(": "));
    assertThat(Packs.labels(dataset)).containsOnlyKeys("a", "b", "z-hard");
  }

  @ParameterizedTest
  @CsvSource({"gnu, tar", "pax, tar", "gnu, tar.gz", "pax, tgz"})
  void hard_links_in_a_tar_are_the_files_that_they_are(String format, String ending)
      throws IOException {
    Random random = new Random(Seeds.of("hard_links_in_a_tar_are_the_files_that_they_are"));
    SortedMap<String, byte[]> tree = Trees.randomParts(random, 30);
    tree.put("large.bin", Trees.bytes(random, 200_000));
    tree.put("a.cls", "7".getBytes(StandardCharsets.UTF_8));
    Path source = Trees.write(tree, folder.resolve("source"));
    List<String> names = List.copyOf(tree.keySet());
    for (int i = 0; i < 40; i++) {
      String target = i == 0 ? "large.bin" : names.get(random.nextInt(names.size()));
      String name = (random.nextBoolean() ? "a" : "zz") + i + "/" + "n".repeat(i * 4) + ".link";
      Files.createDirectories(source.resolve(name).getParent());
      Files.createLink(source.resolve(name), source.resolve(target));
    }
    Files.createLink(source.resolve("b.cls"), source.resolve("a.cls"));
    Path tar = folder.resolve("source." + ending);
    String compress = ending.equals("tar") ? "" : "z";
    Programs.sh(
        source, "tar --sort=name --format=" + format + " -c" + compress + "f " + tar + " .");
    assertThat(Programs.sh(folder, "tar -tvf " + tar).lines().filter(l -> l.startsWith("h")))
        .hasSize(41);
    Path dataset = folder.resolve("dataset");
    PackReport report = Packs.pack(tar, dataset);
    assertThat(report.leftOut()).isZero();
    SortedMap<String, Packs.Content> expected =
        Model.of(new Model.Files(Trees.read(source), true, false));
    for (String labelled : List.of("a", "b")) {
      expected.computeIfPresent(labelled, (key, content) -> new Packs.Content(7, content.parts()));
    }
    assertThat(Packs.contents(dataset)).isEqualTo(expected);
  }

  /** Writes a tar of one file each, or of a link where there is a name to link to. */
  private Path linked(String ending, String[]... entries) throws IOException {
    Path file = folder.resolve("linked." + ending);
    try (OutputStream plain = Files.newOutputStream(file);
        OutputStream out = ending.equals("tar") ? plain : new GZIPOutputStream(plain);
        TarArchiveOutputStream tar = new TarArchiveOutputStream(out, "UTF-8")) {
      for (String[] each : entries) {
        byte[] content = each[0].getBytes(StandardCharsets.UTF_8);
        boolean isLink = each.length > 1;
        byte type = isLink ? (byte) each[1].charAt(0) : TarConstants.LF_NORMAL;
        TarArchiveEntry entry = new TarArchiveEntry(each[0], type);
        if (isLink) {
          entry.setLinkName(each[2]);
        } else {
          entry.setSize(content.length);
        }
        tar.putArchiveEntry(entry);
        tar.write(content, 0, isLink ? 0 : content.length);
        tar.closeArchiveEntry();
      }
    }
    return file;
  }

  @ParameterizedTest
  @ValueSource(strings = {"tar", "tar.gz"})
  void a_hard_link_to_what_is_not_there_yet_is_an_error_that_names_both(String ending)
      throws IOException {
    String[] later = {"b", "1", "z"};
    String[] missing = {"c", "1", "none/at/all"};
    String[] itself = {"d", "1", "d"};
    String[] toFolder = {"f", "1", "folder"};
    Path tar =
        linked(
            ending,
            new String[] {"a"},
            later,
            missing,
            itself,
            new String[] {"folder/x"},
            toFolder,
            new String[] {"z"});
    Path dataset = folder.resolve("dataset");
    assertFails(Kind.DAMAGED, () -> Packs.pack(tar, dataset), "4 files could not be read");
    List<String> lines =
        Packs.packTelling(tar, dataset, Packs.SMALL_CHUNKS.withSkipUnreadable(true));
    assertThat(lines).hasSize(4);
    for (String[] each : List.of(later, missing, itself, toFolder)) {
      assertThat(lines)
          .anyMatch(
              line ->
                  line.startsWith("left out: " + tar + "/" + each[0] + ": ")
                      && line.contains("hard link to '" + each[2] + "', which does not stand"));
    }
    assertThat(Packs.labels(dataset)).containsOnlyKeys("a", "folder/x", "z");
  }

  @ParameterizedTest
  @ValueSource(strings = {"tar", "tar.gz"})
  void a_hard_link_to_a_link_is_what_that_is(String ending) throws IOException {
    Path tar =
        linked(
            ending,
            new String[] {"./a"},
            new String[] {"b", "1", "a"},
            new String[] {"c", "1", "./b"},
            new String[] {"s", "2", "a"},
            new String[] {"t", "1", "s"});
    Path dataset = folder.resolve("dataset");
    List<String> lines = Packs.packTelling(tar, dataset, Packs.SMALL_CHUNKS);
    assertThat(lines).hasSize(2).allMatch(line -> line.contains("symbolic link"));
    assertThat(lines).last().asString().contains("/t: it is a hard link to 's'");
    Map<String, Packs.Content> contents = Packs.contents(dataset);
    assertThat(contents).containsOnlyKeys("a", "b", "c");
    for (Packs.Content content : contents.values()) {
      assertThat(content.parts().get("")).isEqualTo("./a".getBytes(StandardCharsets.UTF_8));
    }
  }

  @Test
  void hard_links_to_more_files_than_fit_into_memory_are_refused_with_what_to_do()
      throws IOException {
    Path file = folder.resolve("linked.tar.gz");
    try (OutputStream plain = Files.newOutputStream(file);
        OutputStream out = new BufferedOutputStream(new GZIPOutputStream(plain), 1 << 16);
        TarArchiveOutputStream tar = new TarArchiveOutputStream(out, "UTF-8")) {
      for (int i = 0; i <= 300_000; i++) {
        TarArchiveEntry entry = new TarArchiveEntry("link" + i, TarConstants.LF_LINK);
        entry.setLinkName("file" + i);
        tar.putArchiveEntry(entry);
        tar.closeArchiveEntry();
      }
    }
    assertFails(
        Kind.ENVIRONMENT,
        () -> Packs.pack(file, folder.resolve("dataset")),
        "hard links to more than 300000 files",
        "extract it");
    Packs.assertHolds(folder, "linked.tar.gz");
  }

  @ParameterizedTest
  @ValueSource(strings = {"tar", "tar.gz"})
  void a_hard_link_that_has_its_bytes_with_it_is_the_file_that_it_names(String ending)
      throws IOException {
    Path file = folder.resolve("linked." + ending);
    byte[] content = Trees.bytes(new Random(1), 3000);
    try (OutputStream plain = Files.newOutputStream(file);
        OutputStream out = ending.equals("tar") ? plain : new GZIPOutputStream(plain);
        TarArchiveOutputStream tar = new TarArchiveOutputStream(out, "UTF-8")) {
      for (String name : List.of("a", "b", "c")) {
        boolean isLink = !name.equals("a");
        TarArchiveEntry entry =
            new TarArchiveEntry(name, isLink ? TarConstants.LF_LINK : TarConstants.LF_NORMAL);
        entry.setLinkName(isLink ? "a" : "");
        entry.setSize(content.length);
        tar.putArchiveEntry(entry);
        tar.write(content);
        tar.closeArchiveEntry();
      }
    }
    Path dataset = folder.resolve("dataset");
    Packs.pack(file, dataset);
    Map<String, Packs.Content> contents = Packs.contents(dataset);
    assertThat(contents).containsOnlyKeys("a", "b", "c");
    for (Packs.Content each : contents.values()) {
      assertThat(each.parts().get("")).isEqualTo(content);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"tar", "tar.gz"})
  void a_sample_with_a_part_that_is_a_link_is_an_error_that_names_it(String ending)
      throws IOException {
    Path tar =
        linked(
            ending,
            new String[] {"a.jpg"},
            new String[] {"a.txt"},
            new String[] {"b.jpg"},
            new String[] {"b.txt", "2", "a.txt"},
            new String[] {"./c.jpg", "2", "a.jpg"},
            new String[] {"./c.txt"},
            new String[] {"d.jpg", "2", "a.jpg"},
            new String[] {"d.txt", "2", "a.txt"},
            new String[] {"e"},
            new String[] {"e.txt", "2", "a.txt"});
    Path dataset = folder.resolve("dataset");
    assertFails(Kind.DAMAGED, () -> Packs.pack(tar, dataset), "2 files could not be read");
    assertThat(dataset).doesNotExist();
    List<String> lines =
        Packs.packTelling(tar, dataset, Packs.SMALL_CHUNKS.withSkipUnreadable(true));
    assertThat(lines).hasSize(5).allMatch(line -> line.startsWith("left out: " + tar + "/"));
    assertThat(lines).allMatch(line -> line.contains("symbolic link"));
    assertThat(lines).element(0).asString().contains("/b.txt: ", "sample 'b' has other parts");
    assertThat(lines).element(1).asString().contains("c.jpg: ", "sample 'c' has other parts");
    assertThat(lines.subList(2, 5)).noneMatch(line -> line.contains("other parts"));
    assertThat(Packs.labels(dataset)).containsOnlyKeys("a", "e");
  }

  @Test
  void a_folder_sample_with_a_part_that_leads_out_is_an_error_that_names_it() {
    Path source = Trees.write(Trees.of("a.txt", "a", "b.jpg", "b"), folder.resolve("source"));
    Programs.sh(source, "touch ../x && ln -s ../x a.jpg && ln -s .. b.folder && ln -s . b.here");
    PackOptions options = Packs.SMALL_CHUNKS.withStemParts(true);
    Path dataset = folder.resolve("dataset");
    assertFails(
        Kind.DAMAGED,
        () -> Packs.pack(List.of(source), dataset, options),
        "1 file could not be read");
    List<String> lines = Packs.packTelling(source, dataset, options.withSkipUnreadable(true));
    assertThat(lines).hasSize(3);
    assertThat(lines).anyMatch(line -> line.contains("a.jpg: it is a link that leads out"));
    assertThat(Packs.labels(dataset)).containsOnlyKeys("b");
  }

  @ParameterizedTest
  @ValueSource(strings = {"../out", "a/../../out", "/etc/out", "a//b", "a/./b", ".."})
  void a_tar_with_a_name_that_leads_out_is_refused(String name) {
    Path tar = Trees.tar(Trees.of("good.txt", "1", name, "2"), folder.resolve("source.tar"));
    assertFails(Kind.DAMAGED, () -> Packs.pack(tar, folder.resolve("dataset")), "source.tar", name);
    Packs.assertHolds(folder, "source.tar");
  }

  @Test
  void a_name_that_is_not_text_is_unreadable() {
    Path source = Trees.write(Trees.of("good.txt", "1"), folder.resolve("source"));
    Programs.sh(source, "printf 2 > \"$(printf 'bad\\377.txt')\"");
    Programs.sh(source, "printf 3 > \"$(printf 'what?')\" && tar --format=gnu -cf ../source.tar .");
    Path tar = folder.resolve("source.tar");
    Path dataset = folder.resolve("dataset");
    assertFails(Kind.DAMAGED, () -> Packs.pack(tar, dataset), "1 file");
    assertThat(Packs.packTelling(tar, dataset, Packs.SMALL_CHUNKS.withSkipUnreadable(true)))
        .singleElement()
        .asString()
        .contains("bad\\xff.txt", "not UTF-8");
    assertThat(Packs.labels(dataset)).containsOnlyKeys("good", "what?");
  }

  @Test
  void the_same_file_twice_is_refused() {
    Path twice = folder.resolve("twice.tar");
    Path apart = folder.resolve("apart.tar");
    Path source = Trees.write(Trees.of("a.x", "1", "b.x", "2"), folder.resolve("source"));
    Programs.sh(source, "tar -cf ../twice.tar a.x && tar -rf ../twice.tar a.x");
    Programs.sh(source, "tar -cf ../apart.tar a.x b.x && tar -rf ../apart.tar a.x");
    Path dataset = folder.resolve("dataset");
    assertFails(Kind.WRONG_CALL, () -> Packs.pack(twice, dataset), "'a.x' twice");
    assertFails(Kind.WRONG_CALL, () -> Packs.pack(apart, dataset), "the key 'a'");
    Packs.assertHolds(folder, "twice.tar", "apart.tar", "source");
  }

  @Test
  void many_parts_of_one_stem_are_a_mistake_and_said_to_be_one() {
    SortedMap<String, byte[]> tree = Trees.of();
    for (int i = 0; i < 1100; i++) {
      tree.put("frame." + i, new byte[0]);
    }
    Path tar = Trees.tar(tree, folder.resolve("source.tar"));
    assertFails(
        Kind.WRONG_CALL, () -> Packs.pack(tar, folder.resolve("dataset")), "1024", "'frame'");
  }

  @Test
  void large_files_in_tars_are_read_whole() {
    Random random = new Random(Seeds.of("large_files_in_tars_are_read_whole"));
    SortedMap<String, byte[]> tree = Trees.of("small", "1");
    tree.put("large", Trees.bytes(random, 5_000_000));
    tree.put("z", Trees.bytes(random, 70_000));
    assertHolds(Trees.tar(tree, folder.resolve("source.tar")), tree);
  }
}
