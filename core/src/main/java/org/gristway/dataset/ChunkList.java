package org.gristway.dataset;

import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.SortedSet;
import org.gristway.Failure;
import org.gristway.chunk.ChunkFormat;
import org.gristway.chunk.ChunkHeader;
import org.gristway.chunk.ChunkTable;
import org.gristway.chunk.FolderChunkStore;
import org.gristway.os.NativeFile;
import org.jspecify.annotations.Nullable;

/**
 * What the chunks of a folder say of themselves, without any snapshot: which versions they make up,
 * and whether all of each are there.
 *
 * @param headers of the chunks of all complete versions, by number
 * @param complete how many versions are complete
 */
record ChunkList(List<ChunkHeader> headers, int complete) {

  /**
   * Reads the front of every chunk. A gap in the numbers is a missing chunk, and a failure; loose
   * chunks at the end are not, since an append that was cut short leaves the same.
   */
  static ChunkList read(DatasetFolder folder) {
    SortedSet<Integer> numbers = folder.chunkNumbers();
    List<ChunkHeader> headers = new ArrayList<>();
    int before = 0;
    int complete = 0;
    int kept = 0;
    for (int number : numbers) {
      if (number != headers.size()) {
        throw FolderChunkStore.missing(folder.chunk(headers.size()));
      }
      Front front = readFront(folder, number);
      ChunkHeader header = front.header;
      String fault = misfit(headers, header, complete, before);
      if (fault != null) {
        throw Failure.damaged("%s does not belong here: %s", folder.chunk(number), fault);
      }
      headers.add(header);
      before = front.checksum;
      if (header.last()) {
        complete++;
        kept = headers.size();
      }
    }
    return new ChunkList(List.copyOf(headers.subList(0, kept)), complete);
  }

  private static @Nullable String misfit(
      List<ChunkHeader> others, ChunkHeader header, int complete, int before) {
    if (header.number() != others.size()) {
      return "it is chunk " + header.number() + " under the name of " + others.size();
    }
    if (header.version() != complete + 1) {
      return "it is of version "
          + header.version()
          + " where version "
          + (complete + 1)
          + " should go on";
    }
    if (others.isEmpty()) {
      return header.firstSample() == 0 ? null : "its samples are not the first ones";
    }
    ChunkHeader last = others.getLast();
    if (!header.dataset().equals(last.dataset())) {
      return "it is of another dataset";
    }
    if (header.before() != before) {
      return "it was not written behind the chunk that stands before it";
    }
    return header.firstSample() == last.firstSample() + last.sampleCount()
        ? null
        : "its samples do not follow those of the chunk before it";
  }

  /** A chunk's header and its checksum, by which the next chunk knows it. */
  private record Front(ChunkHeader header, int checksum) {}

  private static Front readFront(DatasetFolder folder, int number) {
    try (Arena arena = Arena.ofConfined();
        NativeFile file = NativeFile.openToRead(folder.chunk(number))) {
      var head = arena.allocate(ChunkFormat.HEADER_BYTES, 8);
      file.readFully(head, ChunkFormat.HEADER_BYTES, 0);
      ChunkHeader header = ChunkHeader.read(head, file.path().toString());
      ChunkTable.checkSize(header, file.size(), file.path().toString());
      return new Front(header, ChunkHeader.checksumIn(head));
    } catch (EOFException cutOff) {
      throw Failure.damaged("%s is damaged: it is too short", folder.chunk(number));
    } catch (IOException failed) {
      throw Failure.io("read " + folder.chunk(number), failed);
    }
  }

  /** The chunks of all versions up to this one. */
  List<ChunkHeader> upTo(int version) {
    return headers.stream().filter(header -> header.version() <= version).toList();
  }
}
