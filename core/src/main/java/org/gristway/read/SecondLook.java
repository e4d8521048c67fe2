package org.gristway.read;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Set;
import java.util.function.Consumer;
import org.gristway.Failure;
import org.gristway.chunk.ChunkFormat;
import org.gristway.chunk.ChunkSource;
import org.gristway.chunk.Extent;
import org.gristway.chunk.LittleEndian;
import org.gristway.os.PosixException;
import org.gristway.snapshot.Snapshot;

/**
 * What is done about a sample that has not arrived as it was packed: it is read once more, on its
 * own and through the page cache, and if that does not help it is damaged and named.
 */
final class SecondLook {

  /**
   * What the system says of a bad medium or a damaged file system: EIO, ENODATA, EBADMSG, EILSEQ,
   * EUCLEAN, EREMOTEIO. Anything else is the surroundings.
   */
  private static final Set<Integer> BAD_MEDIUM = Set.of(5, 61, 74, 84, 117, 121);

  private final Path folder;
  private final Snapshot snapshot;
  private final ChunkSource source;
  private final boolean strict;
  private final Consumer<String> notices;

  SecondLook(
      Path folder,
      Snapshot snapshot,
      ChunkSource source,
      boolean strict,
      Consumer<String> notices) {
    this.folder = folder;
    this.snapshot = snapshot;
    this.source = source;
    this.strict = strict;
    this.notices = notices;
  }

  /**
   * Reads a sample again; true if it has arrived now.
   *
   * @throws Failure if it has not and damage is not accepted, or if the storage is out of reach
   */
  boolean arrives(long sample, MemorySegment target) {
    Extent location = snapshot.location(sample);
    String what = "fails its checksum";
    try {
      source.fill(location, target);
      if (LittleEndian.checksum(target.asSlice(0, location.length()))
          == snapshot.checksum(sample)) {
        return true;
      }
    } catch (Failure failure) {
      if (!isDamage(failure)) {
        throw failure;
      }
      what = "cannot be read (" + failure.getMessage() + ")";
    }
    Path chunk = folder.resolve(ChunkFormat.fileName(location.chunk()));
    String message = chunk + " is damaged: sample '" + snapshot.key(sample) + "' " + what;
    if (strict) {
      throw Failure.damaged("%s; bring the file back from a copy, or pack again", message);
    }
    synchronized (notices) {
      // A failure's message is one line whatever the key is.
      notices.accept(
          String.valueOf(
              Failure.damaged("%s; another sample takes its place", message).getMessage()));
    }
    return false;
  }

  /** Reads a sample that nobody needs to be told about; true if it has arrived. */
  boolean isGood(long sample, MemorySegment target) {
    try {
      source.fill(snapshot.location(sample), target);
      return LittleEndian.checksum(target) == snapshot.checksum(sample);
    } catch (Failure failure) {
      if (!isDamage(failure)) {
        throw failure;
      }
      return false;
    }
  }

  /** True if the data is at fault: reading on without it makes sense. */
  private static boolean isDamage(Failure failure) {
    return (failure.kind() == Failure.Kind.DAMAGED
        || (failure.getCause() instanceof PosixException cause
            && BAD_MEDIUM.contains(cause.number())));
  }
}
