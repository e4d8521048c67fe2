package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tools.jackson.databind.JsonNode;

@Tag("java")
class SimulateCommandTest {

  @TempDir static Path folder;

  private static JsonNode json(Object... options) {
    return Cli.run(options).isDone().json();
  }

  @Test
  void every_policy_of_a_scenario_has_its_result() {
    // In a process of its own: scenarios are files in the jar.
    JsonNode json = new Cli().call("simulate", "--scenario", "nopfs-1", "--json").isDone().json();
    assertThat(json.propertyNames())
        .containsExactly("scenario", "nodes", "exchange", "policies", "formula");
    assertThat(json.get("formula").propertyNames())
        .containsExactly("plain", "randomOwner", "localityAware");
    assertThat(json.get("scenario").asString()).isEqualTo("nopfs-1");
    assertThat(json.get("nodes").asInt()).isEqualTo(4);
    for (JsonNode policy : json.get("policies")) {
      assertThat(policy.propertyNames())
          .containsExactly(
              "name",
              "seconds",
              "stallSeconds",
              "stallShare",
              "storageBytes",
              "networkBytes",
              "peakResidentBytes",
              "epochSeconds",
              "perNode",
              "firstNode");
      assertThat(policy.get("seconds").asDouble()).isPositive();
      assertThat(policy.get("stallShare").asDouble())
          .isBetween(0.0, 1.0)
          .isEqualTo(policy.get("stallSeconds").asDouble() / policy.get("seconds").asDouble());
      assertThat(policy.get("epochSeconds")).hasSize(10);
      JsonNode storage = policy.get("perNode").get("storageBytes");
      assertThat(storage.get("mean").asDouble() * 4)
          .isCloseTo(policy.get("storageBytes").asDouble(), within(8.0));
      assertThat(policy.get("firstNode").size()).isBetween(200, 512);
    }
    assertThat(json.get("policies").valueStream().map(each -> each.get("name").asString()))
        .contains("perfect", "sample-order", "clairvoyant", "locality", "lbann-dynamic");
  }

  @Test
  void several_numbers_of_nodes_stand_beside_each_other() {
    JsonNode runs =
        json(
                "simulate",
                "--scenario",
                "nopfs-1",
                "--nodes",
                "1,2,4",
                "--policy",
                "perfect",
                "--json")
            .get("runs");
    assertThat(runs.valueStream().map(run -> run.get("nodes").asInt())).containsExactly(1, 2, 4);
    JsonNode alone =
        json("simulate", "--scenario", "nopfs-1", "--nodes", 2, "--policy", "perfect", "--json");
    assertThat(runs.get(1).get("policies")).isEqualTo(alone.get("policies"));
    List<String> lines =
        Cli.run("simulate", "--scenario", "nopfs-1", "--nodes", "1,4", "--policy", "perfect")
            .isDone()
            .outText()
            .lines()
            .toList();
    assertThat(lines.stream().filter(line -> line.startsWith("perfect"))).hasSize(2);
  }

  @Test
  void a_page_shows_time_against_nodes_stall_against_memory_and_one_node() throws Exception {
    Path page = folder.resolve("page.html");
    Cli.run("simulate", "--scenario", "nopfs-1", "--html", page).isDone();
    String html = Files.readString(page);
    assertThat(html).contains("seconds of the last epoch", "waited for data, %", "Memory in use");
    assertThat(html).contains(">sample-order<", ">clairvoyant<", ">lbann-dynamic<");
    assertThat(html).doesNotContain("http", "<script", "NaN", "Infinity");
    assertThat(Pattern.compile("<svg ").matcher(html).results()).hasSize(6);
    Cli.run("simulate", "--scenario", "nopfs-1", "--policy", "perfect", "--html", page).isDone();
    assertThat(Pattern.compile("<svg ").matcher(Files.readString(page)).results()).hasSize(1);
    assertThat(Files.readString(page)).doesNotContain(">sample-order<", "waited for data, %");
    Cli.run("simulate", "--scenario", "nopfs-3", "--policy", "lbann-dynamic", "--html", page)
        .isDone();
    assertThat(Files.readString(page)).contains("does not fit").doesNotContain("<svg");
  }

  @Test
  void a_page_that_cannot_be_written_is_said_in_one_line() {
    Path page = folder.resolve("no-such-folder").resolve("page.html");
    assertThat(
            Cli.run("simulate", "--scenario", "nopfs-1", "--policy", "perfect", "--html", page)
                .complaint(2))
        .contains("no-such-folder");
  }

