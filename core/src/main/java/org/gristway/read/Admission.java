package org.gristway.read;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.gristway.Failure;
import org.gristway.handover.HandoverRoom;
import org.gristway.os.MachineMemory;
import org.gristway.plan.policy.UnboundedPolicy;
import org.gristway.snapshot.Snapshot;

/**
 * Lets the loaders of a machine that read alike take memory. What all of them will take is compared
 * with what is free once, when the first is opened and before it reads anything: frames, what is
 * kept, the handover, and the tables of the snapshot. So either all fit or every one is refused,
 * and a loader that is opened anew is not refused for the memory that the others have by now. Any
 * thread may call.
 */
public final class Admission {

  /** The least that batches may take where nothing is said, for all ranks of the machine. */
  public static final long SMALLEST_HANDOVER = 64L << 20;

  /** What must be free for batches at least. */
  private static final long LEAST_FREE = 16L << 20;

  /** What a snapshot has in memory of each sample. */
  private static final long TABLE_BYTES = 24;

  private final int loaders;
  private long handover; // of each; 0 until what is free is known to be enough
  private final Map<Integer, List<HandoverRoom>> rooms = new HashMap<>(); // by first rank

  /**
   * @param loaders that will be opened on the machine
   */
  public Admission(int loaders) {
    this.loaders = loaders;
  }

  /**
   * The room of each rank of a loader in the handover. A loader that takes another's place has the
   * same rooms, in which the other's batches count until they are released.
   *
   * @param resident the bytes of a loader's frames and of what it keeps in memory
   * @throws Failure (environment) if that is more than is free, for all loaders together
   */
  synchronized List<HandoverRoom> rooms(Snapshot snapshot, LoaderOptions options, long resident) {
    if (handover == 0) {
      handover = admit(snapshot, options, resident);
    }
    return rooms.computeIfAbsent(
        options.world().firstRank(),
        _ -> {
          List<HandoverRoom> made = new ArrayList<>();
          for (int i = 0; i < options.ranks(); i++) {
            made.add(HandoverRoom.ofRank(handover / options.ranks()));
          }
          return made;
        });
  }

  /** The room of all who ask for samples by index, where each reads what it names by itself. */
  public synchronized HandoverRoom requests(
      Snapshot snapshot, LoaderOptions options, long resident) {
    if (handover == 0) {
      handover = admit(snapshot, options, resident);
    }
    return HandoverRoom.ofRequests(handover * loaders);
  }

  /** The bytes that the handover of each loader may take; refuses what does not fit. */
  private long admit(Snapshot snapshot, LoaderOptions options, long resident) {
    long available = MachineMemory.available();
    long tables = TABLE_BYTES * snapshot.sampleCount();
    long others = sum(times(resident, loaders), tables);
    long asked = options.handover();
    long all = sum(others, asked == 0 ? LEAST_FREE : times(asked, loaders));
    if (all > available) {
      throw asked > 0 && sum(others, LEAST_FREE) <= available
          ? handoverRefused(asked, available, available - others)
          : refused(all, available, options);
    }
    if (asked > 0) {
      return asked;
    }
    // Half of what is left: it is a bound, of which little is used where batches are small.
    long usual = Math.max(SMALLEST_HANDOVER, times(options.memory(), loaders));
    return Math.min(usual, (available - others) / 2) / loaders;
  }

  private Failure refused(long all, long available, LoaderOptions options) {
    return Failure.environment(
        "%d bytes of memory are not free here, only %d are%s: give it at most that much memory%s",
        all,
        available,
        loaders == 1 ? "" : " for all ranks of this machine",
        options.policy().equals(UnboundedPolicy.NAME)
            ? ", and another policy than '"
                + UnboundedPolicy.NAME
                + "', with which each reader holds everything"
            : "");
  }

  /** Refuses a handover that does not fit, where all else does. */
  private Failure handoverRefused(long asked, long available, long left) {
    return Failure.environment(
        "a handover of %d bytes%s does not fit into the %d bytes of memory that are free here: set"
            + " handover= (--handover) to at most %d bytes, or leave it out",
        times(asked, loaders),
        loaders == 1 ? "" : " for all ranks of this machine",
        available,
        left);
  }

  private static long times(long bytes, int count) {
    return bytes > Long.MAX_VALUE / count ? Long.MAX_VALUE : bytes * count;
  }

  private static long sum(long one, long other) {
    return one > Long.MAX_VALUE - other ? Long.MAX_VALUE : one + other;
  }
}
