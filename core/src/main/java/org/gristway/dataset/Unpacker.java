package org.gristway.dataset;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.gristway.Failure;
import org.gristway.Progress;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;

/** Writes a dataset's samples back to files, one for each part, as they were before packing. */
public final class Unpacker {

  private static final int THREADS = 4;
  private static final long HELD = 16 << 20;

  private final Dataset dataset;
  private final Path target; // absolute, and without links: names are held against it
  private final Progress progress;
  private volatile boolean stop;

  private Unpacker(Dataset dataset, Path target, Progress progress) {
    this.dataset = dataset;
    this.target = target;
    this.progress = progress;
  }

  /** Unpacks into a folder that is empty or does not exist yet; returns the number of samples. */
  public static long unpack(Path path, Path target, Progress progress) {
    try (Dataset dataset = Dataset.open(path)) {
      dataset.refusePortion("unpacked");
      Path place;
      try {
        Files.createDirectories(target);
        place = target.toRealPath();
        try (Stream<Path> inside = Files.list(target)) {
          if (inside.findAny().isPresent()) {
            throw Failure.wrongCall("%s is not empty; unpack into a new folder", target);
          }
        }
      } catch (FileAlreadyExistsException file) {
        throw Failure.wrongCall("%s is a file; unpack into a new folder", target);
      } catch (IOException failed) {
        throw Failure.io("create " + target, failed);
      }
      new Unpacker(dataset, place, progress).run();
      return dataset.size();
    }
  }

  /** A chunk a thread: each chunk is read from front to back. */
  private void run() {
    Snapshot snapshot = dataset.snapshot();
    progress.begin("unpacking", Progress.Unit.BYTES, snapshot.dataBytes());
    AtomicInteger next = new AtomicInteger();
    Workers.run(
        "unpack",
        Math.min(THREADS, snapshot.chunkCount()),
        () -> {
          try {
            for (int chunk = next.getAndIncrement();
                chunk < snapshot.chunkCount() && !stop;
                chunk = next.getAndIncrement()) {
              long end = snapshot.firstSample(chunk + 1);
              for (long id = snapshot.firstSample(chunk); id < end && !stop; id++) {
                write(dataset.sample(id));
              }
            }
          } catch (RuntimeException failed) {
            stop = true; // the other threads need not go on
            throw failed;
          }
        });
    progress.end();
  }

  private void write(Sample sample) {
    // Read once for all its parts, unless it is too large to hold.
    byte[] bytes = sample.length() <= HELD ? dataset.read(sample) : null;
    for (Sample.Part part : sample.parts()) {
      Path file = target.resolve(sample.path(part)).normalize();
      if (!file.startsWith(target)) {
        throw Failure.damaged("'%s' leads out of the folder", sample.key());
      }
      try {
        Files.createDirectories(Objects.requireNonNull(file.getParent()));
        write(sample, part, bytes, file);
      } catch (FileAlreadyExistsException taken) {
        throw Failure.wrongCall(
            "two samples would be unpacked to %s, '%s' and one before it; read them with 'gristway"
                + " cat' instead",
            file, sample.key());
      } catch (IOException failed) {
        throw Failure.io("write " + file, failed);
      }
      progress.advance(part.length());
    }
  }

  private void write(Sample sample, Sample.Part part, byte @Nullable [] bytes, Path file)
      throws IOException {
    try (OutputStream out = Files.newOutputStream(file, StandardOpenOption.CREATE_NEW)) {
      try {
        if (bytes != null) {
          out.write(bytes, (int) part.offset(), (int) part.length());
        } else {
          dataset.writeTo(sample, part, out);
        }
      } catch (IOException | Failure failed) {
        Files.deleteIfExists(file); // half a file is worse than none
        throw failed;
      }
    }
  }
}
