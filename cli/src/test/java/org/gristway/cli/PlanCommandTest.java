package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.gristway.plan.policy.Policies;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

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

  private static JsonNode json(Cli.Result result) {
    assertThat(result.isDone().outText()).hasLineCount(1);
    return JsonMapper.shared().readTree(result.out());
  }

  private static List<String> digests(JsonNode plan) {
    return plan.get("policies").valueStream().map(p -> p.get("orderDigest").asString()).toList();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void reading_does_what_is_planned(int ranks) {
    Path planned = folder.resolve("planned.order");
    Path read = folder.resolve("read.order");
    JsonNode all = json(run("plan", "--ranks", ranks, "--epoch", 1, "--json"));
    assertThat(all.get("policies").valueStream().map(p -> p.get("policy").asString()))
        .containsExactlyElementsOf(POLICIES);
    for (JsonNode plan : all.get("policies")) {
      String policy = plan.get("policy").asString();
      if (Policies.named(policy).caches()) {
        continue; // not carried out yet
      }
      Object[] options = {"--policy", policy, "--ranks", ranks, "--json", "--order"};
      JsonNode done = json(run("read", with(options, read, "--epochs", 2)));
      JsonNode epoch = done.get("epochs").get(1);
      assertThat(plan.get("orderDigest")).as(policy).isEqualTo(epoch.get("orderDigest"));
      assertThat(plan.get("redirected")).isEqualTo(epoch.get("redirected"));
      for (String name : done.get("quality").propertyNames()) {
        assertThat(plan.get(name)).as(name).isEqualTo(done.get("quality").get(name));
      }
      assertThat(plan.get("storageReads")).isEqualTo(epoch.get("storageReads"));
      // A plan counts whole pages, also behind the end of a chunk.
      assertThat(plan.get("storageBytes").asLong() - epoch.get("storageBytes").asLong())
          .isBetween(0L, 4096 * plan.get("storageReads").asLong());
      if (!policy.equals("unbounded")) { // it has read everything in the epoch before
        assertThat(plan.get("peakResidentBytes").asLong()).isBetween(1L, ReadDataset.MEMORY);
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
    JsonNode json = json(run("plan", "--seed", 3, "--json"));
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
            "policies");
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
            "peakResidentBytes",
            "redirected",
            "mateRatio",
            "rankMateRatio",
            "worstBatch",
            "distinctExtents",
            "spread",
            "orderDigest");
    assertThat(json.get("policies").get(2).get("steps").asInt()).isEqualTo(16);
  }

  @Test
  void people_get_a_row_a_policy_from_the_floor_to_the_ceiling() {
    List<String> lines = run("plan").isDone().outText().lines().toList();
    assertThat(lines.get(0)).startsWith(dataset.path() + ": 500 samples, ");
    assertThat(lines.get(1))
        .startsWith("1 rank on 1 node with 256.0 KiB of memory each, and about ")
        .endsWith(" for batches; 16 steps with batches of 32");
    assertThat(lines.get(3)).startsWith("policy ").contains("frames", "reads", "mates", "spread");
    for (int i = 0; i < POLICIES.size(); i++) {
      assertThat(lines.get(4 + i)).startsWith(POLICIES.get(i) + " ").hasSameSizeAs(lines.get(3));
    }
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
    JsonNode json = json(run("plan", with(little, "--json")));
    assertThat(json.get("policies").get(2).propertyNames())
        .containsExactly("policy", "planVersion", "refusal");
    assertThat(run("plan", with(little, "--policy", "redirect")).complaint(2)).contains("32768");
  }

  @Test
  void the_order_does_not_depend_on_how_ranks_are_grouped() {
    Object[] options = {"--extent", "8KiB", "--ranks", 4, "--json"};
    JsonNode together = json(run("plan", with(options, "--memory", "512KiB")));
    JsonNode apart = json(run("plan", with(options, "--memory", "256KiB", "--nodes", 2)));
    assertThat(digests(apart)).isEqualTo(digests(together)).hasSameSizeAs(POLICIES);
  }

  @Test
  void there_is_a_rank_on_each_node_unless_more_are_asked_for() {
    JsonNode json = json(run("plan", "--nodes", 3, "--json"));
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
}
