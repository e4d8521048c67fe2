package org.gristway.benchmarks;

import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.gristway.Failure;
import org.gristway.dataset.Dataset;
import org.gristway.handover.Batch;
import org.gristway.peer.JobSecret;
import org.gristway.peer.Mesh;
import org.gristway.plan.Exchange;
import org.gristway.plan.World;
import org.gristway.read.Beginning;
import org.gristway.read.Loader;
import org.gristway.read.LoaderOptions;
import org.gristway.read.PeerCaches;
import org.gristway.read.Threads;

/**
 * Nodes of one rank each that push to each other, and the same nodes with the same plan that are
 * given what they would have asked for when they would have: all in this process, over loopback and
 * a {@link SlowLink} between any two. For each latency and each time that a trainer takes for a
 * step it prints a line of {@code name=value}.
 *
 * <p>Samples begin with their number, by which it is checked that each comes once an epoch.
 */
final class AskingArm {

  private static final int NODES = 4;
  private static final int EPOCHS = 2; // and one before them that is not measured
  private static final JobSecret SECRET = JobSecret.of("a secret of this benchmark");
  private static final ValueLayout.OfLong NUMBER =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private AskingArm() {}

  private record Setting(double latencyMillis, int batch, double stepMillis, boolean asks) {}

  /**
   * @param arguments dataset, more than the largest number of a sample, memory of a node, latencies
   *     in milliseconds (0.2,1,5), batch sizes with milliseconds that a trainer takes for a step
   *     (4x0,16x10), number of the round
   */
  static void main(String[] arguments) throws IOException, InterruptedException {
    Path path = Path.of(arguments[0]);
    int numbers = Integer.parseInt(arguments[1]);
    LoaderOptions options =
        LoaderOptions.DEFAULT
            .withMemory(Long.parseLong(arguments[2]))
            .withEpochs(1 + EPOCHS)
            .withExchange(Exchange.of(1));
    int round = Integer.parseInt(arguments[5]);
    measure(path, numbers, options, new Setting(0, 16, 0, false)); // code is compiled
    for (String steps : arguments[4].split(",", -1)) {
      int batch = Integer.parseInt(steps.substring(0, steps.indexOf('x')));
      double step = Double.parseDouble(steps.substring(steps.indexOf('x') + 1));
      for (String latency : arguments[3].split(",", -1)) {
        for (int i = 0; i < 2; i++) {
          Setting setting =
              new Setting(Double.parseDouble(latency), batch, step, (round + i) % 2 == 1);
          System.out.printf(
              Locale.ROOT,
              "latency=%s batch=%d step=%s asks=%d seconds=%.4f%n",
              latency,
              batch,
              step,
              setting.asks() ? 1 : 0,
              measure(path, numbers, options, setting) / EPOCHS);
        }
      }
    }
  }

  /** Seconds of all epochs but the first. */
  private static double measure(Path path, int numbers, LoaderOptions given, Setting setting)
      throws IOException, InterruptedException {
    LoaderOptions options = given.withBatchSize(setting.batch());
    List<Mesh> meshes = new ArrayList<>();
    List<SlowLink> links = new ArrayList<>();
    List<Loader> loaders = new ArrayList<>();
    try (Dataset dataset = Dataset.open(path)) {
      for (int node = 0; node < NODES; node++) {
        meshes.add(mesh(node, dataset, options));
      }
      join(meshes, links, setting);
      for (int node = 0; node < NODES; node++) {
        loaders.add(
            Loader.open(
                Dataset.open(path),
                options.withWorld(new World(NODES, NODES, node)),
                Beginning.NEW_RUN,
                meshes.get(node).office(),
                PeerCaches.NONE,
                Threads.PLATFORM,
                line -> {
                  throw new IllegalStateException(line);
                }));
      }
      return train(loaders, setting, numbers);
    } finally {
      loaders.forEach(Loader::close);
      together(meshes, Mesh::close);
      for (SlowLink link : links) {
        link.close();
      }
    }
  }

