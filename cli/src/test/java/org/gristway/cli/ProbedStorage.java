package org.gristway.cli;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Storage that behaves by the book, as a probe would find it.
 *
 * @param latency of a read, in seconds
 * @param rate bytes a second, of all reads and of one
 * @param requests a second
 */
record ProbedStorage(double latency, double rate, double requests) {

  static final ProbedStorage FAST = new ProbedStorage(80e-6, 3e9, 200_000);
  static final ProbedStorage CLOUD = new ProbedStorage(500e-6, 500e6, 3_000);
  static final ProbedStorage DISK = new ProbedStorage(5e-3, 180e6, 200);

  ProbeResult result() {
    List<ProbeResult.Reads> reads = new ArrayList<>();
    for (int atOnce : new int[] {1, 4, 16}) {
      for (long bytes = 4 << 10; bytes <= 4 << 20; bytes *= 4) {
        double some = atOnce * bytes / (latency + bytes / rate);
        double most = Math.min(rate, requests * bytes);
        reads.add(new ProbeResult.Reads(bytes, atOnce, Math.min(some, most), 0.5));
      }
    }
    return new ProbeResult(1 << 30, true, reads, rate, 5e9, requests / 2, 8e9, 5e9, 1e-6, 4);
  }

  /** As {@code probe --json} writes it. */
  Path write(Path file) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    ProbeOutput.writeJson(file, result(), out);
    return Files.write(file, out.toByteArray());
  }
}
