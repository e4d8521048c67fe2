package org.gristway.snapshot;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * The hash of keys in a snapshot's index; part of the format. Eight bytes at a time are mixed by a
 * 128-bit product folded onto itself; the rest (fewer than eight bytes, the first lowest) comes
 * last, with the length in its top byte.
 */
final class KeyHash {

  private static final VarHandle LONG =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final long SEED = 0x9e3779b97f4a7c15L;
  private static final long FACTOR = 0xd6e8feb86659fd93L;

  private KeyHash() {}

  static long of(byte[] key) {
    long state = SEED;
    int at = 0;
    for (; at + 8 <= key.length; at += 8) {
      state = fold(state ^ (long) LONG.get(key, at));
    }
    long rest = (long) key.length << 56;
    for (int i = 0; at + i < key.length; i++) {
      rest ^= (key[at + i] & 0xffL) << 8 * i;
    }
    return fold(fold(state ^ rest) + SEED);
  }

  private static long fold(long value) {
    return value * FACTOR ^ Math.unsignedMultiplyHigh(value, FACTOR);
  }

  /** The slot where the search for a hash begins, of {@code slots}. */
  static long home(long hash, long slots) {
    return Math.unsignedMultiplyHigh(hash, slots);
  }

  /** Sixteen bits of the hash that decide whether a slot's key is worth comparing. */
  static int fingerprint(long hash) {
    return (int) (hash & 0xffff);
  }
}
