package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.gristway.dataset.Dataset;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import tools.jackson.databind.JsonNode;

/** The order of what is read, and how ranks share it. */
@Tag("java")
class ReadOrderTest {

  private static final String EXACT =
      "d6ec3e35ca6cd5feccc3495842723f52a18027485eb6207895428eb791662ee6";

  /** What no version may change without raising its policy's plan version. */
  private static final Map<String, String> GOLDEN =
      Map.of(
          "sample-order",
          EXACT,
          "chunk-shuffle",
          "f3deb0b73231c3d2c34b091905e85725564bc20eae121f574b916a373d7b589f",
          "redirect",
          "9fb492034aacf3b584478cab81d01f5b0d39af42622c140166f91c549897811d",
          "redirect-position",
          "02e999ce3ca1227b9d0dbb28f346634227001d5ee4a3b412d3f8dae8a1afb79f",
          "clairvoyant",
          EXACT,
          "clairvoyant-next-use",
          EXACT,
          "locality",
          EXACT,
          "unbounded",
          EXACT);

  @TempDir static Path folder;
  private static ReadDataset dataset;
  private static List<String> keys;
  private static long bytes;

  @BeforeAll
  static void pack() throws IOException {
    dataset = ReadDataset.pack(folder);
    keys = dataset.keys();
    bytes = dataset.bytes();
  }

  static Stream<String> policies() {
    return GOLDEN.keySet().stream();
  }

  private static List<String> requested(List<OrderLine> lines) {
    return lines.stream().map(OrderLine::requested).toList();
  }

  @ParameterizedTest
  @MethodSource("policies")
  void every_key_is_delivered_exactly_once_an_epoch(String policy) {
    Path order = folder.resolve(policy + ".order");
    JsonNode json =
        dataset.read("--policy", policy, "--epochs", 2, "--order", order, "--json").isDone().json();
    List<OrderLine> lines = OrderLine.read(order);

    assertThat(lines)
        .hasSize(2 * ReadDataset.SAMPLES)
        .isSortedAccordingTo(
            Comparator.comparingLong(OrderLine::epoch).thenComparingLong(OrderLine::step));
    for (int epoch = 0; epoch < 2; epoch++) {
      List<OrderLine> ofEpoch = OrderLine.of(epoch, lines);
      assertThat(OrderLine.keys(ofEpoch)).containsExactlyInAnyOrderElementsOf(keys);
      assertThat(requested(ofEpoch)).containsExactlyInAnyOrderElementsOf(keys);
      assertThat(ofEpoch).allMatch(line -> line.rank() == 0);
      assertThat(ofEpoch.get(ReadDataset.BATCH - 1).step()).isZero();
      assertThat(ofEpoch.get(ReadDataset.BATCH).step()).isEqualTo(1);

      JsonNode report = json.get("epochs").get(epoch);
      assertThat(report.get("epoch").asInt()).isEqualTo(epoch);
      assertThat(report.get("samples").asInt()).isEqualTo(ReadDataset.SAMPLES);
      assertThat(report.get("bytes").asLong()).isEqualTo(bytes);
      assertThat(report.get("redirected").asLong())
          .isEqualTo(
              ofEpoch.stream().filter(line -> !line.requested().equals(line.delivered())).count());
      assertThat(report.get("repeated").asInt()).isZero();
      assertThat(report.get("damaged").asInt()).isZero();
      assertThat(report.get("seconds").asDouble()).isPositive();
      assertThat(report.get("stallSeconds").asDouble())
          .isBetween(0.0, report.get("seconds").asDouble() + 1);
    }
    assertThat(Cli.digests(json).get(0)).isEqualTo(GOLDEN.get(policy));
    assertThat(Cli.digests(json).get(1)).isNotEqualTo(Cli.digests(json).get(0));
  }

  @ParameterizedTest
  @MethodSource("policies")
  void the_order_depends_on_its_inputs_and_nothing_else(String policy) {
    String golden = GOLDEN.get(policy);
    assertThat(Cli.digests(dataset.read("--policy", policy, "--threads", 1, "--json").json()))
        .containsExactly(golden);
    assertThat(Cli.digests(dataset.read("--policy", policy, "--threads", 40, "--json").json()))
        .containsExactly(golden);
    assertThat(Cli.digests(dataset.read("--policy", policy, "--seed", 1, "--json").json()))
        .doesNotContain(golden);
    assertThat(Cli.digests(dataset.read("--policy", policy, "--ranks", 2, "--json").json()))
        .doesNotContain(golden);
  }

