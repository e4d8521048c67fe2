package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.gristway.plan.policy.Policies;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;

@Tag("java")
class PlanCommandTest {

  private static final List<String> POLICIES =
      List.of(
          "sample-order",
          "chunk-shuffle",
          "redirect",
          "redirect-position",
          "clairvoyant",
          "clairvoyant-next-use",
          "locality",
          "unbounded");

  @TempDir static Path folder;
  private static ReadDataset dataset;

  @BeforeAll
  static void pack() throws IOException {
    dataset = ReadDataset.pack(folder);
  }

  private static Cli.Result run(String command, Object... options) {
    return Cli.run(dataset.call(command, options));
  }

  private static List<String> digests(JsonNode plan) {
    return plan.get("policies").valueStream().map(p -> p.get("orderDigest").asString()).toList();
  }

  /** One rank is the simpler case, and each takes seventeen runs of the command. */
  static IntStream ranks() {
    return Thorough.on() ? IntStream.of(1, 3) : IntStream.of(3);
  }

  @ParameterizedTest
  @MethodSource("ranks")
  void reading_does_what_is_planned(int ranks) {
    Path planned = folder.resolve("planned.order");
    Path read = folder.resolve("read.order");
    JsonNode all = run("plan", "--ranks", ranks, "--epoch", 1, "--json").isDone().json();
    assertThat(all.get("policies").valueStream().map(p -> p.get("policy").asString()))
        .containsExactlyElementsOf(POLICIES);
    for (JsonNode plan : all.get("policies")) {
      String policy = plan.get("policy").asString();
      Object[] options = {"--policy", policy, "--ranks", ranks, "--json", "--order"};
      JsonNode done = run("read", with(options, read, "--epochs", 2)).isDone().json();
      JsonNode epoch = done.get("epochs").get(1);
      assertThat(plan.get("orderDigest")).as(policy).isEqualTo(epoch.get("orderDigest"));
      assertThat(plan.get("redirected")).isEqualTo(epoch.get("redirected"));
      for (String name : done.get("quality").propertyNames()) {
        assertThat(plan.get(name)).as(name).isEqualTo(done.get("quality").get(name));
      }
      if (!Policies.named(policy).caches()) { // whose plan is that of a longer run
        assertThat(plan.get("storageReads")).isEqualTo(epoch.get("storageReads"));
        // A plan counts whole pages, also behind the end of a chunk.
        assertThat(plan.get("storageBytes").asLong() - epoch.get("storageBytes").asLong())
            .isBetween(0L, 4096 * plan.get("storageReads").asLong());
      }
      long peak = plan.get("peakResidentBytes").asLong();
      if (policy.equals("unbounded")) { // it has read everything in the epoch before
        assertThat(peak).isGreaterThan(dataset.bytes());
      } else {
        assertThat(peak).isBetween(1L, ReadDataset.MEMORY);
      }
      run("plan", with(options, planned, "--epoch", 1)).isDone();
      assertThat(OrderLine.read(planned)).isEqualTo(OrderLine.of(1, OrderLine.read(read)));
    }
  }

  private static Object[] with(Object[] options, Object... more) {
    return Stream.concat(Arrays.stream(options), Arrays.stream(more)).toArray();
  }

