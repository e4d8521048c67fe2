package org.gristway.cli;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.gristway.Failure;
import org.gristway.dataset.Workers;
import org.gristway.os.NativeFile;

/**
 * Makes storage cold, so that what is read next comes from the disk and not from memory. Root can
 * have the kernel drop all it has cached; others can ask it to let go of the pages of their own
 * files, while names and inodes stay known.
 */
final class DemoCold {

  /** How it was done. */
  enum Way {
    DROPPED("page cache, names and inodes dropped, as root"),
    ADVISED("pages let go with posix_fadvise; without root, names and inodes stay in memory");

    private final String text;

    Way(String text) {
      this.text = text;
    }

    String text() {
      return text;
    }
  }

  private static final Path DROP_CACHES = Path.of("/proc/sys/vm/drop_caches");
  private static final int THREADS = 4;

  private DemoCold() {}

  /** Writes to the disk what waits in memory: only what is there can be dropped. */
  static void settle(Path folder) {
    try {
      new ProcessBuilder("sync", "-f", folder.toAbsolutePath().toString())
          .redirectOutput(ProcessBuilder.Redirect.DISCARD)
          .redirectError(ProcessBuilder.Redirect.DISCARD)
          .start()
          .waitFor();
    } catch (IOException none) {
      // Without the program the kernel writes it in its own time, and less may get cold.
    } catch (InterruptedException stop) {
      Thread.currentThread().interrupt();
      throw Failure.environment("interrupted while files were written to the disk");
    }
  }

  /** Makes all files below a folder cold that {@link #settle} has been called for. */
  static Way chill(Path folder) {
    try {
      Files.write(DROP_CACHES, "3".getBytes(StandardCharsets.US_ASCII), StandardOpenOption.WRITE);
      return Way.DROPPED;
    } catch (IOException notAllowed) { // not root, or in a container
      forget(folder);
      return Way.ADVISED;
    }
  }

  private static void forget(Path folder) {
    List<Path> files;
    try (Stream<Path> below = Files.walk(folder)) {
      files = below.filter(Files::isRegularFile).toList();
    } catch (IOException failed) {
      throw Failure.io("list " + folder, failed);
    }
    AtomicInteger next = new AtomicInteger();
    Workers.run(
        "cold",
        THREADS,
        () -> {
          for (int i = next.getAndIncrement(); i < files.size(); i = next.getAndIncrement()) {
            try (NativeFile file = NativeFile.openToRead(files.get(i))) {
              file.forget();
            } catch (IOException failed) {
              throw Failure.io("open " + files.get(i), failed);
            }
          }
        });
  }
}
