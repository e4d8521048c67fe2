package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

@Tag("java")
class DatasetCommandsTest {

  private static final String TOM = "the bytes of Tom, who is a cat";

  /** So long that a listing of them fits into no pipe. */
  private static final int LONG_NAMES = 2000;

  @TempDir static Path folder;
  private static Path animals;
  private static Path pairs;
  private static Path many;

  @BeforeAll
  static void pack() throws IOException {
    Path source = folder.resolve("animals");
    write(source.resolve("cats/tom.txt"), TOM);
    write(source.resolve("cats/kitty.txt"), "and of Kitty");
    write(source.resolve("dogs/rex.txt"), "and of Rex");
    write(source.resolve("odd/a\tb\nc\rd\\e"), "");
    animals = folder.resolve("animals.gw");
    assertThat(Cli.run("pack", source, animals).isDone().outText())
        .isEqualTo(
            "packed 4 samples, 52 bytes, into 1 chunk: "
                + animals
                + " (version 1); all samples have labels, of 3 classes\n");

    Path parts = folder.resolve("pairs");
    write(parts.resolve("p/1.jpg"), "picture");
    write(parts.resolve("p/1.json"), "text");
    pairs = folder.resolve("pairs.gw");
    Cli.run("pack", "--parts", "stem", "--chunk-size=64KiB", parts, pairs).isDone();

    many = folder.resolve("many.gw");
    Cli.run("pack", "--keep-order", zip(), many).isDone();
  }

  private static Path write(Path file, String text) throws IOException {
    Files.createDirectories(file.getParent());
    return Files.writeString(file, text);
  }

  private static Path zip() throws IOException {
    Path zip = folder.resolve("many.zip");
    try (OutputStream file = Files.newOutputStream(zip);
        ZipOutputStream out = new ZipOutputStream(file)) {
      for (int i = 0; i < LONG_NAMES; i++) {
        out.putNextEntry(new ZipEntry("x".repeat(200) + i));
        out.write(i);
      }
    }
    return zip;
  }

  private static Path copy(Path dataset, String name) throws IOException {
    Path target = Files.createDirectory(folder.resolve(name));
    try (Stream<Path> files = Files.list(dataset)) {
      for (Path file : files.filter(f -> !f.getFileName().toString().startsWith(".")).toList()) {
        Files.copy(file, target.resolve(file.getFileName()));
      }
    }
    return target;
  }

  @Test
  void placesChunksOnNodes() throws IOException {
    Path source = folder.resolve("numbers");
    Random random = new Random(1);
    for (int i = 0; i < 40; i++) {
      byte[] bytes = new byte[10_000];
      random.nextBytes(bytes);
      Files.createDirectories(source);
      Files.write(source.resolve("n" + i), bytes);
    }
    Path numbers = folder.resolve("numbers.gw");
    Cli.run("pack", "--chunk-size=64KiB", source, numbers).isDone();
    Path a = folder.resolve("a.gw");
    Path b = folder.resolve("b.gw");
    assertThat(Cli.run("place", numbers, "--nodes", 2, a, b).isDone().outText())
        .matches(
            "node 0 of 2: 4 chunks, [0-9.]+ KiB, in \\Q%s\\E\nnode 1 of 2: 3 chunks, [0-9.]+ KiB, in \\Q%s\\E\n"
                .formatted(a, b));
    assertThat(Cli.run("place", "--nodes=2", numbers, a, b).isDone().outText())
        .contains(a + " (there already)\n", b + " (there already)\n");
    assertThat(Cli.run("info", b).isDone().outText()).contains("3 chunks, those of node 1 of 2\n");
    JsonNode info = Cli.run("info", "--json", b).isDone().json();
    assertThat(info.get("portion").toString()).isEqualTo("{\"node\":1,\"nodes\":2,\"chunks\":3}");
    assertThat(Cli.run("verify", a).isDone().outText()).contains("ok: ", "4 chunks");
    assertThat(Cli.run("read", a).complaint(2)).contains("node 0 of 2", "missing");
    assertThat(Cli.run("unpack", a, folder.resolve("c")).complaint(2)).contains("node 0 of 2");
    // A sample is in the one folder or in the other.
    Cli.Result inA = Cli.run("cat", a, "n7");
    Cli.Result inB = Cli.run("cat", b, "n7");
    assertThat((inA.exit() == 0 ? inA : inB).out()).hasSize(10_000);
    assertThat((inA.exit() == 0 ? inB : inA).complaint(2)).contains("'n7'", "another node");
    assertThat(Cli.run("place", numbers, "--nodes", 3, a, b).complaint(2))
        .contains("3 nodes cannot have 2 folders");
    assertThat(Cli.run("place", numbers, a, b).complaint(2)).contains("--nodes");
    assertThat(Cli.run("place", numbers, "--nodes", 2).complaint(2)).contains("DEST");
  }