  @Test
  void a_policy_that_cannot_run_says_why() {
    JsonNode json =
        json("simulate", "--scenario", "nopfs-3", "--policy", "lbann-preloading", "--json");
    JsonNode only = json.get("policies").get(0);
    assertThat(json.get("policies")).hasSize(1);
    assertThat(only.get("seconds").isNull()).isTrue();
    assertThat(only.get("stallShare").isNull()).isTrue();
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
  void what_is_printed_is_what_options_make_of_it() throws IOException {
    List<Object> options = List.of("--nodes", 2, "--policy", "sample-order,clairvoyant");
    String printed = simulate("nopfs-1", options, "--print").outText();
    assertThat(printed.lines())
        .contains(
            "nodes: 2",
            "policies: sample-order clairvoyant",
            "sample-order.memory: 16MiB",
            "sample-order.ahead: 0",
            "clairvoyant.by-frequency: true",
            "storage.stream: 1=66MB 2=43MB 3=43MB 4=36500KB",
            "network.bisection: unlimited")
        .noneMatch(line -> line.startsWith("locality"));
    Path file = folder.resolve("printed.scenario");
    Files.writeString(file, printed);
    assertThat(simulate(file, List.of(), "--json").outText())
        .isEqualTo(simulate("nopfs-1", options, "--json").outText());
    assertThat(simulate("nopfs-1", List.of("--exchange", 0), "--print").outText())
        .as("nothing is changed")
        .isEqualTo(simulate("nopfs-1", List.of(), "--print").outText())
        .contains("# A node reads with two threads");
    assertThat(
            Cli.run("simulate", "--scenario", "nopfs-1", "--nodes", "1,2", "--print").complaint(2))
        .contains("--print is for one number of nodes, not for 2");
  }

  private static Cli.Result simulate(Object scenario, List<Object> options, String form) {
    List<Object> all = new ArrayList<>(List.of("simulate", "--scenario", scenario));
    all.addAll(options);
    all.add(form);
    return Cli.run(all.toArray()).isDone();
  }

  @Test
  void a_dataset_takes_the_place_of_the_described_one() throws IOException {
    ReadDataset dataset = ReadDataset.pack(folder);
    assertThat(
            Cli.run("simulate", dataset.path(), "--scenario", "librispeech", "--print")
                .isDone()
                .outText())
        .contains("sample-bytes: fixed ")
        .doesNotContain("281241", "normal 213KB");
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
        "nodes: 4           | simulated: 0        | simulated must be 1 or more, not 0",
        "nodes: 4           | nodes: 20000        | 20000 ranks cannot share 10000 samples",
        "storage.depth: 2   | storage.depth: 0    | storage.depth must be more than 0",
        "disk-rate: 86MB    | disk-rate: 0        | disk-rate must be more than 0, not 0",
        "memory: 51024MB    | memory: much        | 'much' is not a number",
        "epochs: 10         | epocs: 10           | there is no key 'epocs'",
        "batch: 25          | batch               | 'batch' is not 'key: value'",
        "work.barrier: true | work.barrier: maybe | 'maybe' is neither true nor false",
        "policies: perfect  | policies: prefect   | there is no 'prefect'",
        "ahead: 16          | staging.preload: true      | only 'locality' keeps to the end",
        "ahead: 16          | staging.by-frequency: true | only 'clairvoyant' can keep",
        "nodes: 4           | exchange: 1.5       | from 0 to 1, not 1.5",
        "nodes: 4           | exchange: some      | exchange: 'some' is not a number",
        "nodes: 4           | window: 0           | 1 to 64 steps ahead, not 0",
        "nodes: 4           | window: 65          | 1 to 64 steps ahead, not 65"
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
  void ranks_exchange_what_they_are_asked_to_and_the_page_says_with_which_policies()
      throws IOException {
    String text = Cli.run("simulate", "--scenario", "nopfs-1", "--print").outText();
    Path file = folder.resolve("mixed.scenario");
    String mixed =
        text.replaceAll("policies: .*", "policies: perfect redirect chunk-shuffle")
            .replaceAll("(?m)^[a-z-]+\\.(memory|ahead|preload|by-frequency): .*$", "");
    Files.writeString(file, mixed + "\nexchange: 0.25\nwindow: 3\n");
    JsonNode quarter = json("simulate", "--scenario", file, "--json");
    JsonNode half = json("simulate", "--scenario", file, "--exchange", 0.5, "--json");
    JsonNode none = json("simulate", "--scenario", file, "--exchange", 0, "--json");
    assertThat(quarter.get("exchange").asDouble()).isEqualTo(0.25);
    assertThat(half.get("exchange").asDouble()).isEqualTo(0.5);
    long dataset = none.get("policies").get(1).get("storageBytes").asLong();
    for (int i = 1; i <= 2; i++) {
      // Of what comes from any of four nodes, a quarter stays where it was read.
      assertThat(moved(quarter, i) / dataset).isCloseTo(0.25 * 3 / 4, within(0.02));
      assertThat(moved(half, i) / dataset).isCloseTo(0.5 * 3 / 4, within(0.02));
      assertThat(moved(none, i)).isZero();
    }
    assertThat(moved(half, 0)).isZero();
    assertThat(Cli.run("simulate", "--scenario", file).isDone().outText())
        .contains("ranks exchange 25 % with redirect, chunk-shuffle");
    assertThat(
            Cli.run("simulate", "--scenario", file, "--policy", "perfect", "--exchange", 1)
                .complaint(2))
        .contains("--exchange has no meaning for policy 'perfect'");
    assertThat(Cli.run("simulate", "--scenario", file, "--exchange", 2).complaint(2))
        .contains("from 0 to 1, not 2");
    Files.writeString(file, mixed.replace("redirect chunk-shuffle", ""));
    assertThat(Cli.run("simulate", "--scenario", file, "--exchange", 1).complaint(2))
        .contains("--exchange has no meaning for scenario");
  }

  private static double moved(JsonNode result, int policy) {
    return result.get("policies").get(policy).get("networkBytes").asDouble();
  }

  @Test
  void an_unknown_scenario_is_refused_with_the_names_there_are() {
    assertThat(Cli.run("simulate", "--scenario", "no-such").complaint(2))
        .contains("no scenario 'no-such'", "nopfs-1", "imagenet-21k");
  }
}
