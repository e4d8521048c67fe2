package org.gristway.dataset;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import org.gristway.Failure;
import org.gristway.Progress;
import org.gristway.chunk.ChunkHeader;
import org.gristway.chunk.ChunkTable;
import org.gristway.os.Folders;
import org.gristway.os.NativeFile;
import org.gristway.snapshot.SnapshotWriter;

/**
 * Makes every snapshot of a dataset anew from its chunks, byte for byte as it was. A snapshot that
 * is there and right is left alone; a wrong one is replaced once its successor is complete.
 */
public final class Rebuilder {

  /**
   * What was done.
   *
   * @param written versions whose snapshot was written
   * @param unchanged versions whose snapshot was right already
   * @param loose chunks behind the last complete version: an append was cut short, or the rest of
   *     its chunks are lost
   */
  public record Report(List<Integer> written, List<Integer> unchanged, List<Integer> loose) {}

  private final DatasetFolder folder;
  private final Progress progress;

  private Rebuilder(DatasetFolder folder, Progress progress) {
    this.folder = folder;
    this.progress = progress;
  }

  /** Rebuilds the snapshots of the dataset in a folder. */
  public static Report rebuild(Path path, Progress progress) {
    DatasetFolder folder = DatasetFolder.at(path);
    try (DatasetFolder.Change change = folder.change()) {
      return new Rebuilder(folder, progress).run(change);
    } catch (IOException failed) {
      throw Failure.io("rebuild the snapshot of " + path, failed);
    }
  }

  private Report run(DatasetFolder.Change change) throws IOException {
    Path scratch = change.scratch();
    ChunkList chunks = ChunkList.read(folder);
    if (chunks.complete() == 0) {
      throw Failure.damaged(
          "%s cannot be rebuilt: no chunk is marked as the last of version 1, so at least that one"
              + " is missing",
          folder.path());
    }
    int newest = folder.versions().isEmpty() ? 0 : folder.versions().last();
    if (newest > chunks.complete()) {
      throw Failure.damaged(
          "%s cannot be rebuilt: it has a snapshot of version %d, but the chunks only of %d; bring"
              + " the missing chunks back from a copy",
          folder.path(), newest, chunks.complete());
    }
    List<Integer> written = new ArrayList<>();
    List<Integer> unchanged = new ArrayList<>();
    for (int version = 1; version <= chunks.complete(); version++) {
      Path fresh = write(scratch, version, chunks.upTo(version));
      Path old = folder.snapshot(version);
      if (Files.exists(old) && Files.mismatch(old, fresh) == -1) {
        unchanged.add(version);
      } else {
        Files.move(fresh, old, StandardCopyOption.ATOMIC_MOVE);
        written.add(version);
      }
    }
    Folders.sync(folder.path());
    progress.end();
    return new Report(written, unchanged, change.clearKilledAppend(chunks.headers().size()));
  }

  private Path write(Path scratch, int version, List<ChunkHeader> chunks) throws IOException {
    ChunkHeader last = chunks.getLast();
    long samples = last.firstSample() + last.sampleCount();
    long nameBytes = chunks.stream().mapToLong(ChunkHeader::nameBytes).sum();
    progress.begin("rebuilding version " + version, Progress.Unit.SAMPLES, samples);
    try (SnapshotWriter writer =
        new SnapshotWriter(
            scratch, scratch, version, last.dataset(), samples, chunks.size(), nameBytes)) {
      for (ChunkHeader header : chunks) {
        add(writer, header.number());
      }
      writer.index();
      writer.finish();
      return writer.path();
    }
  }

  private void add(SnapshotWriter writer, int number) throws IOException {
    try (Arena arena = Arena.ofConfined();
        NativeFile file = NativeFile.openToRead(folder.chunk(number))) {
      ChunkTable table = ChunkTable.read(file, arena);
      ChunkHeader header = table.header();
      writer.addChunk(
          header.dataOffset(), header.fileBytes(), header.version(), table.headerChecksum());
      for (int i = 0; i < table.sampleCount(); i++) {
        writer.add(table.sample(i));
        writer.setChecksum(header.firstSample() + i, table.checksum(i));
      }
      progress.advance(table.sampleCount());
    }
  }
}
