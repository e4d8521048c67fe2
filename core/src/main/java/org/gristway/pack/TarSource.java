package org.gristway.pack;

import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.zip.GZIPInputStream;
import java.util.zip.ZipException;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveInputStream;
import org.gristway.Failure;
import org.gristway.os.Posix;
import org.jspecify.annotations.Nullable;

/**
 * A tar, in the order of its entries. Of a plain one, the listing notes where each file's bytes
 * are, and any number of readers fetch them from there; a compressed one is gone through twice from
 * the front, by one reader.
 */
final class TarSource implements Source {

  private static final int BLOCK = 512;

  private final Path path;
  private final boolean compressed;

  TarSource(Path path, boolean compressed) {
    this.path = path;
    this.compressed = compressed;
  }

  @Override
  public Path path() {
    return path;
  }

  @Override
  public boolean isSeekable() {
    return !compressed;
  }

  @Override
  public Reader open() throws IOException {
    return compressed ? new StreamReader() : new SeekReader();
  }

  @Override
  public void list(FileVisitor visitor) throws IOException {
    try (Entries entries = new Entries()) {
      for (TarArchiveEntry entry = entries.next(); entry != null; entry = entries.next()) {
        byte[] name = entry.getName().getBytes(StandardCharsets.UTF_8);
        if (entry.getName().indexOf('\ufffd') >= 0) {
          visitor.unreadable(name, "its name is not UTF-8");
        } else if (entry.isLink() || entry.isSymbolicLink()) {
          visitor.leftOut(name, "it is a link; links in archives are not followed");
        } else if (entry.isSparse() && !compressed) {
          visitor.unreadable(name, "it is stored as a sparse file; pack the extracted files");
        } else if (!entry.isFile()) {
          visitor.leftOut(name, "it is neither a file nor a folder");
        } else {
          long place = compressed ? entries.count() : entries.position();
          byte[] key = Source.entryKey(path, name);
          visitor.file(key, entry.getSize(), place, 0, entries::content);
        }
      }
      entries.checkEnd();
    }
  }

  /** Steps through the entries that are not folders; what is wrong with the archive is one line. */
  private final class Entries implements AutoCloseable {
    private final PositionedInput file = new PositionedInput(path);
    private final InputStream in;
    private final TarArchiveInputStream tar;
    private long count;
    private long dataEnd;

    Entries() throws IOException {
      try {
        this.in =
            compressed
                ? new BufferedInputStream(new GZIPInputStream(file, 1 << 16), 1 << 16)
                : file;
      } catch (ZipException | EOFException notCompressed) {
        file.close();
        throw Failure.damaged("%s is not a gzip file, or is cut off", path);
      }
      this.tar = new TarArchiveInputStream(in, 20 * BLOCK, BLOCK, "UTF-8");
    }

    @Nullable TarArchiveEntry next() throws IOException {
      try {
        TarArchiveEntry entry = tar.getNextEntry();
        while (entry != null && entry.isDirectory()) {
          entry = tar.getNextEntry();
        }
        if (entry == null) {
          return null;
        }
        count++;
        if (!compressed && !entry.isLink() && !entry.isSymbolicLink()) {
          dataEnd = file.position() + entry.getSize();
          if (dataEnd > file.size()) {
            throw cutOff();
          }
        }
        return entry;
      } catch (EOFException ended) {
        throw cutOff();
      } catch (ZipException damaged) {
        throw Failure.damaged("%s is damaged: %s", path, Failure.reason(damaged));
      } catch (IOException | IllegalArgumentException malformed) {
        throw Failure.damaged(
            "%s is cut off or not a tar: %s", path, String.valueOf(malformed.getMessage()));
      }
    }

    /** The number of the current entry, from 1. */
    long count() {
      return count;
    }

    /** Where the current entry's bytes are in the file. */
    long position() {
      return file.position();
    }

    byte[] content() throws IOException {
      return tar.readAllBytes();
    }

    int read(byte[] target, int length) throws IOException {
      try {
        return Math.max(0, tar.read(target, 0, length));
      } catch (EOFException | ZipException damaged) {
        throw cutOff();
      }
    }

    /** A tar ends with blocks of zeros; one that ends with a file is the front of a longer one. */
    void checkEnd() throws IOException {
      if (compressed) {
        try {
          in.transferTo(OutputStream.nullOutputStream()); // up to gzip's own checksum
        } catch (EOFException | ZipException damaged) {
          throw cutOff();
        }
      } else if (file.size() < (dataEnd + BLOCK - 1) / BLOCK * BLOCK + BLOCK) {
        throw cutOff();
      }
    }

    @Override
    public void close() throws IOException {
      tar.close();
      file.close();
    }
  }

  private Failure cutOff() {
    return Failure.damaged("%s is cut off: copy it again from where it came", path);
  }

  /** Reads any file from where it lies. */
  private final class SeekReader implements Reader {
    private final int fd = Posix.open(path.toString().getBytes(StandardCharsets.UTF_8), 0);
    private long position;
    private long end;

    SeekReader() throws IOException {}

    @Override
    public void begin(ListedSample sample, int part) {
      position = sample.places()[part];
      end = position + sample.lengths()[part];
    }

    @Override
    public int read(MemorySegment target) throws IOException {
      int count = Posix.read(fd, target, Math.min(target.byteSize(), end - position), position);
      position += count;
      return count;
    }

    @Override
    public void end() {}

    @Override
    public void close() throws IOException {
      Posix.close(fd);
    }
  }

  /** Goes through the archive again, stopping at the files that are asked for. */
  private final class StreamReader implements Reader {
    private final Entries entries = new Entries();
    private final byte[] bytes = new byte[1 << 16];

    StreamReader() throws IOException {}

    @Override
    public void begin(ListedSample sample, int part) throws IOException {
      while (entries.count() < sample.places()[part]) {
        if (entries.next() == null) {
          throw new ChangedException();
        }
      }
    }

    @Override
    public int read(MemorySegment target) throws IOException {
      int count = entries.read(bytes, (int) Math.min(bytes.length, target.byteSize()));
      MemorySegment.copy(bytes, 0, target, ValueLayout.JAVA_BYTE, 0, count);
      return count;
    }

    @Override
    public void end() {}

    @Override
    public void close() throws IOException {
      entries.close();
    }
  }
}
