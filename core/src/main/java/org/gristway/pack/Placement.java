package org.gristway.pack;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import org.gristway.Failure;
import org.gristway.chunk.ChunkFormat;
import org.gristway.chunk.ChunkHeader;
import org.gristway.chunk.ChunkTable;
import org.gristway.chunk.ChunkTable.ShapeNumbers;
import org.gristway.chunk.DatasetId;
import org.gristway.chunk.LittleEndian;
import org.gristway.chunk.SampleEntry;
import org.gristway.os.NativeFile;
import org.gristway.pack.ListedSample.ShapeBook;
import org.gristway.spool.RecordBuffer;
import org.gristway.spool.Reordering;
import org.gristway.spool.SortedSpool;

/**
 * Where every sample goes, decided before any byte is copied: its chunk, its offset there, its id.
 *
 * <p>Samples are put in a random order that depends on the seed alone, and that order is cut into
 * chunks. So neighbours in a chunk are strangers, whatever order the source has, and a chunk's
 * samples stand in it in no order either: an extent, which is a small piece of a chunk, is as mixed
 * as the chunk.
 */
final class Placement implements AutoCloseable {

  // u32 rank in the order of the chunks, u32 chunk, u64 offset in its data, u32 checksum once known
  private static final int RECORD = 20;

  private final long chunkSize;
  private final ShapeBook book;
  private final SortedSpool order;
  private final Arena arena = Arena.ofShared();
  private final Path scratch;
  private MemorySegment places = MemorySegment.NULL;
  private List<ChunkHeader> chunks = List.of();
  private final RecordBuffer key = new RecordBuffer();
  private final RecordBuffer record = new RecordBuffer();
  private long count;
  private long nameBytes;
  private long dataBytes;

  Placement(Path scratch, long chunkSize, ShapeBook book) {
    this.chunkSize = chunkSize;
    this.book = book;
    this.order = new SortedSpool(scratch.resolve("order"));
    this.scratch = scratch;
  }

  /**
   * Adds the next sample in source order.
   *
   * @param rank its place in the order of the chunks, in relation to other samples' ranks
   */
  void add(ListedSample sample, int label, long rank) throws IOException {
    record
        .clear()
        .putNumber(count)
        .putBytes(sample.key())
        .putNumber(book.number(sample.shape()))
        .putNumber(label + 1L)
        .putNumber(sample.inClass() ? 1 : 0);
    for (long length : sample.lengths()) {
      record.putNumber(length);
    }
    order.add(key.clear().putSortable(rank), record);
    nameBytes += sample.key().length + 8L * (sample.lengths().length - 1);
    dataBytes += sample.length();
    count++;
  }

  long count() {
    return count;
  }

  long nameBytes() {
    return nameBytes;
  }

  long dataBytes() {
    return dataBytes;
  }

  /** Steps through the samples in the order of the chunks. */
  final class Cursor {
    private final SortedSpool.Cursor sorted = order.sorted();
    private long ordinal;

    private Cursor() throws IOException {}

    /** The next sample, its checksum not yet known. */
    SampleEntry next() throws IOException {
      if (!sorted.next()) {
        throw new IllegalStateException("there are no more samples");
      }
      RecordBuffer from = sorted.payload();
      ordinal = from.takeNumber();
      byte[] name = from.takeBytes();
      var shape = book.shape((int) from.takeNumber());
      int label = (int) from.takeNumber() - 1;
      boolean named = from.takeNumber() == 1;
      long[] ends = new long[shape.size()];
      long end = 0;
      for (int i = 0; i < ends.length; i++) {
        end += from.takeNumber();
        ends[i] = end;
      }
      return new SampleEntry(name, shape, ends, label, named, 0);
    }
  }

  Cursor inChunkOrder() throws IOException {
    return new Cursor();
  }

