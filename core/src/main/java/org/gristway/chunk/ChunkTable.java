package org.gristway.chunk;

import static org.gristway.chunk.ChunkFormat.ENTRY_BYTES;
import static org.gristway.chunk.ChunkFormat.FOOTER_BYTES;
import static org.gristway.chunk.ChunkFormat.HEADER_BYTES;
import static org.gristway.chunk.ChunkFormat.NAMED;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.gristway.Failure;
import org.gristway.os.NativeFile;
import org.jspecify.annotations.Nullable;

/**
 * A chunk's table, read and checked: its samples' entries in the order of their bytes.
 *
 * <p>Reading allocates at most {@link ChunkFormat#MAX_TABLE_BYTES} and accepts nothing that its
 * checksums or its own numbers contradict; what is wrong with a single key is told by {@link
 * #sample}. Immutable.
 */
public final class ChunkTable {

  private final String where;
  private final ChunkHeader header;
  private final int headerChecksum;
  private final MemorySegment table; // from the end of the header to the start of the data
  private final List<Shape> shapes;
  private final long entries;
  private final long names;

  private ChunkTable(String where, ChunkHeader header, int headerChecksum, MemorySegment table) {
    this.where = where;
    this.header = header;
    this.headerChecksum = headerChecksum;
    this.table = table;
    this.entries = header.shapeBytes();
    this.names = entries + header.sampleCount() * ENTRY_BYTES;
    this.shapes = readShapes();
    checkEntries();
  }

  /**
   * Reads a chunk's header, table and footer, in that order, and checks each.
   *
   * @param arena owns the table's memory; the table is usable while it is open
   */
  public static ChunkTable read(NativeFile file, Arena arena) throws IOException {
    String where = file.path().toString();
    long size = file.size();
    if (size < HEADER_BYTES + FOOTER_BYTES) {
      throw Failure.damaged("%s is damaged: its %d bytes are too few for a chunk", where, size);
    }
    MemorySegment head = arena.allocate(HEADER_BYTES);
    file.readFully(head, HEADER_BYTES, 0);
    ChunkHeader header = ChunkHeader.read(head, where);
    checkSize(header, size, where);
    int headerChecksum = ChunkHeader.checksumIn(head);
    MemorySegment footer = arena.allocate(FOOTER_BYTES);
    file.readFully(footer, FOOTER_BYTES, size - FOOTER_BYTES);
    ChunkFormat.checkFooter(footer, size, headerChecksum, where);
    long tableBytes = header.dataOffset() - HEADER_BYTES;
    MemorySegment table = arena.allocate(tableBytes);
    file.readFully(table, tableBytes, HEADER_BYTES);
    if (LittleEndian.checksum(table) != header.tableChecksum()) {
      throw Failure.damaged("%s is damaged: its table fails its checksum", where);
    }
    return new ChunkTable(where, header, headerChecksum, table);
  }

  /** A chunk of another size than its header says was cut off, or written to by somebody. */
  public static void checkSize(ChunkHeader header, long size, String where) {
    if (header.fileBytes() != size) {
      throw Failure.damaged(
          "%s is damaged: it has %d bytes and should have %d", where, size, header.fileBytes());
    }
  }

  public ChunkHeader header() {
    return header;
  }

  public int headerChecksum() {
    return headerChecksum;
  }

  public int sampleCount() {
    return (int) header.sampleCount();
  }

  /** Where the sample's bytes begin, from the start of the data. */
  public long start(int index) {
    return index == 0 ? 0 : end(index - 1);
  }

  /** Where the sample's bytes end, from the start of the data. */
  public long end(int index) {
    return LittleEndian.getLong(table, entry(index));
  }

  public int checksum(int index) {
    return LittleEndian.getInt(table, entry(index) + 12);
  }

  public int label(int index) {
    return LittleEndian.getInt(table, entry(index) + 16);
  }

  public Shape shape(int index) {
    return shapes.get(LittleEndian.getShort(table, entry(index) + 20));
  }

  /** All samples' keys and part ends, as a snapshot has them too. */
  public MemorySegment names() {
    return table.asSlice(names, header.nameBytes());
  }

  /**
   * The sample's entry.
   *
   * @throws Failure if its key is no key, or its parts overlap
   */
  public SampleEntry sample(int index) {
    long entry = entry(index);
    Shape shape = shape(index);
    long name = names + nameStart(index);
    int keyBytes = (int) (nameEnd(index) - nameStart(index)) - 8 * (shape.size() - 1);
    byte[] key = table.asSlice(name, keyBytes).toArray(ValueLayout.JAVA_BYTE);
    long[] partEnds = new long[shape.size()];
    for (int i = 0; i < partEnds.length - 1; i++) {
      partEnds[i] = LittleEndian.getLong(table, name + keyBytes + 8L * i);
    }
    partEnds[partEnds.length - 1] = end(index) - start(index);
    String fault = partsOrKeyFault(key, partEnds);
    if (fault != null) {
      throw damaged(index, fault);
    }
    return new SampleEntry(
        key,
        shape,
        partEnds,
        label(index),
        (LittleEndian.getShort(table, entry + 22) & NAMED) != 0,
        checksum(index));
  }

