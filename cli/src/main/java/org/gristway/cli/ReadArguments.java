package org.gristway.cli;

import java.nio.file.Path;
import org.gristway.plan.Tail;
import org.gristway.read.LoaderOptions;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** What {@code read} and {@code plan} take alike: all that an order depends on but its policy. */
final class ReadArguments {

  private static final Path STANDARD_OUTPUT = Path.of("-");

  @SuppressWarnings("NullAway.Init")
  @Spec(Spec.Target.MIXEE)
  private CommandSpec spec;

  @Option(
      names = "--memory",
      paramLabel = "SIZE",
      converter = PercentOrSize.Converter.class,
      description =
          "Memory for the extents that are read ahead, on a machine: a size, or a percentage of the"
              + " dataset such as 10%% (default: 2GiB).")
  private PercentOrSize memory = PercentOrSize.ofBytes(LoaderOptions.DEFAULT_MEMORY);

  @Option(
      names = "--batch-size",
      paramLabel = "COUNT",
      description = "Samples that a rank gets at a step (default: 256).")
  private int batchSize = LoaderOptions.DEFAULT_BATCH_SIZE;

  @Option(names = "--seed", paramLabel = "NUMBER", description = "Decides the order (default: 0).")
  private long seed;

  @Option(
      names = "--extent",
      paramLabel = "SIZE",
      converter = ExtentSize.class,
      description =
          "How much is read at once, a multiple of 4KiB. With 'auto', the default, 1MiB, or less"
              + " where the memory would hold too few of them.")
  private long extent = ExtentSize.AUTO;

  @Option(
      names = "--ranks",
      paramLabel = "COUNT",
      description = "Training processes, which share the samples (default: 1).")
  private @Nullable Integer ranks;

  @Option(
      names = "--tail",
      paramLabel = "short|drop|pad",
      converter = TailName.class,
      description =
          "What becomes of samples that do not fill a batch on every rank: short batches (default),"
              + " left out, or filled up with repeats.")
  private Tail tail = Tail.SHORT;

  @Option(
      names = "--order",
      paramLabel = "FILE",
      description =
          "Write the order, one line a sample with tabs between epoch, step, rank, requested key and"
              + " delivered key, escaped as in 'ls'. With '-' it is all that is printed.")
  private @Nullable Path order;

  @Option(names = "--json", description = "Print it as one JSON object.")
  private boolean asJson;

  /** Complains about values that cannot be, before anything is opened. */
  void check() {
    if (batchSize < 1) {
      throw wrong("--batch-size must be 1 or more, not " + batchSize);
    }
    if (ranks != null && ranks < 1) {
      throw wrong("--ranks must be 1 or more, not " + ranks);
    }
    if (asJson && orderIsPrinted()) {
      throw wrong("--order - and --json would both go to standard output: name a file");
    }
  }

  /** A complaint about the call. */
  ParameterException wrong(String what) {
    return new ParameterException(spec.commandLine(), what);
  }

  /** The memory of a machine. */
  long memory(Snapshot snapshot) {
    return memory.of(snapshot.dataBytes());
  }

  int batchSize() {
    return batchSize;
  }

  long seed() {
    return seed;
  }

  /** The size of an extent, or {@link ExtentSize#AUTO}. */
  long extent() {
    return extent;
  }

  int ranks(int unlessGiven) {
    return ranks == null ? unlessGiven : ranks;
  }

  Tail tail() {
    return tail;
  }

  boolean asJson() {
    return asJson;
  }

  boolean wantsOrder() {
    return order != null;
  }

  /** True if the order goes where the results would go. */
  boolean orderIsPrinted() {
    return STANDARD_OUTPUT.equals(order);
  }

  /** Where the order is written to, or null if nobody asks for it. */
  @Nullable OrderFile openOrder(Snapshot snapshot, Console console) {
    if (order == null) {
      return null;
    }
    return orderIsPrinted() ? OrderFile.on(console, snapshot) : OrderFile.create(order, snapshot);
  }
}
