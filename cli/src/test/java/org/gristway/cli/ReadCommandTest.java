package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;

/** What reading costs, and what is said of it. */
@Tag("java")
class ReadCommandTest {

  @TempDir static Path folder;
  private static ReadDataset dataset;
  private static long bytes;

  @BeforeAll
  static void pack() throws IOException {
    dataset = ReadDataset.pack(folder);
    bytes = dataset.bytes();
  }

  @ParameterizedTest
  @MethodSource("org.gristway.cli.ReadOrderTest#policies")
  void memory_stays_inside_the_budget_of_every_policy_that_has_one(String policy) {
    JsonNode json =
        dataset.read("--policy", policy, "--epochs", 2, "--ranks", 2, "--json").isDone().json();
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
    JsonNode json = dataset.read("--policy", policy, "--epochs", 2, "--json").isDone().json();
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
    assertReadOnce(dataset.read("--policy", policy, "--memory", "8MiB", "--epochs", 3, "--json"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"clairvoyant", "clairvoyant-next-use"})
  void what_is_kept_on_a_disk_is_not_read_again(String policy) throws IOException {
    Path disk = Files.createDirectory(folder.resolve(policy));
    String where = "--cache-folder=" + disk;
    assertReadOnce(
        dataset.read("--policy", policy, "--epochs", 3, "--cache-disk", "8MiB", where, "--json"));
    assertThat(disk).isEmptyDirectory();
    assertThat(dataset.read("--cache-disk", "8MiB").complaint(2)).contains("go together");
    assertThat(dataset.read("--policy", "unbounded", "--cache-disk", "8MiB", where).complaint(2))
        .contains("no use for a cache");
  }

  @ParameterizedTest
  @ValueSource(strings = {"chunk-shuffle", "redirect"})
  void extents_that_are_kept_are_not_read_again(String policy) {
    JsonNode epochs =
        dataset
            .read("--policy", policy, "--cache", "8MiB", "--epochs", 2, "--json")
            .isDone()
            .json()
            .get("epochs");
    assertThat(epochs.get(0).get("fetched").asInt()).isZero();
    assertThat(epochs.get(1).get("storageReads").asInt()).isZero();
    assertThat(epochs.get(1).get("fetched")).isEqualTo(epochs.get(0).get("storageReads"));
    JsonNode without = dataset.read("--policy", policy, "--epochs", 2, "--json").isDone().json();
    assertThat(epochs.get(1).get("orderDigest"))
        .isEqualTo(without.get("epochs").get(1).get("orderDigest"));
  }

  private static void assertReadOnce(Cli.Result result) {
    for (JsonNode epoch : result.isDone().json().get("epochs")) {
      boolean isFirst = epoch.get("epoch").asInt() == 0;
      // All but the sample that is larger than an extent, which no frame holds to be kept.
      assertThat(epoch.get("storageReads").asInt()).isEqualTo(isFirst ? ReadDataset.SAMPLES : 1);
      assertThat(epoch.get("fetched").asInt()).isEqualTo(isFirst ? 0 : ReadDataset.SAMPLES - 1);
      assertThat(epoch.get("fallBacks").asInt()).isZero();
    }
  }

  @Test
  void the_json_is_one_object_with_the_promised_names() {
    JsonNode json = dataset.read("--seed", 7, "--json").isDone().json();
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
    return dataset
        .read("--policy", policy, "--json")
        .isDone()
        .json()
        .get("quality")
        .get("mateRatio")
        .asDouble();
  }

  @Test
  void people_get_two_lines_an_epoch_and_the_stall_at_the_end() {
    List<String> lines = dataset.read("--epochs", 2).isDone().outText().lines().toList();
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
    JsonNode json = Cli.run("read", dataset.path(), "--memory", "62.5%", "--json").isDone().json();
    assertThat(json.get("memoryBytes").asLong()).isEqualTo(bytes * 625 / 1000);
  }
}
