package org.gristway.simulator;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The four scenarios of the NoPFS thesis, against its table. */
@Tag("java")
class NopfsScenariosTest {

  private static final double NOT_RUN = Double.NaN;

  /** Seconds, by scenario. */
  private static final Map<String, double[]> PUBLISHED = new LinkedHashMap<>();

  static {
    PUBLISHED.put("perfect", new double[] {7.30, 3825.66, 7655.25, 15204.78});
    PUBLISHED.put("sample-order", new double[] {27.78, 15130.54, 30272.96, 60526.36});
    PUBLISHED.put("clairvoyant", new double[] {7.78, 3836.12, 7661.26, 16795.17});
    PUBLISHED.put("staging", new double[] {10.24, 4982.27, 9945.29, 19888.26});
    PUBLISHED.put("deepio-ordered", new double[] {8.41, 4433.27, 23948.24, 54122.52});
    PUBLISHED.put("deepio-opportunistic", new double[] {8.40, 4432.90, 8487.42, 16034.89});
    PUBLISHED.put("parallel-staging", new double[] {10.11, 4972.65, 9313.58, 16861.82});
    PUBLISHED.put("lbann-dynamic", new double[] {7.71, 4051.12, NOT_RUN, NOT_RUN});
    PUBLISHED.put("lbann-preloading", new double[] {8.41, 4433.27, NOT_RUN, NOT_RUN});
    PUBLISHED.put("locality", new double[] {8.41, 4433.27, 9314.33, 19082.99});
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4})
  void every_policy_takes_what_the_thesis_says(int number) {
    List<Simulated> results = new Simulation(Scenarios.named("nopfs-" + number)).run();
    assertThat(results.stream().map(Simulated::policy))
        .containsExactlyInAnyOrderElementsOf(PUBLISHED.keySet());
    for (Simulated result : results) {
      double published = PUBLISHED.get(result.policy())[number - 1];
      assertThat(result.ran()).as(result.policy()).isEqualTo(!Double.isNaN(published));
      if (result.ran()) {
        double ratio = result.seconds() / published;
        assertThat(ratio).as("%s: %.2f s", result.policy(), result.seconds()).isBetween(0.9, 1.1);
      }
      assertThat(SimulatorPage.cells("`" + result.policy() + "`").get(number - 1))
          .as("what docs/simulator.md says of %s", result.policy())
          .startsWith(result.ran() ? SimulatorPage.seconds(result.seconds()) : "cannot run");
    }
  }
}
