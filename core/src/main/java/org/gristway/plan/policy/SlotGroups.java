package org.gristway.plan.policy;

import java.util.Arrays;
import org.gristway.plan.Draws;
import org.gristway.plan.PlanInputs;

/**
 * The slots of a lane under {@link RedirectPositionPolicy}, and what is in them. The lane's pieces
 * of extents, here called parts, form groups of equally many; the samples at one position of all
 * parts of a group have one slot. A piece with more samples than there are slots is several parts.
 *
 * <p>Samples are named by their index in the lane, parts first and the large samples, which have no
 * slot, behind; and by their rank within the plan's set. It costs some 40 bytes a part, and a bit a
 * sample.
 */
final class SlotGroups {

  /** Is told what a part that is opened brings in. */
  interface Filled {
    void with(int slot, long sample);
  }

  private static final int EMPTY = -1;

  private final Draws ties;
  private final int perGroup; // parts

  private int nearBits;
  private int[] partNear = new int[0]; // by index, without these bits: its part, or one before

  // By part.
  private int parts;
  private long[] firstIndex = new long[16]; // of its samples in the lane; one more than parts
  private long[] firstSample = new long[16];
  private int[] wordAt = new int[0]; // one more than parts
  private long[] brought = new long[0]; // a bit a sample, from the part's word on

  /**
   * The parts that owe something, with their lengths in the upper half, group by group: those that
   * owe all they have, the shortest first, and behind them those that have brought in some. Of the
   * former there are many, and those of one length are as good as each other.
   */
  private long[] owing = new long[0];

  // By group.
  private int[] untouched = new int[0]; // parts that owe all they have
  private int[] begun = new int[0]; // parts that owe some of it
  private int[] firstSlot = new int[0]; // one more than groups
  private int[] emptyAt = new int[0];
  private long[] empty = new long[0]; // a bit a slot, from the group's word on

  private int[] heldPart = new int[0]; // by slot: whose sample it holds
  private long[] large = new long[16];
  private int largeCount;
  private long openings;

  // While the best part is looked for.
  private int bestAt;
  private long bestFills;
  private long bestOwed;
  private int equals; // as good as the best

  SlotGroups(PlanInputs inputs, Deal deal, int rank, int slots, Draws ties) {
    this.ties = ties;
    cut(inputs, deal, rank, slots);
    this.perGroup = parts == 0 ? 1 : partsPerGroup(slots);
    layOutParts();
    layOutGroups();
  }

  private void cut(PlanInputs inputs, Deal deal, int rank, int slots) {
    for (long piece = 0; piece < deal.pieces(rank); piece++) {
      Deal.Run run = deal.run(rank, piece);
      if (run.count() == 1
          && inputs.cuts().isLarge(inputs.layout().location(inputs.samples().nth(run.first())))) {
        large = room(large, largeCount);
        large[largeCount++] = run.first();
        continue;
      }
      for (int from = 0; from < run.count(); from += slots) {
        int count = Math.min(slots, run.count() - from);
        firstSample = room(firstSample, parts);
        firstIndex = room(firstIndex, parts + 1);
        firstSample[parts] = run.first() + from;
        firstIndex[parts + 1] = firstIndex[parts] + count;
        parts++;
      }
    }
  }

  private static long[] room(long[] array, int at) {
    return at < array.length ? array : Arrays.copyOf(array, 2 * array.length);
  }

