package org.gristway.cli;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.gristway.Failure;
import org.gristway.dataset.Dataset;
import org.gristway.dataset.Sample;
import org.gristway.dataset.Verifier;
import org.gristway.pack.PackOptions;
import org.gristway.pack.PackReport;
import org.gristway.pack.Packer;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;

/** Shows what Gristway does, on files that it makes itself. */
@Command(
    name = "demo",
    description = {
      "Makes a few thousand small files, packs them, and shows what can be done with them.",
      "Takes seconds, and about 50 MB of space that you can delete afterwards."
    },
    footer = {"", "Example: gristway demo"})
final class DemoCommand implements CliCommand {

  private static final int FILES_PER_CLASS = 600;

  /** Small, so that the demo's dataset has several chunks, as real ones have. */
  private static final long CHUNK_SIZE = 4 << 20;

  private static final int LISTED = 3;

  /** A part of the demo: its heading, and what it does. */
  private record Step(String title, Work work) {}

  private interface Work {
    /** Does it, prints what is to be seen, and returns what the last table says of it. */
    String run() throws IOException;
  }

  private final Console console;
  private final List<Step> steps =
      List.of(
          new Step("make files", this::makeFiles),
          new Step("pack", this::pack),
          new Step("verify", this::verify),
          new Step("list", this::list),
          new Step("read a sample", this::readSample));

  @Parameters(
      index = "0",
      arity = "0..1",
      paramLabel = "FOLDER",
      description = "Where to make it, new or empty (default: a new one for temporary files).")
  private @Nullable Path given;

  private Path folder = Path.of("");

  DemoCommand(Console console) {
    this.console = console;
  }

  @Override
  public int run() throws IOException {
    folder = prepareFolder();
    say("A demo of Gristway in " + folder);
    List<String> table = new ArrayList<>();
    int number = 0;
    for (Step step : steps) {
      number++;
      say("");
      say(
          number
              + ". "
              + Character.toUpperCase(step.title().charAt(0))
              + step.title().substring(1));
      long start = System.nanoTime();
      String result = step.work().run();
      String time = Text.seconds(System.nanoTime() - start);
      table.add(String.format(Locale.ROOT, "   %-14s %8s   %s", step.title(), time, result));
    }
    say("");
    say("Times and sizes");
    for (String row : table) {
      say(row);
    }
    sayWhatNext();
    return DONE;
  }

  /** At once, since the next thing may take a while. */
  private void say(String line) throws IOException {
    console.print(line);
    console.flush();
  }

  private Path prepareFolder() {
    try {
      if (given == null) {
        return Files.createTempDirectory("gristway-demo-");
      }
      Files.createDirectories(given);
      try (Stream<Path> inside = Files.list(given)) {
        if (inside.findAny().isPresent()) {
          throw Failure.wrongCall("%s is not empty; name a new folder for the demo", given);
        }
      }
      return given;
    } catch (FileAlreadyExistsException file) {
      throw Failure.wrongCall("%s is a file; name a new folder for the demo", given);
    } catch (IOException failed) {
      throw Failure.io("make a folder for the demo", failed);
    }
  }

  private Path files() {
    return folder.resolve("shapes");
  }

  private Path dataset() {
    return folder.resolve("shapes.gw");
  }

  private String makeFiles() throws IOException {
    long bytes = 0;
    try {
      for (int kind = 0; kind < DemoImages.CLASSES.size(); kind++) {
        Path target = Files.createDirectories(files().resolve(DemoImages.CLASSES.get(kind)));
        for (int i = 0; i < FILES_PER_CLASS; i++) {
          byte[] image = DemoImages.png(kind, i);
          Files.write(target.resolve(String.format(Locale.ROOT, "%04d.png", i)), image);
          bytes += image.length;
        }
      }
    } catch (IOException failed) {
      throw Failure.io("make files in " + files(), failed);
    }
    String size = String.format("%,d files, %s", fileCount(), Text.bytes(bytes));
    say("   " + size + ": small pictures, a folder for each class");
    return size;
  }

  private static int fileCount() {
    return FILES_PER_CLASS * DemoImages.CLASSES.size();
  }

  private String pack() throws IOException {
    PackReport report =
        Packer.pack(
            List.of(files()),
            dataset(),
            PackOptions.DEFAULT.withChunkSize(CHUNK_SIZE),
            console.progress(),
            new LeftOut(console));
    say("   into " + dataset() + ", in random order");
    String chunks = Text.count(report.chunks(), "chunk");
    return Text.count(report.samples(), "sample")
        + ", "
        + Text.bytes(report.bytes())
        + " in "
        + chunks;
  }

  private String verify() throws IOException {
    Verifier.Report report = Verifier.verify(dataset(), console.progress());
    console.endProgress();
    if (!report.faults().isEmpty()) {
      throw Failure.damaged("%s", report.faults().getFirst());
    }
    say("   every byte read from the disk, every checksum holds");
    return Text.bytes(report.bytes());
  }

  private String list() throws IOException {
    try (Dataset opened = Dataset.open(dataset())) {
      long count = 0;
      for (Sample sample : opened.withPrefix(DemoImages.CLASSES.getLast() + "/")) {
        if (count < LISTED) {
          say("   " + sample.key() + ", label " + sample.label());
        }
        count++;
      }
      say("   … and " + (count - LISTED) + " more in that class");
      return Text.count(count, "key") + " of " + Text.number(opened.size());
    }
  }

  private String readSample() throws IOException {
    String key = DemoImages.CLASSES.getFirst() + "/0007.png";
    try (Dataset opened = Dataset.open(dataset())) {
      Sample sample = opened.find(key).orElseThrow();
      if (!Arrays.equals(opened.read(sample), readFile(files().resolve(key)))) {
        throw Failure.damaged("'%s' has other bytes in %s than its file", key, dataset());
      }
      say("   " + key + " has the same bytes as its file");
      return Text.bytes(sample.length());
    }
  }

  private static byte[] readFile(Path file) {
    try {
      return Files.readAllBytes(file);
    } catch (IOException failed) {
      throw Failure.io("read " + file, failed);
    }
  }

  private void sayWhatNext() throws IOException {
    String name = Text.shellQuote(dataset().toString());
    String unpacked = Text.shellQuote(folder.resolve("unpacked").toString());
    say("");
    say("What to try next");
    say("   ./gristway info " + name);
    say("   ./gristway ls -l " + name + " ring/ | head");
    say(
        "   ./gristway cat "
            + name
            + " ring/0042.png > "
            + Text.shellQuote(folder.resolve("ring.png").toString()));
    say("   ./gristway unpack " + name + " " + unpacked);
    say("   rm -r " + Text.shellQuote(folder.toString()));
  }
}