  @Test
  void the_json_has_the_promised_names() {
    JsonNode json = run("plan", "--seed", 3, "--json").isDone().json();
    assertThat(json.propertyNames())
        .containsExactly(
            "seed",
            "memoryBytes",
            "extentBytes",
            "datasetBytes",
            "samples",
            "extents",
            "ranks",
            "nodes",
            "batchSize",
            "exchange",
            "homes",
            "policies",
            "floor",
            "ceiling");
    assertThat(json.get("seed").asLong()).isEqualTo(3);
    assertThat(json.get("memoryBytes").asLong()).isEqualTo(ReadDataset.MEMORY);
    assertThat(json.get("datasetBytes").asLong()).isEqualTo(dataset.bytes());
    assertThat(json.get("samples").asLong()).isEqualTo(ReadDataset.SAMPLES);
    assertThat(json.get("policies").get(2).propertyNames())
        .containsExactly(
            "policy",
            "planVersion",
            "steps",
            "storageReads",
            "storageBytes",
            "movedBytes",
            "peakResidentBytes",
            "redirected",
            "mateRatio",
            "rankMateRatio",
            "worstBatch",
            "distinctExtents",
            "spread",
            "rankCorrelation",
            "labelEntropy",
            "labelVariance",
            "orderDigest");
    for (String bound : List.of("floor", "ceiling")) {
      assertThat(json.get(bound).propertyNames())
          .containsExactly(
              "mateRatio",
              "rankMateRatio",
              "worstBatch",
              "distinctExtents",
              "spread",
              "rankCorrelation",
              "labelEntropy",
              "labelVariance");
    }
    assertThat(json.get("policies").get(2).get("steps").asInt()).isEqualTo(16);
  }

  @Test
  void people_get_a_row_a_policy_from_the_floor_to_the_ceiling() {
    List<String> lines = run("plan").isDone().outText().lines().toList();
    assertThat(lines.get(0)).startsWith(dataset.path() + ": 500 samples, ");
    assertThat(lines.get(1))
        .startsWith("1 rank on 1 node with 256.0 KiB of memory each, and about ")
        .endsWith(" for batches, at most 64.0 MiB; 16 steps with batches of 32");
    assertThat(lines.get(3))
        .startsWith("policy ")
        .contains("frames", "reads", "mates", "spread", "alike")
        .endsWith("labels");
    List<String> names = Stream.concat(POLICIES.stream(), Stream.of("floor", "ceiling")).toList();
    for (int i = 0; i < names.size(); i++) {
      assertThat(lines.get(4 + i)).startsWith(names.get(i) + " ").hasSameSizeAs(lines.get(3));
    }
    assertThat(lines.get(4 + POLICIES.size())).contains(" 1.00 "); // the same in every epoch
    assertThat(lines).anyMatch(line -> line.startsWith("alike  "));
    assertThat(lines).anyMatch(line -> line.startsWith("labels  "));
  }

  private static JsonNode policy(JsonNode plan, String name) {
    return plan.get("policies")
        .valueStream()
        .filter(policy -> policy.get("policy").asString().equals(name))
        .findFirst()
        .orElseThrow();
  }

  /** Four classes, one after the other in storage, in extents of 16 samples. */
  private static Path sorted() throws IOException {
    Path target = folder.resolve("sorted.gw");
    if (!Files.exists(target)) {
      Path source = folder.resolve("sorted");
      for (int i = 0; i < 1024; i++) {
        Path file = source.resolve("class%d/%04d".formatted(i / 256, i));
        Files.createDirectories(file.getParent());
        Files.write(file, new byte[1000]);
      }
      Cli.run("pack", "--keep-order", source, target).isDone();
    }
    return target;
  }

  private static final Object[] LITTLE = {
    "--memory", "64KiB", "--extent", "16KiB", "--batch-size", 32, "--json"
  };

