package org.gristway.node;

import java.security.SecureRandom;
import java.util.concurrent.atomic.AtomicLong;
import org.gristway.handover.Batch;

/**
 * Some places of a batch, for one client. The batch's memory is given back when all of its pieces
 * are released.
 *
 * @param memory that the places are in
 * @param first place of the batch
 * @param count of places
 */
record Piece(Memory memory, int first, int count) {

  /** A batch, and how many pieces of it are in use or not given yet. */
  static final class Memory {
    final Batch batch;
    final int descriptor; // of the memory file that it is in
    final long serial; // of that file
    private final Runnable closed;
    private int pieces = 1;
    private boolean stays; // a client has left with a piece of it

    /**
     * @param closed is run when it is given back, unless a client has left with a piece of it
     */
    Memory(Batch batch, int descriptor, long serial, Runnable closed) {
      this.batch = batch;
      this.descriptor = descriptor;
      this.serial = serial;
      this.closed = closed;
    }

    private synchronized void add() {
      pieces++;
    }

    /** Notes that a client leaves with a piece of it; true if it is the first that does. */
    synchronized boolean isFirstToStay() {
      boolean isFirst = !stays;
      stays = true;
      return isFirst;
    }

    private void release() {
      boolean isLast;
      boolean isCounted;
      synchronized (this) {
        isLast = --pieces == 0;
        isCounted = !stays;
      }
      if (isLast) {
        batch.close();
        if (isCounted) {
          closed.run();
        }
      }
    }
  }

  /** From anywhere: a node that is started again must not come to those of the one before. */
  private static final AtomicLong SERIALS = new AtomicLong(new SecureRandom().nextLong() >>> 2);

  /** A number that tells a memory file from all others that this node has or had. */
  static long nextSerial() {
    return SERIALS.incrementAndGet();
  }

  /** All of a batch. */
  static Piece whole(Memory memory) {
    return new Piece(memory, 0, memory.batch.size());
  }

  /** The first places of it, which then count apart from the rest. */
  Piece head(int places) {
    memory.add();
    return new Piece(memory, first, places);
  }

  /** What is left behind a head. */
  Piece tail(int places) {
    return new Piece(memory, first + places, count - places);
  }

  /** Ends its use. */
  void release() {
    memory.release();
  }
}
