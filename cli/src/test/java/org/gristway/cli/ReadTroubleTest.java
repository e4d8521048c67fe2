package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/**
 * Reading that cannot go well: damage, too little memory, no room for the order, nobody who waits.
 */
@Tag("java")
class ReadTroubleTest {

  @TempDir static Path folder;
  private static ReadDataset dataset;
  private static long bytes;

  @BeforeAll
  static void pack() throws IOException {
    dataset = ReadDataset.pack(folder);
    bytes = dataset.bytes();
  }

  @Test
  void damage_costs_a_place_and_changes_nothing_else() throws IOException {
    Path good = folder.resolve("good.order");
    Path bad = folder.resolve("bad.order");
    ReadDataset damaged = dataset.copy(folder.resolve("damaged.gw"));
    String key = "class2/0042.bin";
    Path chunk = damaged.damage(key);
    for (String policy : ReadOrderTest.policies().toList()) {
      JsonNode before = dataset.read("--policy", policy, "--order", good, "--json").isDone().json();
      Cli.Result result =
          Cli.run(damaged.call("read", "--policy", policy, "--order", bad, "--json"));
      assertThat(result.exit()).isEqualTo(1);
      List<String> complaints = result.err().lines().toList();
      assertThat(complaints).hasSize(2);
      assertThat(complaints.get(0)).startsWith("gristway: " + chunk).contains("'" + key + "'");
      assertThat(complaints.get(1))
          .startsWith(
              "gristway: " + damaged.path() + " is damaged: repeats were given in 1 place;");

      JsonNode after = result.json();
      assertThat(Cli.digests(after)).isEqualTo(Cli.digests(before));
      JsonNode epoch = after.get("epochs").get(0);
      assertThat(epoch.get("samples").asInt()).isEqualTo(499);
      assertThat(epoch.get("damaged").asInt()).isEqualTo(1);
      assertThat(epoch.get("repeated").asInt()).isEqualTo(1);
      List<OrderLine> wanted = OrderLine.read(good);
      List<OrderLine> got = OrderLine.read(bad);
      assertThat(got).hasSameSizeAs(wanted);
      for (int i = 0; i < got.size(); i++) {
        if (wanted.get(i).delivered().equals(key)) {
          assertThat(got.get(i).requested()).isEqualTo(wanted.get(i).requested());
          assertThat(got.get(i).delivered()).isNotEqualTo(key).isIn(neighbours(wanted, i));
        } else {
          assertThat(got.get(i)).isEqualTo(wanted.get(i));
        }
      }
      assertThat(OrderLine.keys(got)).doesNotContain(key);
    }
  }

  /** What else the batch of a line delivers. */
  private static List<String> neighbours(List<OrderLine> lines, int index) {
    OrderLine line = lines.get(index);
    return lines.stream()
        .filter(other -> other.step() == line.step() && other.rank() == line.rank())
        .map(OrderLine::delivered)
        .toList();
  }

  @Test
  void damage_among_padded_repeats_changes_no_digest() throws IOException {
    Path order = folder.resolve("padded.order");
    Object[] options = {"--ranks", 3, "--tail", "pad", "--order", order, "--json"};
    JsonNode before = dataset.read(options).isDone().json();
    Map<String, Long> times =
        OrderLine.read(order).stream()
            .collect(Collectors.groupingBy(OrderLine::delivered, Collectors.counting()));
    String repeated =
        times.entrySet().stream()
            .filter(entry -> entry.getValue() > 1)
            .map(Map.Entry::getKey)
            .findFirst()
            .orElseThrow();
    ReadDataset damaged = dataset.copy(folder.resolve("padded.gw"));
    damaged.damage(repeated);

    Cli.Result result = Cli.run(damaged.call("read", options));
    assertThat(result.exit()).isEqualTo(1);
    assertThat(Cli.digests(result.json())).isEqualTo(Cli.digests(before));
    assertThat(OrderLine.keys(OrderLine.read(order))).doesNotContain(repeated);
  }

  @Test
  void strict_reading_ends_at_damage_with_one_line() throws IOException {
    ReadDataset damaged = dataset.copy(folder.resolve("strict.gw"));
    Path chunk = damaged.damage("class3/0123.bin"); // the one that no frame holds
    for (int ranks : new int[] {1, 3}) {
      assertThat(Cli.run(damaged.call("read", "--strict", "--ranks", ranks)).complaint(1))
          .contains(chunk.toString(), "'class3/0123.bin'");
    }
  }

