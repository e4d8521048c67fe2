package org.gristway.pack;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.EOFException;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
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
 * the front, by one reader. A hard link is the file that it names.
 */
final class TarSource implements Source {

  private static final int BLOCK = 512;
  private static final int NAME_FIELD = 100; // bytes, at the front of an entry's header
  private static final int LINK_NAME_FIELD = 157; // where it begins; as long
  private static final AtomicLong SOURCES = new AtomicLong();

  /** Files that hard links name are kept in memory: so many fit well into a heap of 256 MiB. */
  private static final int MOST = 300_000;

  private final Path path;
  private final boolean compressed;
  private final Path putAside;

  /**
   * @param scratch for temporary files
   */
  TarSource(Path path, boolean compressed, Path scratch) {
    this.path = path;
    this.compressed = compressed;
    this.putAside = scratch.resolve("linked-" + SOURCES.getAndIncrement());
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
      Map<String, Found> linked = null;
      for (TarArchiveEntry entry = entries.next(); entry != null; entry = entries.next()) {
        byte[] name = entry.getName().getBytes(StandardCharsets.UTF_8);
        if (entries.hasTextName(entry)) {
          Source.tellTopFolder(name, visitor);
        }
        if (entry.isDirectory()) {
          continue;
        }
        if (entry.isLink() && linked == null) {
          linked = findLinked();
        }
        Found found = linked == null ? look(entries, entry) : look(entries, entry, linked);
        switch (found.kind) {
          case UNREADABLE ->
              visitor.unreadable(
                  entries.hasTextName(entry) ? name : entries.nameField(), found.why);
          case LEFT_OUT -> visitor.leftOut(name, found.why);
          case FILE -> {
            byte[] key = Source.entryKey(path, name);
            Content content = entry.isLink() ? () -> read(found) : entries::content;
            visitor.file(key, found.length, found.place, modified, content);
          }
        }
      }
      entries.checkEnd();
    }
  }

  private enum Kind {
    FILE,
    UNREADABLE,
    LEFT_OUT
  }

  /**
   * What an entry is to a dataset.
   *
   * @param entry its number in the archive
   * @param place of a file: where its bytes are in the archive, or which entry of a compressed one
   *     it is; negative if they were put aside
   * @param length of a file
   * @param why it is no file
   */
  private record Found(Kind kind, long entry, long place, long length, String why) {

    static Found unreadable(long entry, String why) {
      return new Found(Kind.UNREADABLE, entry, 0, 0, why);
    }
  }

  private Found look(Entries entries, TarArchiveEntry entry) throws IOException {
    long number = entries.count();
    if (!entries.hasTextName(entry)) {
      return Found.unreadable(number, "its name is not UTF-8");
    }
    if (entry.isSymbolicLink()) {
      String why = "it is a symbolic link; those in archives are not followed";
      return new Found(Kind.LEFT_OUT, number, 0, 0, why);
    }
    if (entry.isSparse() && !compressed) {
      return Found.unreadable(number, "it is stored as a sparse file; pack the extracted files");
    }
    if (!isFile(entry)) {
      return new Found(Kind.LEFT_OUT, number, 0, 0, "it is neither a file nor a folder");
    }
    long place = compressed ? number : entries.position();
    return new Found(Kind.FILE, number, place, entry.getRealSize(), "");
  }

  /**
   * The same, if the entry may be a hard link: that is the file that it names, which comes first.
   */
  private Found look(Entries entries, TarArchiveEntry entry, Map<String, Found> linked)
      throws IOException {
    if (!entry.isLink() || !entries.hasTextName(entry)) {
      return look(entries, entry);
    }
    String target = plainName(entry.getLinkName());
    Found found = entries.hasTextLinkName(entry) ? linked.get(target) : null;
    String what = "it is a hard link to '" + target + "', which ";
    if (found == null || found.entry >= entries.count()) {
      return Found.unreadable(entries.count(), what + "does not stand before it in the archive");
    }
    return found.kind == Kind.FILE
        ? found
        : new Found(found.kind, entries.count(), 0, 0, what + "is not packed: " + found.why);
  }

  private static String plainName(String name) {
    return new String(
        Source.withoutDots(name.getBytes(StandardCharsets.UTF_8)), StandardCharsets.UTF_8);
  }

  /**
   * Finds all that hard links name, by going through the archive twice more: few archives have any,
   * and most could not keep all their names in memory. Of a compressed archive, which can only be
   * read from the front, the bytes are put aside.
   */
  private Map<String, Found> findLinked() throws IOException {
    Set<String> names = new HashSet<>();
    try (Entries entries = new Entries()) {
      for (TarArchiveEntry entry = entries.next(); entry != null; entry = entries.next()) {
        if (entry.isLink() && names.add(plainName(entry.getLinkName())) && names.size() > MOST) {
          throw Failure.environment(
              "%s has hard links to more than %d files; extract it and pack the folder",
              path, MOST);
        }
      }
    }
    Map<String, Found> linked = new HashMap<>();
    try (Entries entries = new Entries();
        OutputStream aside =
            new BufferedOutputStream(
                compressed ? Files.newOutputStream(putAside) : OutputStream.nullOutputStream())) {
      long asideBytes = 0;
      for (TarArchiveEntry entry = entries.next(); entry != null; entry = entries.next()) {
        String name = plainName(entry.getName());
        if (names.contains(name) && !entry.isDirectory() && !linked.containsKey(name)) {
          Found found = look(entries, entry, linked);
          if (compressed && found.kind == Kind.FILE && !entry.isLink()) {
            entries.copy(found.length, aside);
            found = new Found(Kind.FILE, found.entry, -1 - asideBytes, found.length, "");
            asideBytes += found.length;
          }
          linked.put(name, found);
        }
      }
    }
    return linked;
  }

  /** Reads a file that a hard link names. */
  private byte[] read(Found found) throws IOException {
    try (PositionedInput in = new PositionedInput(found.place < 0 ? putAside : path)) {
      in.seek(found.place < 0 ? -1 - found.place : found.place);
      byte[] content = in.readNBytes((int) found.length);
      if (content.length < found.length) {
        throw cutOff();
      }
      return content;
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

  /** Steps through the entries; what is wrong with the archive is one line. */
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
        count++;
        return nextEntry();
      } catch (EOFException ended) {
        throw cutOff();
      } catch (ZipException damaged) {
        throw Failure.damaged("%s is damaged: %s", path, Failure.reason(damaged));
      } catch (IOException | IllegalArgumentException malformed) {
        throw Failure.damaged(
            "%s is cut off or not a tar: %s", path, String.valueOf(malformed.getMessage()));
      }
    }

    private @Nullable TarArchiveEntry nextEntry() throws IOException {
      TarArchiveEntry entry = tar.getNextEntry();
      if (entry == null) {
        return null;
      }
      if (!entry.isCheckSumOK()) {
        throw Failure.damaged("%s is damaged: a header in it fails its checksum", path);
      }
      if (!compressed) {
        dataEnd = file.position() + entry.getSize(); // pax may store the bytes with a link too
        if (entry.getSize() < 0 || dataEnd > file.size()) {
          throw cutOff();
        }
      }
      return entry;
    }

    /** True if the current entry's name is UTF-8. */
    boolean hasTextName(TarArchiveEntry entry) {
      return isText(entry.getName(), nameField());
    }

    /** True if the name that the current entry, a link, has for its target is UTF-8. */
    boolean hasTextLinkName(TarArchiveEntry entry) {
      return isText(entry.getLinkName(), field(LINK_NAME_FIELD));
    }

    /**
     * The library puts question marks where a name is no text; whether the name had them already is
     * seen in the entry's header, unless the name was too long for it.
     */
    private static boolean isText(String name, byte[] field) {
      if (name.indexOf('\ufffd') >= 0) {
        return false;
      }
      if (name.indexOf('?') < 0 || Key.isUtf8(field)) {
        return true;
      }
      CharsetDecoder marking =
          StandardCharsets.UTF_8
              .newDecoder()
              .onMalformedInput(CodingErrorAction.REPLACE)
              .replaceWith("?");
      try {
        return !name.endsWith(marking.decode(ByteBuffer.wrap(field)).toString());
      } catch (CharacterCodingException impossible) {
        throw new IllegalStateException(impossible); // what is malformed is replaced
      }
    }

    /** The name in the current entry's header, as it stands there. */
    byte[] nameField() {
      return field(0);
    }

    private byte[] field(int start) {
      int end = start;
      while (end < start + NAME_FIELD && in.bytes[end] != 0) {
        end++;
      }
      return Arrays.copyOfRange(in.bytes, start, end);
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

    /** Copies the current entry's bytes. */
    void copy(long length, OutputStream to) throws IOException {
      byte[] piece = new byte[1 << 16];
      for (long left = length; left > 0; ) {
        int count = read(piece, (int) Math.min(piece.length, left));
        if (count == 0) {
          throw cutOff();
        }
        to.write(piece, 0, count);
        left -= count;
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

  /** Bytes of a file, read from where they lie. */
  private static final class Stretch implements AutoCloseable {
    private final int fd;
    private long position;
    private long end;

    Stretch(Path file) throws IOException {
      this.fd = Posix.open(bytes(file), Posix.READ_ONLY);
    }

    void begin(long place, long length) {
      position = place;
      end = place + length;
    }

    int read(MemorySegment target) throws IOException {
      int count = Posix.read(fd, target, Math.min(target.byteSize(), end - position), position);
      position += count;
      return count;
    }

    long modified() throws IOException {
      return Posix.status(fd).modified();
    }

    @Override
    public void close() throws IOException {
      Posix.close(fd);
    }
  }

  /** Reads any file from where it lies. */
  private final class SeekReader implements Reader {
    private final Stretch archive = new Stretch(path);
    private long modified;

    SeekReader() throws IOException {}

    @Override
    public void begin(ListedSample sample, int part) {
      archive.begin(sample.places()[part], sample.lengths()[part]);
      modified = sample.marks()[part];
    }

    @Override
    public int read(MemorySegment target) throws IOException {
      return archive.read(target);
    }

    @Override
    public void end() throws IOException {
      checkUnchanged(archive.modified(), modified);
    }

    @Override
    public void close() throws IOException {
      archive.close();
    }
  }

  /**
   * Goes through the archive again, stopping at the files that are asked for. What hard links name
   * has been passed by then, and comes from where it was put aside.
   */
  private final class StreamReader implements Reader {
    private final Entries entries = new Entries();
    private final byte[] bytes = new byte[1 << 16];
    private @Nullable Stretch aside;
    private @Nullable Stretch current; // if the current part was put aside
    private long modified;

    StreamReader() throws IOException {}

    @Override
    public void begin(ListedSample sample, int part) throws IOException {
      modified = sample.marks()[part];
      long place = sample.places()[part];
      if (place < 0) {
        Stretch linked = aside == null ? new Stretch(putAside) : aside;
        linked.begin(-1 - place, sample.lengths()[part]);
        aside = linked;
        current = linked;
        return;
      }
      current = null;
      while (entries.count() < place) {
        if (entries.next() == null) {
          throw new ChangedException();
        }
      }
    }

    @Override
    public int read(MemorySegment target) throws IOException {
      if (current != null) {
        return current.read(target);
      }
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
      if (aside != null) {
        aside.close();
      }
    }
  }
}
