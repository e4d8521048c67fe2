package org.gristway.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.function.Supplier;
import org.gristway.Failure;
import org.gristway.dataset.Dataset;
import org.gristway.dataset.Sample;
import org.gristway.dataset.Verifier;
import org.gristway.pack.PackOptions;
import org.gristway.pack.PackReport;
import org.gristway.pack.Packer;
import org.gristway.plan.ExtentCuts;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.SampleLayout;
import org.gristway.plan.World;
import org.gristway.plan.policy.RedirectPolicy;
import org.gristway.plan.policy.SampleOrderPolicy;
import org.gristway.read.LoaderOptions;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Shows what Gristway does and what it is good for, on files that it makes itself. */
@Command(
    name = "demo",
    description = {
      "Makes small files, packs and checks them, and feeds a pretend trainer from them in three",
      "ways: the files one by one, and the packed dataset in two orders. Ends with a report.",
      "Takes from half a minute on a fast disk to three on a slow one, and 1.2 GB of space that",
      "you can delete afterwards."
    },
    footer = {"", "Example: gristway demo"})
final class DemoCommand implements CliCommand {

  private static final int DEFAULT_FILES = 50_000;

  /** Fewer would fill fewer frames than it takes to mix anything. */
  private static final int FEWEST_FILES = 1_000;

  /** The names of files have four digits, and there are five classes. */
  private static final int MOST_FILES = 50_000;

  /** Disk space for a file, its copy in the dataset, and what the file system adds. */
  private static final long SPACE_PER_FILE = 28 << 10;

  /** So that the demo's dataset has several chunks, as real ones have. */
  private static final long CHUNK_SIZE = 32 << 20;

  /** The part of the dataset that may be in memory while it is read. */
  private static final int MEMORY_PART = 10;

  /** The trainer takes at most this part of what the storage can stream: so it can be fed. */
  private static final double TRAINER_PART = 0.5;

  /** On faster disks, two cores would be what the trainer waits for. */
  private static final long FASTEST_TRAINER = 50_000;

  private static final long SLOWEST_TRAINER = 1_000;

  /** Some disks would take minutes for single files; a part of the epoch tells as much. */
  private static final long MOST_NANOS = 30_000_000_000L;

  /** For each way before all of them, or the first would pay for the loading of classes. */
  private static final long WARM_UP_NANOS = 300_000_000;

  private final Console console;

  @Parameters(
      index = "0",
      arity = "0..1",
      paramLabel = "FOLDER",
      description = "Where to make it, new or empty (default: a new one for temporary files).")
  private @Nullable Path given;

  @Option(
      names = "--files",
      paramLabel = "NUMBER",
      description = "How many files to make, from 1000 to 50000 (default: 50000).")
  private long files = DEFAULT_FILES;

  private Path folder = Path.of("");
  private int steps;
  private long streamRate; // bytes a second that the storage has given when all was read in a row

  DemoCommand(Console console) {
    this.console = console;
  }

  @Override
  public int run() throws IOException {
    if (files < FEWEST_FILES || files > MOST_FILES) {
      throw Failure.wrongCall(
          "the demo works with %d to %d files, not %d", FEWEST_FILES, MOST_FILES, files);
    }
    folder = DemoFolder.prepare(given, files * SPACE_PER_FILE);
    say("A demo of Gristway in " + folder);
    say("");
    step("Make files", this::makeFiles);
    step("Pack", this::pack);
    step("Verify", this::verify);
    step("List", this::list);
    step("Read a sample", this::readSample);
    readThreeWays();
    sayWhatNext();
    return DONE;
  }

  private interface Work {
    /** Does it, and returns what there is to say of it. */
    String run() throws IOException;
  }

  private void step(String title, Work work) throws IOException {
    steps++;
    long start = System.nanoTime();
    String result = work.run();
    String time = Text.seconds(System.nanoTime() - start);
    say(String.format(Locale.ROOT, "%d. %-14s %8s   %s", steps, title, time, result));
  }

  /** At once, since the next thing may take a while. */
  private void say(String line) throws IOException {
    console.print(line);
    console.flush();
  }

  private Path source() {
    return folder.resolve("shapes");
  }

  private Path dataset() {
    return folder.resolve("shapes.gw");
  }

  private String makeFiles() {
    long bytes = DemoFiles.make(source(), (int) files, console.progress());
    DemoCold.settle(folder);
    return String.format(
        "%s pictures in %d classes, %s",
        Text.number(files), DemoImages.CLASSES.size(), Text.bytes(bytes));
  }

  private String pack() {
    PackReport report =
        Packer.pack(
            List.of(source()),
            dataset(),
            PackOptions.DEFAULT.withChunkSize(CHUNK_SIZE),
            console.progress(),
            new LeftOut(console));
    return String.format(
        "%s in %s, in random order",
        Text.count(report.samples(), "sample"), Text.count(report.chunks(), "chunk"));
  }

  private String verify() {
    long start = System.nanoTime();
    Verifier.Report report = Verifier.verify(dataset(), console.progress());
    streamRate = Math.round(report.bytes() * 1e9 / (System.nanoTime() - start));
    console.endProgress();
    if (!report.faults().isEmpty()) {
      throw Failure.damaged("%s", report.faults().getFirst());
    }
    return Text.bytes(report.bytes()) + " read from the disk, every checksum holds";
  }

  private String list() {
    try (Dataset opened = Dataset.open(dataset())) {
      String folderName = DemoImages.CLASSES.getLast() + "/";
      Sample first = opened.withPrefix(folderName).iterator().next();
      int count = opened.list(folderName).size();
      return String.format(
          "%s in %s: %s with label %d, …",
          Text.count(count, "sample"), folderName, first.key(), first.label());
    }
  }

