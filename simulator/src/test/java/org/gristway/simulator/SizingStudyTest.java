package org.gristway.simulator;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The thesis's study of how much memory and disk the third scenario needs. */
@Tag("java")
class SizingStudyTest {

  /** GB of memory beside the staging buffer, GB of a disk of 100 MB/s, and published seconds. */
  @ParameterizedTest
  @CsvSource({
    "0, 0, 9947",
    "10, 0, 9554",
    "20, 0, 9240",
    "40, 0, 8613",
    "0, 20, 9580",
    "0, 40, 9258",
    "0, 80, 8704",
    "40, 80, 7678"
  })
  void a_run_takes_what_the_thesis_says(int memory, int disk, double published) {
    String text =
        Scenarios.text("nopfs-3")
            .replace("memory: 51024MB", "memory: " + (memory + 1.024) + "GB")
            .replace("disk: 100GB", "disk: " + disk + "GB")
            .replace("disk-rate: 86MB", "disk-rate: 100MB");
    Scenario scenario = Scenario.parse(text, "test").withPolicies(List.of("clairvoyant"));
    double seconds = new Simulation(scenario).run().getFirst().seconds();
    assertThat(seconds / published).as("%.0f s", seconds).isBetween(0.9, 1.1);
  }
}
