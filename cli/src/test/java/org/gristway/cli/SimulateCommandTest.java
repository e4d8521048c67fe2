package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

@Tag("java")
class SimulateCommandTest {

  @TempDir static Path folder;

  private static JsonNode json(Object... options) {
    Cli.Result result = Cli.run(options).isDone();
    assertThat(result.outText()).hasLineCount(1);
    return JsonMapper.shared().readTree(result.out());
  }

  @Test
  void every_policy_of_a_scenario_has_its_result() {
    JsonNode json = json("simulate", "--scenario", "nopfs-1", "--json");
    assertThat(json.propertyNames()).containsExactly("scenario", "nodes", "policies");
    assertThat(json.get("scenario").asString()).isEqualTo("nopfs-1");
    assertThat(json.get("nodes").asInt()).isEqualTo(4);
    for (JsonNode policy : json.get("policies")) {
      assertThat(policy.propertyNames())
          .containsExactly(
              "name",
              "seconds",
              "stallSeconds",
              "storageBytes",
              "networkBytes",
              "peakResidentBytes",
              "epochSeconds");
      assertThat(policy.get("seconds").asDouble()).isPositive();
      assertThat(policy.get("epochSeconds")).hasSize(10);
    }
    assertThat(json.get("policies").valueStream().map(each -> each.get("name").asString()))
        .contains("perfect", "sample-order", "clairvoyant", "locality", "lbann-dynamic");
  }

  @Test
  void a_policy_that_cannot_run_says_why() {
    JsonNode json =
        json("simulate", "--scenario", "nopfs-3", "--policy", "lbann-preloading", "--json");
    JsonNode only = json.get("policies").get(0);
    assertThat(json.get("policies")).hasSize(1);
    assertThat(only.get("seconds").isNull()).isTrue();
    assertThat(only.get("reason").asString()).contains("does not fit the memory of all nodes");
    List<String> lines =
        Cli.run("simulate", "--scenario", "nopfs-3", "--policy", "lbann-preloading")
            .isDone()
            .outText()
            .lines()
            .toList();
    assertThat(lines.get(3)).startsWith("lbann-preloading  the dataset (");
  }

  @Test
  void a_printed_scenario_can_be_changed_and_given_back() throws IOException {
    String printed = Cli.run("simulate", "--scenario", "nopfs-1", "--print").isDone().outText();
    Path file = folder.resolve("mine.scenario");
    Files.writeString(file, printed.replace("name: nopfs-1", "name: mine"));
    JsonNode mine = json("simulate", "--scenario", file, "--policy", "staging", "--json");
    JsonNode theirs = json("simulate", "--scenario", "nopfs-1", "--policy", "staging", "--json");
    assertThat(mine.get("scenario").asString()).isEqualTo("mine");
    assertThat(mine.get("policies")).isEqualTo(theirs.get("policies"));
  }

  @Test
  void a_dataset_takes_the_place_of_the_described_one() throws IOException {
    ReadDataset dataset = ReadDataset.pack(folder);
    JsonNode json =
        json(
            "simulate",
            dataset.path(),
            "--scenario",
            "librispeech",
            "--nodes",
            2,
            "--policy",
            "redirect",
            "--json");
    long read = json.get("policies").get(0).get("storageBytes").asLong();
    assertThat(json.get("nodes").asInt()).isEqualTo(2);
    assertThat(read).isBetween(2 * dataset.bytes(), 4 * dataset.bytes());
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '"',
      value = {
        "nodes: 4           | nodes: 0            | nodes must be 1 or more, not 0",
        "nodes: 4           | nodes: 20000        | 20000 ranks cannot share 10000 samples",
        "storage.depth: 2   | storage.depth: 0    | storage.depth must be more than 0",
        "disk-rate: 86MB    | disk-rate: 0        | disk-rate must be more than 0, not 0",
        "memory: 51024MB    | memory: much        | 'much' is not a number",
        "epochs: 10         | epocs: 10           | there is no key 'epocs'",
        "batch: 25          | batch               | 'batch' is not 'key: value'",
        "work.barrier: true | work.barrier: maybe | 'maybe' is neither true nor false",
        "policies: perfect  | policies: prefect   | there is no policy 'prefect'"
      })
  void a_wrong_scenario_is_refused_in_one_line(String right, String wrong, String complaint)
      throws IOException {
    String text = Cli.run("simulate", "--scenario", "nopfs-1", "--print").outText();
    assertThat(text).contains(right);
    Path file = folder.resolve("wrong.scenario");
    Files.writeString(file, text.replace(right, wrong));
    assertThat(Cli.run("simulate", "--scenario", file).complaint(2)).contains(complaint);
  }

  @Test
  void a_policy_that_a_budget_is_too_small_for_says_so() throws IOException {
    String text = Cli.run("simulate", "--scenario", "librispeech", "--print").outText();
    Path file = folder.resolve("small.scenario");
    Files.writeString(file, text + "redirect.memory: 1MiB\n");
    JsonNode json = json("simulate", "--scenario", file, "--policy", "redirect", "--json");
    assertThat(json.get("policies").get(0).get("reason").asString())
        .contains("the memory is too small for policy 'redirect'");
  }

  @Test
  void an_unknown_scenario_is_refused_with_the_names_there_are() {
    assertThat(Cli.run("simulate", "--scenario", "no-such").complaint(2))
        .contains("no scenario 'no-such'", "nopfs-1", "imagenet-21k");
  }
}
