package org.gristway.pack;

import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.zip.GZIPInputStream;
import java.util.zip.ZipException;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveInputStream;
import org.gristway.Failure;
import org.gristway.chunk.Key;
import org.gristway.os.Posix;
import org.jspecify.annotations.Nullable;

/**
 * A tar, in the order of its entries. Of a plain one, the listing notes where each file's bytes
 * are, and any number of readers fetch them from there; a compressed one is gone through twice from
 * the front, by one reader.
 */
final class TarSource implements Source {

  private static final int BLOCK = 512;
  private static final int NAME_FIELD = 100; // bytes at the front of an entry's header

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
      long modified = Posix.status(bytes(path), true).modified();
      for (TarArchiveEntry entry = entries.next(); entry != null; entry = entries.next()) {
        byte[] name = entry.getName().getBytes(StandardCharsets.UTF_8);
        if (entry.getName().indexOf('\ufffd') >= 0) {
          visitor.unreadable(name, "its name is not UTF-8");
        } else if (!entries.isText(entry)) {
          visitor.unreadable(entries.nameField(), "its name is not UTF-8");
        } else if (entry.isLink() || entry.isSymbolicLink()) {
          visitor.leftOut(name, "it is a link; links in archives are not followed");
        } else if (entry.isSparse() && !compressed) {
          visitor.unreadable(name, "it is stored as a sparse file; pack the extracted files");
        } else if (!isFile(entry)) {
          visitor.leftOut(name, "it is neither a file nor a folder");
        } else {
          long place = compressed ? entries.count() : entries.position();
          byte[] key = Source.entryKey(path, name);
          visitor.file(key, entry.getRealSize(), place, modified, entries::content);
        }
      }
      entries.checkEnd();
    }
  }

  /** The library takes all that has no other name in it for a file, pipes and devices too. */
  private static boolean isFile(TarArchiveEntry entry) {
    return entry.isFile()
        && !entry.isFIFO()
        && !entry.isCharacterDevice()
        && !entry.isBlockDevice();
  }

  private static byte[] bytes(Path path) {
    return path.toString().getBytes(StandardCharsets.UTF_8);
  }

  /** Steps through the entries that are not folders; what is wrong with the archive is one line. */
  private final class Entries implements AutoCloseable {
    private final PositionedInput file = new PositionedInput(path);
    private final InputStream gzip;
    private final LastBlock in;
    private final TarArchiveInputStream tar;
    private long count;
    private long dataEnd;

    Entries() throws IOException {
      try {
        this.gzip = compressed ? new WholeGzip(file) : file;
        this.in = new LastBlock(compressed ? new BufferedInputStream(gzip, 1 << 16) : file);
      } catch (ZipException | EOFException notCompressed) {
        file.close();
        throw Failure.damaged("%s is not a gzip file, or is cut off", path);
      }
      // With larger blocks it would skip what follows the end within the last one, unseen.
      this.tar = new TarArchiveInputStream(in, BLOCK, BLOCK, "UTF-8");
    }

    @Nullable TarArchiveEntry next() throws IOException {
      try {
        TarArchiveEntry entry = nextOfAny();
        while (entry != null && entry.isDirectory()) {
          entry = nextOfAny();
        }
        count++;
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

    private @Nullable TarArchiveEntry nextOfAny() throws IOException {
      TarArchiveEntry entry = tar.getNextEntry();
      if (entry == null) {
        return null;
      }
      if (!entry.isCheckSumOK()) {
        throw Failure.damaged("%s is damaged: a header in it fails its checksum", path);
      }
      if (!compressed) {
        boolean hasData = !entry.isLink() && !entry.isSymbolicLink();
        dataEnd = file.position() + (hasData ? entry.getSize() : 0);
        if (entry.getSize() < 0 || dataEnd > file.size()) {
          throw cutOff();
        }
      }
      return entry;
    }

    /**
     * The library puts question marks where a name is no text; whether the name had them already is
     * seen in the entry's header, unless the name was too long for it.
     */
    boolean isText(TarArchiveEntry entry) throws IOException {
      if (entry.getName().indexOf('?') < 0 || Key.isUtf8(nameField())) {
        return true;
      }
      CharsetDecoder marking =
          StandardCharsets.UTF_8
              .newDecoder()
              .onMalformedInput(CodingErrorAction.REPLACE)
              .replaceWith("?");
      String shown = marking.decode(ByteBuffer.wrap(nameField())).toString();
      return !entry.getName().endsWith(shown);
    }

    /** The name in the current entry's header, as it stands there. */
    byte[] nameField() {
      int end = 0;
      while (end < NAME_FIELD && in.bytes[end] != 0) {
        end++;
      }
      return Arrays.copyOf(in.bytes, end);
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
      try {
        return tar.readAllBytes();
      } catch (EOFException | ZipException damaged) {
        throw cutOff();
      }
    }

    int read(byte[] target, int length) throws IOException {
      try {
        return Math.max(0, tar.read(target, 0, length));
      } catch (EOFException | ZipException damaged) {
        throw cutOff();
      }
    }

    /**
     * A tar ends with blocks of zeros, and nothing else follows: one that ends with a file is the
     * front of a longer one, and zeros in the middle would hide all behind them.
     */
    void checkEnd() throws IOException {
      try {
        if (compressed) {
          if (!isZero(in.bytes)) {
            throw cutOff();
          }
          checkZerosToTheEnd(in);
          if (!((WholeGzip) gzip).isAtEnd(file)) {
            throw Failure.damaged("%s is damaged: what follows its first part is no gzip", path);
          }
        } else {
          file.seek((dataEnd + BLOCK - 1) / BLOCK * BLOCK);
          byte[] mark = file.readNBytes(BLOCK);
          if (mark.length < BLOCK || !isZero(mark)) {
            throw cutOff();
          }
          checkZerosToTheEnd(file);
        }
      } catch (EOFException | ZipException damaged) {
        throw cutOff();
      }
    }

    private void checkZerosToTheEnd(InputStream rest) throws IOException {
      byte[] piece = new byte[1 << 16];
      for (int count = rest.read(piece); count > 0; count = rest.read(piece)) {
        if (!isZero(Arrays.copyOf(piece, count))) {
          throw Failure.damaged(
              "%s goes on behind its end: it is damaged, or several tars in one; extract it with"
                  + " 'tar --ignore-zeros' and pack the folder",
              path);
        }
      }
    }

    private static boolean isZero(byte[] bytes) {
      for (byte b : bytes) {
        if (b != 0) {
          return false;
        }
      }
      return true;
    }

    @Override
    public void close() throws IOException {
      tar.close();
      file.close();
    }
  }

  /** Tells whether all of a file was decompressed: the JDK takes a damaged rest for the end. */
  private static final class WholeGzip extends GZIPInputStream {
    private static final int TRAILER = 8;

    WholeGzip(InputStream in) throws IOException {
      super(in, 1 << 16);
    }

    boolean isAtEnd(PositionedInput file) throws IOException {
      return file.position() == file.size() && inf.getRemaining() <= TRAILER;
    }
  }

  /** Keeps the block that was read last: when the library has found an entry, its header. */
  private static final class LastBlock extends FilterInputStream {
    private final byte[] bytes = new byte[BLOCK];

    LastBlock(InputStream in) {
      super(in);
    }

    @Override
    public int read(byte[] target, int offset, int length) throws IOException {
      int count = super.read(target, offset, length);
      int kept = Math.clamp(count, 0, BLOCK);
      System.arraycopy(bytes, kept, bytes, 0, BLOCK - kept);
      System.arraycopy(target, offset + Math.max(count, 0) - kept, bytes, BLOCK - kept, kept);
      return count;
    }
  }

  private static void checkUnchanged(long modified, long listed) throws ChangedException {
    if (modified != listed) {
      throw new ChangedException();
    }
  }

  private Failure cutOff() {
    return Failure.damaged("%s is cut off: copy it again from where it came", path);
  }

  /** Reads any file from where it lies. */
  private final class SeekReader implements Reader {
    private final int fd = Posix.open(bytes(path), Posix.READ_ONLY);
    private long position;
    private long end;
    private long modified;

    SeekReader() throws IOException {}

    @Override
    public void begin(ListedSample sample, int part) {
      position = sample.places()[part];
      end = position + sample.lengths()[part];
      modified = sample.marks()[part];
    }

    @Override
    public int read(MemorySegment target) throws IOException {
      int count = Posix.read(fd, target, Math.min(target.byteSize(), end - position), position);
      position += count;
      return count;
    }

    @Override
    public void end() throws IOException {
      checkUnchanged(Posix.status(fd).modified(), modified);
    }

    @Override
    public void close() throws IOException {
      Posix.close(fd);
    }
  }

  /** Goes through the archive again, stopping at the files that are asked for. */
  private final class StreamReader implements Reader {
    private final Entries entries = new Entries();
    private final byte[] bytes = new byte[1 << 16];
    private long modified;

    StreamReader() throws IOException {}

    @Override
    public void begin(ListedSample sample, int part) throws IOException {
      modified = sample.marks()[part];
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
    public void end() throws IOException {
      checkUnchanged(Posix.status(TarSource.bytes(path), true).modified(), modified);
    }

    @Override
    public void close() throws IOException {
      entries.close();
    }
  }
}
