package org.gristway.dataset;

import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.stream.IntStream;
import org.gristway.Failure;
import org.gristway.chunk.ChunkFormat;
import org.gristway.chunk.ChunkHomes;
import org.gristway.chunk.DatasetId;
import org.gristway.chunk.LittleEndian;
import org.gristway.os.NativeFile;
import org.gristway.snapshot.Snapshot;

/**
 * That a folder holds only the chunks of one node, where {@code gristway place} has dealt those of
 * a dataset to several; its snapshots tell of all. It is the content of the file {@value
 * #FILE_NAME}:
 *
 * <pre>
 *        +----------------------------------------------------------------+
 *      0 | 64 bytes                                                       |
 *        |   0 u64 magic "GWPORTN\n"         32 u32 node, from 0          |
 *        |   8 u32 format version            36 u32 nodes                 |
 *        |  12 u32 dataset version           40 zeros                     |
 *        |  16 16 bytes snapshot id          60 u32 CRC-32C of bytes 0-59 |
 *        +----------------------------------------------------------------+
 * </pre>
 *
 * @param version of the dataset that was placed
 * @param snapshot its id
 * @param node whose chunks they are, from 0
 * @param nodes that the chunks were dealt to
 */
public record Portion(int version, DatasetId snapshot, int node, int nodes) {

  static final String FILE_NAME = "portion.gwp";

  private static final long MAGIC = ChunkFormat.magic("GWPORTN\n");
  private static final int FORMAT = 1;
  private static final int BYTES = 64;

  /** Says which portion a folder holds; nothing if it is a whole dataset. */
  static Optional<Portion> in(Path folder) {
    Path path = folder.resolve(FILE_NAME);
    if (!Files.exists(path)) {
      return Optional.empty();
    }
    try (Arena arena = Arena.ofConfined();
        NativeFile file = NativeFile.openToRead(path)) {
      MemorySegment bytes = arena.allocate(BYTES, 8);
      file.readFully(bytes, BYTES, 0);
      return Optional.of(read(bytes, path));
    } catch (EOFException cutOff) {
      throw damaged(path);
    } catch (IOException failed) {
      throw Failure.io("read " + path, failed);
    }
  }

  private static Portion read(MemorySegment from, Path path) {
    if (LittleEndian.getLong(from, 0) != MAGIC
        || LittleEndian.getInt(from, BYTES - 4)
            != LittleEndian.checksum(from.asSlice(0, BYTES - 4))) {
      throw damaged(path);
    }
    int format = LittleEndian.getInt(from, 8);
    if (format > FORMAT || format < 1) {
      throw Failure.wrongCall(
          "%s has portion format version %d, and this Gristway reads up to %d: use a newer Gristway",
          path, Integer.toUnsignedLong(format), FORMAT);
    }
    Portion portion =
        new Portion(
            LittleEndian.getInt(from, 12),
            new DatasetId(LittleEndian.getLong(from, 16), LittleEndian.getLong(from, 24)),
            LittleEndian.getInt(from, 32),
            LittleEndian.getInt(from, 36));
    if (portion.node < 0 || portion.node >= portion.nodes) {
      throw damaged(path);
    }
    return portion;
  }

  private static Failure damaged(Path path) {
    return Failure.damaged("%s is damaged: delete its folder, and place the dataset again", path);
  }

  /** Writes it to a folder that has none, and returns when it is durable. */
  public void write(Path folder) throws IOException {
    try (Arena arena = Arena.ofConfined();
        NativeFile file = NativeFile.create(folder.resolve(FILE_NAME))) {
      MemorySegment bytes = arena.allocate(BYTES, 8);
      LittleEndian.putLong(bytes, 0, MAGIC);
      LittleEndian.putInt(bytes, 8, FORMAT);
      LittleEndian.putInt(bytes, 12, version);
      LittleEndian.putLong(bytes, 16, snapshot.high());
      LittleEndian.putLong(bytes, 24, snapshot.low());
      LittleEndian.putInt(bytes, 32, node);
      LittleEndian.putInt(bytes, 36, nodes);
      LittleEndian.putInt(bytes, BYTES - 4, LittleEndian.checksum(bytes.asSlice(0, BYTES - 4)));
      file.write(bytes, BYTES, 0);
      file.sync();
    }
  }

  /** The chunks of this portion's node, of a version up to the one that was placed. */
  public IntStream chunks(Snapshot of) {
    ChunkHomes homes = ChunkHomes.deal(of.chunkCount(), of::chunkDataBytes, nodes);
    return IntStream.range(0, of.chunkCount()).filter(chunk -> homes.nodeOf(chunk) == node);
  }

  /** The failure for what needs all chunks, where a folder has only these. */
  Failure refusal(Path folder, String what) {
    return Failure.wrongCall(
        "%s holds only the chunks of %s, so it cannot be %s: use the dataset that it was placed from",
        folder, this, what);
  }

  /** Which node it is, in words. */
  @Override
  public String toString() {
    return "node " + node + " of " + nodes;
  }
}
