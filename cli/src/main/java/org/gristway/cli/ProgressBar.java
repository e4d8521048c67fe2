package org.gristway.cli;

import java.io.PrintStream;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongSupplier;
import org.gristway.Progress;

/**
 * A line on a terminal that shows how far the work has come:
 *
 * <pre>packing  [#####-----]   52 %  812 MB/s  3 s left</pre>
 *
 * <p>It is drawn at most ten times a second, by whichever thread has something to report then, and
 * taken away at the end. Work that takes less than that is never shown.
 */
final class ProgressBar implements Progress {

  private static final long INTERVAL = 100_000_000;
  private static final int WIDEST_BAR = 40;
  private static final int NARROWEST_BAR = 5;

  private final PrintStream terminal;
  private final int columns;
  private final LongSupplier clock;
  private final LongAdder done = new LongAdder();
  private final AtomicLong nextDraw = new AtomicLong();

  private String what = "";
  private Unit unit = Unit.BYTES;
  private long total;
  private long began;
  private int shown; // characters on the terminal's line
  private boolean stopped;

  ProgressBar(PrintStream terminal, int columns, LongSupplier clock) {
    this.terminal = terminal;
    this.columns = Math.max(1, columns);
    this.clock = clock;
  }

  @Override
  public synchronized void begin(String stage, Unit counted, long amount) {
    what = stage;
    unit = counted;
    total = amount;
    done.reset();
    began = clock.getAsLong();
    nextDraw.set(began + INTERVAL);
  }

  @Override
  public void advance(long amount) {
    done.add(amount);
    long due = nextDraw.get();
    long now = clock.getAsLong();
    if (now - due >= 0 && nextDraw.compareAndSet(due, now + INTERVAL)) {
      draw(now);
    }
  }

  @Override
  public synchronized void end() {
    clear(shown);
  }

  private void clear(int characters) {
    if (shown > 0) {
      terminal.print("\r" + " ".repeat(Math.clamp(characters, 0, columns - 1)) + "\r");
      terminal.flush();
      shown = 0;
    }
  }

  /**
   * Takes the line away for good, and the "^C" that the terminal has put behind it: the program
   * ends, whatever its threads may still report.
   */
  synchronized void stop() {
    clear(shown + "^C".length());
    stopped = true;
  }

  /** Prints a line that stays; the bar comes back below it. */
  synchronized void printAbove(String line) {
    end();
    terminal.println(line);
  }

  private synchronized void draw(long now) {
    if (stopped) {
      return;
    }
    String line = render(done.sum(), Math.max(1, now - began));
    // Spaces over the rest of a longer line: every terminal understands them.
    terminal.print("\r" + line + " ".repeat(Math.max(0, shown - line.length())));
    terminal.flush();
    shown = line.length();
  }

  private String render(long amount, long nanos) {
    double rate = amount * 1e9 / nanos;
    String line;
    if (total <= 0) {
      line = what + "  " + amount(amount) + "  " + amount(rate) + "/s";
    } else {
      double part = Math.clamp((double) amount / total, 0, 1);
      String figures = String.format(Locale.ROOT, "%3d %%  %s/s", (int) (100 * part), amount(rate));
      if (rate > 0) {
        figures += "  " + time((total - Math.min(amount, total)) / rate) + " left";
      }
      line = what + "  " + bar(part, columns - what.length() - figures.length() - 7) + figures;
    }
    // One column stays free: a full line would make some terminals begin the next.
    return line.substring(0, Math.clamp(columns - 1, 0, line.length()));
  }

  private static String bar(double part, int room) {
    if (room < NARROWEST_BAR) {
      return "";
    }
    int width = Math.min(room, WIDEST_BAR);
    int full = (int) (part * width);
    return "[" + "#".repeat(full) + "-".repeat(width - full) + "]  ";
  }

  private String amount(double amount) {
    if (unit == Unit.SAMPLES) {
      return Text.number(Math.round(amount)) + " samples";
    }
    if (amount < 1e6) {
      return String.format(Locale.ROOT, "%.0f kB", amount / 1e3);
    }
    return amount < 1e9
        ? String.format(Locale.ROOT, "%.0f MB", amount / 1e6)
        : String.format(Locale.ROOT, "%.1f GB", amount / 1e9);
  }

  private static String time(double seconds) {
    long whole = (long) Math.ceil(seconds);
    if (whole < 100) {
      return whole + " s";
    }
    return whole < 6000 ? whole / 60 + " min" : whole / 3600 + " h " + whole % 3600 / 60 + " min";
  }
}
