package org.gristway.node;

import java.math.BigDecimal;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.gristway.Failure;
import org.gristway.peer.MeetingPoint;
import org.gristway.plan.Exchange;
import org.gristway.plan.Homes;
import org.gristway.plan.ReadState;
import org.gristway.plan.SampleSet;
import org.gristway.plan.Tail;
import org.gristway.plan.World;
import org.gristway.plan.policy.Policies;
import org.gristway.read.Cache;
import org.gristway.read.LoaderOptions;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;

/**
 * What a client wants to be read, and how: lines of {@code name=value}, the state to go on from,
 * and the samples that may be given. A node serves whoever wants the same.
 */
final class Settings {

  /** How batches are asked for. */
  enum Mode {
    /** By their number in the epoch: any rank's next batches. */
    STREAM,
    /** By index, answered with any sample of the set. */
    REDIRECT,
    /** By index, answered exactly. */
    EXACT
  }

  /** Reads at once, over all ranks of the machine. */
  private static final int THREADS = LoaderOptions.DEFAULT_THREADS;

  private static final int FEWEST_THREADS = 4;

  /** Settings that differ between the nodes of a job. */
  private static final Set<String> OWN =
      Set.of(
          "path", "node", "listen", "meet", "cache", "cache-folder", "handover", "storage-timeout");

  private final Map<String, String> values = new LinkedHashMap<>();
  private final String state;
  private final byte[] set;

  Settings(String text, String state, byte[] set) {
    text.lines()
        .forEach(
            line -> {
              int equals = line.indexOf('=');
              if (equals < 0) {
                throw Failure.damaged("'%s' is no setting: it has no '='", line);
              }
              values.put(line.substring(0, equals), line.substring(equals + 1));
            });
    this.state = state;
    this.set = set;
  }

  boolean isSame(Settings others) {
    return values.equals(others.values)
        && state.equals(others.state)
        && Arrays.equals(set, others.set);
  }

  /** Refuses a client that wants something else, naming what. */
  void checkSame(Settings others) {
    for (Map.Entry<String, String> value : values.entrySet()) {
      String other = others.values.get(value.getKey());
      if (!value.getValue().equals(other)) {
        throw Failure.wrongCall(
            "this node reads with %s=%s, not %s: end the job that uses it, or give this one a node of"
                + " its own",
            value.getKey(), value.getValue(), other);
      }
    }
    if (!state.equals(others.state)) {
      throw Failure.wrongCall("this node goes on from another state: do all ranks load the same?");
    }
    if (!Arrays.equals(set, others.set)) {
      throw Failure.wrongCall("this node gives other samples: do all ranks name the same indices?");
    }
  }

  Path path() {
    return Path.of(text("path"));
  }

  Mode mode() {
    return switch (text("mode")) {
      case "stream" -> Mode.STREAM;
      case "redirect" -> Mode.REDIRECT;
      case "exact" -> Mode.EXACT;
      default -> throw Failure.damaged("there is no mode '%s'", text("mode"));
    };
  }

  int ranks() {
    return small("ranks");
  }

  String policy() {
    return text("policy");
  }

  /** True if a rank counts on what those of other nodes keep. */
  boolean fetches() {
    return mode() == Mode.STREAM && Policies.named(policy()).caches();
  }

  @Nullable ReadState state() {
    return state.isEmpty() ? null : ReadState.parse(state);
  }

  /** The samples that may be given; null for all. */
  @Nullable SampleSet samples(long count) {
    if (set.length == 0) {
      return null;
    }
    long last = 8L * set.length - 1;
    while (last >= 0 && !isNamed(last)) {
      last--;
    }
    if (last >= count) {
      throw Failure.wrongCall(
          "index %d is named, and the dataset has %d samples, counted from 0", last, count);
    }
    return SampleSet.where(count, i -> i >>> 3 < set.length && isNamed(i));
  }

  private boolean isNamed(long sample) {
    return (set[(int) (sample >>> 3)] >>> (sample & 7) & 1) == 1;
  }

  /** How many ranks are on this machine. */
  int ranksHere() {
    return small("ranks-here");
  }

  /** How a rank's batches are read: each rank has its share of the machine's memory and threads. */
  LoaderOptions options(int rank, Snapshot snapshot) {
    int here = ranksHere();
    if (rank < 0 || rank >= ranks() || here < 1 || here > ranks()) {
      throw Failure.wrongCall(
          "there is no rank %d of %d, or not %d of them on a machine", rank, ranks(), here);
    }
    return new LoaderOptions(
        policy(),
        memory(snapshot) / here,
        batchSize(),
        number("seed"),
        number("extent"),
        reader(rank),
        tail(),
        Long.MAX_VALUE,
        Boolean.parseBoolean(text("strict")),
        decimal("max-damage"),
        storageTimeout(),
        Math.max(FEWEST_THREADS, THREADS / here),
        exchange(),
        cache(here),
        number("handover") / here);
  }

