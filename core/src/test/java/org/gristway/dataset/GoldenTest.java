package org.gristway.dataset;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import java.net.URISyntaxException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.zip.CRC32C;
import org.gristway.Failure.Kind;
import org.gristway.Progress;
import org.gristway.pack.PackOptions;
import org.gristway.pack.Packs;
import org.gristway.pack.Trees;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A small dataset that is kept with the sources, in the folder {@code golden}. What we read of it
 * and what we write never changes within a format version: a test here that fails after a change
 * means that datasets in the world would no longer be read, or no longer be reproduced.
 */
@Tag("java")
class GoldenTest {

  private static final SortedMap<String, byte[]> FIRST =
      Trees.of(
          "cat/1.jpg", "a picture of a cat",
          "cat/1.json", "{\"tail\": 1}",
          "dog/été.jpg", "ein Bild eines Hundes",
          "dog/été.json", "{}",
          "empty/", "",
          "readme", "at the top, without a class");

  private static final SortedMap<String, byte[]> SECOND =
      Trees.of("cat/2.jpg", "another cat", "cat/2.json", "", "ant/中.png", "new class");

  private static final PackOptions OPTIONS = Packs.SMALL_CHUNKS.withStemParts(true).withSeed(42);

  @TempDir Path folder;

  private static Path golden() throws URISyntaxException {
    return Path.of(GoldenTest.class.getResource("/golden").toURI());
  }

  private Path pack() {
    Path dataset = folder.resolve("dataset");
    Packs.pack(List.of(Trees.write(FIRST, folder.resolve("first"))), dataset, OPTIONS);
    Packs.append(List.of(Trees.write(SECOND, folder.resolve("second"))), dataset, OPTIONS);
    return dataset;
  }

  @Test
  void packing_makes_the_golden_files_again() throws Exception {
    Packs.assertSameFiles(pack(), golden());
  }

  @Test
  void the_golden_files_are_read() throws Exception {
    assertThat(Verifier.verify(golden(), Progress.NONE).faults()).isEmpty();
    assertThat(Packs.labels(golden()))
        .isEqualTo(Map.of("cat/1", 0, "dog/été", 1, "readme", -1, "cat/2", 0, "ant/中", 2));
    try (Dataset dataset = Dataset.open(golden())) {
      Sample dog = dataset.find("dog/été").orElseThrow();
      assertThat(new String(dataset.read(dog, dog.part("jpg")), UTF_8))
          .isEqualTo("ein Bild eines Hundes");
      assertThat(new String(dataset.read(dog, dog.part("json")), UTF_8)).isEqualTo("{}");
      assertThat(dataset.list("")).containsExactly("ant/", "cat/", "dog/", "readme");
      assertThat(dataset.labelName(1)).contains("dog");
    }
    try (Dataset dataset = Dataset.open(golden(), 1)) {
      assertThat(dataset.size()).isEqualTo(3);
    }
  }

