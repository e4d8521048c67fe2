package org.gristway.plan;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.gristway.Failure;

/**
 * How far a run has come: enough to go on exactly there, in any world, with nothing lost and
 * nothing repeated. It counts what trainers have received, not what was read ahead. Its text form
 * is a few lines, whatever the dataset's size:
 *
 * <pre>
 * gristway-state 1
 * dataset 4f1c0b6a9d2e8375/1
 * seed 0
 * epoch 2
 * segment policy=redirect version=1 ranks=4 batch=256 memory=536870912 extent=1048576 tail=short steps=310
 * segment policy=redirect version=1 ranks=2 batch=256 memory=1073741824 extent=1048576 tail=short steps=17
 * end
 * </pre>
 *
 * @param dataset which version of which dataset it is about
 * @param seed of the run
 * @param epoch that is under way
 * @param segments of that epoch, in their order; only the last may be gone on with
 */
public record ReadState(String dataset, long seed, long epoch, List<Segment> segments) {

  private static final String MAGIC = "gristway-state ";
  private static final int FORMAT = 1;
  private static final String END = "end"; // so that a state that is cut off is none

  public ReadState {
    segments = List.copyOf(segments);
    if (epoch < 0) {
      throw Failure.damaged("a state cannot be of epoch %d", epoch);
    }
  }

  /** Reads the text form. */
  public static ReadState parse(String text) {
    try {
      return parse(text.lines().toList());
    } catch (IndexOutOfBoundsException | IllegalArgumentException | ArithmeticException odd) {
      throw Failure.damaged("this is not a state that Gristway has written, or it is cut off");
    }
  }

  private static ReadState parse(List<String> lines) {
    int format = Integer.parseInt(value(lines.get(0), MAGIC));
    if (format != FORMAT) {
      throw Failure.wrongCall(
          "the state has format %d, which this version does not know; it knows %d", format, FORMAT);
    }
    List<Segment> segments = new ArrayList<>();
    if (!lines.getLast().equals(END)) {
      throw new IllegalArgumentException(lines.getLast());
    }
    for (String line : lines.subList(4, lines.size() - 1)) {
      segments.add(segment(value(line, "segment ")));
    }
    return new ReadState(
        value(lines.get(1), "dataset "),
        Long.parseLong(value(lines.get(2), "seed ")),
        Long.parseLong(value(lines.get(3), "epoch ")),
        segments);
  }

  private static String value(String line, String name) {
    if (!line.startsWith(name)) {
      throw new IllegalArgumentException(line);
    }
    return line.substring(name.length());
  }

  private static Segment segment(String text) {
    Map<String, String> fields = new HashMap<>();
    for (String field : text.split(" ")) {
      int equals = field.indexOf('=');
      fields.put(field.substring(0, equals), field.substring(equals + 1));
    }
    PlanSettings settings =
        new PlanSettings(
            String.valueOf(fields.get("policy")),
            Math.toIntExact(number(fields, "batch")),
            number(fields, "memory"),
            number(fields, "extent"),
            Tail.valueOf(String.valueOf(fields.get("tail")).toUpperCase(Locale.ROOT)),
            fields.containsKey("cache") ? caching(fields) : Caching.NONE,
            fields.containsKey("exchange") ? exchange(fields) : Exchange.NONE);
    return new Segment(
        settings,
        Math.toIntExact(number(fields, "version")),
        Math.toIntExact(number(fields, "ranks")),
        fields.containsKey("nodes") ? Math.toIntExact(number(fields, "nodes")) : 1,
        number(fields, "steps"));
  }

  private static Caching caching(Map<String, String> fields) {
    String[] rates = String.valueOf(fields.get("rates")).split(",");
    return new Caching(
        number(fields, "cache"),
        Math.toIntExact(number(fields, "epochs")),
        new Caching.Rates(
            Long.parseLong(rates[0]),
            Long.parseLong(rates[1]),
            Long.parseLong(rates[2]),
            Long.parseLong(rates[3])));
  }

  private static Exchange exchange(Map<String, String> fields) {
    return new Exchange(
        Double.parseDouble(String.valueOf(fields.get("exchange"))),
        Math.toIntExact(number(fields, "window")),
        fields.containsKey("homes")
            ? Homes.valueOf(String.valueOf(fields.get("homes")).toUpperCase(Locale.ROOT))
            : Homes.AFRESH);
  }

  private static long number(Map<String, String> fields, String name) {
    return Long.parseLong(String.valueOf(fields.get(name)));
  }

  /** The text form. */
  @Override
  public String toString() {
    StringBuilder text = new StringBuilder();
    text.append(MAGIC).append(FORMAT).append('\n');
    text.append("dataset ").append(dataset).append('\n');
    text.append("seed ").append(seed).append('\n');
    text.append("epoch ").append(epoch).append('\n');
    for (Segment segment : segments) {
      PlanSettings settings = segment.settings();
      text.append("segment policy=").append(settings.policy());
      text.append(" version=").append(segment.planVersion());
      text.append(" ranks=").append(segment.ranks());
      if (segment.nodes() > 1) {
        text.append(" nodes=").append(segment.nodes());
      }
      text.append(" batch=").append(settings.batchSize());
      text.append(" memory=").append(settings.memory());
      text.append(" extent=").append(settings.extentBytes());
      text.append(" tail=").append(settings.tail().name().toLowerCase(Locale.ROOT));
      if (!settings.caching().equals(Caching.NONE)) {
        Caching.Rates rates = settings.caching().rates();
        text.append(" cache=").append(settings.caching().diskBytes());
        text.append(" epochs=").append(settings.caching().epochs());
        text.append(" rates=").append(rates.store()).append(',').append(rates.network());
        text.append(',').append(rates.memory()).append(',').append(rates.disk());
      }
      if (!settings.exchange().equals(Exchange.NONE)) {
        text.append(" exchange=").append(settings.exchange().share());
        text.append(" window=").append(settings.exchange().window());
        if (settings.exchange().homes() != Homes.AFRESH) {
          Homes homes = settings.exchange().homes();
          text.append(" homes=").append(homes.name().toLowerCase(Locale.ROOT));
        }
      }
      text.append(" steps=").append(segment.steps()).append('\n');
    }
    return text.append(END).append('\n').toString();
  }
}
