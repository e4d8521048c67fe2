package org.gristway.pack;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SortedMap;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.gristway.Failure.Kind;
import org.gristway.dataset.Dataset;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Tag("java")
class ZipSourceTest {

  private static final SortedMap<String, byte[]> TREE =
      Trees.of(
          "été/café.txt",
          "1".repeat(5000),
          "été/empty",
          "",
          "b/" + "n".repeat(200),
          "2",
          "top",
          "3");

  @TempDir Path folder;

  @Test
  void stored_and_deflated_files_are_read_behind_a_front_and_before_a_comment() throws IOException {
    Path zip = folder.resolve("source.zip");
    try (OutputStream file = Files.newOutputStream(zip)) {
      file.write("#!/bin/sh\nsomething in front\n".getBytes(StandardCharsets.UTF_8));
      try (ZipOutputStream out = new ZipOutputStream(file)) {
        out.setComment("a comment, PK\5\6 in it");
        for (Map.Entry<String, byte[]> each : TREE.entrySet()) {
          ZipEntry entry = new ZipEntry(each.getKey());
          if (each.getKey().startsWith("b")) {
            store(entry, each.getValue());
          }
          out.putNextEntry(entry);
          out.write(each.getValue());
          out.closeEntry();
        }
      }
    }
    assertHolds(zip, TREE);
  }

  private static void store(ZipEntry entry, byte[] content) {
    CRC32 checksum = new CRC32();
    checksum.update(content);
    entry.setMethod(ZipEntry.STORED);
    entry.setSize(content.length);
    entry.setCrc(checksum.getValue());
  }

  @Test
  void zips_of_the_system_program_are_read() {
    Path source = Trees.write(TREE, folder.resolve("source"));
    Programs.sh(source, "zip -q -r -X ../source.zip .");
    assertHolds(folder.resolve("source.zip"), TREE);
  }

  @Test
  void a_name_in_front_of_which_stands_a_dot_and_a_slash_is_the_same_name() {
    Path zip = Trees.zip(Trees.renamed(TREE, name -> "./" + name), folder.resolve("source.zip"));
    assertHolds(zip, TREE);
  }

  private void assertHolds(Path zip, Map<String, byte[]> tree) {
    Path dataset = folder.resolve("dataset");
    Packs.pack(zip, dataset);
    assertThat(Packs.contents(dataset)).isEqualTo(Model.of(new Model.Files(tree, false, true)));
  }

  @Test
  void more_files_than_the_old_form_can_count_are_read() throws IOException {
    int count = 70_000;
    Path zip = folder.resolve("source.zip");
    try (ZipOutputStream out =
        new ZipOutputStream(new BufferedOutputStream(Files.newOutputStream(zip), 1 << 16))) {
      for (int i = 0; i < count; i++) {
        byte[] content = {(byte) i, (byte) (i >> 8), (byte) (i >> 16)};
        ZipEntry entry = new ZipEntry(i % 7 + "/" + i);
        store(entry, content);
        out.putNextEntry(entry);
        out.write(content);
        out.closeEntry();
      }
    }
    Path dataset = folder.resolve("dataset");
    Packs.pack(java.util.List.of(zip), dataset, PackOptions.DEFAULT);
    try (Dataset open = Dataset.open(dataset)) {
      assertThat(open.size()).isEqualTo(count);
      for (int i = 0; i < count; i += 997) {
        var sample = open.find(i % 7 + "/" + i).orElseThrow();
        assertThat(open.read(sample))
            .isEqualTo(new byte[] {(byte) i, (byte) (i >> 8), (byte) (i >> 16)});
        assertThat(sample.label()).isEqualTo(i % 7);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"../out", "a/../../out", "/etc/out", "a//b"})
  void a_zip_with_a_name_that_leads_out_is_refused(String name) {
    Path zip = Trees.zip(Trees.of("good.txt", "1", name, "2"), folder.resolve("source.zip"));
    assertFails(Kind.DAMAGED, () -> Packs.pack(zip, folder.resolve("dataset")), "source.zip", name);
    Packs.assertHolds(folder, "source.zip");
  }

  @Test
  void encrypted_files_are_unreadable() throws IOException {
    Path zip = Trees.zip(Trees.of("a/open", "1", "a/secret", "2"), folder.resolve("source.zip"));
    patchDirectory(zip, "a/secret", 8, 1);
    assertUnreadable(zip, "a/secret", "encrypted", "a/open");
  }

  @Test
  void files_of_unknown_compression_are_unreadable() throws IOException {
    Path zip = Trees.zip(Trees.of("a/plain", "1", "a/odd", "2"), folder.resolve("source.zip"));
    patchDirectory(zip, "a/odd", 10, 93);
    assertUnreadable(zip, "a/odd", "method 93", "a/plain");
  }

  @Test
  void a_file_that_fails_the_zips_own_checksum_is_unreadable() throws IOException {
    Path zip = Trees.zip(Trees.of("a/good", "1", "a/bad", "2"), folder.resolve("source.zip"));
    patchDirectory(zip, "a/bad", 16, 0x1234);
    assertUnreadable(zip, "a/bad", "checksum", "a/good");
  }

  /** Changes two bytes of an entry of the zip's directory. */
  private static void patchDirectory(Path zip, String name, int field, int value)
      throws IOException {
    byte[] bytes = Files.readAllBytes(zip);
    ByteBuffer view = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    for (int at = 0; at < bytes.length - 46; at++) {
      if (view.getInt(at) == 0x02014b50
          && new String(bytes, at + 46, view.getShort(at + 28), StandardCharsets.UTF_8)
              .equals(name)) {
        view.putShort(at + field, (short) value);
      }
    }
    Files.write(zip, bytes);
  }

  private void assertUnreadable(Path zip, String name, String why, String other) {
    Path dataset = folder.resolve("dataset");
    assertFails(Kind.DAMAGED, () -> Packs.pack(zip, dataset), "1 file could not be read");
    Packs.assertHolds(folder, "source.zip");
    assertThat(Packs.packTelling(zip, dataset, Packs.SMALL_CHUNKS.withSkipUnreadable(true)))
        .singleElement()
        .asString()
        .contains(name, why);
    assertThat(Packs.labels(dataset)).containsOnlyKeys(other);
  }

  @Test
  void links_in_a_zip_are_left_out_and_told() {
    Path source = Trees.write(Trees.of("a.txt", "a"), folder.resolve("source"));
    Programs.sh(source, "ln -s a.txt link.txt && zip -q -y -r ../source.zip .");
    Path dataset = folder.resolve("dataset");
    assertThat(Packs.packTelling(folder.resolve("source.zip"), dataset, Packs.SMALL_CHUNKS))
        .singleElement()
        .asString()
        .contains("link.txt", "link");
    assertThat(Packs.labels(dataset)).containsOnlyKeys("a.txt");
  }

  @Test
  void an_empty_zip_has_nothing_to_pack() {
    Path zip = Trees.zip(new LinkedHashMap<>(), folder.resolve("source.zip"));
    assertFails(Kind.WRONG_CALL, () -> Packs.pack(zip, folder.resolve("dataset")), "source.zip");
  }
}
