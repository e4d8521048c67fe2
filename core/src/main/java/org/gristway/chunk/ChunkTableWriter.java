package org.gristway.chunk;

import static org.gristway.chunk.ChunkFormat.ENTRY_BYTES;
import static org.gristway.chunk.ChunkFormat.FOOTER_BYTES;
import static org.gristway.chunk.ChunkFormat.HEADER_BYTES;
import static org.gristway.chunk.ChunkFormat.NAMED;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.gristway.chunk.ChunkTable.ShapeNumbers;
import org.gristway.os.NativeFile;

/**
 * Writes all of a chunk but its data: header, table and footer, once every sample's checksum is
 * known. The layout, fixed before the data was written, comes in the header; the entries that
 * follow must add up to it.
 */
public final class ChunkTableWriter implements AutoCloseable {

  private final Arena arena = Arena.ofConfined();
  private final ChunkHeader layout;
  private final MemorySegment front; // header and table
  private final ShapeNumbers shapes = new ShapeNumbers();
  private final long entries;
  private final long names;
  private long dataEnd;
  private long nameEnd;
  private long count;

  /**
   * @param layout the chunk's header, its table's checksum not yet known
   */
  public ChunkTableWriter(ChunkHeader layout) {
    this.layout = layout;
    this.front = arena.allocate(layout.dataOffset(), 8);
    this.entries = HEADER_BYTES + layout.shapeBytes();
    this.names = entries + layout.sampleCount() * ENTRY_BYTES;
  }

  /** Adds the next sample, in the order of their bytes. */
  public void add(SampleEntry sample) {
    long entry = entries + count * ENTRY_BYTES;
    long name = names + nameEnd;
    MemorySegment.copy(MemorySegment.ofArray(sample.key()), 0, front, name, sample.key().length);
    for (int i = 0; i < sample.partEnds().length - 1; i++) {
      LittleEndian.putLong(front, name + sample.key().length + 8L * i, sample.partEnds()[i]);
    }
    dataEnd += sample.length();
    nameEnd += sample.nameBytes();
    LittleEndian.putLong(front, entry, dataEnd);
    LittleEndian.putInt(front, entry + 8, (int) nameEnd);
    LittleEndian.putInt(front, entry + 12, sample.checksum());
    LittleEndian.putInt(front, entry + 16, sample.label());
    LittleEndian.putShort(front, entry + 20, shapes.of(sample.shape()));
    LittleEndian.putShort(front, entry + 22, sample.named() ? NAMED : 0);
    count++;
  }

  /**
   * Writes it all into the chunk's file; returns the header's checksum.
   *
   * @param before the checksum of the header of the chunk before it, or 0
   */
  public int write(NativeFile file, int before) throws IOException {
    long at = HEADER_BYTES;
    for (Shape shape : shapes.inOrder()) {
      byte[] bytes = ChunkTable.shapeBytes(shape);
      MemorySegment.copy(MemorySegment.ofArray(bytes), 0, front, at, bytes.length);
      at += bytes.length;
    }
    if (at != entries
        || count != layout.sampleCount()
        || nameEnd != layout.nameBytes()
        || dataEnd != layout.dataBytes()) {
      throw new IllegalStateException("the entries of " + file.path() + " miss its layout");
    }
    ChunkHeader header =
        new ChunkHeader(
            layout.number(),
            layout.version(),
            layout.last(),
            layout.dataset(),
            layout.firstSample(),
            layout.sampleCount(),
            layout.shapeBytes(),
            layout.nameBytes(),
            layout.dataBytes(),
            LittleEndian.checksum(front.asSlice(HEADER_BYTES)),
            before);
    int checksum = header.write(front);
    file.write(front, front.byteSize(), 0);
    MemorySegment footer = arena.allocate(FOOTER_BYTES, 8);
    ChunkFormat.writeFooter(footer, header.fileBytes(), checksum);
    file.write(footer, FOOTER_BYTES, header.fileBytes() - FOOTER_BYTES);
    return checksum;
  }

  @Override
  public void close() {
    arena.close();
  }
}
