package org.gristway.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.gristway.Failure;
import org.gristway.Progress;
import org.gristway.dataset.Workers;

/** The demo's small files: pictures, in a folder for each class. */
final class DemoFiles {

  private static final int MOST_THREADS = 8;

  private DemoFiles() {}

  /** Makes so many files in a folder that does not exist yet; the sum of their bytes. */
  static long make(Path folder, int count, Progress progress) {
    int classes = DemoImages.CLASSES.size();
    try {
      for (String name : DemoImages.CLASSES) {
        Files.createDirectories(folder.resolve(name));
      }
    } catch (IOException failed) {
      throw Failure.io("make folders in " + folder, failed);
    }
    AtomicInteger next = new AtomicInteger();
    AtomicLong bytes = new AtomicLong();
    progress.begin("making files", Progress.Unit.SAMPLES, count);
    Workers.run(
        "demo",
        Math.clamp(Runtime.getRuntime().availableProcessors(), 1, MOST_THREADS),
        () -> {
          for (int i = next.getAndIncrement(); i < count; i = next.getAndIncrement()) {
            byte[] image = DemoImages.png(i % classes, i / classes);
            Path file = folder.resolve(key(i % classes, i / classes));
            try {
              Files.write(file, image);
            } catch (IOException failed) {
              next.set(count); // the other threads may end too
              throw Failure.io("write " + file, failed);
            }
            bytes.addAndGet(image.length);
            progress.advance(1);
          }
        });
    progress.end();
    return bytes.get();
  }

  /** The path of a file below the folder, which is also its sample's key. */
  static String key(int classNumber, int number) {
    return String.format(Locale.ROOT, "%s/%04d.png", DemoImages.CLASSES.get(classNumber), number);
  }
}
