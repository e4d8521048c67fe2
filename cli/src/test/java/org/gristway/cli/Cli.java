package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.gristway.os.Folders;
import org.gristway.testing.Thorough;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * Runs commands: the shaded jar in a process of its own, as users do, or, where a test is about
 * what a command does and says and not about its process, in this JVM, which has started already.
 */
public final class Cli {

  /** How a run ended. */
  public record Result(int exit, byte[] out, String err) {

    public String outText() {
      return new String(out, StandardCharsets.UTF_8);
    }

    /** What it printed, one line of JSON. */
    public JsonNode json() {
      assertThat(outText()).hasLineCount(1);
      return JsonMapper.shared().readTree(out);
    }

    /** It went well, and there was nothing to complain about. */
    public Result isDone() {
      assertThat(err).isEmpty();
      assertThat(exit).isZero();
      return this;
    }

    /** It failed as every failure should: one line, no result, no stack trace. */
    public String complaint(int status) {
      assertThat(err).startsWith("gristway: ").endsWith("\n");
      assertThat(err.lines()).hasSize(1);
      assertThat(err).doesNotContain("\tat ", "Exception");
      assertThat(outText()).isEmpty();
      assertThat(exit).as(err).isEqualTo(status);
      return err.strip();
    }
  }

  private static final long LIMIT_SECONDS = 60;

  private static final String USUAL_JAR = System.getProperty("gristway.jar");

  // Cheap starts: no parallel collector, no second compiler. Nor the JVM's own statistics file,
  // which outlives a kill; the launcher turns it off too.
  private static final List<String> USUAL_FLAGS =
      List.of(
          "-XX:+UseSerialGC",
          "-XX:TieredStopAtLevel=1",
          "-XX:-UsePerfData",
          "-Xmx128m",
          "-Dsun.jnu.encoding=UTF-8",
          "--enable-native-access=ALL-UNNAMED");

  /**
   * Classes parsed and linked ahead of time, as the launcher has them: half the cost of a start.
   */
  private static final class StartUpCache {

    static final Path FILE = make();

    private static Path make() {
      try {
        Path trial = Files.createTempDirectory("gristway-test-");
        Path file = Path.of(USUAL_JAR).resolveSibling("test.aot");
        Path dataset = trial.resolve("trial.gw");
        new Cli().java("-Xshare:auto").call("pack", Path.of("src/main"), dataset).isDone();
        Result made =
            new Cli()
                .java("-XX:AOTCacheOutput=" + file)
                .call("read", dataset, "--json", "--order", trial.resolve("order"));
        assertThat(made.exit()).as(made.err()).isZero();
        Folders.deleteTree(trial);
        return file;
      } catch (IOException failed) {
        throw new UncheckedIOException(failed);
      }
    }
  }

  private final List<String> wrapper = new ArrayList<>();
  private List<String> flags = USUAL_FLAGS;
  private final List<String> javaOptions = new ArrayList<>();
  private final Map<String, String> environment = new HashMap<>();
  private String jar = USUAL_JAR;
  private Path folder = Path.of("").toAbsolutePath();
  private long limitSeconds = LIMIT_SECONDS;

  /**
   * Runs a command in this JVM, where it takes a tenth of the time of a process, with this one's
   * working folder and heap. In the long run it gets a process too.
   */
  public static Result run(Object... args) {
    return Thorough.on() ? new Cli().call(args) : runHere(args);
  }

  private static Result runHere(Object... args) {
    String[] words = Arrays.stream(args).map(Object::toString).toArray(String[]::new);
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    AtomicInteger exit = new AtomicInteger();
    AtomicReference<Throwable> uncaught = new AtomicReference<>();
    Thread.UncaughtExceptionHandler before = Thread.getDefaultUncaughtExceptionHandler();
    Thread.setDefaultUncaughtExceptionHandler((_, thrown) -> uncaught.compareAndSet(null, thrown));
    try {
      Thread command =
          Thread.ofPlatform()
              .daemon()
              .name("gristway")
              .start(() -> exit.set(Main.run(new Console(out, err), words)));
      if (!command.join(Duration.ofSeconds(LIMIT_SECONDS))) {
        AssertionError late = new AssertionError("still running after " + LIMIT_SECONDS + " s");
        late.setStackTrace(command.getStackTrace());
        throw late;
      }
    } catch (InterruptedException stop) {
      Thread.currentThread().interrupt();
      throw new AssertionError(stop);
    } finally {
      Thread.setDefaultUncaughtExceptionHandler(before);
    }
    if (uncaught.get() != null) {
      throw new AssertionError("a thread has died", uncaught.get());
    }
    return new Result(exit.get(), out.toByteArray(), err.toString(StandardCharsets.UTF_8));
  }