  @Test
  void chunk_fields_are_where_the_drawing_puts_them() throws Exception {
    ByteBuffer chunk = read("chunk-000001.gwc");
    ByteBuffer first = read("chunk-000000.gwc");
    assertText(chunk, 0, "GWCHUNK\n");
    assertThat(chunk.getInt(8)).as("format version").isEqualTo(1);
    assertThat(chunk.getInt(12)).as("chunk number").isEqualTo(1);
    assertThat(chunk.getInt(16)).as("dataset version").isEqualTo(2);
    assertThat(chunk.getInt(20)).as("flags").isEqualTo(1);
    assertThat(chunk.slice(24, 16)).as("dataset id").isEqualTo(first.slice(24, 16));
    assertThat(chunk.getLong(40)).as("first sample").isEqualTo(3);
    assertThat(chunk.getLong(48)).as("samples").isEqualTo(2);
    long shapeBytes = chunk.getLong(56);
    assertThat(shapeBytes).as("bytes of shapes").isEqualTo(2 + (2 + 3) + (2 + 4) + 2 + (2 + 3));
    assertThat(chunk.getLong(64))
        .as("bytes of names")
        .isEqualTo("cat/2ant/中".getBytes(UTF_8).length + 8);
    assertThat(chunk.getLong(72)).as("bytes of data").isEqualTo(20);
    assertThat(chunk.getLong(80)).as("offset of data").isEqualTo(4096);
    assertThat(chunk.getLong(88)).as("bytes of file").isEqualTo(4096 + 20 + 24);
    assertThat(chunk.capacity()).isEqualTo(4096 + 20 + 24);
    assertThat(chunk.getInt(96)).as("table").isEqualTo(checksum(chunk, 128, 4096 - 128));
    assertThat(chunk.getInt(100))
        .as("header of the chunk before it")
        .isEqualTo(read("chunk-000000.gwc").getInt(124));
    assertZeros(chunk, 104, 124);
    assertThat(chunk.getInt(124)).as("header").isEqualTo(checksum(chunk, 0, 124));

    int entries = (int) (128 + shapeBytes);
    int names = entries + 2 * 24;
    List<String> keys = Packs.keys(golden()).subList(3, 5);
    int nameStart = 0;
    int dataStart = 0;
    for (int i = 0; i < 2; i++) {
      int entry = entries + 24 * i;
      boolean cat = keys.get(i).equals("cat/2");
      int dataEnd = dataStart + (cat ? 11 : 9);
      byte[] key = keys.get(i).getBytes(UTF_8);
      int nameEnd = nameStart + key.length + (cat ? 8 : 0);
      assertThat(chunk.getLong(entry)).as("end of bytes").isEqualTo(dataEnd);
      assertThat(chunk.getInt(entry + 8)).as("end of names").isEqualTo(nameEnd);
      assertThat(chunk.getInt(entry + 12))
          .as("checksum")
          .isEqualTo(checksum(chunk, 4096 + dataStart, dataEnd - dataStart));
      assertThat(chunk.getInt(entry + 16)).as("label").isEqualTo(cat ? 0 : 2);
      assertThat(chunk.getShort(entry + 20)).as("shape").isEqualTo((short) i);
      assertThat(chunk.getShort(entry + 22)).as("flags").isEqualTo((short) 1);
      assertText(chunk, names + nameStart, keys.get(i));
      if (cat) {
        assertThat(chunk.getLong(names + nameStart + key.length)).as("end of part").isEqualTo(11);
      }
      nameStart = nameEnd;
      dataStart = dataEnd;
    }
    assertZeros(chunk, names + nameStart, 4096);
    int footer = 4096 + 20;
    assertThat(chunk.getLong(footer)).as("bytes of file").isEqualTo(footer + 24);
    assertThat(chunk.getInt(footer + 8)).as("header's checksum").isEqualTo(chunk.getInt(124));
    assertThat(chunk.getInt(footer + 12)).isEqualTo(checksum(chunk, footer, 12));
    assertText(chunk, footer + 16, "GWCFOOT\n");
  }

