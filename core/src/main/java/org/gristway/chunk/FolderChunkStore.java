package org.gristway.chunk;

import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import org.gristway.Failure;
import org.gristway.os.KeptFiles;
import org.gristway.os.NativeFile;
import org.gristway.os.PosixException;

/**
 * Chunks in a folder. A chunk's file is held against the snapshot when it is opened, so that a
 * chunk of another dataset, or a cut-off one, is refused. Files stay open as far as the process may
 * have files open, see {@link KeptFiles}.
 */
public final class FolderChunkStore implements ChunkSource, AutoCloseable {

  private final Path folder;
  private final ChunkCatalog catalog;
  private final Way way;
  private final KeptFiles files = new KeptFiles(this::open);

  private enum Way {
    CACHED,
    CACHED_AT_RANDOM,
    DIRECT
  }

  /** Chunks read through the page cache. */
  public FolderChunkStore(Path folder, ChunkCatalog catalog) {
    this(folder, catalog, Way.CACHED);
  }

  private FolderChunkStore(Path folder, ChunkCatalog catalog, Way way) {
    this.folder = folder;
    this.catalog = catalog;
    this.way = way;
  }

  /** Chunks read through the page cache, here and there, without what follows. */
  public static FolderChunkStore atRandom(Path folder, ChunkCatalog catalog) {
    return new FolderChunkStore(folder, catalog, Way.CACHED_AT_RANDOM);
  }

  /**
   * Chunks read past the page cache, where the file system can. Extents must then begin at a page
   * of the file, and the memory at a page too and have room up to the end of the extent's last
   * page.
   */
  public static FolderChunkStore direct(Path folder, ChunkCatalog catalog) {
    return new FolderChunkStore(folder, catalog, Way.DIRECT);
  }

  @Override
  public void fill(Extent extent, MemorySegment memory) {
    try {
      files.with(extent.chunk(), file -> fill(extent, memory, file));
    } catch (IOException failed) {
      throw new IllegalStateException(failed); // both have made failures of theirs
    } catch (Failure failed) {
      if (failed.getCause() instanceof PosixException cause && cause.isOfTheStorage()) {
        files.forget(extent.chunk()); // a stale handle stays stale, whatever the mount does
      }
      throw failed;
    }
  }

  private static void fill(Extent extent, MemorySegment memory, NativeFile file) {
    try {
      if (file.read(memory, readLength(extent, file), extent.offset()) < extent.length()) {
        throw new EOFException("the file ends before byte " + (extent.offset() + extent.length()));
      }
    } catch (EOFException cutOff) {
      throw Failure.damaged(
          "%s is damaged: %s; bring it back from a copy, or pack again",
          file.path(), String.valueOf(cutOff.getMessage()));
    } catch (IOException failed) {
      throw Failure.io("read " + file.path(), failed);
    }
  }

  private static long readLength(Extent extent, NativeFile file) {
    int page = NativeFile.DIRECT_ALIGNMENT;
    return file.isDirect() ? (extent.length() + page - 1) & -page : extent.length();
  }

  private NativeFile open(int chunk) {
    Path path = folder.resolve(ChunkFormat.fileName(chunk));
    NativeFile file;
    try {
      file = way == Way.DIRECT ? NativeFile.openDirect(path) : NativeFile.openToRead(path);
      if (way == Way.CACHED_AT_RANDOM) {
        file.expectRandomReads();
      }
    } catch (PosixException failed) {
      throw failed.number() == PosixException.ENOENT
          ? missing(path)
          : Failure.io("open " + path, failed);
    } catch (IOException failed) {
      throw Failure.io("open " + path, failed);
    }
    try (Arena arena = Arena.ofConfined()) {
      long size = file.size();
      if (size != catalog.chunkFileBytes(chunk)) {
        throw Failure.damaged(
            "%s is damaged: it has %d bytes and should have %d; bring it back from a copy, or pack"
                + " again",
            path, size, catalog.chunkFileBytes(chunk));
      }
      MemorySegment head = arena.allocate(NativeFile.DIRECT_ALIGNMENT, NativeFile.DIRECT_ALIGNMENT);
      fill(new Extent(chunk, 0, ChunkFormat.HEADER_BYTES), head, file);
      ChunkHeader.read(head, path.toString());
      if (ChunkHeader.checksumIn(head) != catalog.chunkHeaderChecksum(chunk)) {
        throw Failure.damaged(
            "%s belongs to another dataset than its snapshot; bring it back from a copy, or pack"
                + " again",
            path);
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
    files.close();
  }
}