  private static Mesh mesh(int node, Dataset dataset, LoaderOptions options) {
    return new Mesh(
        new World(NODES, NODES, node),
        dataset.snapshot(),
        options.batchSize(),
        options.exchange().window(),
        new InetSocketAddress(InetAddress.getLoopbackAddress(), 0),
        SECRET,
        "benchmark=1\n",
        PeerCaches.NONE,
        new Mesh.Listener() {
          @Override
          public void lost(Failure why) {
            System.err.println(why.getMessage());
          }

          @Override
          public void refused(String line) {
            System.err.println(line);
          }
        });
  }

  /** Whoever has the higher number connects, and finds a link where the other would be. */
  private static void join(List<Mesh> meshes, List<SlowLink> links, Setting setting)
      throws IOException, InterruptedException {
    long latency = (long) (setting.latencyMillis() * 1e6);
    List<List<InetSocketAddress>> seen = new ArrayList<>();
    for (Mesh connecting : meshes) {
      List<InetSocketAddress> addresses = new ArrayList<>();
      for (Mesh listening : meshes) {
        if (addresses.size() < meshes.indexOf(connecting)) {
          SlowLink link = new SlowLink(listening.address(), latency, setting.asks());
          links.add(link);
          addresses.add(link.address());
        } else {
          addresses.add(listening.address());
        }
      }
      seen.add(addresses);
    }
    together(meshes, mesh -> mesh.join(seen.get(meshes.indexOf(mesh)), 30));
  }

  private interface Work<T> {
    void on(T each) throws InterruptedException;
  }

  /** Does something in a thread for each, and waits for all. */
  private static <T> void together(List<T> all, Work<T> work) throws InterruptedException {
    AtomicReference<RuntimeException> failure = new AtomicReference<>();
    List<Thread> threads = new ArrayList<>();
    for (T each : all) {
      threads.add(
          Thread.ofPlatform()
              .start(
                  () -> {
                    try {
                      work.on(each);
                    } catch (InterruptedException never) {
                      throw new IllegalStateException(never);
                    } catch (RuntimeException failed) {
                      failure.compareAndSet(null, failed);
                    }
                  }));
    }
    for (Thread thread : threads) {
      thread.join();
    }
    if (failure.get() != null) {
      throw failure.get();
    }
  }

  private static double train(List<Loader> loaders, Setting setting, int numbers)
      throws InterruptedException {
    long epochs = loaders.getFirst().options().epochs();
    AtomicIntegerArray seen = new AtomicIntegerArray(numbers);
    CyclicBarrier warm = new CyclicBarrier(NODES);
    long[] starts = new long[NODES];
    long[] ends = new long[NODES];
    together(
        loaders,
        loader -> {
          int node = loader.options().world().node();
          for (long epoch = 0; epoch < epochs; epoch++) {
            if (epoch == 1) {
              await(warm);
              starts[node] = System.nanoTime();
            }
            for (Batch batch : loader.epoch()) {
              for (int i = 0; i < batch.size(); i++) {
                if (!batch.isRepeat(i)) {
                  seen.incrementAndGet(Math.toIntExact(batch.data(i).get(NUMBER, 0)));
                }
              }
              TimeUnit.NANOSECONDS.sleep((long) (setting.stepMillis() * 1e6));
            }
          }
          ends[node] = System.nanoTime();
        });
    long each = IntStream.range(0, numbers).filter(i -> seen.get(i) == epochs).count();
    long none = IntStream.range(0, numbers).filter(i -> seen.get(i) == 0).count();
    long samples = loaders.getFirst().dataset().size();
    if (each != samples || none != numbers - samples) {
      throw new IllegalStateException("only " + each + " samples came once in every epoch");
    }
    long start = Long.MAX_VALUE;
    long end = Long.MIN_VALUE;
    for (int node = 0; node < NODES; node++) {
      start = Math.min(start, starts[node]);
      end = Math.max(end, ends[node]);
    }
    return (end - start) / 1e9;
  }

  private static void await(CyclicBarrier barrier) throws InterruptedException {
    try {
      barrier.await();
    } catch (BrokenBarrierException never) {
      throw new IllegalStateException(never);
    }
  }
}
