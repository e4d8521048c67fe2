package org.gristway.read;

import java.lang.foreign.MemorySegment;
import org.gristway.chunk.ChunkSource;
import org.gristway.chunk.Extent;
import org.gristway.chunk.LittleEndian;
import org.gristway.plan.PlanStep;
import org.gristway.snapshot.Snapshot;

/**
 * What a lane keeps from epoch to epoch, and how it gets what was kept by it or by others. A sample
 * that is not where the plan has it is read from the store: the plan does not change. Keeping and
 * dropping is for the lane's thread, fetching for those that read.
 */
final class LaneCache {

  private final int lane;
  private final Snapshot snapshot;
  private final SampleCache cache;
  private final PeerCaches peers;
  private final Storage store;
  private final Tallies tallies;

  LaneCache(
      int lane,
      Snapshot snapshot,
      SampleCache cache,
      PeerCaches peers,
      Storage store,
      Tallies tallies) {
    this.lane = lane;
    this.snapshot = snapshot;
    this.cache = cache;
    this.peers = peers;
    this.store = store;
    this.tallies = tallies;
  }

  /** Keeps a sample, if there is room for it. */
  void keep(PlanStep.Keep keep, MemorySegment bytes) {
    cache.keep(lane, keep.sample(), keep.tier(), bytes);
  }

  void drop(PlanStep.Drop drop) {
    cache.drop(lane, drop.sample(), drop.tier());
  }

  /** Where to get a sample from: it is put where it stands in its pages. */
  ChunkSource fetching(PlanStep.Fetch fetch, long epoch) {
    return (pages, memory) -> {
      Extent location = snapshot.location(fetch.sample());
      long at = location.offset() - pages.offset();
      if (arrives(fetch, memory.asSlice(at, location.length()))) {
        tallies.countFetched(epoch, location.length());
      } else {
        tallies.countFallBack(epoch);
        store.reading(epoch, false).fill(pages, memory);
      }
    };
  }

  private boolean arrives(PlanStep.Fetch fetch, MemorySegment target) {
    PlanStep.Source source = fetch.source();
    if (source.peer() == PlanStep.Source.HERE) {
      return cache.copy(fetch.sample(), source.tier(), target);
    }
    return peers.fetch(source.peer(), fetch.sample(), source.tier(), target)
        && LittleEndian.checksum(target) == snapshot.checksum(fetch.sample());
  }
}
