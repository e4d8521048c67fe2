package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.offset;

import java.nio.file.Path;
import java.util.List;
import java.util.stream.LongStream;
import org.gristway.Progress;
import org.gristway.dataset.Dataset;
import org.gristway.pack.PackOptions;
import org.gristway.pack.Packer;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanSettings;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.World;
import org.gristway.read.LoaderOptions;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Tag("java")
class DemoReportTest {

  private static final int SAMPLES = 300;
  private static final long SECOND = 1_000_000_000;

  @TempDir static Path folder;

  private static Dataset dataset;

  @BeforeAll
  static void pack() {
    Path files = folder.resolve("shapes");
    DemoFiles.make(files, SAMPLES, Progress.NONE);
    Path packed = folder.resolve("shapes.gw");
    Packer.pack(List.of(files), packed, PackOptions.DEFAULT, Progress.NONE, _ -> {});
    dataset = Dataset.open(packed);
  }

  @AfterAll
  static void close() {
    dataset.close();
  }

  private static DemoRun run(String name, double seconds, double stall, boolean complete) {
    long nanos = (long) (seconds * SECOND);
    long stalled = (long) (stall * nanos);
    return new DemoRun(
        name,
        3_000_000,
        nanos,
        stalled,
        complete,
        LongStream.range(0, SAMPLES).toArray(),
        new DemoRun.Step[] {
          new DemoRun.Step(nanos / 4, 256, stalled / 2, 1 << 20),
          new DemoRun.Step(nanos / 2, SAMPLES, stalled, 0)
        },
        new DemoFeed.Cost(SAMPLES, 3_000_000, 1 << 20));
  }

  private static DemoReport report(boolean inMemory, DemoRun... runs) {
    DemoSetting setting =
        new DemoSetting(
            Path.of("/tmp/<b>\"it's\"&co/shapes.gw"),
            1 << 20,
            256 << 10,
            20_000,
            0.5,
            1_000_000_000,
            DemoCold.Way.ADVISED,
            "tmpfs",
            inMemory);
    PlanSettings settings = LoaderOptions.DEFAULT.withMemory(1 << 20).planSettings();
    PlanInputs inputs =
        PlanInputs.of(SampleLayout.of(dataset.snapshot()), 0, World.of(1), settings);
    return new DemoReport(setting, dataset.snapshot(), inputs, List.of(runs));
  }

  @Test
  void begins_with_what_it_comes_to() {
    DemoReport report =
        report(
            false,
            run("files one by one", 4, 0.75, true),
            run("sample-order", 2, 0.2, true),
            run("redirect", 1, 0.05, true));
    assertThat(report.conclusion())
        .isEqualTo(
            "Fed from the packed dataset by redirect, the trainer ran 4.0 times as fast as on the"
                + " files one by one, and waited for data 5.0 % of the time instead of 75 %.");
    assertThat(report.html()).containsPattern("</h1>\\s*<p class=\"lead\">Fed from");
    assertThat(report.stalls())
        .contains("75 % of the time with the files one by one, 20 % with sample-order, and 5.0 %")
        .contains("0.05 s, of which 0.03 s");
  }

  @Test
  void shows_the_planned_order_of_what_was_stopped() {
    DemoRun files = run("files one by one", 4, 0.75, true);
    DemoRun sampleOrder = run("sample-order", 2, 0.2, false);
    String html = report(false, files, sampleOrder, run("redirect", 1, 0.05, false)).html();
    // Their runs say that they came in the order of the disk, which has the mate ratio of none.
    assertThat(html).containsPattern("mate ratio</th><td>([\\d.]+)</td>(?!<td>\\1<)");
    assertThat(html).contains("redirect: 300 samples", "(sample-order): 300 samples");
  }

  @Test
  void says_so_where_packing_does_not_pay() {
    DemoRun same = run("files one by one", 1, 0.01, true);
    assertThat(report(false, same, same, same).conclusion()).endsWith("packing does not pay.");
  }

  @Test
  void says_so_where_nothing_was_cold() {
    DemoRun same = run("files one by one", 1, 0.01, true);
    assertThat(report(true, same, same, same).conclusion()).startsWith("Nothing was cold here");
  }

  @Test
  void escapes_names_and_tells_of_what_was_stopped() {
    String html =
        report(
                false,
                run("files <one>", 30, 0.99, false),
                run("sample-order", 2, 0.2, true),
                run("redirect", 1, 0.05, true))
            .html();
    assertThat(html)
        .contains("files &lt;one&gt; (stopped early)", "&lt;b&gt;", "&amp;co")
        .doesNotContain("<one>", "<b>");
  }

  @ParameterizedTest
  @CsvSource({
    "0, 0",
    "0.004, 0",
    "0.0987, 0.10",
    "0.5, 0.50",
    "9.999, 10.0",
    "152.34, 152",
    "11023, '11,000'",
    "999600, '1,000,000'"
  })
  void rounds_numbers_to_what_they_tell(double value, String text) {
    assertThat(DemoReport.rounded(value)).isEqualTo(text);
  }

  @Test
  void counts_shares_of_labels_against_chance() {
    double[][] shares = {{0.2, 0.2, 0.2, 0.2, 0.2}, {1, 0, 0, 0, 0}};
    DemoLabelShares counted = DemoLabelShares.of(shares, 256);
    double found = 0;
    double expected = 0;
    double mean = 0;
    for (int i = 0; i < counted.found().length; i++) {
      found += counted.found()[i];
      expected += counted.expected()[i];
      mean += counted.expected()[i] / 100 * counted.middles()[i];
    }
    assertThat(found).isCloseTo(100, offset(1e-6));
    assertThat(expected).isCloseTo(100, offset(1e-6));
    assertThat(mean).isCloseTo(20, offset(0.2));
  }
}