  /** The fewest parts a group with which all groups' slots fit. */
  private int partsPerGroup(int slots) {
    int low = (int) Math.max(1, Math.ceilDiv(pooled(), slots));
    int high = parts; // one group: a part has no more samples than there are slots
    while (low < high) {
      // Not monotonous where parts differ in length, but a count that fits is found all the same.
      int middle = (low + high) >>> 1;
      if (slotsNeeded(middle) <= slots) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return high;
  }

  private long slotsNeeded(int partsEach) {
    long needed = 0;
    for (int first = 0; first < parts; first += partsEach) {
      needed += longest(first, partsEach);
    }
    return needed;
  }

  private int longest(int first, int count) {
    int most = 0;
    for (int part = first; part < Math.min(parts, first + count); part++) {
      most = Math.max(most, length(part));
    }
    return most;
  }

  private int length(int part) {
    return (int) (firstIndex[part + 1] - firstIndex[part]);
  }

  private static int words(int bits) {
    return (bits + 63) >>> 6;
  }

  private void layOutParts() {
    wordAt = new int[parts + 1];
    for (int part = 0; part < parts; part++) {
      wordAt[part + 1] = wordAt[part] + words(length(part));
    }
    nearBits = 64 - Long.numberOfLeadingZeros(pooled() / Math.max(1, parts)); // one entry a part
    partNear = new int[(int) (pooled() >>> nearBits) + 1];
    for (int part = 0, near = 0; part < parts; part++) {
      for (; (long) near << nearBits < firstIndex[part + 1]; near++) {
        partNear[near] = part;
      }
    }
    brought = new long[wordAt[parts]];
    for (int part = 0; part < parts; part++) {
      // Bits behind the last sample count as brought in, so that nobody looks for them.
      int last = length(part) & 63;
      if (last > 0) {
        brought[wordAt[part + 1] - 1] = -1L << last;
      }
    }
  }

  private void layOutGroups() {
    int groups = Math.ceilDiv(parts, perGroup);
    firstSlot = new int[groups + 1];
    emptyAt = new int[groups];
    int at = 0;
    for (int group = 0; group < groups; group++) {
      int longest = longest(group * perGroup, perGroup);
      firstSlot[group + 1] = firstSlot[group] + longest;
      emptyAt[group] = at;
      at += words(longest);
    }
    empty = new long[at];
    Arrays.fill(empty, -1);
    begun = new int[groups];
    untouched = new int[groups];
    owing = new long[parts];
    for (int part = 0; part < parts; part++) {
      owing[part] = (long) length(part) << Integer.SIZE | part;
    }
    for (int group = 0; group < groups; group++) {
      int first = group * perGroup;
      untouched[group] = Math.min(parts - first, perGroup);
      Arrays.sort(owing, first, first + untouched[group]);
    }
    heldPart = new int[firstSlot[groups]];
    Arrays.fill(heldPart, EMPTY);
  }

  /** All samples of the lane. */
  long samples() {
    return pooled() + largeCount;
  }

  /** Those that have a slot. */
  long pooled() {
    return firstIndex[parts];
  }

  int slots() {
    return heldPart.length;
  }

  int parts() {
    return parts;
  }

  /** How many times parts have been opened. */
  long openings() {
    return openings;
  }

  /** The sample at an index of {@link #pooled} or more. */
  long large(long index) {
    return large[(int) (index - pooled())];
  }

  /** The part that has the sample at an index below {@link #pooled}. */
  int partOf(long index) {
    int part = partNear[(int) (index >>> nearBits)];
    while (firstIndex[part + 1] <= index) {
      part++;
    }
    return part;
  }

  /** The sample of a part that has an index. */
  long sample(int part, long index) {
    return firstSample[part] + index - firstIndex[part];
  }

  /** The slot that the sample of a part with an index shares. */
  int slot(int part, long index) {
    return firstSlot[part / perGroup] + (int) (index - firstIndex[part]);
  }

  boolean isEmpty(int slot) {
    return heldPart[slot] == EMPTY;
  }

  /** Takes the sample out of a slot. */
  void take(int slot) {
    int group = heldPart[slot] / perGroup;
    int position = slot - firstSlot[group];
    heldPart[slot] = EMPTY;
    empty[emptyAt[group] + (position >>> 6)] |= 1L << position;
  }

  /**
   * Opens the part that fills an empty slot, and as many others as it can.
   *
   * @param asked the part that has the asked sample
   */
  void fill(int asked, int slot, Filled filled) {
    int group = asked / perGroup;
    int at = best(group, slot - firstSlot[group]);
    int part = (int) owing[at];
    openings++;
    long left = 0;
    for (int word = 0; word < wordAt[part + 1] - wordAt[part]; word++) {
      long bits = empty[emptyAt[group] + word] & ~brought[wordAt[part] + word];
      empty[emptyAt[group] + word] ^= bits;
      brought[wordAt[part] + word] |= bits;
      left |= ~brought[wordAt[part] + word];
      for (; bits != 0; bits &= bits - 1) {
        int position = (word << 6) + Long.numberOfTrailingZeros(bits);
        heldPart[firstSlot[group] + position] = part;
        filled.with(firstSlot[group] + position, firstSample[part] + position);
      }
    }
    move(group, at, left != 0);
  }

  /** Puts a part that was opened where it belongs among those that owe something. */
  private void move(int group, int at, boolean stillOwes) {
    long part = owing[at];
    int begins = group * perGroup + untouched[group];
    int end = begins + begun[group];
    if (at >= begins) {
      if (!stillOwes) {
        owing[at] = owing[end - 1];
        begun[group]--;
      }
      return;
    }
    System.arraycopy(owing, at + 1, owing, at, end - at - 1);
    untouched[group]--;
    if (stillOwes) {
      owing[end - 1] = part;
      begun[group]++;
    }
  }

  /**
   * Where the part is that owes its sample at a position and can bring in the largest share of what
   * it owes; of several, the one that brings in most; of those, any.
   */
  private int best(int group, int position) {
    bestAt = EMPTY;
    int begins = group * perGroup + untouched[group];
    int at = firstLonger(group, position);
    while (at < begins) {
      int length = (int) (owing[at] >>> Integer.SIZE);
      int end = firstLonger(group, length);
      consider(at, end - at, emptyBelow(group, length), length);
      at = end;
    }
    int word = position >>> 6;
    int slots = emptyAt[group];
    for (; at < begins + begun[group]; at++) {
      int part = (int) owing[at];
      int first = wordAt[part];
      int words = wordAt[part + 1] - first;
      if (word >= words || (brought[first + word] >>> position & 1) == 1) {
        continue;
      }
      long fills = 0;
      long owed = 0;
      for (int i = 0; i < words; i++) {
        long absent = ~brought[first + i];
        owed += Long.bitCount(absent);
        fills += Long.bitCount(absent & empty[slots + i]);
      }
      consider(at, 1, fills, owed);
    }
    return bestAt;
  }

  /** Of the parts of a group that owe all they have, where those begin that are longer. */
  private int firstLonger(int group, int length) {
    int first = group * perGroup;
    long key = (long) (length + 1) << Integer.SIZE;
    return -Arrays.binarySearch(owing, first, first + untouched[group], key - 1) - 1;
  }

  private long emptyBelow(int group, int length) {
    long sum = 0;
    int at = emptyAt[group];
    for (int left = length; left > 0; left -= 64) {
      sum += Long.bitCount(left >= 64 ? empty[at++] : empty[at] & ((1L << left) - 1));
    }
    return sum;
  }

  /** Parts beside each other that are as good. */
  private void consider(int at, int count, long fills, long owed) {
    long better = bestAt == EMPTY ? 1 : fills * bestOwed - bestFills * owed; // of two fractions
    if (better == 0) {
      better = fills - bestFills;
    }
    if (better < 0) {
      return;
    }
    equals = better > 0 ? count : equals + count;
    long any = ties.below(equals);
    if (any < count) {
      bestAt = at + (int) any;
      bestFills = fills;
      bestOwed = owed;
    }
  }
}