  @Test
  void orders_lie_between_no_shuffle_and_a_full_one() throws IOException {
    JsonNode json = Cli.run(with(new Object[] {"plan", sorted()}, LITTLE)).isDone().json();
    JsonNode floor = json.get("floor");
    JsonNode ceiling = json.get("ceiling");
    // A batch as packed is two extents or three, and of one class; chance has half of a mate in 16.
    assertThat(floor.get("mateRatio").asDouble()).isBetween(20.0, 64.0);
    assertThat(floor.get("distinctExtents").asDouble()).isBetween(2.0, 4.0);
    assertThat(floor.get("spread").asDouble()).isBetween(0.0, 0.02);
    assertThat(floor.get("rankCorrelation").asDouble()).isCloseTo(1, within(1e-9));
    assertThat(floor.get("labelEntropy").asDouble()).isZero();
    assertThat(floor.get("labelVariance").asDouble()).isCloseTo(32 * 1023 / 992.0, within(1e-6));
    assertThat(ceiling.get("mateRatio").asDouble()).isBetween(0.8, 1.2);
    assertThat(ceiling.get("spread").asDouble()).isBetween(0.95, 1.05);
    assertThat(ceiling.get("rankCorrelation").asDouble()).isBetween(-0.13, 0.13); // four deviations
    assertThat(ceiling.get("labelEntropy").asDouble()).isBetween(1.85, 2.0);
    assertThat(ceiling.get("labelVariance").asDouble()).isBetween(0.6, 1.4);
    for (String exact : List.of("sample-order", "clairvoyant", "unbounded")) {
      for (String name : ceiling.propertyNames()) {
        assertThat(policy(json, exact).get(name)).as(exact).isEqualTo(ceiling.get(name));
      }
    }
    for (String mixed : List.of("chunk-shuffle", "redirect")) {
      JsonNode policy = policy(json, mixed);
      assertThat(policy.get("labelVariance").asDouble()).as(mixed).isBetween(3.0, 20.0);
      assertThat(policy.get("labelEntropy").asDouble()).as(mixed).isBetween(0.3, 1.7);
      assertThat(policy.get("rankCorrelation").asDouble()).as(mixed).isBetween(-0.6, 0.6);
    }
  }

  @Test
  void packing_in_random_order_mixes_the_labels_of_any_order() {
    JsonNode json = run("plan", "--json").isDone().json();
    assertThat(json.get("floor").get("mateRatio").asDouble()).isGreaterThan(10);
    assertThat(json.get("floor").get("labelVariance").asDouble()).isBetween(0.5, 1.7);
  }

