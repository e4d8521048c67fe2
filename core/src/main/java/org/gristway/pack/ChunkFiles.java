package org.gristway.pack;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.gristway.Failure;
import org.gristway.Progress;
import org.gristway.chunk.ChunkFormat;
import org.gristway.chunk.ChunkHeader;
import org.gristway.dataset.Workers;
import org.gristway.os.KeptFiles;
import org.gristway.os.NativeFile;

/**
 * The chunk files being written, all at once and at any place. Their space is reserved before the
 * first byte is copied: a disk that is too small is known at once, not after hours.
 *
 * <p>Files stay open as far as the process may have files open, see {@link KeptFiles}.
 */
final class ChunkFiles implements AutoCloseable {

  private final Path folder;
  private final List<ChunkHeader> chunks;
  private final KeptFiles files;

  ChunkFiles(Path folder, List<ChunkHeader> chunks) {
    this.folder = folder;
    this.chunks = chunks;
    this.files = new KeptFiles(index -> NativeFile.openToWrite(path(index)));
  }

  /** Creates all files and reserves their space. */
  void create() {
    for (int i = 0; i < chunks.size(); i++) {
      try (NativeFile file = NativeFile.create(path(i))) {
        file.reserve(chunks.get(i).fileBytes());
      } catch (IOException failed) {
        throw Failure.io("write " + path(i), failed);
      }
    }
  }

  private Path path(int index) {
    return folder.resolve(ChunkFormat.fileName(chunks.get(index).number()));
  }

  /** Does something to one of the files. Any thread. */
  void with(int index, KeptFiles.Action action) {
    try {
      files.with(index, action);
    } catch (IOException failed) {
      throw Failure.io("write " + path(index), failed);
    }
  }

  void write(int index, MemorySegment bytes, long length, long offset) {
    with(index, file -> file.write(bytes, length, offset));
  }

  /** Returns when all files are durable. Several at once, since each waits for the disk. */
  void sync(int threads, Progress progress, BooleanSupplier stopped) {
    AtomicInteger next = new AtomicInteger();
    Workers.run(
        "sync",
        Math.min(threads, chunks.size()),
        () -> {
          for (int i = next.getAndIncrement();
              i < chunks.size() && !stopped.getAsBoolean();
              i = next.getAndIncrement()) {
            with(i, NativeFile::sync);
            progress.advance(chunks.get(i).fileBytes());
          }
        });
    IOException failed = files.closeFailure();
    if (failed != null) {
      throw Failure.io("write the chunks in " + folder, failed);
    }
  }

  @Override
  public void close() {
    files.close();
  }
}
