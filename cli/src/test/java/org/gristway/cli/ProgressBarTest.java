package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicLong;
import org.gristway.Progress.Unit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class ProgressBarTest {

  private static final long MILLISECOND = 1_000_000;

  private final ByteArrayOutputStream terminal = new ByteArrayOutputStream();
  private final AtomicLong now = new AtomicLong(17);

  private ProgressBar bar(int columns) {
    return new ProgressBar(
        new PrintStream(terminal, true, StandardCharsets.UTF_8), columns, now::get);
  }

  private String drawn() {
    String text = terminal.toString(StandardCharsets.UTF_8);
    terminal.reset();
    return text;
  }

  @Test
  void drawsHowFarTheWorkIs() {
    ProgressBar bar = bar(53);
    bar.begin("packing", Unit.BYTES, 2_000_000_000);
    now.addAndGet(1000 * MILLISECOND);
    bar.advance(800_000_000);
    assertThat(drawn()).isEqualTo("\rpacking  [#####---------]   40 %  800 MB/s  2 s left");
    bar.end();
    assertThat(drawn()).isEqualTo("\r" + " ".repeat(52) + "\r");
    bar.end();
    assertThat(drawn()).isEmpty();
  }

  @Test
  void drawsAtMostTenTimesASecond() {
    ProgressBar bar = bar(80);
    bar.begin("packing", Unit.SAMPLES, 1000);
    for (int i = 0; i < 1000; i++) {
      now.addAndGet(MILLISECOND);
      bar.advance(1);
    }
    assertThat(drawn().chars().filter(c -> c == '\r').count()).isBetween(5L, 10L);
  }

  @Test
  void showsWhatIsDoneWhereNobodyKnowsTheTotal() {
    ProgressBar bar = bar(80);
    bar.begin("listing", Unit.SAMPLES, 0);
    now.addAndGet(2000 * MILLISECOND);
    bar.advance(3000);
    assertThat(drawn()).isEqualTo("\rlisting  3,000 samples  1,500 samples/s");
  }

  @Test
  void neverFillsTheTerminalsLastColumn() {
    for (int columns : new int[] {-1, 1, 10, 30, 40, 60, 200}) {
      ProgressBar bar = bar(columns);
      bar.begin("verifying snapshot-000001.gws", Unit.BYTES, 1000);
      now.addAndGet(200 * MILLISECOND);
      bar.advance(2000);
      assertThat(drawn().length() - 1).isLessThan(Math.max(2, columns));
    }
  }

  @Test
  void letsLinesStayAboveIt() {
    ProgressBar bar = bar(80);
    bar.begin("listing", Unit.SAMPLES, 0);
    now.addAndGet(200 * MILLISECOND);
    bar.advance(1);
    int width = drawn().length() - 1;
    bar.printAbove("gristway: left out");
    assertThat(drawn()).isEqualTo("\r" + " ".repeat(width) + "\rgristway: left out\n");
  }

  @Test
  void drawsNothingAfterItWasStopped() {
    ProgressBar bar = bar(80);
    bar.begin("packing", Unit.BYTES, 100);
    bar.stop();
    now.addAndGet(200 * MILLISECOND);
    bar.advance(10);
    assertThat(drawn()).isEmpty();
  }
}