  @Test
  void snapshot_fields_are_where_the_drawing_puts_them() throws Exception {
    ByteBuffer snapshot = read("snapshot-000002.gws");
    ByteBuffer chunk = read("chunk-000001.gwc");
    List<String> keys = Packs.keys(golden());
    int nameBytes = 0;
    for (String key : keys) {
      boolean twoParts = key.startsWith("cat") || key.startsWith("dog");
      nameBytes += key.getBytes(UTF_8).length + (twoParts ? 8 : 0);
    }
    assertText(snapshot, 0, "GWSNAPS\n");
    assertThat(snapshot.getInt(8)).as("format version").isEqualTo(1);
    assertThat(snapshot.getInt(12)).as("dataset version").isEqualTo(2);
    assertThat(snapshot.slice(16, 16)).as("dataset id").isEqualTo(chunk.slice(24, 16));
    assertThat(snapshot.getLong(48)).as("samples").isEqualTo(5);
    assertThat(snapshot.getLong(56)).as("chunks").isEqualTo(2);
    long dataBytes = 20;
    for (byte[] file : FIRST.values()) {
      dataBytes += file.length;
    }
    assertThat(snapshot.getLong(64)).as("bytes of all samples").isEqualTo(dataBytes);
    assertThat(snapshot.getLong(72)).as("named labels").isEqualTo(3);
    assertThat(snapshot.getLong(80)).as("bytes of names").isEqualTo(nameBytes);
    assertThat(snapshot.getLong(88)).as("home slots").isEqualTo(5 + 2);
    int chunks = 256;
    int samples = chunks + 3 * 40;
    int names = samples + 6 * 24;
    int order = align(names + nameBytes);
    int index = align(order + 5 * 4);
    assertThat(snapshot.getLong(96)).as("samples at").isEqualTo(samples);
    assertThat(snapshot.getLong(104)).as("names at").isEqualTo(names);
    assertThat(snapshot.getLong(112)).as("key order at").isEqualTo(order);
    assertThat(snapshot.getLong(120)).as("key index at").isEqualTo(index);
    int slots = (int) snapshot.getLong(128);
    assertThat(slots).isBetween(7, 13);
    int labels = align(index + 6 * slots);
    int shapes = align(labels + 3 * 4);
    assertThat(snapshot.getLong(136)).as("labels at").isEqualTo(labels);
    assertThat(snapshot.getLong(144)).as("shapes at").isEqualTo(shapes);
    int checksums = (int) snapshot.getLong(152);
    assertThat(checksums).isEqualTo(shapes + 13 + 4 + 7);
    assertThat(snapshot.getLong(160)).as("bytes of file").isEqualTo(snapshot.capacity());
    assertThat(snapshot.getInt(168)).as("kind of labels").isEqualTo(1);
    assertZeros(snapshot, 172, 252);
    assertThat(snapshot.getInt(252)).as("header").isEqualTo(checksum(snapshot, 0, 252));

    assertThat(snapshot.getLong(chunks + 40)).as("first sample").isEqualTo(3);
    assertThat(snapshot.getLong(chunks + 48)).as("position").isEqualTo(dataBytes - 20);
    assertThat(snapshot.getLong(chunks + 56)).as("offset of data").isEqualTo(4096);
    assertThat(snapshot.getLong(chunks + 64)).as("bytes of file").isEqualTo(chunk.capacity());
    assertThat(snapshot.getInt(chunks + 72)).as("checksum").isEqualTo(chunk.getInt(124));
    assertThat(snapshot.getInt(chunks + 76)).as("added in").isEqualTo(2);
    assertThat(snapshot.getLong(chunks + 80)).as("samples in all").isEqualTo(5);
    assertThat(snapshot.getLong(chunks + 88)).as("bytes in all").isEqualTo(dataBytes);

    long nameEnd = 0;
    for (int i = 0; i < 5; i++) {
      int record = samples + 24 * i;
      assertThat(snapshot.getLong(record + 8) & 0xffff_ffff_ffffL).isEqualTo(nameEnd);
      assertText(snapshot, (int) (names + nameEnd), keys.get(i));
      int shape = snapshot.getShort(record + 14);
      nameEnd += keys.get(i).getBytes(UTF_8).length + (shapeHasTwoParts(keys.get(i)) ? 8 : 0);
      assertThat(shape).isBetween(0, 2);
      int rank =
          Trees.of(keys.stream().flatMap(key -> List.of(key, "").stream()).toArray(String[]::new))
              .headMap(keys.get(i))
              .size();
      assertThat(snapshot.getInt(order + 4 * rank)).as("key order").isEqualTo(i);
    }
    for (String key : keys) {
      long hash = hash(key.getBytes(UTF_8));
      int slot = (int) Math.unsignedMultiplyHigh(hash, 7);
      while (snapshot.getInt(index + 6 * slot) != keys.indexOf(key) + 1) {
        assertThat(snapshot.getInt(index + 6 * slot)).as("no gap before " + key).isNotZero();
        slot++;
      }
      assertThat(snapshot.getShort(index + 6 * slot + 4)).isEqualTo((short) hash);
    }
    assertThat(snapshot.getInt(index + 6 * (slots - 1))).as("last slot").isZero();
    for (int label = 0; label < 3; label++) {
      String folderOfLabel = List.of("cat", "dog", "ant").get(label);
      assertThat(keys.get(snapshot.getInt(labels + 4 * label))).startsWith(folderOfLabel + "/");
    }
    assertThat(snapshot.getInt(checksums)).isEqualTo(checksum(snapshot, 0, checksums));
    int footer = checksums + 4;
    assertThat(snapshot.getLong(footer)).isEqualTo(footer + 28);
    assertThat(snapshot.getInt(footer + 8)).isEqualTo(snapshot.getInt(252));
    assertThat(snapshot.getInt(footer + 12)).isEqualTo(checksum(snapshot, checksums, 4));
    assertThat(snapshot.getInt(footer + 16)).isEqualTo(checksum(snapshot, footer, 16));
    assertText(snapshot, footer + 20, "GWSFOOT\n");
  }