  @Test
  void listsKeysInOrderAndEscapesThem() {
    assertThat(Cli.run("ls", animals).isDone().outText())
        .isEqualTo("cats/kitty.txt\ncats/tom.txt\ndogs/rex.txt\nodd/a\\tb\\nc\\rd\\\\e\n");
  }

  @Test
  void listsWhatBeginsWithAPrefix() {
    assertThat(Cli.run("ls", animals, "cats/t").isDone().outText()).isEqualTo("cats/tom.txt\n");
    assertThat(Cli.run("ls", animals, "cows").complaint(2)).contains("begins with 'cows'");
  }

  @Test
  void listsInColumns() {
    assertThat(Cli.run("ls", "-l", animals, "cats/tom").isDone().outText())
        .isEqualTo("cats/tom.txt\t0\t" + TOM.length() + "\t-\n");
    assertThat(Cli.run("ls", "--long", pairs).isDone().outText())
        .isEqualTo("p/1\t0\t11\tjpg,json\n");
  }

  @Test
  void endsAtOnceAndQuietlyWhenNobodyReadsOn() throws IOException {
    Process process = new Cli().builder("ls", many).start();
    try (BufferedReader reader = process.inputReader(StandardCharsets.UTF_8)) {
      assertThat(reader.readLine()).startsWith("xxx");
    }
    assertThat(Cli.await(process)).isZero();
    assertThat(process.getErrorStream().readAllBytes()).isEmpty();
  }