  @Test
  void too_much_damage_ends_it_with_one_line_that_names_verify() throws IOException {
    ReadDataset damaged = dataset.copy(folder.resolve("much.gw"));
    for (int i = 10; i < 14; i++) {
      damaged.damage(String.format("class%d/%04d.bin", i % 5, i));
    }
    Cli.Result ended = Cli.run(damaged.call("read"));
    assertThat(ended.exit()).isEqualTo(1);
    assertThat(ended.err().lines().toList())
        .hasSize(2) // the sample that may be damaged, and the end
        .last()
        .asString()
        .contains("2 damaged samples", "at most 1", "'gristway verify " + damaged.path() + "'");
    // A hundredth of 500 samples is five.
    Cli.Result accepted = Cli.run(damaged.call("read", "--max-damage", "0.01"));
    assertThat(accepted.exit()).isEqualTo(1);
    assertThat(accepted.err()).contains("repeats were given in 4 places");
    assertThat(Cli.run(damaged.call("read", "--max-damage", "2")).complaint(2)).contains("0 to 1");
  }

  @Test
  void chunks_that_are_missing_are_told_in_one_line_before_anything_is_read() throws IOException {
    ReadDataset incomplete = dataset.copy(folder.resolve("incomplete.gw"));
    Files.delete(incomplete.path().resolve("chunk-000003.gwc"));
    assertThat(Cli.run(incomplete.call("read")).complaint(1))
        .contains(incomplete.path() + ": 1 of ", "chunks is missing: chunk-000003.gwc, ");
    // What is meant for broken datasets goes on with what is there.
    assertThat(Cli.run("verify", incomplete.path()).exit()).isEqualTo(1);
    Cli.run("info", incomplete.path()).isDone();
    assertThat(incomplete.keys()).hasSize(ReadDataset.SAMPLES);
    Cli.run("plan", incomplete.path()).isDone();
  }

  @Test
  void too_little_memory_is_refused_with_what_would_do() {
    for (String policy :
        List.of("sample-order", "chunk-shuffle", "redirect", "redirect-position")) {
      String complaint = readWith(1000, policy, 3).complaint(2);
      Matcher number = Pattern.compile("give it (\\d+) or more for each rank").matcher(complaint);
      assertThat(number.find()).as(complaint).isTrue();
      long enough = 3 * Long.parseLong(number.group(1));
      readWith(enough, policy, 3).isDone();
      readWith(enough - 1, policy, 3).complaint(2);
    }
  }

  private static Cli.Result readWith(long memory, String policy, int ranks) {
    return dataset.read("--policy", policy, "--memory", memory, "--ranks", ranks);
  }

  @Test
  void more_memory_than_the_machine_has_is_refused() {
    // Of a memory that the dataset cannot fill, only what it can is taken: a frame for each chunk,
    // here, on each of many ranks.
    assertThat(
            dataset.read("--memory", "100000GiB", "--extent", "1GiB", "--ranks", 1000).complaint(3))
        .contains("bytes of memory are not free here, only ");
  }

  @Test
  void an_order_that_cannot_be_written_ends_it() {
    assertThat(dataset.read("--order", "/dev/full").complaint(3))
        .startsWith("gristway: cannot write the order to /dev/full: No space left on device;");
    assertThat(dataset.read("--order", folder).complaint(2)).contains("it is a folder");
    assertThat(dataset.read("--order", folder.resolve("no/such")).complaint(2))
        .contains("its folder does not exist");
  }

  @Test
  void a_call_that_is_refused_leaves_the_old_order_alone() throws IOException {
    Path order = Files.writeString(folder.resolve("old.order"), "precious");
    Cli.run("read", dataset.path(), "--memory", "1", "--order", order).complaint(2);
    Cli.run("read", folder.resolve("nosuch.gw"), "--order", order).complaint(2);
    assertThat(order).hasContent("precious");
  }

  @Test
  void it_ends_quietly_when_nobody_reads_on() throws IOException {
    Process process =
        new Cli().builder(dataset.call("read", "--order", "-", "--epochs", 1_000_000)).start();
    try (BufferedReader reader = process.inputReader(StandardCharsets.UTF_8)) {
      assertThat(reader.readLine()).startsWith("0\t0\t0\tclass");
    }
    assertThat(Cli.await(process)).isZero();
    assertThat(process.getErrorStream().readAllBytes()).isEmpty();
  }

  @Test
  void it_is_silent_when_interrupted() throws IOException {
    Process process =
        new Cli()
            .through("env", "--default-signal=INT")
            .builder(dataset.call("read", "--epochs", 1_000_000))
            .start();
    process.getInputStream().read(); // the first epoch has ended
    Thread.ofPlatform().daemon().start(() -> drain(process));
    Cli.await(new ProcessBuilder("kill", "-INT", String.valueOf(process.pid())).start());
    assertThat(Cli.await(process)).isEqualTo(130);
    assertThat(process.getErrorStream().readAllBytes()).isEmpty();
  }

  private static void drain(Process process) {
    try {
      process.getInputStream().readAllBytes();
    } catch (IOException ended) {
      // So has the process.
    }
  }
}
