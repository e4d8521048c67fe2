package org.gristway.simulator;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The thesis's study of how much memory and disk the third scenario needs. */
@Tag("java")
class SizingStudyTest {

  /**
   * What a node has for samples, and how long the run takes.
   *
   * @param memory GB beside the staging buffer
   * @param disk GB, of 100 MB/s
   * @param published seconds
   */
  private record Sized(int memory, int disk, double published) {

    boolean hasNoMoreThan(Sized other) {
      return memory <= other.memory && disk <= other.disk;
    }

    double simulated() {
      String text = Scenarios.text("nopfs-3");
      text = replaced(text, "\nmemory: 51024MB\n", "\nmemory: " + (memory + 1.024) + "GB\n");
      text = replaced(text, "\ndisk: 100GB\n", "\ndisk: " + disk + "GB\n");
      text = replaced(text, "\ndisk-rate: 86MB\n", "\ndisk-rate: 100MB\n");
      Scenario scenario = Scenario.parse(text, "test").withPolicies(List.of("clairvoyant"));
      return new Simulation(scenario).run().getFirst().seconds();
    }

    private static String replaced(String text, String old, String other) {
      assertThat(text).containsOnlyOnce(old);
      return text.replace(old, other);
    }
  }

  private static final List<Sized> ALL =
      List.of(
          new Sized(0, 0, 9947),
          new Sized(10, 0, 9554),
          new Sized(20, 0, 9240),
          new Sized(40, 0, 8613),
          new Sized(0, 20, 9580),
          new Sized(0, 40, 9258),
          new Sized(0, 80, 8704),
          new Sized(40, 80, 7678));

  private static final Map<Sized, Double> SECONDS = new HashMap<>();

  @BeforeAll
  static void simulate() {
    ALL.forEach(each -> SECONDS.put(each, each.simulated()));
  }

  static List<Sized> all() {
    return ALL;
  }

  @ParameterizedTest
  @MethodSource("all")
  void a_run_takes_what_the_thesis_says(Sized sized) {
    double seconds = SECONDS.get(sized);
    assertThat(seconds / sized.published()).as("%.0f s", seconds).isBetween(0.9, 1.1);
    String published = SimulatorPage.seconds(sized.published());
    assertThat(SimulatorPage.cells(published).getFirst())
        .as("what docs/simulator.md says of it")
        .isEqualTo(SimulatorPage.seconds(seconds));
  }

  @Test
  void more_memory_or_disk_is_never_slower() {
    for (Sized less : ALL) {
      for (Sized more : ALL) {
        if (less.hasNoMoreThan(more)) {
          assertThat(SECONDS.get(more))
              .as("%s against %s", more, less)
              .isLessThanOrEqualTo(SECONDS.get(less));
        }
      }
    }
  }
}
