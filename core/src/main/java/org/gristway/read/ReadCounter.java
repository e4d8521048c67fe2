package org.gristway.read;

import java.util.Arrays;
import java.util.List;

/** What a loader counts for all to see. */
public enum ReadCounter {
  /** Epochs that every rank has received; batches, samples and bytes that ranks have received. */
  EPOCHS("epochs"),
  BATCHES("batches"),
  /**
   * Samples that were put into batches, and their bytes: a few batches ahead of what is received.
   */
  SAMPLES("samples"),
  BYTES("bytes"),
  /** Reads from storage and their bytes; those of extents that were read before, apart. */
  STORAGE_READS("storage-reads"),
  STORAGE_BYTES("storage-bytes"),
  REREAD_BYTES("reread-bytes"),
  /**
   * What was put into caches; got from them, and its bytes; missed there, and read from storage.
   */
  KEPT("kept"),
  FETCHED("fetched"),
  FETCHED_BYTES("fetched-bytes"),
  FALL_BACKS("fall-backs"),
  /**
   * The bytes of frames in use now and of what is kept in memory; of the handover, and the most
   * that it may take.
   */
  RESIDENT_BYTES("resident-bytes"),
  HANDOVER_BYTES("handover-bytes"),
  HANDOVER_LIMIT_BYTES("handover-limit-bytes"),
  /** Samples given in place of the requested one; to fill a place; damaged and left out. */
  REDIRECTED("redirected"),
  REPEATED("repeated"),
  DAMAGED("damaged"),
  /** Samples pushed to other ranks, and their bytes; got from others; those that came late. */
  PUSHED("pushed"),
  PUSHED_BYTES("pushed-bytes"),
  RECEIVED("received"),
  LATE("late"),
  /** The bytes that others have pushed and that wait for their step now. */
  WAITING_BYTES("waiting-bytes"),
  /** The time that trainers have waited for data: the one number that matters. */
  STALL_NANOS("stall-nanoseconds"),
  /** The time that lanes have waited for storage, for other ranks, and for trainers. */
  STORAGE_WAIT_NANOS("storage-wait-nanoseconds"),
  PEER_WAIT_NANOS("peer-wait-nanoseconds"),
  TRAINER_WAIT_NANOS("trainer-wait-nanoseconds");

  private final String text;

  ReadCounter(String text) {
    this.text = text;
  }

  /** Its name. */
  public String text() {
    return text;
  }

  /** True if it tells what is so now, and not what has been up to now. */
  public boolean isLevel() {
    return this == RESIDENT_BYTES
        || this == HANDOVER_BYTES
        || this == HANDOVER_LIMIT_BYTES
        || this == WAITING_BYTES;
  }

  static List<String> names() {
    return Arrays.stream(values()).map(ReadCounter::text).toList();
  }
}