  @Test
  void the_epoch_is_compared_with_the_one_after_it() {
    JsonNode first =
        policy(run("plan", "--policy", "redirect", "--json").isDone().json(), "redirect");
    JsonNode second =
        policy(
            run("plan", "--policy", "redirect", "--epoch", 1, "--json").isDone().json(),
            "redirect");
    assertThat(first.get("rankCorrelation")).isNotEqualTo(second.get("rankCorrelation"));
    assertThat(first.get("rankCorrelation").asDouble()).isBetween(-0.5, 0.5);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void memory_counts_what_policies_keep(int epoch) {
    JsonNode json = run("plan", "--epoch", epoch, "--json").isDone().json();
    for (String caching : List.of("clairvoyant", "locality")) {
      assertThat(policy(json, caching).get("peakResidentBytes").asLong())
          .as(caching)
          .isBetween(ReadDataset.MEMORY * 3 / 4, ReadDataset.MEMORY);
    }
  }

  @Test
  void a_dataset_without_labels_has_no_mix_of_them() throws IOException {
    Path source = Files.createDirectory(folder.resolve("unlabelled"));
    for (int i = 0; i < 100; i++) {
      Files.write(source.resolve(Integer.toString(i)), new byte[1000]);
    }
    Path target = folder.resolve("unlabelled.gw");
    Cli.run("pack", source, target).isDone();
    JsonNode json = Cli.run(with(new Object[] {"plan", target}, LITTLE)).isDone().json();
    assertThat(json.get("policies")).hasSameSizeAs(POLICIES);
    json.get("policies")
        .forEach(policy -> assertThat(policy.propertyNames()).noneMatch(n -> n.contains("label")));
    assertThat(json.get("floor").propertyNames())
        .contains("rankCorrelation")
        .doesNotContain("labelEntropy", "labelVariance");
    assertThat(Cli.run("plan", target).isDone().outText()).doesNotContain("labels");
  }

  @Test
  void a_policy_without_enough_memory_says_so_in_its_row() {
    Object[] little = {"--memory", "16KiB"};
    List<String> rows =
        run("plan", little)
            .isDone()
            .outText()
            .lines()
            .filter(l -> l.contains("too small"))
            .toList();
    assertThat(rows).hasSize(2);
    assertThat(rows.get(0)).startsWith("chunk-shuffle         the memory is too small");
    assertThat(rows.get(1)).startsWith("redirect              the memory is too small");
    JsonNode json = run("plan", with(little, "--json")).isDone().json();
    assertThat(json.get("policies").get(2).propertyNames())
        .containsExactly("policy", "planVersion", "refusal");
    assertThat(run("plan", with(little, "--policy", "redirect")).complaint(2)).contains("32768");
  }

  @Test
  void the_order_does_not_depend_on_how_ranks_are_grouped() {
    Object[] options = {"--extent", "8KiB", "--ranks", 4, "--json"};
    JsonNode together = run("plan", with(options, "--memory", "512KiB")).isDone().json();
    JsonNode apart = run("plan", with(options, "--memory", "256KiB", "--nodes", 2)).isDone().json();
    assertThat(digests(apart)).isEqualTo(digests(together)).hasSameSizeAs(POLICIES);
  }

  @Test
  void there_is_a_rank_on_each_node_unless_more_are_asked_for() {
    JsonNode json = run("plan", "--nodes", 3, "--json").isDone().json();
    assertThat(json.get("ranks").asInt()).isEqualTo(3);
    assertThat(run("plan", "--nodes", 3, "--ranks", 2).complaint(2)).contains("2 ranks on 3 nodes");
  }

  @Test
  void planning_reads_no_chunk() throws IOException {
    ReadDataset copy = dataset.copy(folder.resolve("chunkless.gw"));
    try (Stream<Path> files = Files.list(copy.path())) {
      for (Path chunk : files.filter(file -> file.toString().endsWith(".gwc")).toList()) {
        Files.delete(chunk);
      }
    }
    Cli.run("plan", copy.path(), "--policy", "redirect", "--extent", "16KiB").isDone();
  }

  @Test
  void an_order_is_that_of_one_policy() {
    assertThat(run("plan", "--order", "-").complaint(2)).contains("name it with --policy");
    Path file = folder.resolve("one.order");
    run("plan", "--policy", "redirect", "--order", file).isDone();
    assertThat(
            OrderLine.parse(run("plan", "--policy", "redirect", "--order", "-").isDone().outText()))
        .hasSize(500)
        .isEqualTo(OrderLine.read(file));
  }

  @Test
  void settings_are_recommended_for_what_a_probe_has_found() throws IOException {
    Path probe = ProbedStorage.DISK.write(folder.resolve("disk.json"));
    Object[] options = {"--recommend", "--step-time", "1s", "--probe", probe};
    JsonNode json = run("plan", with(options, "--json", "--memory", "4MiB")).isDone().json();
    assertThat(json.propertyNames())
        .containsExactly(
            "stepSeconds",
            "memoryBytes",
            "datasetBytes",
            "samples",
            "samplesTried",
            "ranks",
            "nodes",
            "batchSize",
            "wantedBytesPerSecond",
            "storageBytesPerSecond",
            "storageReadsPerSecond",
            "storageLatencySeconds",
            "removesStall",
            "boundBy",
            "recommended",
            "runnerUp");
    assertThat(json.get("removesStall").asBoolean()).isTrue();
    assertThat(json.get("boundBy").isNull()).isTrue();
    assertThat(json.get("samplesTried").asInt()).isEqualTo(ReadDataset.SAMPLES);
    assertThat(json.get("storageReadsPerSecond").asDouble()).isCloseTo(200, within(1e-6));
    for (String name : List.of("recommended", "runnerUp")) {
      assertThat(json.get(name).propertyNames())
          .containsExactly(
              "policy",
              "memoryBytes",
              "extentBytes",
              "stallShare",
              "firstEpochStallSeconds",
              "storageReads",
              "storageBytes",
              "mateRatio",
              "reason");
      assertThat(json.get(name).get("memoryBytes").asLong()).isLessThanOrEqualTo(4 << 20);
      assertThat(json.get(name).get("stallShare").asDouble()).isLessThan(0.01);
    }
  }

  @Test
  void what_ranks_exchange_is_planned_and_what_moves_between_nodes_told() throws IOException {
    Object[] all = {"--policy", "redirect", "--extent", "8KiB", "--ranks", 4, "--json"};
    Object[] nodes = with(all, "--memory", "256KiB", "--nodes", 2);
    JsonNode own = run("plan", nodes).isDone().json();
    JsonNode any = run("plan", with(nodes, "--exchange", 1)).isDone().json();
    JsonNode alone = run("plan", with(all, "--memory", "512KiB", "--exchange", 1)).isDone().json();
    assertThat(own.get("exchange").asDouble()).isZero();
    assertThat(any.get("exchange").asDouble()).isEqualTo(1);
    assertThat(moved(own)).isZero();
    assertThat(moved(alone)).isZero();
    // Of what any rank may have read, the other node has half.
    assertThat(moved(any) / (double) dataset.bytes()).isCloseTo(0.5, within(0.1));
    assertThat(any.get("policies").get(0).get("orderDigest"))
        .isEqualTo(alone.get("policies").get(0).get("orderDigest"))
        .isNotEqualTo(own.get("policies").get(0).get("orderDigest"));
    assertThat(run("plan", "--nodes", 2, "--exchange", 0.5).isDone().outText()).contains("moved");
    assertThat(run("plan", "--exchange", 2).complaint(2)).contains("from 0 to 1");
    assertThat(run("plan", "--policy", "unbounded", "--exchange", 1).complaint(2))
        .contains("--exchange", "unbounded");
  }

  @Test
  void extents_may_have_homes() throws IOException {
    Object[] nodes = {"--policy", "redirect", "--ranks", 4, "--nodes", 2, "--json"};
    Object[] any = with(nodes, "--exchange", 1);
    Set<String> digests = new HashSet<>();
    for (String homes : List.of("afresh", "hashed", "Placed")) {
      JsonNode json = run("plan", with(any, "--homes", homes)).isDone().json();
      assertThat(json.get("homes").asString()).isEqualTo(homes.toLowerCase(Locale.ROOT));
      digests.add(json.get("policies").get(0).get("orderDigest").asString());
    }
    assertThat(digests).hasSize(3);
    assertThat(run("plan", any).isDone().json().get("homes").asString()).isEqualTo("afresh");
    assertThat(run("plan", with(nodes, "--homes", "hashed")).complaint(2))
        .contains("hashed homes need an exchange of 1, not 0.0");
    assertThat(run("plan", "--homes", "nowhere").complaint(2)).contains("none of afresh, hashed");
  }

  private static long moved(JsonNode json) {
    return json.get("policies").get(0).get("movedBytes").asLong();
  }

  @Test
  void recommended_settings_are_those_that_read_takes() throws IOException {
    Path probe = ProbedStorage.FAST.write(folder.resolve("fast.json"));
    Object[] options = {"--recommend", "--step-time", "0.1s", "--probe", probe};
    List<String> lines =
        run("plan", with(options, "--policy", "redirect")).isDone().outText().lines().toList();
    assertThat(lines.get(0))
        .startsWith(dataset.path() + ": 500 samples, ")
        .contains("steps of 100 ms with batches of 32, 1 rank on 1 node with up to 256.0 KiB");
    assertThat(lines.get(1))
        .isEqualTo("storage: 2.8 GiB and 196,644 reads a second, 0.08 ms a read");
    assertThat(lines.get(3)).startsWith("recommended: --policy redirect --memory ");
    assertThat(lines.get(4)).contains("gristway.Loader(", "batch_size=32", "extent=\"16KiB\"");
    assertThat(lines.get(5)).startsWith("  Training takes ");
    List<Object> read = new ArrayList<>(List.of("read", dataset.path()));
    read.addAll(List.of(lines.get(3).replace("recommended: ", "").split(" ")));
    Cli.run(read.toArray()).isDone();
  }

  @Test
  void what_is_no_probe_is_refused() throws IOException {
    Path file = folder.resolve("not-a-probe");
    for (String text : List.of("", "probe", "{}", "[1]", "{\"reads\": [{\"bytes\": 1}]}")) {
      Files.writeString(file, text);
      assertThat(run("plan", "--recommend", "--step-time", "1s", "--probe", file).complaint(2))
          .endsWith(file + " is not what 'gristway probe DIR --json' prints");
    }
  }
}