  @Test
  void the_digest_is_that_of_the_sample_ids() throws Exception {
    Path order = folder.resolve("digest.order");
    JsonNode json = dataset.read("--ranks", 2, "--order", order, "--json").isDone().json();
    Map<String, Long> ids = new HashMap<>();
    try (Dataset opened = Dataset.open(dataset.path())) {
      for (long id = 0; id < opened.size(); id++) {
        ids.put(Text.escape(opened.snapshot().key(id)), id);
      }
    }
    Map<Integer, Map<Long, List<Long>>> batches =
        OrderLine.read(order).stream()
            .collect(
                Collectors.groupingBy(
                    OrderLine::rank,
                    TreeMap::new,
                    Collectors.groupingBy(
                        OrderLine::step,
                        TreeMap::new,
                        Collectors.mapping(
                            line -> ids.get(line.delivered()), Collectors.toList()))));
    MessageDigest all = MessageDigest.getInstance("SHA-256");
    for (Map<Long, List<Long>> ofRank : batches.values()) {
      MessageDigest rank = MessageDigest.getInstance("SHA-256");
      for (List<Long> batch : ofRank.values()) {
        rank.update(littleEndian(batch.size()));
        batch.forEach(id -> rank.update(littleEndian(id)));
      }
      all.update(rank.digest());
    }
    assertThat(Cli.digests(json)).containsExactly(HexFormat.of().formatHex(all.digest()));
  }

  private static byte[] littleEndian(long value) {
    return ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(value).array();
  }

  /** The borders between ranks, and repeats, are in these. */
  @ParameterizedTest
  @CsvSource({
    "sample-order, dc4682c371a75e636707fc1cc02774a8fb6a31d911d20cf71332f25c082843c6",
    "chunk-shuffle, f0b505131c0fb3752ad9f300678c3b3affefe6dd554a34a3dfb133904df66cf2",
    "redirect, 3028b0525b35234025ae419828c758b3bcdff71a047d5d93245517288e129948",
    "redirect-position, 39fc55ef95a427b10a6c06d5caeb7842486ad84270982ca6de6c96c702d1181f",
    "unbounded, dc4682c371a75e636707fc1cc02774a8fb6a31d911d20cf71332f25c082843c6"
  })
  void padded_orders_of_three_ranks_stay_as_they_are(String policy, String digest) {
    JsonNode json =
        dataset.read("--policy", policy, "--ranks", 3, "--tail", "pad", "--json").json();
    assertThat(Cli.digests(json)).containsExactly(digest);
  }

  @ParameterizedTest
  @CsvSource({
    "sample-order, short", "chunk-shuffle, short", "redirect, short", "redirect-position, short",
        "unbounded, short",
    "sample-order, drop", "chunk-shuffle, drop", "redirect, drop", "redirect-position, drop",
        "unbounded, drop",
    "sample-order, pad", "chunk-shuffle, pad", "redirect, pad", "redirect-position, pad",
        "unbounded, PAD"
  })
  void ranks_share_the_samples_and_have_as_many_batches(String policy, String tail) {
    int ranks = 3;
    int global = ranks * ReadDataset.BATCH;
    Path order = folder.resolve(policy + "-" + tail + ".order");
    Object[] options = {
      "--policy", policy, "--tail", tail, "--ranks", ranks, "--order", order, "--json"
    };
    JsonNode epoch = dataset.read(options).isDone().json().get("epochs").get(0);
    List<OrderLine> lines = OrderLine.read(order);
    assertThat(lines)
        .isSortedAccordingTo(
            Comparator.comparingLong(OrderLine::step).thenComparingInt(OrderLine::rank));

    boolean drops = tail.equals("drop");
    long steps = drops ? keys.size() / global : (keys.size() + global - 1) / global;
    long samples = drops ? steps * global : keys.size();
    Set<String> distinct = new HashSet<>(OrderLine.keys(lines));
    assertThat(distinct).hasSize((int) samples).isSubsetOf(keys);
    assertThat(epoch.get("samples").asLong()).isEqualTo(samples);
    assertThat(epoch.get("repeated").asLong()).isEqualTo(lines.size() - samples);
    Map<Integer, List<OrderLine>> byRank =
        lines.stream().collect(Collectors.groupingBy(OrderLine::rank));
    assertThat(byRank).hasSize(ranks);
    for (List<OrderLine> ofRank : byRank.values()) {
      assertThat(ofRank.stream().map(OrderLine::step).distinct()).hasSize((int) steps);
      assertThat((double) ofRank.size())
          .isBetween(Math.floor(lines.size() / 3.0), Math.ceil(lines.size() / 3.0));
    }
    if (tail.equalsIgnoreCase("pad")) {
      assertThat(lines).hasSize((int) (steps * global));
    }
  }

  @Test
  void a_rank_without_a_sample_gets_a_flagged_repeat() {
    // 500 samples for 9 ranks: 5 are left for the last step.
    Path order = folder.resolve("nine.order");
    JsonNode epoch =
        dataset
            .read("--ranks", 9, "--batch-size", 11, "--memory", "1MiB", "--order", order, "--json")
            .isDone()
            .json()
            .get("epochs")
            .get(0);
    assertThat(epoch.get("samples").asInt()).isEqualTo(500);
    assertThat(epoch.get("repeated").asInt()).isEqualTo(4);
    assertThat(OrderLine.read(order).stream().filter(line -> line.step() == 5)).hasSize(9);
  }

  @Test
  void the_order_can_be_printed_and_is_then_all_that_is() {
    Path file = folder.resolve("printed.order");
    dataset.read("--order", file).isDone();
    List<OrderLine> printed = OrderLine.parse(dataset.read("--order", "-").isDone().outText());
    assertThat(printed).hasSize(500).isEqualTo(OrderLine.read(file));
    assertThat(dataset.read("--order", "-", "--json").complaint(2)).contains("name a file");
  }
}
