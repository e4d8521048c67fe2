package org.gristway.handover;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * How much memory the batches on their way to trainers may take: a bound that is never exceeded,
 * counted in whole pages. Any thread may call.
 *
 * <p>That of a <b>rank</b> is for a lane that builds ahead: two batches must fit, one with the
 * trainer and one being built, and building waits for room. That of <b>requests</b> is for any
 * number of clients, each of which builds a batch when it asks for it: there nobody waits, since
 * who asks may be the one who has what is missing.
 */
public final class HandoverRoom {

  private static final long PAGE = 4096;

  /** Whoever uses a part of the room. */
  interface Holder {

    /** Gives back what it has and does not use. Any thread may call. */
    void giveBackIdle();
  }

  private final long most;
  private final boolean isOfRank;
  private final AtomicLong taken = new AtomicLong();
  private final Set<Holder> holders = ConcurrentHashMap.newKeySet(); // none of them waits

  private HandoverRoom(long most, boolean isOfRank) {
    this.most = most;
    this.isOfRank = isOfRank;
  }

  /** The room of one rank. */
  public static HandoverRoom ofRank(long most) {
    return new HandoverRoom(most, true);
  }

  /** The room of all who ask. */
  public static HandoverRoom ofRequests(long most) {
    return new HandoverRoom(most, false);
  }

  /** The bound. */
  public long most() {
    return most;
  }

  /** The bytes that are taken now. */
  public long taken() {
    return taken.get();
  }

  /** The largest batch that can ever be built. */
  long largest() {
    return (isOfRank ? most / 2 : most) / PAGE * PAGE;
  }

  /** True if whoever finds no room waits for some. */
  boolean isWaitedFor() {
    return isOfRank;
  }

  /** True if what nobody uses must not be kept: others may need it. */
  boolean isTight() {
    return !isOfRank && taken.get() > most / 2;
  }

  /** Notes who may have some of the room, and need not keep it. */
  void enter(Holder holder) {
    if (!isOfRank) {
      holders.add(holder);
    }
  }

  void leave(Holder holder) {
    holders.remove(holder);
  }

  /** Asks all others to give back what they do not use. The caller must hold no lock. */
  void callIn(Holder caller) {
    for (Holder holder : holders) {
      if (!holder.equals(caller)) {
        holder.giveBackIdle();
      }
    }
  }

  /** The memory that so many bytes take. */
  static long pages(long bytes) {
    return (bytes + PAGE - 1) / PAGE * PAGE;
  }

  /** The bytes that could be taken now. */
  long left() {
    return most - taken.get();
  }

  /** Takes the difference between an area's old size and its new one; false if there is no room. */
  boolean change(long before, long after) {
    long more = pages(after) - pages(before);
    long now = taken.get();
    while (more <= 0 || now <= most - more) {
      if (taken.compareAndSet(now, now + more)) {
        return true;
      }
      now = taken.get();
    }
    return false;
  }
}
