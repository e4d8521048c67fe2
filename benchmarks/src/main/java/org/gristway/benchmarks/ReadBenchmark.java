package org.gristway.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.gristway.benchmarks.Storage.Profile;
import org.gristway.benchmarks.Storage.Result;
import org.gristway.os.Folders;
import org.gristway.read.LoaderOptions;

/**
 * Reading an epoch from storage of three kinds: every policy at a memory of a tenth of the dataset,
 * against the original files read in shuffled order by one thread and by sixteen, and against
 * {@code fio} reading the same chunk files past the page cache in requests of the same size, as
 * many at once.
 */
final class ReadBenchmark implements Main.Benchmark {

  private static final Pattern RATE = Pattern.compile("\"bw_bytes\" : (\\d+)");
  private static final long OVERHEAD = 700L << 20; // of a JVM and the handover
  private static final int SHARE = 10;
  private static final String WINDOW = "4";
  private static final int RAMP = 2;

  /** On slow storage, file readers first read directories and inodes: that must not be all. */
  private static final String LONG_WINDOW = "60";

  @Override
  public void run(Path folder, int rounds) throws IOException, InterruptedException {
    Machine.require(Machine.FIO);
    String only = System.getProperty("gristway.profiles", "nvme,cloud,hdd");
    for (int size : new int[] {110_000, 10_000}) {
      int files = 1_540_000_000 / size;
      Path tree = SmallFiles.make(folder.resolve("tree"), files, size);
      Path list = folder.resolve("list");
      try (Stream<Path> all = Files.walk(tree)) {
        Files.write(list, all.filter(Files::isRegularFile).map(Path::toString).sorted().toList());
      }
      Path dataset = folder.resolve("data.gw");
      Machine.run(Machine.launcher(), "pack", tree.toString(), dataset.toString());
      for (Profile profile : Profile.values()) {
        if (only.contains(profile.text())) {
          measure(profile, dataset, list, files, size, rounds);
        }
      }
      Folders.deleteTree(tree);
      Folders.deleteTree(dataset);
    }
  }

  private static void measure(
      Profile profile, Path dataset, Path list, int files, int size, int rounds)
      throws IOException, InterruptedException {
    long memory = (long) files * size / SHARE;
    try (Storage storage = new Storage(profile, dataset, memory + OVERHEAD, "bounded");
        Storage roomy = new Storage(profile, dataset, Long.MAX_VALUE >> 1, "roomy")) {
      boolean fast = profile == Profile.NVME;
      // Fast storage: six epochs to warm the JVM up, then as many as the window holds.
      String warmUp = fast ? "6" : "1";
      String epochs = fast ? "100" : profile == Profile.CLOUD ? "2" : "1";
      String most = fast ? WINDOW : "1000";
      List<Arm> arms = new ArrayList<>();
      arms.add(new Arm("fio, direct", () -> fio(storage, dataset)));
      for (String policy : List.of("redirect", "chunk-shuffle")) {
        arms.add(
            new Arm(policy, () -> read(storage, dataset, policy, memory, warmUp, epochs, most)));
      }
      arms.add(
          new Arm(
              "sample-order",
              () -> read(storage, dataset, "sample-order", memory, "0", "100", WINDOW)));
      for (String threads : List.of("1", "16")) {
        arms.add(
            new Arm(
                "files, " + threads + " thread" + (threads.equals("1") ? "" : "s"),
                () ->
                    timed(
                        storage.run(
                            Arm.command(
                                "files-arm",
                                list.toString(),
                                threads,
                                fast ? WINDOW : LONG_WINDOW)))));
      }
      if (fast) {
        arms.add(
            new Arm(
                "unbounded", () -> read(roomy, dataset, "unbounded", memory, "2", "100", WINDOW)));
      }
      for (int round = 0; round < rounds; round++) {
        for (Arm arm : arms) {
          arm.measure();
        }
      }
      print(profile, files, size, arms);
    }
  }

  private static Map<String, Double> read(
      Storage storage,
      Path dataset,
      String policy,
      long memory,
      String warmUp,
      String epochs,
      String most)
      throws IOException, InterruptedException {
    return timed(
        storage.run(
            Arm.command(
                "read-arm", dataset.toString(), policy, "" + memory, warmUp, epochs, most)));
  }

  private static Map<String, Double> timed(Result result) {
    Map<String, Double> values = Arm.parse(result.output());
    values.put("rate", Arm.value(values, "bytes") / Arm.value(values, "seconds"));
    values.put("samplesRate", Arm.value(values, "samples") / Arm.value(values, "seconds"));
    values.put("stallShare", Arm.value(values, "stall") / Arm.value(values, "seconds"));
    values.put("requestBytes", Arm.value(values, "storage") / result.requests());
    return values;
  }

  private static Map<String, Double> fio(Storage storage, Path dataset)
      throws IOException, InterruptedException {
    List<String> names;
    try (Stream<Path> all = Files.list(dataset)) {
      names =
          all.map(path -> "" + path.getFileName())
              .filter(name -> name.endsWith(".gwc"))
              .sorted()
              .toList();
    }
    Result result =
        storage.run(
            List.of(
                Machine.FIO,
                "--name=read",
                "--rw=randread",
                "--direct=1",
                "--bs=1M",
                "--ioengine=psync",
                "--thread",
                "--numjobs=" + LoaderOptions.DEFAULT_THREADS,
                "--group_reporting",
                "--iomem=mmap",
                "--time_based",
                "--ramp_time=" + RAMP, // a throttle lets the first second pass faster
                "--runtime=" + WINDOW,
                "--readonly",
                "--output-format=json",
                "--directory=" + dataset,
                "--filename=" + String.join(":", names)));
    Matcher matcher = RATE.matcher(result.output());
    if (!matcher.find()) {
      throw new IOException("fio reported no rate: " + result.output());
    }
    Map<String, Double> values = new HashMap<>();
    values.put("rate", Double.parseDouble(matcher.group(1)));
    double seconds = RAMP + Double.parseDouble(WINDOW);
    values.put("requestBytes", Arm.value(values, "rate") * seconds / result.requests());
    return values;
  }

  private static void print(Profile profile, int files, int size, List<Arm> arms) {
    double fio = arms.getFirst().median("rate");
    double best =
        arms.stream()
            .filter(arm -> arm.name.startsWith("files"))
            .mapToDouble(arm -> arm.median("rate"))
            .max()
            .orElse(Double.NaN);
    System.out.printf(
        Locale.ROOT, "%n%s, %,d samples of %,d bytes%n%n", profile.text(), files, size);
    System.out.println(
        "| arm | MB/s | samples/s | of fio | times files | stall | bytes a disk request | rounds, MB/s |");
    System.out.println("|---|---|---|---|---|---|---|---|");
    for (Arm arm : arms) {
      System.out.printf(
          Locale.ROOT,
          "| %s | %.0f | %.0f | %.2f | %.2f | %.2f | %.0f | %s |%n",
          arm.name,
          arm.median("rate") / 1e6,
          arm.median("rate") / size,
          arm.median("rate") / fio,
          arm.median("rate") / best,
          arm.median("stallShare"),
          arm.median("requestBytes"),
          arm.spread("rate", "%.3g"));
    }
  }
}
