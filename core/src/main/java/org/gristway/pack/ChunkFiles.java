package org.gristway.pack;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.gristway.Failure;
import org.gristway.Progress;
import org.gristway.chunk.ChunkFormat;
import org.gristway.chunk.ChunkHeader;
import org.gristway.dataset.Workers;
import org.gristway.os.Descriptors;
import org.gristway.os.NativeFile;

/**
 * The chunk files being written, all at once and at any place. Their space is reserved before the
 * first byte is copied: a disk that is too small is known at once, not after hours.
 *
 * <p>As many files stay open as the process may well have; those beyond are opened for each write.
 */
final class ChunkFiles implements AutoCloseable {

  private static final int KEPT_OPEN = Descriptors.share();

  private final Path folder;
  private final List<ChunkHeader> chunks;
  private final ConcurrentHashMap<Integer, NativeFile> open = new ConcurrentHashMap<>();

  ChunkFiles(Path folder, List<ChunkHeader> chunks) {
    this.folder = folder;
    this.chunks = chunks;
  }

  /** Creates all files and reserves their space. */
  void create() {
    for (int i = 0; i < chunks.size(); i++) {
      try {
        NativeFile file = NativeFile.create(path(i));
        open.put(i, file);
        file.reserve(chunks.get(i).fileBytes());
        if (i >= KEPT_OPEN) {
          open.remove(i);
          file.close();
        }
      } catch (IOException failed) {
        throw Failure.io("write " + path(i), failed);
      }
    }
  }

  private Path path(int index) {
    return folder.resolve(ChunkFormat.fileName(chunks.get(index).number()));
  }

  /** Something done to an open file. */
  interface Action {
    void with(NativeFile file) throws IOException;
  }

  /** Does something to one of the files. Any thread. */
  void with(int index, Action action) {
    try {
      NativeFile kept = open.get(index);
      if (kept != null) {
        action.with(kept);
        return;
      }
      try (NativeFile file = NativeFile.openToWrite(path(index))) {
        action.with(file);
      }
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
  }

  @Override
  public void close() throws IOException {
    for (NativeFile file : open.values()) {
      file.close();
    }
  }
}
