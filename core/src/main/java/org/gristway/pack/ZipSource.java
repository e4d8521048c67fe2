package org.gristway.pack;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.zip.CRC32;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;
import org.gristway.Failure;
import org.gristway.chunk.Key;
import org.gristway.os.NativeFile;
import org.jspecify.annotations.Nullable;

/**
 * A zip, in the order of its directory. The directory is streamed, never held: the JDK's and other
 * libraries' readers keep all of it on the heap, which a zip of millions of files would fill.
 *
 * <p>Stored and deflated files are read; encrypted ones and other methods are unreadable. A file's
 * mark is the archive's own checksum of it, which is checked on the way.
 */
final class ZipSource implements Source {

  private static final int END_SIGNATURE = 0x06054b50;
  private static final int END64_LOCATOR_SIGNATURE = 0x07064b50;
  private static final int END64_SIGNATURE = 0x06064b50;
  private static final int ENTRY_SIGNATURE = 0x02014b50;
  private static final int LOCAL_SIGNATURE = 0x04034b50;
  private static final long IN_EXTRA = 0xffff_ffffL;
  private static final int STORED = 0;
  private static final int DEFLATED = 8;

  private final Path path;

  ZipSource(Path path) {
    this.path = path;
  }

  @Override
  public Path path() {
    return path;
  }

  @Override
  public boolean isSeekable() {
    return true;
  }

  /**
   * Where the directory is.
   *
   * @param start of the directory in the file
   * @param end of the directory in the file
   * @param entries how many it says it has; in the old form, only the low 16 bits of that
   * @param base what offsets in the archive are counted from: not 0 if something was put in front
   */
  private record Directory(long start, long end, long entries, long base) {}

  @Override
  public void list(FileVisitor visitor) throws IOException {
    try (PositionedInput in = new PositionedInput(path);
        EntryReader content = new EntryReader()) {
      Directory directory = findDirectory(in);
      in.seek(directory.start);
      long count = 0;
      for (; in.position() < directory.end; count++) {
        listEntry(in, directory.base, visitor, content);
      }
      if (in.position() != directory.end || (count & 0xffff) != (directory.entries & 0xffff)) {
        throw Failure.damaged("%s is damaged: its directory does not add up", path);
      }
    } catch (EOFException ended) {
      throw cutOff();
    }
  }

  private void listEntry(PositionedInput in, long base, FileVisitor visitor, EntryReader reader)
      throws IOException {
    ByteBuffer head = take(in, 46);
    if (head.getInt(0) != ENTRY_SIGNATURE) {
      throw Failure.damaged("%s is damaged: its directory is not one", path);
    }
    int flags = head.getShort(8);
    int method = head.getShort(10);
    long checksum = Integer.toUnsignedLong(head.getInt(16));
    long size = Integer.toUnsignedLong(head.getInt(24));
    boolean fromUnix = head.get(5) == 3;
    int mode = head.getShort(40) & 0xf000;
    byte[] name = take(in, head.getShort(28) & 0xffff).array();
    ByteBuffer extra = take(in, head.getShort(30) & 0xffff);
    take(in, head.getShort(32) & 0xffff);
    long[] wide = {size, Integer.toUnsignedLong(head.getInt(20)), offset(head)};
    readWide(extra, wide);
    Source.tellTopFolder(name, visitor);
    if (name.length > 0 && name[name.length - 1] == '/') {
      if (wide[0] > 0) {
        visitor.unreadable(name, "it is named as a folder, and has bytes as a file");
      }
    } else if (!Key.isUtf8(name)) {
      visitor.unreadable(name, "its name is not UTF-8");
    } else if ((flags & 1) != 0) {
      visitor.unreadable(name, "it is encrypted");
    } else if (method != STORED && method != DEFLATED) {
      visitor.unreadable(name, "it is compressed by method " + method + ", which is not supported");
    } else if (fromUnix && mode == 0xa000) {
      visitor.leftOut(name, "it is a symbolic link; those in archives are not followed");
    } else if (!isPossible(base + wide[2], wide[0], in.size())) {
      throw Failure.damaged("%s is damaged: its directory contradicts itself", path);
    } else {
      byte[] key = Source.entryKey(path, name);
      long place = base + wide[2];
      visitor.file(key, wide[0], place, checksum, () -> reader.readAll(place, wide[0], checksum));
    }
  }

  /** A file lies inside its archive, and deflate shrinks nothing to less than a 1032nd. */
  private static boolean isPossible(long place, long length, long archive) {
    return place >= 0 && place < archive && length >= 0 && length / 1100 <= archive;
  }

  private static long offset(ByteBuffer head) {
    return Integer.toUnsignedLong(head.getInt(42));
  }

  /** Sizes and offsets over 4 GiB stand in an extra field, only those that need to, in order. */
  private static void readWide(ByteBuffer extra, long[] values) {
    while (extra.remaining() >= 4) {
      int id = extra.getShort() & 0xffff;
      int length = Math.min(extra.getShort() & 0xffff, extra.remaining());
      ByteBuffer field = extra.slice(extra.position(), length).order(ByteOrder.LITTLE_ENDIAN);
      extra.position(extra.position() + length);
      if (id == 1) {
        for (int i = 0; i < values.length; i++) {
          if (values[i] == IN_EXTRA && field.remaining() >= 8) {
            values[i] = field.getLong();
          }
        }
      }
    }
  }