  /** A rank has a reader of its own; only what is placed on nodes is about who sits where. */
  private World reader(int rank) {
    return exchange().homes() == Homes.PLACED
        ? nodes().only(rank)
        : new World(ranks(), ranks(), rank);
  }

  /** The samples that a rank gets at a step. */
  int batchSize() {
    return small("batch");
  }

  /** What a rank may keep what it has read in, of what the machine may. */
  private Cache cache(int here) {
    String folder = text("cache-folder");
    return new Cache(
        number("cache") / here,
        number("cache-disk") / here,
        folder.isEmpty() ? null : Path.of(folder));
  }

  /** How the ranks of the job mix what they read. */
  Exchange exchange() {
    try {
      double share = Double.parseDouble(text("exchange"));
      return new Exchange(share, small("window")).withHomes(homes());
    } catch (NumberFormatException odd) {
      throw Failure.wrongCall("'%s' is no share", text("exchange"));
    }
  }

  private Homes homes() {
    try {
      return Homes.valueOf(text("homes").toUpperCase(Locale.ROOT));
    } catch (IllegalArgumentException unknown) {
      throw Failure.wrongCall(
          "extents have no homes '%s': they are afresh, hashed or placed", text("homes"));
    }
  }

  /** The ranks of the job by its nodes, and which of these this is. */
  World nodes() {
    return new World(ranks(), small("nodes"), (int) number("node"));
  }

  /** Where the nodes of the job meet; null if they have nothing to do with each other. */
  @Nullable MeetingPoint meetingPoint() {
    String point = text("meet");
    return point.isEmpty() ? null : MeetingPoint.parse(point);
  }

  /** What the nodes of the job call it. */
  String job() {
    return text("job");
  }

  /** The address at which this node listens for the others. */
  InetAddress listensAt() {
    try {
      return InetAddress.getByName(text("listen"));
    } catch (UnknownHostException unknown) {
      throw Failure.wrongCall("there is no address '%s' to listen at", text("listen"));
    }
  }

  /**
   * What all nodes of the job must be about to do, in lines of {@code name=value}: whatever the
   * order depends on.
   */
  String intent(Snapshot snapshot) {
    StringBuilder lines = new StringBuilder();
    // Of the content: a dataset's own id is the same for other bytes with these names and sizes.
    lines.append("snapshot=").append(snapshot.id()).append('\n');
    lines.append("dataset-version=").append(snapshot.version()).append('\n');
    lines.append("samples=").append(snapshot.sampleCount()).append('\n');
    values.forEach(
        (name, value) -> {
          if (!OWN.contains(name)) {
            lines.append(name).append('=').append(value).append('\n');
          }
        });
    lines.append("plan-version=").append(Policies.named(policy()).planVersion()).append('\n');
    lines.append("state=").append(digest(state.getBytes(StandardCharsets.UTF_8))).append('\n');
    lines.append("indices=").append(digest(set)).append('\n');
    return lines.toString();
  }

  private static String digest(byte[] bytes) {
    try {
      byte[] digest = MessageDigest.getInstance("SHA-256").digest(bytes);
      return HexFormat.of().formatHex(digest, 0, 8);
    } catch (NoSuchAlgorithmException missing) {
      throw new IllegalStateException(missing); // every JDK has it
    }
  }

  private Tail tail() {
    try {
      return Tail.valueOf(text("tail").toUpperCase(Locale.ROOT));
    } catch (IllegalArgumentException unknown) {
      throw Failure.wrongCall("there is no tail '%s'", text("tail"));
    }
  }

  /** Bytes, or a percentage of the dataset's; exact, because the order hangs on every byte. */
  private long memory(Snapshot snapshot) {
    String memory = text("memory");
    try {
      return memory.endsWith("%")
          ? new BigDecimal(memory.substring(0, memory.length() - 1))
              .multiply(BigDecimal.valueOf(snapshot.dataBytes()))
              .movePointLeft(2)
              .longValue()
          : Long.parseLong(memory);
    } catch (NumberFormatException odd) {
      throw Failure.wrongCall("'%s' is no size", memory);
    }
  }

  private Duration storageTimeout() {
    double seconds = decimal("storage-timeout");
    // More than there can be is refused with all other options.
    return Duration.ofMillis((long) (Math.clamp(seconds, -1, 1e12) * 1000));
  }

  private double decimal(String name) {
    try {
      return Double.parseDouble(text(name));
    } catch (NumberFormatException odd) {
      throw Failure.wrongCall("'%s' is no number for '%s'", text(name), name);
    }
  }

  private String text(String name) {
    String value = values.get(name);
    if (value == null) {
      throw Failure.damaged("the client says nothing about '%s'", name);
    }
    return value;
  }

  private int small(String name) {
    long number = number(name);
    if (number < 1 || number > Integer.MAX_VALUE) {
      throw Failure.wrongCall("'%s' cannot be %d", name, number);
    }
    return (int) number;
  }

  private long number(String name) {
    try {
      return Long.parseLong(text(name));
    } catch (NumberFormatException odd) {
      throw Failure.wrongCall("'%s' is no number for '%s'", text(name), name);
    }
  }
}
