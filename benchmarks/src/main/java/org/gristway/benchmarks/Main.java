package org.gristway.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.gristway.Failure;
import org.gristway.os.Folders;

/** Runs one benchmark: {@code run NAME [FOLDER [ROUNDS]]}. */
public final class Main {

  private Main() {}

  /** A measurement that prints what it found. */
  interface Benchmark {

    /**
     * @param folder on the storage to measure; it is empty and is deleted afterwards
     */
    void run(Path folder, int rounds) throws IOException, InterruptedException;
  }

  public static void main(String[] arguments) throws IOException, InterruptedException {
    Benchmark benchmark =
        switch (arguments.length == 0 ? "" : arguments[0]) {
          case "pack" -> new PackBenchmark();
          case "verify" -> new VerifyBenchmark();
          case "snapshot" -> new SnapshotBenchmark();
          case "startup" -> new StartupBenchmark();
          case "read" -> new ReadBenchmark();
          case "read-cpu" -> new CpuBenchmark();
          case "mixing" -> new MixingBenchmark();
          case "plan" -> new PlanBenchmark();
          case "simulate" -> new SimulateBenchmark();
          case "predict" -> new PredictBenchmark();
          case "read-arm" -> {
            ReadArm.main(Arrays.copyOfRange(arguments, 1, arguments.length));
            yield null;
          }
          case "files-arm" -> {
            FilesArm.main(Arrays.copyOfRange(arguments, 1, arguments.length));
            yield null;
          }
          case "asking-arm" -> {
            AskingArm.main(Arrays.copyOfRange(arguments, 1, arguments.length));
            yield null;
          }
          case "owners-arm" -> {
            OwnersArm.main(Arrays.copyOfRange(arguments, 1, arguments.length));
            yield null;
          }
          case "plan-arm" -> {
            PlanBenchmark.plan(arguments[1], arguments[2]);
            yield null;
          }
          case "open-snapshot" -> {
            SnapshotBenchmark.openAndLookUp(Path.of(arguments[1]));
            yield null;
          }
          default -> {
            System.err.println(
                "usage: benchmarks/run pack|verify|snapshot|startup|read|read-cpu|mixing|plan|simulate|predict [FOLDER [ROUNDS]]");
            System.exit(2);
            yield null;
          }
        };
    if (benchmark == null) {
      return;
    }
    Path parent = arguments.length > 1 ? Path.of(arguments[1]) : Path.of("target");
    Files.createDirectories(parent);
    Path folder = Files.createTempDirectory(parent, "benchmark-");
    int status = 0;
    try {
      System.out.println(Machine.describe());
      benchmark.run(folder, arguments.length > 2 ? Integer.parseInt(arguments[2]) : 5);
    } catch (Failure refused) {
      System.err.println("benchmarks: " + refused.getMessage());
      status = refused.kind().number();
    } finally {
      Folders.deleteTree(folder);
    }
    System.exit(status);
  }
}
