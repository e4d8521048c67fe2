package org.gristway.cli;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.zip.CRC32C;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.gristway.Progress;
import org.gristway.handover.Batch;
import org.gristway.os.PrivateMemory;
import org.gristway.os.SharedMemory;
import org.gristway.pack.PackOptions;
import org.gristway.pack.Packer;
import org.gristway.plan.policy.UnboundedPolicy;
import org.gristway.read.Loader;
import org.gristway.read.LoaderOptions;

/** Measures what a loader takes for the samples that it delivers, beside waiting for storage. */
final class DeliveryProbe {

  private static final long COPIED_FROM = 128 << 20; // more than caches hold
  private static final long COPIED_TO = 32 << 20;
  private static final long COPY_NANOS = 600_000_000L;

  /**
   * A delivery of one among few takes less, since what says where they are stays in the processor's
   * caches, and of one among many more: this is between.
   */
  private static final int SAMPLES = 75_000;

  /**
   * Some, since where its threads happen to run makes a difference of half as long as a loader
   * lives; and few, since what is compiled after many is faster than in a run that has one.
   */
  private static final int LOADERS = 4;

  private static final long DELIVERY_NANOS = 1_000_000_000L;

  private final ProbeFolder folder;
  private final double patience;
  private final int samples;

  /**
   * @param patience the part of the usual time that it takes, and of the samples that it delivers
   */
  DeliveryProbe(ProbeFolder folder, double patience) {
    this.folder = folder;
    this.patience = patience;
    this.samples = (int) Math.ceil(patience * SAMPLES);
  }

  /**
   * Bytes a second that one thread copies as a loader does: small samples from random places of
   * such memory as is read into, to such as is shared.
   *
   * @param checks true if it computes a checksum of each
   */
  double copyRate(boolean checks) throws IOException {
    try (PrivateMemory memory = new PrivateMemory(COPIED_FROM);
        SharedMemory shared = SharedMemory.create("gristway-probe")) {
      MemorySegment from = memory.segment();
      MemorySegment to = shared.map(shared.extend(COPIED_TO), COPIED_TO);
      from.fill((byte) 1);
      to.fill((byte) 2);
      SplittableRandom random = new SplittableRandom(1);
      CRC32C checksum = new CRC32C();
      return COPIED_TO
          / usual(
              COPY_NANOS,
              () -> {
                for (long at = 0; at + Probe.SMALL_BYTES < COPIED_TO; at += Probe.SMALL_BYTES) {
                  long place = random.nextLong(COPIED_FROM - Probe.SMALL_BYTES);
                  MemorySegment.copy(from, place, to, at, Probe.SMALL_BYTES);
                  if (checks) {
                    checksum.update(to.asSlice(at, Probe.SMALL_BYTES).asByteBuffer());
                  }
                }
              });
    }
  }

  /**
   * What the loader takes to deliver a sample, beside reading and copying it: many that are next to
   * nothing are packed, and read again and again by the policy that has them in memory and shows
   * them there.
   */
  double sampleSeconds() throws IOException {
    Path archive = folder.file("samples.zip");
    try (ZipOutputStream zip = new ZipOutputStream(Files.newOutputStream(archive))) {
      for (int i = 0; i < samples; i++) {
        zip.putNextEntry(new ZipEntry("sample-" + i));
        zip.write(i);
      }
    }
    Path dataset = folder.file("samples.gw");
    Packer.pack(List.of(archive), dataset, PackOptions.DEFAULT, Progress.NONE, _ -> {});
    LoaderOptions options = LoaderOptions.DEFAULT.withPolicy(UnboundedPolicy.NAME);
    double sum = 0;
    for (int i = 0; i < LOADERS; i++) {
      try (Loader loader = Loader.open(dataset, options)) {
        sum += usual(DELIVERY_NANOS, () -> loader.epoch().forEach(DeliveryProbe::look));
      }
    }
    return sum / LOADERS / samples;
  }

  /** Asks for each sample's length, as whoever uses it must. */
  private static void look(Batch batch) {
    long bytes = 0;
    for (int i = 0; i < batch.size(); i++) {
      bytes += batch.length(i);
    }
    if (bytes < batch.size()) {
      throw new IllegalStateException("each has a byte"); // and so lengths are looked at
    }
  }

  /** What something takes on the average, done again and again, once its code is compiled. */
  private double usual(long nanos, Runnable something) {
    List<Double> seconds = new ArrayList<>();
    long begin = System.nanoTime();
    do {
      long start = System.nanoTime();
      something.run();
      seconds.add((System.nanoTime() - start) / 1e9);
    } while (System.nanoTime() - begin < patience * nanos);
    return seconds.stream()
        .skip(seconds.size() / 2)
        .mapToDouble(each -> each)
        .average()
        .orElseThrow();
  }
}