  private static boolean shapeHasTwoParts(String key) {
    return key.startsWith("cat") || key.startsWith("dog");
  }

  /** The hash of keys, as its comment describes it, written anew. */
  private static long hash(byte[] key) {
    long state = 0x9e3779b97f4a7c15L;
    ByteBuffer bytes = ByteBuffer.wrap(key).order(ByteOrder.LITTLE_ENDIAN);
    while (bytes.remaining() >= 8) {
      state = fold(state ^ bytes.getLong());
    }
    byte[] rest = new byte[8];
    bytes.get(rest, 0, bytes.remaining());
    rest[7] ^= (byte) key.length;
    state = fold(state ^ ByteBuffer.wrap(rest).order(ByteOrder.LITTLE_ENDIAN).getLong());
    return fold(state + 0x9e3779b97f4a7c15L);
  }

  private static long fold(long value) {
    long factor = 0xd6e8feb86659fd93L;
    return value * factor ^ Math.unsignedMultiplyHigh(value, factor);
  }

  private static int align(int offset) {
    return (offset + 7) / 8 * 8;
  }

  private static ByteBuffer read(String name) throws Exception {
    return ByteBuffer.wrap(Files.readAllBytes(golden().resolve(name)))
        .order(ByteOrder.LITTLE_ENDIAN);
  }

  private static int checksum(ByteBuffer bytes, int from, int length) {
    CRC32C checksum = new CRC32C();
    checksum.update(bytes.array(), from, length);
    return (int) checksum.getValue();
  }

  private static void assertText(ByteBuffer bytes, int at, String text) {
    int length = text.getBytes(UTF_8).length;
    assertThat(new String(bytes.array(), at, length, UTF_8)).isEqualTo(text);
  }

  private static void assertZeros(ByteBuffer bytes, int from, int to) {
    assertThat(Arrays.copyOfRange(bytes.array(), from, to)).containsOnly(0);
  }

  @Test
  void newer_formats_are_refused_by_name() throws Exception {
    Path dataset = pack();
    patchVersion(dataset.resolve("chunk-000000.gwc"), 124);
    assertFails(
        Kind.WRONG_CALL,
        () -> Packs.contents(dataset),
        "chunk-000000.gwc",
        "chunk format version 7",
        "newer Gristway");
    assertFails(
        Kind.WRONG_CALL,
        () -> Rebuilder.rebuild(dataset, Progress.NONE),
        "chunk-000000.gwc",
        "version 7");
    patchVersion(dataset.resolve("snapshot-000002.gws"), 252);
    assertFails(
        Kind.WRONG_CALL,
        () -> Dataset.open(dataset),
        "snapshot-000002.gws",
        "snapshot format version 7",
        "newer Gristway");
  }

  /** Makes it format version 7, with a header whose checksum is right. */
  private static void patchVersion(Path file, int checksumAt) throws Exception {
    ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
    bytes.putInt(8, 7);
    bytes.putInt(checksumAt, checksum(bytes, 0, checksumAt));
    Files.write(file, bytes.array());
  }
}