  private long entry(int index) {
    return entries + (long) index * ENTRY_BYTES;
  }

  private long nameStart(int index) {
    return index == 0 ? 0 : nameEnd(index - 1);
  }

  private long nameEnd(int index) {
    return LittleEndian.getUnsignedInt(table, entry(index) + 8);
  }

  private List<Shape> readShapes() {
    return readShapes(table.asSlice(0, header.shapeBytes()), where);
  }

  /** Reads shapes up to the end of {@code from}. */
  public static List<Shape> readShapes(MemorySegment from, String where) {
    List<Shape> shapes = new ArrayList<>();
    long at = 0;
    long size = from.byteSize();
    try {
      while (at < size) {
        int count = LittleEndian.getShort(from, at);
        at += 2;
        List<String> parts = new ArrayList<>();
        for (int i = 0; i < count; i++) {
          int length = LittleEndian.getShort(from, at);
          byte[] name = from.asSlice(at + 2, length).toArray(ValueLayout.JAVA_BYTE);
          parts.add(new String(name, StandardCharsets.UTF_8));
          at += 2 + length;
        }
        shapes.add(new Shape(parts));
      }
    } catch (IndexOutOfBoundsException tooShort) {
      throw Failure.damaged("%s is damaged: its part names end too early", where);
    } catch (Failure invalid) {
      throw Failure.damaged("%s is damaged: %s", where, String.valueOf(invalid.getMessage()));
    }
    return shapes;
  }

  /** The bytes that a shape takes in a table. */
  public static byte[] shapeBytes(Shape shape) {
    java.io.ByteArrayOutputStream out = new java.io.ByteArrayOutputStream();
    out.write(shape.size());
    out.write(shape.size() >>> 8);
    for (String part : shape.parts()) {
      byte[] name = part.getBytes(StandardCharsets.UTF_8);
      out.write(name.length);
      out.write(name.length >>> 8);
      out.writeBytes(name);
    }
    return out.toByteArray();
  }

  private void checkEntries() {
    long dataEnd = 0;
    long nameEnd = 0;
    for (int i = 0; i < sampleCount(); i++) {
      String fault = entryFault(i, dataEnd, nameEnd);
      if (fault != null) {
        throw damaged(i, fault);
      }
      dataEnd = end(i);
      nameEnd = nameEnd(i);
    }
    if (dataEnd != header.dataBytes() || nameEnd != header.nameBytes()) {
      throw Failure.damaged("%s is damaged: its table does not add up to its header", where);
    }
  }

  private @Nullable String entryFault(int index, long dataStart, long nameStart) {
    if (end(index) < dataStart || end(index) > header.dataBytes()) {
      return "its bytes lie outside the chunk";
    }
    if (nameEnd(index) < nameStart || nameEnd(index) > header.nameBytes()) {
      return "its names lie outside the table";
    }
    int shape = LittleEndian.getShort(table, entry(index) + 20);
    if (shape >= shapes.size()) {
      return "it has an unknown shape";
    }
    if (label(index) < SampleEntry.NO_LABEL) {
      return "its label is below -1";
    }
    if (nameEnd(index) - nameStart <= 8L * (shapes.get(shape).size() - 1)) {
      return "it has no key";
    }
    return null;
  }

  private @Nullable String partsOrKeyFault(byte[] key, long[] partEnds) {
    long last = 0;
    for (long end : partEnds) {
      if (end < last) {
        return "its parts overlap";
      }
      last = end;
    }
    String fault = Key.fault(key);
    return fault == null ? null : "its key is not one: " + fault;
  }

  private Failure damaged(int index, String fault) {
    return Failure.damaged("%s is damaged: entry %d of its table: %s", where, index, fault);
  }

  /** Numbers the shapes of a chunk or snapshot in the order in which they are first met. */
  public static final class ShapeNumbers {
    private final Map<Shape, Integer> numbers = new LinkedHashMap<>();
    private long bytes;

    public int of(Shape shape) {
      Integer known = numbers.get(shape);
      if (known != null) {
        return known;
      }
      if (numbers.size() == 0xffff) {
        throw Failure.wrongCall(
            "there are more than 65535 different lists of part names; is the text after the first"
                + " dot of these names really a part name? Rename the files, or pack a folder of"
                + " them without --parts stem");
      }
      int number = numbers.size();
      numbers.put(shape, number);
      bytes += shapeBytes(shape).length;
      if (bytes > ChunkFormat.MAX_TABLE_BYTES / 2) {
        throw Failure.wrongCall(
            "the different lists of part names take more than %d MiB; rename the files so that"
                + " samples share their part names",
            ChunkFormat.MAX_TABLE_BYTES >> 21);
      }
      return number;
    }

    public boolean has(Shape shape) {
      return numbers.containsKey(shape);
    }

    /** The bytes that all of them take in a table. */
    public long bytes() {
      return bytes;
    }

    public Iterable<Shape> inOrder() {
      return numbers.keySet();
    }
  }
}
