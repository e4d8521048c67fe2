package org.gristway.read;

import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.gristway.Failure;
import org.gristway.chunk.ChunkFormat;
import org.gristway.snapshot.Snapshot;

/**
 * How many samples of an epoch may be damaged, and what is said of those that are. The first few
 * are named; of more, there is a line each time that their number has doubled. Any thread may call.
 */
final class DamageLimit {

  /** Samples that are named in an epoch. */
  static final int NAMED = 10;

  /** Reading ahead is at most in the epoch behind the one that is delivered. */
  private static final int EPOCHS = 2;

  /** Samples of an epoch that are known by their number; of more, repeats count again. */
  private static final int KNOWN = 100_000;

  /** The damage of an epoch. */
  private static final class Found {
    final Set<Long> known = new HashSet<>();
    long count;
  }

  private final Path dataset;
  private final Snapshot snapshot;
  private final long samples;
  private final long most;
  private final Consumer<String> notices;
  private final TreeMap<Long, Found> epochs = new TreeMap<>();

  /**
   * @param samples of an epoch
   * @param most of them that may be damaged
   * @param notices told what is damaged
   */
  DamageLimit(Path dataset, Snapshot snapshot, long samples, long most, Consumer<String> notices) {
    this.dataset = dataset;
    this.snapshot = snapshot;
    this.samples = samples;
    this.most = most;
    this.notices = notices;
  }

  /**
   * Notes that a sample fails its checksum. One that is met again in its epoch counts once.
   *
   * @throws Failure (damaged) if too many do
   */
  synchronized void note(long sample, long epoch) {
    Found found = epochs.computeIfAbsent(epoch, _ -> new Found());
    if (epochs.size() > EPOCHS) {
      epochs.pollFirstEntry();
    }
    if (most == 0) {
      throw refusal(sample, epoch, 1);
    }
    if (found.known.size() < KNOWN ? !found.known.add(sample) : found.known.contains(sample)) {
      return;
    }
    found.count++;
    if (found.count > most) {
      throw refusal(sample, epoch, found.count);
    }
    if (found.count <= NAMED) {
      tell("%s; another sample takes its place", named(sample));
    } else if (found.count == NAMED + 1 || isDoubled(found.count)) {
      tell(
          "%d samples of epoch %d are damaged by now: others take their places, and only their"
              + " number is told; 'gristway verify %s' names all",
          found.count, epoch, dataset);
    }
  }

  private static boolean isDoubled(long count) {
    return count % NAMED == 0 && Long.bitCount(count / NAMED) == 1;
  }

  private Failure refusal(long sample, long epoch, long count) {
    if (most == 0) {
      return Failure.damaged("%s; bring the file back from a copy, or pack again", named(sample));
    }
    return Failure.damaged(
        "%s is the last of %d damaged samples of the %d in epoch %d, and at most %d may be (the limit"
            + " on damage): 'gristway verify %s' names all; bring their files back from a copy, or"
            + " pack again",
        named(sample), count, samples, epoch, most, dataset);
  }

  private String named(long sample) {
    Path chunk = dataset.resolve(ChunkFormat.fileName(snapshot.location(sample).chunk()));
    return chunk + " is damaged: sample '" + snapshot.key(sample) + "' fails its checksum";
  }

  private void tell(String format, Object... arguments) {
    // A failure's message is one line whatever the key is.
    String line = String.valueOf(Failure.damaged(format, arguments).getMessage());
    synchronized (notices) {
      notices.accept(line);
    }
  }
}
