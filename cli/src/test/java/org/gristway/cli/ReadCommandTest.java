package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
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
import java.util.regex.Matcher;
import java.util.regex.Pattern;
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
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

@Tag("java")
class ReadCommandTest {

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
          "6aa91619f477d0a595f7775dead3d7dcbb83ca827284dab108f0b128e5bb18dc",
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

  private static Cli.Result read(Object... options) {
    return Cli.run(dataset.call("read", options));
  }

  private static JsonNode json(Cli.Result result) {
    assertThat(result.outText()).hasLineCount(1);
    return JsonMapper.shared().readTree(result.out());
  }

  private static List<String> digests(JsonNode json) {
    return json.get("epochs").valueStream().map(e -> e.get("orderDigest").asString()).toList();
  }

  private static List<String> delivered(List<OrderLine> lines) {
    return lines.stream().map(OrderLine::delivered).toList();
  }

  private static List<String> requested(List<OrderLine> lines) {
    return lines.stream().map(OrderLine::requested).toList();
  }

  @ParameterizedTest
  @MethodSource("policies")
  void every_key_is_delivered_exactly_once_an_epoch(String policy) {
    Path order = folder.resolve(policy + ".order");
    JsonNode json =
        json(read("--policy", policy, "--epochs", 2, "--order", order, "--json").isDone());
    List<OrderLine> lines = OrderLine.read(order);

    assertThat(lines)
        .hasSize(2 * ReadDataset.SAMPLES)
        .isSortedAccordingTo(
            Comparator.comparingLong(OrderLine::epoch).thenComparingLong(OrderLine::step));
    for (int epoch = 0; epoch < 2; epoch++) {
      List<OrderLine> ofEpoch = OrderLine.of(epoch, lines);
      assertThat(delivered(ofEpoch)).containsExactlyInAnyOrderElementsOf(keys);
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
    assertThat(digests(json).get(0)).isEqualTo(GOLDEN.get(policy));
    assertThat(digests(json).get(1)).isNotEqualTo(digests(json).get(0));
  }

  @ParameterizedTest
  @MethodSource("policies")
  void memory_stays_inside_the_budget_of_every_policy_that_has_one(String policy) {
    JsonNode json = json(read("--policy", policy, "--epochs", 2, "--ranks", 2, "--json").isDone());
    long memory = json.get("memoryBytes").asLong();
    if (policy.equals("unbounded")) {
      assertThat(memory).isGreaterThanOrEqualTo(bytes);
    } else {
      assertThat(memory).isEqualTo(ReadDataset.MEMORY);
    }
    for (JsonNode epoch : json.get("epochs")) {
      assertThat(epoch.get("peakResidentBytes").asLong()).isLessThanOrEqualTo(memory);
    }
    assertThat(json.get("epochs").get(0).get("peakResidentBytes").asLong()).isPositive();
  }

  @ParameterizedTest
  @ValueSource(strings = {"chunk-shuffle", "redirect"})
  void every_extent_is_read_once_an_epoch(String policy) {
    JsonNode json = json(read("--policy", policy, "--epochs", 2, "--json").isDone());
    for (JsonNode epoch : json.get("epochs")) {
      long reads = epoch.get("storageReads").asLong();
      assertThat(epoch.get("storageBytes").asLong()).isBetween(bytes, bytes + 8190 * reads);
      assertThat(epoch.get("rereadBytes").asLong()).isZero();
      assertThat(reads).isEqualTo(json.get("epochs").get(0).get("storageReads").asLong());
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"clairvoyant", "clairvoyant-next-use", "locality"})
  void what_is_kept_in_memory_is_not_read_again(String policy) {
    assertReadOnce(read("--policy", policy, "--memory", "8MiB", "--epochs", 3, "--json"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"clairvoyant", "clairvoyant-next-use"})
  void what_is_kept_on_a_disk_is_not_read_again(String policy) throws IOException {
    Path disk = Files.createDirectory(folder.resolve(policy));
    String where = "--cache-folder=" + disk;
    assertReadOnce(
        read("--policy", policy, "--epochs", 3, "--cache-disk", "8MiB", where, "--json"));
    assertThat(disk).isEmptyDirectory();
    assertThat(read("--cache-disk", "8MiB").complaint(2)).contains("go together");
    assertThat(read("--policy", "unbounded", "--cache-disk", "8MiB", where).complaint(2))
        .contains("no use for a cache");
  }

  @ParameterizedTest
  @ValueSource(strings = {"chunk-shuffle", "redirect"})
  void extents_that_are_kept_are_not_read_again(String policy) {
    JsonNode epochs =
        json(read("--policy", policy, "--cache", "8MiB", "--epochs", 2, "--json").isDone())
            .get("epochs");
    assertThat(epochs.get(0).get("fetched").asInt()).isZero();
    assertThat(epochs.get(1).get("storageReads").asInt()).isZero();
    assertThat(epochs.get(1).get("fetched")).isEqualTo(epochs.get(0).get("storageReads"));
    JsonNode without = json(read("--policy", policy, "--epochs", 2, "--json").isDone());
    assertThat(epochs.get(1).get("orderDigest"))
        .isEqualTo(without.get("epochs").get(1).get("orderDigest"));
  }

  private static void assertReadOnce(Cli.Result result) {
    for (JsonNode epoch : json(result.isDone()).get("epochs")) {
      boolean isFirst = epoch.get("epoch").asInt() == 0;
      // All but the sample that is larger than an extent, which no frame holds to be kept.
      assertThat(epoch.get("storageReads").asInt()).isEqualTo(isFirst ? ReadDataset.SAMPLES : 1);
      assertThat(epoch.get("fetched").asInt()).isEqualTo(isFirst ? 0 : ReadDataset.SAMPLES - 1);
      assertThat(epoch.get("fallBacks").asInt()).isZero();
    }
  }

  @ParameterizedTest
  @MethodSource("policies")
  void the_order_depends_on_its_inputs_and_nothing_else(String policy) {
    String golden = GOLDEN.get(policy);
    assertThat(digests(json(read("--policy", policy, "--threads", 1, "--json"))))
        .containsExactly(golden);
    assertThat(digests(json(read("--policy", policy, "--threads", 40, "--json"))))
        .containsExactly(golden);
    assertThat(digests(json(read("--policy", policy, "--seed", 1, "--json"))))
        .doesNotContain(golden);
    assertThat(digests(json(read("--policy", policy, "--ranks", 2, "--json"))))
        .doesNotContain(golden);
  }

  @Test
  void the_digest_is_that_of_the_sample_ids() throws Exception {
    Path order = folder.resolve("digest.order");
    JsonNode json = json(read("--ranks", 2, "--order", order, "--json").isDone());
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
    assertThat(digests(json)).containsExactly(HexFormat.of().formatHex(all.digest()));
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
    "redirect-position, 6ccbf84894cdee9ec2a2c24e0eb504f7a69c7a1118067103fca22e24bc5a22b1",
    "unbounded, dc4682c371a75e636707fc1cc02774a8fb6a31d911d20cf71332f25c082843c6"
  })
  void padded_orders_of_three_ranks_stay_as_they_are(String policy, String digest) {
    JsonNode json = json(read("--policy", policy, "--ranks", 3, "--tail", "pad", "--json"));
    assertThat(digests(json)).containsExactly(digest);
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
    JsonNode epoch = json(read(options).isDone()).get("epochs").get(0);
    List<OrderLine> lines = OrderLine.read(order);
    assertThat(lines)
        .isSortedAccordingTo(
            Comparator.comparingLong(OrderLine::step).thenComparingInt(OrderLine::rank));

    boolean drops = tail.equals("drop");
    long steps = drops ? keys.size() / global : (keys.size() + global - 1) / global;
    long samples = drops ? steps * global : keys.size();
    Set<String> distinct = new HashSet<>(delivered(lines));
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
        json(read("--ranks", 9, "--batch-size", 11, "--memory", "1MiB", "--order", order, "--json")
                .isDone())
            .get("epochs")
            .get(0);
    assertThat(epoch.get("samples").asInt()).isEqualTo(500);
    assertThat(epoch.get("repeated").asInt()).isEqualTo(4);
    assertThat(OrderLine.read(order).stream().filter(line -> line.step() == 5)).hasSize(9);
  }

  @Test
  void the_json_is_one_object_with_the_promised_names() {
    JsonNode json = json(read("--seed", 7, "--json").isDone());
    assertThat(json.propertyNames())
        .containsExactly(
            "policy",
            "seed",
            "memoryBytes",
            "extentBytes",
            "datasetBytes",
            "handoverBytes",
            "epochs",
            "quality");
    assertThat(json.get("epochs").get(0).propertyNames())
        .containsExactly(
            "epoch",
            "samples",
            "bytes",
            "seconds",
            "storageReads",
            "storageBytes",
            "rereadBytes",
            "fetched",
            "fetchedBytes",
            "fallBacks",
            "peakResidentBytes",
            "redirected",
            "repeated",
            "damaged",
            "stallSeconds",
            "orderDigest");
    assertThat(json.get("quality").propertyNames())
        .containsExactly("mateRatio", "rankMateRatio", "worstBatch", "distinctExtents", "spread");
    assertThat(json.get("policy").asString()).isEqualTo("redirect");
    assertThat(json.get("seed").asLong()).isEqualTo(7);
    assertThat(json.get("memoryBytes").asLong()).isEqualTo(ReadDataset.MEMORY);
    assertThat(json.get("extentBytes").asLong()).isEqualTo(16 << 10);
    assertThat(json.get("datasetBytes").asLong()).isEqualTo(bytes);
    assertThat(json.get("handoverBytes").asLong()).isPositive();
  }

  @Test
  void an_exact_order_is_a_full_shuffle_and_a_small_memory_is_not() {
    double exact = mateRatio("sample-order");
    double redirected = mateRatio("redirect");
    assertThat(exact).isBetween(0.5, 1.5); // some 60 mates by chance
    assertThat(redirected).isBetween(2 * exact, bytes / ReadDataset.MEMORY * 2.0);
  }

  private static double mateRatio(String policy) {
    return json(read("--policy", policy, "--json").isDone())
        .get("quality")
        .get("mateRatio")
        .asDouble();
  }

  @Test
  void people_get_two_lines_an_epoch_and_the_stall_at_the_end() {
    List<String> lines = read("--epochs", 2).isDone().outText().lines().toList();
    assertThat(lines).hasSize(7);
    assertThat(lines.get(0))
        .startsWith(dataset.path() + ": policy redirect, memory 256.0 KiB, ")
        .endsWith(" of at most 16.0 KiB");
    assertThat(lines.get(1))
        .matches("epoch 0 +500 samples, .* samples/s, .*/s; waited .* s .*%\\)");
    assertThat(lines.get(2)).contains(" reads from storage, ", "; memory 256.0 KiB at most");
    assertThat(lines.get(3)).startsWith("epoch 1 ");
    assertThat(lines.get(5)).matches("shuffle +mate ratio .*, worst batch .* a batch, spread .*");
    assertThat(lines.get(6)).matches("stall +trainers waited .* of .* s for data");
  }

  @Test
  void a_percentage_is_that_of_the_datasets_bytes() {
    JsonNode json = json(Cli.run("read", dataset.path(), "--memory", "62.5%", "--json").isDone());
    assertThat(json.get("memoryBytes").asLong()).isEqualTo(bytes * 625 / 1000);
  }

  @Test
  void the_order_can_be_printed_and_is_then_all_that_is() {
    Path file = folder.resolve("printed.order");
    read("--order", file).isDone();
    List<OrderLine> printed = OrderLine.parse(read("--order", "-").isDone().outText());
    assertThat(printed).hasSize(500).isEqualTo(OrderLine.read(file));
    assertThat(read("--order", "-", "--json").complaint(2)).contains("name a file");
  }

  @Test
  void damage_costs_a_place_and_changes_nothing_else() throws IOException {
    Path good = folder.resolve("good.order");
    Path bad = folder.resolve("bad.order");
    ReadDataset damaged = dataset.copy(folder.resolve("damaged.gw"));
    String key = "class2/0042.bin";
    Path chunk = damaged.damage(key);
    for (String policy : policies().toList()) {
      JsonNode before = json(read("--policy", policy, "--order", good, "--json").isDone());
      Cli.Result result =
          Cli.run(damaged.call("read", "--policy", policy, "--order", bad, "--json"));
      assertThat(result.exit()).isEqualTo(1);
      List<String> complaints = result.err().lines().toList();
      assertThat(complaints).hasSize(2);
      assertThat(complaints.get(0)).startsWith("gristway: " + chunk).contains("'" + key + "'");
      assertThat(complaints.get(1))
          .startsWith(
              "gristway: " + damaged.path() + " is damaged: repeats were given in 1 place;");

      JsonNode after = json(result);
      assertThat(digests(after)).isEqualTo(digests(before));
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
      assertThat(delivered(got)).doesNotContain(key);
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
    JsonNode before = json(read(options).isDone());
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
    assertThat(digests(json(result))).isEqualTo(digests(before));
    assertThat(delivered(OrderLine.read(order))).doesNotContain(repeated);
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
  void too_little_memory_is_refused_with_what_would_do() {
    for (String policy :
        List.of("sample-order", "chunk-shuffle", "redirect", "redirect-position")) {
      String complaint = readWith(1000, policy, 3).complaint(2);
      Matcher number = Pattern.compile("give it (\\d+) or more").matcher(complaint);
      assertThat(number.find()).as(complaint).isTrue();
      long enough = Long.parseLong(number.group(1));
      readWith(enough, policy, 3).isDone();
      readWith(enough - 1, policy, 3).complaint(2);
    }
  }

  private static Cli.Result readWith(long memory, String policy, int ranks) {
    return read("--policy", policy, "--memory", memory, "--ranks", ranks);
  }

  @Test
  void more_memory_than_the_machine_has_is_refused() {
    // Of a memory that the dataset cannot fill, only what it can is taken: a frame for each chunk,
    // here, on each of many ranks.
    assertThat(read("--memory", "100000GiB", "--extent", "1GiB", "--ranks", 1000).complaint(3))
        .contains("bytes of memory are not free here, only ");
  }

  @Test
  void an_order_that_cannot_be_written_ends_it() {
    assertThat(read("--order", "/dev/full").complaint(3))
        .startsWith("gristway: cannot write the order to /dev/full: No space left on device;");
    assertThat(read("--order", folder).complaint(2)).contains("it is a folder");
    assertThat(read("--order", folder.resolve("no/such")).complaint(2))
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