  @Test
  void saysWhenItsOutputIsFull() throws IOException {
    Process process =
        new Cli().builder("ls", many).redirectOutput(Path.of("/dev/full").toFile()).start();
    assertThat(new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8))
        .isEqualTo("gristway: cannot write the output: No space left on device\n");
    assertThat(Cli.await(process)).isEqualTo(3);
  }

  @Test
  void isSilentWhenInterrupted() throws IOException {
    // A shell starts what runs in the background with interrupts ignored.
    Process process = new Cli().through("env", "--default-signal=INT").builder("ls", many).start();
    process.getInputStream().read(); // it is at work, and soon stuck: nobody reads the rest
    Cli.await(new ProcessBuilder("kill", "-INT", String.valueOf(process.pid())).start());
    assertThat(Cli.await(process)).isEqualTo(130);
    assertThat(process.getErrorStream().readAllBytes()).isEmpty();
  }

  @Test
  void writesASamplesBytes() {
    assertThat(Cli.run("cat", animals, "cats/tom.txt").isDone().outText()).isEqualTo(TOM);
    assertThat(Cli.run("cat", animals, "odd/a\tb\nc\rd\\e").isDone().out()).isEmpty();
    assertThat(Cli.run("cat", pairs, "p/1", "--part", "json").isDone().outText()).isEqualTo("text");
  }

  @Test
  void asksWhichPartIsMeant() {
    assertThat(Cli.run("cat", pairs, "p/1").complaint(2))
        .isEqualTo("gristway: 'p/1' has the parts jpg, json; choose one with --part");
    assertThat(Cli.run("cat", pairs, "p/1", "--part", "png").complaint(2)).contains("'jpg'");
    assertThat(Cli.run("cat", animals, "dogs/rex.txt", "--part", "png").complaint(2))
        .contains("leave --part out");
  }

  @Test
  void suggestsAKeyThatMayBeMeant() {
    assertThat(Cli.run("cat", animals, "cats/tmo.txt").complaint(2))
        .endsWith("has no sample 'cats/tmo.txt'; did you mean 'cats/tom.txt'?");
    assertThat(Cli.run("cat", animals, "cats").complaint(2))
        .endsWith("it is a folder: list it with 'gristway ls " + animals + " cats/'");
    assertThat(Cli.run("cat", pairs, "p/1.jpg").complaint(2)).endsWith("the part 'jpg' of 'p/1'");
    assertThat(Cli.run("cat", animals, "quite/another").complaint(2))
        .endsWith("list what it has with 'gristway ls " + animals + "'");
  }

  @Test
  void saysWhatADatasetHolds() {
    assertThat(Cli.run("info", animals).isDone().outText().lines())
        .contains(
            animals.toString(),
            "  version   1",
            "  samples   4",
            "  bytes     52",
            "  parts     plain files: 4 samples",
            "  labels    3 classes: cats (2), dogs (1), odd (1)",
            "  sample    smallest 0 bytes, mean 13 bytes, largest 30 bytes");
  }

  @Test
  void saysItInJson() {
    JsonNode info = Cli.run("info", "--json", animals).isDone().json();
    assertThat(info.propertyNames())
        .containsExactly(
            "path",
            "datasetId",
            "snapshotId",
            "version",
            "versions",
            "samples",
            "datasetBytes",
            "chunks",
            "chunkFileBytes",
            "snapshotBytes",
            "parts",
            "labels",
            "sampleBytes");
    assertThat(info.get("path").asString()).isEqualTo(animals.toString());
    assertThat(info.get("datasetId").asString()).matches("[0-9a-f]{32}");
    assertThat(info.get("samples").asLong()).isEqualTo(4);
    assertThat(info.get("datasetBytes").asLong()).isEqualTo(52);
    assertThat(info.get("parts").toString()).isEqualTo("[{\"names\":[\"\"],\"samples\":4}]");
    assertThat(info.get("labels").toString())
        .isEqualTo("{\"kind\":\"named\",\"count\":3,\"names\":[\"cats\",\"dogs\",\"odd\"]}");
    assertThat(info.get("sampleBytes").toString())
        .isEqualTo("{\"min\":0,\"mean\":13.0,\"max\":30}");
    assertThat(Cli.run("info", "--json", many).isDone().json().get("labels").toString())
        .isEqualTo("{\"kind\":\"none\",\"count\":0}");
  }

  @Test
  void tellsOfLabelsWhatItHasMadeOfThem() throws IOException {
    Path tree = folder.resolve("classes");
    write(tree.resolve("cat/1.jpg"), "cat");
    write(tree.resolve("dog/2.jpg"), "dog");
    write(tree.resolve("readme.jpg"), "neither");
    Path tar = folder.resolve("classes.tar");
    Cli.await(new ProcessBuilder("tar", "-cf", tar + "", "-C", tree + "", ".").start());

    Path none = folder.resolve("none.gw");
    Cli.Result packed = Cli.run("pack", tar, none);
    assertThat(packed.outText()).endsWith(none + " (version 1); no labels\n");
    assertThat(packed.err()).hasLineCount(1).contains("('cat', 'dog')", "--labels folders");
    assertThat(packed.exit()).isZero();
    assertThat(Cli.run("info", none).outText()).contains("\n  labels    none\n");

    Path named = folder.resolve("named.gw");
    assertThat(Cli.run("pack", "--labels", "folders", tar, named).isDone().outText())
        .endsWith("; 2 of the samples have labels, of 2 classes\n");
    assertThat(Cli.run("info", named).outText())
        .contains("\n  labels    2 classes: cat (1), dog (1); 1 sample without\n");

    Path dogs = folder.resolve("dogs");
    write(dogs.resolve("dog/3.jpg"), "dog");
    Path val = folder.resolve("val.gw");
    assertThat(Cli.run("pack", dogs, val, "--classes-of", named).isDone().outText())
        .endsWith("; all samples have labels, of 1 class\n");
    assertThat(Cli.run("ls", "-l", val).outText()).startsWith("dog/3.jpg\t1\t");
    assertThat(Cli.run("info", val).outText())
        .contains("\n  labels    1 class, numbers from 1 to 1: dog (1)\n");
    write(dogs.resolve("owl/4.jpg"), "owl");
    assertThat(Cli.run("pack", "--force", dogs, val, "--classes-of", named).complaint(2))
        .contains("'owl' is no class of " + named);
    assertThat(Cli.run("pack", tar, val, "--labels=cls").complaint(2))
        .contains("--labels takes 'folders' or 'none', not 'cls'");

    write(tree.resolve("1.cls"), "7");
    write(tree.resolve("2.cls"), "cat");
    Path numbers = folder.resolve("numbers.tar");
    Cli.await(
        new ProcessBuilder("tar", "-cf", numbers + "", "-C", tree + "", "1.cls", "2.cls").start());
    Path numbered = folder.resolve("numbered.gw");
    Cli.Result refused = Cli.run("pack", numbers, numbered);
    assertThat(refused.exit()).isEqualTo(1);
    assertThat(refused.err().lines()).hasSize(2).first().asString().contains("2.cls", "'cat'");
    Cli.Result skipped = Cli.run("pack", "--skip-unreadable", numbers, numbered);
    assertThat(skipped.outText()).endsWith("; all samples have labels, of 1 class\n");
    assertThat(skipped.err()).hasLineCount(1).contains("left out", "2.cls", "'cat'");
    assertThat(Cli.run("info", numbered).outText())
        .contains("\n  labels    1 class, numbers from 7 to 7\n");
  }

  @Test
  void unpacksWhatWasPacked() throws IOException {
    Path target = folder.resolve("unpacked");
    assertThat(Cli.run("unpack", animals, target).isDone().outText())
        .isEqualTo("unpacked 4 samples into " + target + "\n");
    assertThat(target.resolve("cats/tom.txt")).hasContent(TOM);
    assertThat(Cli.run("unpack", animals, target).complaint(2)).contains("is not empty");
  }

  @Test
  void unpacksIntoTheFolderItIsIn() throws IOException {
    Path here = Files.createDirectory(folder.resolve("here"));
    assertThat(new Cli().in(here).call("unpack", animals, ".").isDone().outText())
        .isEqualTo("unpacked 4 samples into .\n");
    assertThat(here.resolve("cats/tom.txt")).hasContent(TOM);
    Path below = Files.createDirectories(folder.resolve("above/below"));
    assertThat(new Cli().in(below).call("unpack", animals, "../new").isDone().exit()).isZero();
    assertThat(folder.resolve("above/new/cats/tom.txt")).hasContent(TOM);
    assertThat(new Cli().in(below).call("unpack", animals, "..").complaint(2))
        .contains(".. is not empty");
  }

  @Test
  void printsNoControlCharactersOfKeys() throws IOException {
    String key = "a/\u001b]0;owned\u0007\u009b\u007f.txt";
    String shown = "a/\\x1b]0;owned\\x07\\x9b\\x7f.txt";
    Path source = folder.resolve("terminal");
    write(source.resolve(key), "some text, to be damaged");
    Files.createSymbolicLink(source.resolve(key + ".link"), folder);
    Path dataset = folder.resolve("terminal.gw");
    Cli.Result packed = Cli.run("pack", source, dataset);
    assertThat(packed.exit()).isZero();
    assertThat(packed.err()).contains(shown + ".link");
    Cli.Result listed = Cli.run("ls", "-l", dataset).isDone();
    assertThat(listed.outText()).startsWith(shown + "\t0\t24\t");
    Cli.Result order = Cli.run("read", dataset, "--order", "-");
    assertThat(order.outText()).contains("\t" + shown + "\n");
    Cli.Result missing = Cli.run("cat", dataset, key + "x");
    assertThat(missing.complaint(2)).contains(shown + "x", "did you mean '" + shown + "'?");
    Path chunk = dataset.resolve("chunk-000000.gwc");
    byte[] bytes = Files.readAllBytes(chunk);
    bytes[new String(bytes, StandardCharsets.ISO_8859_1).indexOf("some text")]++;
    Files.write(chunk, bytes);
    Cli.Result verified = Cli.run("verify", dataset);
    assertThat(verified.err()).contains("'" + shown + "' fails its checksum");
    Cli.Result read = Cli.run("cat", dataset, key);
    assertThat(read.complaint(1)).contains("'" + shown + "'");
    for (Cli.Result result : List.of(packed, listed, order, missing, verified, read)) {
      assertThat((result.outText() + result.err()).replaceAll("[\n\t]", "").codePoints())
          .noneMatch(Character::isISOControl);
    }
  }

  @Test
  void refusesALinkInPlaceOfALockFile() throws IOException {
    Path victim = folder.resolve("victim");
    Files.createSymbolicLink(folder.resolve(".linked.gw.lock"), victim);
    Path dataset = folder.resolve("linked.gw");
    assertThat(Cli.run("pack", folder.resolve("animals"), dataset).complaint(3))
        .contains(".linked.gw.lock is a link to " + victim);
    assertThat(victim).doesNotExist();
    assertThat(dataset).doesNotExist();

    Path appended = copy(animals, "locked.gw");
    Files.createSymbolicLink(appended.resolve(".lock"), victim);
    assertThat(Cli.run("append", folder.resolve("pairs"), appended).complaint(3))
        .contains(".lock is a link");
    assertThat(victim).doesNotExist();
  }

  @Test
  void verifiesWhatIsSound() {
    assertThat(Cli.run("verify", animals).isDone().outText())
        .isEqualTo("ok: 4 samples, 52 bytes in 1 chunk, every checksum holds\n");
  }

  @Test
  void namesAllDamageAndWritesNoWrongByte() throws IOException {
    Path damaged = copy(animals, "damaged.gw");
    Path chunk = damaged.resolve("chunk-000000.gwc");
    byte[] bytes = Files.readAllBytes(chunk);
    bytes[new String(bytes, StandardCharsets.ISO_8859_1).indexOf(TOM)]++;
    bytes[new String(bytes, StandardCharsets.ISO_8859_1).indexOf("and of Rex")]++;
    Files.write(chunk, bytes);

    Cli.Result verified = Cli.run("verify", damaged);
    assertThat(verified.exit()).isEqualTo(1);
    assertThat(verified.out()).isEmpty();
    List<String> lines = verified.err().lines().toList();
    assertThat(lines).hasSize(3).allMatch(line -> line.startsWith("gristway: "));
    assertThat(lines).anyMatch(line -> line.contains("'cats/tom.txt' fails its checksum"));
    assertThat(lines).last().isEqualTo("gristway: 2 faults in " + damaged);

    assertThat(Cli.run("cat", damaged, "cats/tom.txt").complaint(1)).contains("is damaged");
    Cli.run("cat", damaged, "cats/kitty.txt").isDone();
  }

  @Test
  void rebuildsALostSnapshot() throws IOException {
    Path dataset = copy(animals, "rebuilt.gw");
    Path snapshot = dataset.resolve("snapshot-000001.gws");
    byte[] before = Files.readAllBytes(snapshot);
    Files.delete(snapshot);
    assertThat(Cli.run("info", dataset).complaint(1)).contains("gristway rebuild");
    assertThat(Cli.run("rebuild", dataset).isDone().outText())
        .isEqualTo("version 1: snapshot written\n");
    assertThat(Files.readAllBytes(snapshot)).isEqualTo(before);
    assertThat(Cli.run("rebuild", dataset).isDone().outText())
        .isEqualTo("version 1: the snapshot was right already\n");
  }

  @Test
  void appendsAndTellsOfAnAppendThatWasCutShort() throws IOException {
    Path dataset = copy(animals, "appended.gw");
    Path more = folder.resolve("more/cows");
    Files.createDirectories(more);
    byte[] bytes = new byte[50_000];
    new Random(1).nextBytes(bytes);
    for (int i = 0; i < 3; i++) {
      Files.write(more.resolve("cow" + i), bytes);
    }
    assertThat(Cli.run("append", "--chunk-size", "64KiB", more.getParent(), dataset).isDone())
        .extracting(Cli.Result::outText)
        .isEqualTo(
            "appended 3 samples, 146.5 KiB, in 3 chunks: %s (version 2); all samples have labels, of 1 class\n"
                .formatted(dataset));
    assertThat(Cli.run("info", "--json", dataset).isDone().json().get("versions").toString())
        .isEqualTo("[1,2]");

    Files.delete(dataset.resolve("snapshot-000002.gws"));
    Files.delete(dataset.resolve("chunk-000003.gwc"));
    Cli.Result rebuilt = Cli.run("rebuild", dataset);
    assertThat(rebuilt.exit()).isEqualTo(1);
    assertThat(rebuilt.outText()).isEqualTo("version 1: the snapshot was right already\n");
    assertThat(rebuilt.err())
        .startsWith("gristway: chunk-000001.gwc to chunk-000002.gwc in " + dataset)
        .hasLineCount(1);
  }

  @Test
  void showsSomeOfWhatIsLeftOutAndCountsTheRest() throws IOException {
    Path source = folder.resolve("links");
    Path outside = write(folder.resolve("outside.txt"), "not in the source");
    write(source.resolve("a/file"), "in the source");
    for (int i = 0; i < 23; i++) {
      Files.createSymbolicLink(source.resolve("a/link" + i), outside);
    }
    Cli.Result packed = Cli.run("pack", source, folder.resolve("links.gw"));
    assertThat(packed.exit()).isZero();
    assertThat(packed.outText()).startsWith("packed 1 sample, 13 bytes, into 1 chunk: ");
    assertThat(packed.err().lines())
        .hasSize(21)
        .allMatch(line -> line.startsWith("gristway: "))
        .last()
        .isEqualTo("gristway: … and 3 more");
  }

  @Test
  void replacesADatasetOnlyByForce() throws IOException {
    Path dataset = copy(animals, "replaced.gw");
    assertThat(Cli.run("pack", folder.resolve("pairs"), dataset).complaint(2)).contains("--force");
    Cli.run("pack", "--force", folder.resolve("pairs"), dataset).isDone();
    assertThat(Cli.run("ls", dataset).outText()).isEqualTo("p/1.jpg\np/1.json\n");
  }

  @Test
  void saysHowToAllowMoreMemory() throws IOException {
    Path source = Files.createDirectories(folder.resolve("large/a"));
    byte[] bytes = new byte[4 << 20];
    Arrays.fill(bytes, (byte) 7);
    Files.write(source.resolve("sample"), bytes);
    Path dataset = folder.resolve("large.gw");
    Cli.run("pack", source.getParent(), dataset).isDone();
    Cli.Result result = new Cli().java("-Xmx4m").call("cat", dataset, "a/sample");
    assertThat(result.complaint(3)).contains("GRISTWAY_JAVA_OPTS=-Xmx");
  }
}
