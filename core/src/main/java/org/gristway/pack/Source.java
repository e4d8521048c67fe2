package org.gristway.pack;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import org.gristway.Failure;
import org.gristway.chunk.Key;

/**
 * What is packed: files with names, in an order of the source's own. It is gone through twice, once
 * to list and once to copy, and never held in memory.
 */
interface Source {

  /** What the user called it. */
  Path path();

  /** Tells every file, in source order. One thread. */
  void list(FileVisitor visitor) throws IOException;

  /**
   * True if files can be read in any order, by several readers at once; false if one reader must
   * take them in source order.
   */
  boolean isSeekable();

  /** Begins to copy. Each reader belongs to one thread. */
  Reader open() throws IOException;

  /** Hears what is in a source. */
  interface FileVisitor {

    /**
     * A file.
     *
     * @param name its path inside the source
     * @param length its bytes
     * @param place where the source finds it again
     * @param mark by which the source knows that it has not changed
     * @param content reads the file now; used only for what must be known before copying
     */
    void file(byte[] name, long length, long place, long mark, Content content) throws IOException;

    /** A folder at the top of the source: a class, even if nothing is in it. */
    void topFolder(byte[] name) throws IOException;

    /** Something that should have been a sample and cannot be one. */
    void unreadable(byte[] name, String why) throws IOException;

    /**
     * Something that is no sample and is left out.
     *
     * @param name with a slash at its end if it is a folder
     */
    void leftOut(byte[] name, String why) throws IOException;
  }

  /** A file's bytes, for the few that are read while listing. */
  interface Content {
    byte[] read() throws IOException;
  }

  /** Reads files that were listed. */
  interface Reader extends AutoCloseable {

    /** Goes to the beginning of a part. */
    void begin(ListedSample sample, int part) throws IOException;

    /** Reads some bytes of it; 0 only at its end. */
    int read(MemorySegment target) throws IOException;

    /** Fails if the part is not what was listed: longer, or changed meanwhile. */
    void end() throws IOException;

    @Override
    void close() throws IOException;
  }

  /** A file that is no longer what it was when it was listed. */
  final class ChangedException extends IOException {
    ChangedException() {
      super("it changed while being packed");
    }
  }

  /**
   * The source at a path: a folder, a tar or a zip.
   *
   * @param scratch for temporary files
   * @param threads that may look at files at once
   */
  static Source of(Path path, Path scratch, int threads) {
    if (!Files.exists(path)) {
      throw Failure.wrongCall("there is no source at %s", path);
    }
    if (Files.isDirectory(path)) {
      return new FolderSource(path, scratch, threads);
    }
    String name = path.getFileName().toString().toLowerCase(Locale.ROOT);
    if (name.endsWith(".tar")) {
      return new TarSource(path, false, scratch);
    }
    if (name.endsWith(".tar.gz") || name.endsWith(".tgz")) {
      return new TarSource(path, true, scratch);
    }
    if (name.endsWith(".zip")) {
      return new ZipSource(path);
    }
    throw Failure.wrongCall(
        "%s cannot be packed: sources are folders, .tar, .tar.gz and .zip files", path);
  }

  /**
   * The key of an archive's entry, or a failure: a name that leads out of the archive is no
   * accident, and nothing else of such an archive can be trusted either.
   */
  static byte[] entryKey(Path archive, byte[] name) {
    byte[] key = withoutDots(name);
    if (Key.isUtf8(key)) {
      String fault = Key.fault(key);
      if (fault != null) {
        throw Failure.damaged(
            "%s is refused: its entry '%s' cannot be a key: %s", archive, Key.escape(name), fault);
      }
    }
    return key;
  }

  /** Tells the folder at the top that an archive's entry is in, or is, if there is one. */
  static void tellTopFolder(byte[] name, FileVisitor visitor) throws IOException {
    byte[] top = Key.isUtf8(name) ? Key.firstFolder(withoutDots(name)) : null;
    if (top != null && Key.fault(top) == null) {
      visitor.topFolder(top);
    }
  }

  /** A name without the "./" that some programs put in front. */
  static byte[] withoutDots(byte[] name) {
    int start = 0;
    while (start + 1 < name.length && name[start] == '.' && name[start + 1] == '/') {
      start += 2;
    }
    return Arrays.copyOfRange(name, start, name.length);
  }
}