  public Cli in(Path workingFolder) {
    folder = workingFolder;
    return this;
  }

  public Cli env(String name, String value) {
    environment.put(name, value);
    return this;
  }

  public Cli java(String option) {
    javaOptions.add(option);
    return this;
  }

  /** Other JVM flags than the usual ones of these tests. */
  public Cli flags(List<String> instead) {
    flags = List.copyOf(instead);
    return this;
  }

  /** A command that starts java in its turn, such as one that changes the user. */
  public Cli through(String... command) {
    wrapper.addAll(List.of(command));
    return this;
  }

  /** Another copy of the jar, where the one that was built cannot be read. */
  public Cli jar(Path copy) {
    jar = copy.toString();
    return this;
  }

  /** For what takes longer than commands usually do. */
  public Cli within(long seconds) {
    limitSeconds = seconds;
    return this;
  }

  public Result call(Object... args) {
    try {
      Path out = Files.createTempFile("gristway-test-", ".out");
      Path err = Files.createTempFile("gristway-test-", ".err");
      try {
        Process process =
            builder(args).redirectOutput(out.toFile()).redirectError(err.toFile()).start();
        int exit = await(process, limitSeconds);
        return new Result(exit, Files.readAllBytes(out), Files.readString(err));
      } finally {
        Files.delete(out);
        Files.delete(err);
      }
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }

  /** Nanoseconds that a process of its own takes for a command, which goes well. */
  public static long time(Object... args) {
    Cli cli = new Cli();
    cli.builder(args); // or what making the start-up cache takes would count
    long start = System.nanoTime();
    cli.call(args).isDone();
    return System.nanoTime() - start;
  }

  /** The digest of each epoch's order, of what reading said. */
  public static List<String> digests(JsonNode said) {
    return said.get("epochs").valueStream().map(e -> e.get("orderDigest").asString()).toList();
  }

  /** For tests that handle the process themselves. */
  public ProcessBuilder builder(Object... args) {
    List<String> command = new ArrayList<>(wrapper);
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(flags);
    command.addAll(javaOptions);
    if (isAsCached()) {
      command.add("-XX:AOTCache=" + StartUpCache.FILE);
    }
    command.addAll(List.of("-jar", jar));
    for (Object arg : args) {
      command.add(arg.toString());
    }
    ProcessBuilder builder = new ProcessBuilder(command).directory(folder.toFile());
    builder.redirectInput(ProcessBuilder.Redirect.from(Path.of("/dev/null").toFile()));
    builder.environment().put("LC_ALL", "C.UTF-8");
    builder.environment().putAll(environment);
    return builder;
  }

  /** True if the start-up cache is of use: with other flags, or for other users, it is not. */
  private boolean isAsCached() {
    return flags.equals(USUAL_FLAGS)
        && jar.equals(USUAL_JAR)
        && javaOptions.stream().allMatch(option -> option.startsWith("-D"))
        && (wrapper.isEmpty() || wrapper.getFirst().equals("env"));
  }

  public static int await(Process process) {
    return await(process, LIMIT_SECONDS);
  }

  private static int await(Process process, long seconds) {
    try {
      if (!process.waitFor(seconds, TimeUnit.SECONDS)) {
        process.destroyForcibly();
        throw new AssertionError("still running after " + seconds + " s");
      }
      return process.exitValue();
    } catch (InterruptedException stop) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
      throw new AssertionError(stop);
    }
  }
}