  /** Cuts the order into chunks. All samples have been added. */
  void cut(DatasetId dataset, int version, int firstChunk, long firstSample) throws IOException {
    if (firstSample + count > ChunkFormat.MAX_SAMPLES) {
      throw Failure.wrongCall(
          "a dataset holds at most %d samples; make several", ChunkFormat.MAX_SAMPLES);
    }
    List<ChunkHeader> cut = new ArrayList<>();
    try (Reordering back = new Reordering(scratch.resolve("back"), count)) {
      Cursor cursor = inChunkOrder();
      Growing chunk = new Growing();
      long first = firstSample;
      for (long i = 0; i < count; i++) {
        SampleEntry sample = cursor.next();
        if (!chunk.hasRoomFor(sample)) {
          cut.add(chunk.header(dataset, version, firstChunk + cut.size(), first, false));
          first += chunk.samples;
          chunk = new Growing();
        }
        back.put(cursor.ordinal, (long) cut.size() << 32 | i, chunk.data);
        chunk.add(sample);
      }
      cut.add(chunk.header(dataset, version, firstChunk + cut.size(), first, true));
      writePlaces(back.inOrder());
    }
    chunks = List.copyOf(cut);
  }

  private void writePlaces(Reordering.Cursor cursor) throws IOException {
    Path path = scratch.resolve("places");
    try (NativeFile file = NativeFile.create(path)) {
      file.allocate(count * RECORD);
    }
    try (FileChannel channel =
        FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      places = channel.map(FileChannel.MapMode.READ_WRITE, 0, count * RECORD, arena);
    }
    for (long at = 0; cursor.next(); at += RECORD) {
      LittleEndian.putLong(places, at, cursor.first());
      LittleEndian.putLong(places, at + 8, cursor.second());
    }
  }

  /** A chunk that samples are still being added to. */
  private final class Growing {
    private final ShapeNumbers shapes = new ShapeNumbers();
    private long samples;
    private long names;
    private long data;

    boolean hasRoomFor(SampleEntry sample) {
      long shapeBytes = shapes.bytes();
      if (!shapes.has(sample.shape())) {
        shapeBytes += ChunkTable.shapeBytes(sample.shape()).length;
      }
      long table = ChunkFormat.dataOffset(samples + 1, shapeBytes, names + sample.nameBytes());
      return samples == 0
          || (table <= ChunkFormat.MAX_TABLE_BYTES
              && table + data + sample.length() + ChunkFormat.FOOTER_BYTES <= chunkSize);
    }

    void add(SampleEntry sample) {
      shapes.of(sample.shape());
      samples++;
      names += sample.nameBytes();
      data += sample.length();
    }

    ChunkHeader header(DatasetId dataset, int version, int number, long first, boolean last) {
      return new ChunkHeader(
          number, version, last, dataset, first, samples, shapes.bytes(), names, data, 0, 0);
    }
  }

  /** The layout of the chunks; their tables' checksums are not known yet. */
  List<ChunkHeader> chunks() {
    return chunks;
  }

  /** Which of {@link #chunks()} a sample, counted in source order, goes to. */
  int chunk(long ordinal) {
    return LittleEndian.getInt(places, ordinal * RECORD + 4);
  }

  /** Where in its chunk's file a sample goes. */
  long offset(long ordinal) {
    return chunks.get(chunk(ordinal)).dataOffset()
        + LittleEndian.getLong(places, ordinal * RECORD + 8);
  }

  /** Tells the checksum of a sample's bytes, once they are copied. Any thread. */
  void setChecksum(long ordinal, int checksum) {
    LittleEndian.putInt(places, ordinal * RECORD + 16, checksum);
  }

  /** Steps through the checksums in the order of the chunks. */
  final class Checksums implements AutoCloseable {
    private final Reordering reordering = new Reordering(scratch.resolve("checksums"), count);
    private final Reordering.Cursor sorted;

    private Checksums() throws IOException {
      for (long at = 0; at < count * RECORD; at += RECORD) {
        long rank = LittleEndian.getUnsignedInt(places, at);
        reordering.put(rank, LittleEndian.getUnsignedInt(places, at + 16), 0);
      }
      this.sorted = reordering.inOrder();
    }

    int next() throws IOException {
      if (!sorted.next()) {
        throw new IllegalStateException("there are no more samples");
      }
      return (int) sorted.first();
    }

    @Override
    public void close() throws IOException {
      reordering.close();
    }
  }

  /** All checksums have been told. */
  Checksums checksumsInChunkOrder() throws IOException {
    return new Checksums();
  }

  @Override
  public void close() throws IOException {
    arena.close();
    order.close();
  }
}