  private Directory findDirectory(PositionedInput in) throws IOException {
    long size = in.size();
    int tail = (int) Math.min(size, 22 + 0xffff);
    in.seek(size - tail);
    ByteBuffer bytes = take(in, tail);
    for (int at = tail - 22; at >= 0; at--) {
      if (bytes.getInt(at) == END_SIGNATURE
          && at + 22 + (bytes.getShort(at + 20) & 0xffff) == tail) {
        long entries = bytes.getShort(at + 10) & 0xffff;
        long length = Integer.toUnsignedLong(bytes.getInt(at + 12));
        long offset = Integer.toUnsignedLong(bytes.getInt(at + 16));
        long end = size - tail + at;
        if (entries == 0xffff || offset == IN_EXTRA || length == IN_EXTRA) {
          Directory wide = findWideDirectory(in, end);
          if (wide != null) {
            return wide;
          }
        }
        return directory(end - length, end, entries, end - length - offset);
      }
    }
    throw cutOff();
  }

  private @Nullable Directory findWideDirectory(PositionedInput in, long end) throws IOException {
    if (end < 20) {
      return null;
    }
    in.seek(end - 20);
    ByteBuffer locator = take(in, 20);
    if (locator.getInt(0) != END64_LOCATOR_SIGNATURE) {
      return null; // 65535 entries exactly, in the old form
    }
    long at = locator.getLong(8);
    if (at < 0 || at > end) {
      throw cutOff();
    }
    in.seek(at);
    ByteBuffer record = take(in, 56);
    if (record.getInt(0) != END64_SIGNATURE) {
      throw Failure.damaged("%s is damaged: the end of its directory is not one", path);
    }
    long start = record.getLong(48);
    return directory(start, start + record.getLong(40), record.getLong(32), 0);
  }

  private Directory directory(long start, long end, long entries, long base) {
    if (start < 0 || end < start || entries < 0 || base < 0) {
      throw cutOff();
    }
    return new Directory(start, end, entries, base);
  }

  private static ByteBuffer take(PositionedInput in, int count) throws IOException {
    byte[] bytes = in.readNBytes(count);
    if (bytes.length < count) {
      throw new EOFException();
    }
    return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  private Failure cutOff() {
    return Failure.damaged("%s is cut off or not a zip: copy it again from where it came", path);
  }

  @Override
  public Reader open() throws IOException {
    return new EntryReader();
  }

  private final class EntryReader implements Reader {
    private final NativeFile file = NativeFile.openToRead(path);
    private final Arena arena = Arena.ofConfined();
    private final MemorySegment input = arena.allocate(1 << 16);
    private final Inflater inflater = new Inflater(true);
    private final CRC32 checksum = new CRC32();
    private boolean deflated;
    private long position;
    private long left;
    private long expected;

    EntryReader() throws IOException {}

    @Override
    public void begin(ListedSample sample, int part) throws IOException {
      begin(sample.places()[part], sample.lengths()[part], sample.marks()[part]);
    }

    private void begin(long place, long length, long mark) throws IOException {
      file.readFully(input, 30, place);
      ByteBuffer head = input.asSlice(0, 30).asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
      if (head.getInt(0) != LOCAL_SIGNATURE) {
        throw new IOException("the archive is damaged there");
      }
      deflated = head.getShort(8) == DEFLATED;
      position = place + 30 + (head.getShort(26) & 0xffff) + (head.getShort(28) & 0xffff);
      left = length;
      expected = mark;
      inflater.reset();
      checksum.reset();
    }

    @Override
    public int read(MemorySegment target) throws IOException {
      int wanted = (int) Math.min(target.byteSize(), left);
      if (wanted == 0) {
        return 0;
      }
      int count = deflated ? inflate(target, wanted) : (int) file.read(target, wanted, position);
      if (!deflated) {
        position += count;
      }
      left -= count;
      checksum.update(target.asSlice(0, count).asByteBuffer());
      return count;
    }

    private int inflate(MemorySegment target, int wanted) throws IOException {
      try {
        while (true) {
          int count = inflater.inflate(target.asSlice(0, wanted).asByteBuffer());
          if (count > 0 || inflater.finished()) {
            return count;
          }
          long got = file.read(input, input.byteSize(), position);
          if (got == 0 || inflater.needsDictionary()) {
            throw new IOException("the archive is damaged there");
          }
          position += got;
          inflater.setInput(input.asSlice(0, got).asByteBuffer());
        }
      } catch (DataFormatException damaged) {
        throw new IOException("the archive is damaged there", damaged);
      }
    }

    @Override
    public void end() throws IOException {
      if (checksum.getValue() != expected) {
        throw new IOException("the archive is damaged there: the file fails the zip's checksum");
      }
    }

    byte[] readAll(long place, long length, long mark) throws IOException {
      begin(place, length, mark);
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      try (Arena scratch = Arena.ofConfined()) {
        MemorySegment piece = scratch.allocate(4096);
        for (int count = read(piece); count > 0; count = read(piece)) {
          out.writeBytes(piece.asSlice(0, count).toArray(ValueLayout.JAVA_BYTE));
        }
      }
      end();
      return out.toByteArray();
    }

    @Override
    public void close() throws IOException {
      inflater.end();
      arena.close();
      file.close();
    }
  }
}
