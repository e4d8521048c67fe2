package org.gristway.node;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.Consumer;
import org.gristway.Failure;
import org.gristway.dataset.Dataset;
import org.gristway.handover.HandoverRoom;
import org.gristway.plan.SampleSet;
import org.gristway.plan.World;
import org.gristway.read.Admission;
import org.gristway.read.PostOffice;
import org.gristway.read.ReadCounter;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;

/**
 * What the ranks of a machine are given from one dataset, with one choice of settings. Each rank is
 * fed by itself, from the moment it asks, so none waits for another. Any thread may call.
 */
final class Feeds implements AutoCloseable {

  private final Settings settings;
  private final Dataset dataset;
  private final Consumer<String> notices;
  private final AskedIndices asked;
  private final Job job;
  private final Admission admission; // of all ranks that will come
  // Looked at without a lock by those who read: whoever closes them holds it.
  private final Map<Integer, RankFeed> ranks = new ConcurrentSkipListMap<>();
  private final List<Runnable> kept = new ArrayList<>();
  private final EnumMap<ReadCounter, Long> counted = new EnumMap<>(ReadCounter.class); // and gone
  private @Nullable HandoverRoom exactRoom;
  private boolean closed;

  /**
   * @param version of the dataset, or 0 for the newest
   * @param snapshotId of that version, or an empty text for any
   */
  Feeds(Settings settings, int version, String snapshotId, Consumer<String> notices) {
    this.settings = settings;
    this.notices = notices;
    this.admission = new Admission(settings.ranksHere());
    this.dataset = Dataset.open(settings.path(), version, snapshotId);
    SampleSet named;
    try {
      dataset.snapshot().hold();
      named = settings.samples(dataset.size());
      this.job = new Job(settings, dataset.snapshot(), this::copyKept, notices);
    } catch (Throwable refused) {
      dataset.close();
      throw refused;
    }
    SampleSet set = named == null ? SampleSet.all(dataset.size()) : named;
    this.asked = new AskedIndices(set, dataset.size(), settings.ranks(), notices);
  }

  Settings settings() {
    return settings;
  }

  /** Refuses a client that wants another version than is read, or one with another content. */
  void checkSame(int version, String snapshotId) {
    if (version != 0 && version != dataset.snapshot().version()) {
      throw Failure.wrongCall(
          "this node reads version %d of %s, not %d: do all ranks name the same?",
          dataset.snapshot().version(), settings.path(), version);
    }
    dataset.refuseReplaced(snapshotId);
  }

  Dataset dataset() {
    return dataset;
  }

  AskedIndices asked() {
    return asked;
  }

  /** The other nodes of the job. */
  Job job() {
    return job;
  }

  /**
   * The batches of a rank, for one more client; reading begins with the first, once all nodes of
   * the job are there.
   */
  RankFeed attach(int rank, RankFeed.Client client, int batches) throws InterruptedException {
    return attach(rank, client, batches, job.office(client));
  }

  private synchronized RankFeed attach(
      int rank, RankFeed.Client client, int batches, PostOffice office) {
    if (closed) {
      throw Failure.environment("the node ends");
    }
    RankFeed known = ranks.get(rank);
    if (known == null) {
      known = new RankFeed(rank, settings, dataset, office, this::fetch, admission, notices);
      ranks.put(rank, known);
    }
    known.attach(client, batches);
    return known;
  }

  /** Where the batches are built that clients ask for exactly, each by itself. */
  synchronized HandoverRoom exactRoom() {
    if (exactRoom == null) {
      Snapshot snapshot = dataset.snapshot();
      exactRoom = admission.requests(snapshot, settings.options(0, snapshot), 0);
    }
    return exactRoom;
  }

  /** Copies what another rank keeps, of this node or of another. */
  private boolean fetch(int rank, long sample, int tier, MemorySegment target) {
    // Without a meeting nodes have no numbers, and still some ranks are here.
    return ranks.containsKey(rank) || isHere(rank)
        ? copyKept(rank, sample, tier, target)
        : job.caches().fetch(rank, sample, tier, target);
  }

  private boolean isHere(int rank) {
    World nodes = settings.nodes();
    return nodes.nodeOf(rank) == nodes.node();
  }

  /** Copies what a rank of this node keeps. */
  private boolean copyKept(int rank, long sample, int tier, MemorySegment target) {
    RankFeed feed = ranks.get(rank);
    return feed != null && feed.copyKept(sample, tier, target);
  }

  /** Tells that a client is gone. What a rank has read ahead goes with its last one. */
  void detach(RankFeed feed, RankFeed.Client client) {
    synchronized (this) {
      if (closed || !feed.detach(client) || !ranks.values().remove(feed)) {
        return;
      }
      feed.counters()
          .forEach(
              (counter, value) -> counted.merge(counter, counter.isLevel() ? 0 : value, Long::sum));
    }
    feed.close();
    job.leave(feed.rank());
  }

  /** What all ranks together have counted. */
  synchronized Map<ReadCounter, Long> counters() {
    Map<ReadCounter, Long> sums = new EnumMap<>(counted);
    for (RankFeed feed : ranks.values()) {
      feed.counters().forEach((counter, value) -> sums.merge(counter, value, Long::sum));
    }
    return sums;
  }

  /**
   * Takes over memory that a client uses after it has left: it is released when all reading ends.
   */
  synchronized void keep(Collection<Runnable> releases) {
    kept.addAll(releases);
  }

  @Override
  public synchronized void close() {
    closed = true;
    ranks.values().forEach(RankFeed::close);
    job.close(); // when no rank pushes or waits any more
    kept.forEach(Runnable::run);
    dataset.close();
  }
}
