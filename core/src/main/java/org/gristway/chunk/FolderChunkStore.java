package org.gristway.chunk;

import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.ConcurrentHashMap;
import org.gristway.Failure;
import org.gristway.os.Descriptors;
import org.gristway.os.NativeFile;

/**
 * Chunks in a folder. A chunk's file is held against the snapshot when it is opened, so that a
 * chunk of another dataset, or a cut-off one, is refused. As many files stay open as the process
 * may well have; those beyond are opened for each read.
 */
public final class FolderChunkStore implements ChunkSource, AutoCloseable {

  private static final int KEPT_OPEN = Descriptors.share();

  private final Path folder;
  private final ChunkCatalog catalog;
  private final ConcurrentHashMap<Integer, NativeFile> open = new ConcurrentHashMap<>();

  public FolderChunkStore(Path folder, ChunkCatalog catalog) {
    this.folder = folder;
    this.catalog = catalog;
  }

  @Override
  public void fill(Extent extent, MemorySegment memory) {
    NativeFile kept = open.get(extent.chunk());
    if (kept == null && open.size() >= KEPT_OPEN) {
      NativeFile file = open(extent.chunk());
      try {
        fill(extent, memory, file);
      } finally {
        closeQuietly(file);
      }
    } else {
      fill(extent, memory, kept != null ? kept : open.computeIfAbsent(extent.chunk(), this::open));
    }
  }

  private static void fill(Extent extent, MemorySegment memory, NativeFile file) {
    try {
      file.readFully(memory, extent.length(), extent.offset());
    } catch (EOFException cutOff) {
      throw Failure.damaged("%s is damaged: %s", file.path(), String.valueOf(cutOff.getMessage()));
    } catch (IOException failed) {
      throw Failure.io("read " + file.path(), failed);
    }
  }

  private NativeFile open(int chunk) {
    Path path = folder.resolve(ChunkFormat.fileName(chunk));
    if (!Files.exists(path)) {
      throw missing(path);
    }
    NativeFile file;
    try {
      file = NativeFile.openToRead(path);
    } catch (IOException failed) {
      throw Failure.io("open " + path, failed);
    }
    try (Arena arena = Arena.ofConfined()) {
      long size = file.size();
      if (size != catalog.chunkFileBytes(chunk)) {
        throw Failure.damaged(
            "%s is damaged: it has %d bytes and should have %d",
            path, size, catalog.chunkFileBytes(chunk));
      }
      MemorySegment head = arena.allocate(ChunkFormat.HEADER_BYTES, 8);
      file.readFully(head, ChunkFormat.HEADER_BYTES, 0);
      ChunkHeader.read(head, path.toString());
      if (ChunkHeader.checksumIn(head) != catalog.chunkHeaderChecksum(chunk)) {
        throw Failure.damaged("%s belongs to another dataset than its snapshot", path);
      }
      return file;
    } catch (IOException failed) {
      closeQuietly(file);
      throw Failure.io("read " + path, failed);
    } catch (Failure refused) {
      closeQuietly(file);
      throw refused;
    }
  }

  /** The failure for a chunk that should be there and is not. */
  public static Failure missing(Path path) {
    return Failure.damaged("%s is missing: bring it back from a copy, or pack again", path);
  }

  private static void closeQuietly(NativeFile file) {
    try {
      file.close();
    } catch (IOException ignored) {
      // A descriptor that was only read from has nothing to lose.
    }
  }

  @Override
  public void close() {
    open.values().forEach(FolderChunkStore::closeQuietly);
    open.clear();
  }
}