  private String readSample() {
    String key = DemoFiles.key(0, 7);
    try (Dataset opened = Dataset.open(dataset())) {
      Sample sample = opened.find(key).orElseThrow();
      if (!Arrays.equals(opened.read(sample), readFile(source().resolve(key)))) {
        throw Failure.damaged("'%s' has other bytes in %s than its file", key, dataset());
      }
      return key + " has the same bytes as its file, " + Text.bytes(sample.length());
    }
  }

  private static byte[] readFile(Path file) {
    try {
      return Files.readAllBytes(file);
    } catch (IOException failed) {
      throw Failure.io("read " + file, failed);
    }
  }

  /** One of the ways to feed the trainer. */
  private record Way(String name, Supplier<DemoFeed> feed) {}

  /** The comparison. */
  private void readThreeWays() throws IOException {
    try (Dataset opened = Dataset.open(dataset())) {
      Snapshot snapshot = opened.snapshot();
      LoaderOptions options =
          LoaderOptions.DEFAULT
              .withMemory(snapshot.dataBytes() / MEMORY_PART)
              .withBatchSize(DemoTrainer.BATCH_SIZE)
              .withEpochs(1);
      PlanInputs inputs =
          PlanInputs.of(
              SampleLayout.of(snapshot), options.seed(), World.of(1), options.planSettings());
      PlanInputs.Requests requests = inputs.requests(0);
      DemoSetting setting = setting(snapshot, options, DemoCold.chill(folder));
      sayHowItIsRead(setting);
      List<Way> ways = new ArrayList<>();
      ways.add(
          new Way(
              "files one by one",
              () -> new DemoFileFeed(source(), snapshot, requests::at, DemoTrainer.BATCH_SIZE)));
      for (String policy : List.of(SampleOrderPolicy.NAME, RedirectPolicy.NAME)) {
        ways.add(new Way(policy, () -> new DemoLoaderFeed(dataset(), options.withPolicy(policy))));
      }
      DemoTrainer trainer = new DemoTrainer(snapshot, setting.stepNanos(), console.progress());
      for (Way way : ways) {
        trainer.train("warming up", way.feed(), WARM_UP_NANOS);
      }
      sayTableHead();
      List<DemoRun> runs = new ArrayList<>();
      for (Way way : ways) {
        DemoCold.chill(folder);
        DemoRun run = trainer.train(way.name(), way.feed(), MOST_NANOS);
        sayTableRow(run, inputs.cuts());
        runs.add(run);
      }
      DemoReport report = new DemoReport(setting, snapshot, inputs, runs);
      Path page = folder.resolve("report.html");
      report.write(page);
      say("");
      say(report.stalls());
      say("Report with pictures: " + page.toAbsolutePath());
    }
  }

  private DemoSetting setting(Snapshot snapshot, LoaderOptions options, DemoCold.Way cold) {
    double sampleBytes = snapshot.dataBytes() / (double) snapshot.sampleCount();
    long wanted = Math.round(TRAINER_PART * streamRate / sampleBytes) / 1000 * 1000;
    long rate = Math.clamp(wanted, SLOWEST_TRAINER, FASTEST_TRAINER);
    return new DemoSetting(
        dataset(),
        options.memory(),
        options.planSettings().extentBytes(),
        rate,
        rate * sampleBytes / streamRate,
        streamRate,
        cold,
        DemoFolder.fileSystem(folder),
        DemoFolder.isInMemory(folder));
  }

  private void sayHowItIsRead(DemoSetting setting) throws IOException {
    say("6. Read it three ways");
    say(
        "   from cold storage ("
            + (setting.inMemory() ? "but this folder is in memory" : setting.cold().text())
            + ")");
    say(
        String.format(
            Locale.ROOT,
            "   with %s of memory, a tenth of the data, for a pretend trainer that takes a batch of"
                + " %d",
            Text.bytes(setting.memory()),
            DemoTrainer.BATCH_SIZE));
    say(
        String.format(
            Locale.ROOT,
            "   every %.1f ms: %s samples a second, %.0f %% of what this disk can stream",
            setting.stepNanos() / 1e6,
            Text.number(setting.trainerRate()),
            100 * setting.trainerShare()));
  }

  private void sayTableHead() throws IOException {
    say("");
    say("                     samples/s    MB/s   seconds    waited  memory peak  mate ratio");
  }

  private void sayTableRow(DemoRun run, ExtentCuts cuts) throws IOException {
    say(
        String.format(
            Locale.ROOT,
            "   %-16s %,11d %7.0f %9.2f %7.1f %% %12s %11.2f%s",
            run.name(),
            Math.round(run.samplesPerSecond()),
            run.bytesPerSecond() / 1e6,
            run.seconds(),
            100 * run.stallShare(),
            run.cost().peakBytes() == 0 ? "-" : Text.bytes(run.cost().peakBytes()),
            run.quality(cuts).mateRatio(),
            run.complete() ? "" : "  (a part: stopped for its time)"));
  }

  private void sayWhatNext() throws IOException {
    String name = Text.shellQuote(dataset().toString());
    String picture = Text.shellQuote(folder.resolve("ring.png").toString());
    String unpacked = Text.shellQuote(folder.resolve("unpacked").toString());
    say("");
    say("What to try next");
    say("   ./gristway read " + name + " --memory 10%");
    say("   ./gristway plan " + name + " --memory 10%");
    say("   ./gristway info " + name);
    say("   ./gristway ls -l " + name + " ring/ | head");
    say("   ./gristway cat " + name + " ring/0042.png > " + picture);
    say("   ./gristway unpack " + name + " " + unpacked);
    say("   rm -r " + Text.shellQuote(folder.toString()));
  }
}
