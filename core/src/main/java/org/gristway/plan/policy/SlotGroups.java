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

  // By part.
  private int parts;
  private long[] firstIndex = new long[16]; // of its samples in the lane; one more than parts
  private long[] firstSample = new long[16];
  private int[] owed = new int[0]; // samples that are not brought in yet
  private int[] wordAt = new int[0];
  private long[] brought = new long[0]; // a bit a sample, from the part's word on

  // By group.
  private int[] firstSlot = new int[0]; // one more than groups
  private int[] emptyAt = new int[0];
  private long[] empty = new long[0]; // a bit a slot, from the group's word on

  private int[] heldPart = new int[0]; // by slot: whose sample it holds
  private long[] large = new long[16];
  private int largeCount;
  private long openings;

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
    owed = new int[parts];
    wordAt = new int[parts];
    int at = 0;
    for (int part = 0; part < parts; part++) {
      owed[part] = length(part);
      wordAt[part] = at;
      at += words(length(part));
    }
    brought = new long[at];
    for (int part = 0; part < parts; part++) {
      // Bits behind the last sample count as brought in, so that nobody looks for them.
      int last = length(part) & 63;
      if (last > 0) {
        brought[wordAt[part] + words(length(part)) - 1] = -1L << last;
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

  /** The sample at an index of the lane. */
  long sample(long index) {
    if (index >= pooled()) {
      return large[(int) (index - pooled())];
    }
    int part = partOf(index);
    return firstSample[part] + index - firstIndex[part];
  }

  private int partOf(long index) {
    int at = Arrays.binarySearch(firstIndex, 0, parts, index);
    return at >= 0 ? at : -at - 2;
  }

  /** The slot that a sample with an index below {@link #pooled} shares. */
  int slotOf(long index) {
    int part = partOf(index);
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

  /** Opens the part that fills an empty slot, the asked sample's, and as many others as it can. */
  void fill(long index, Filled filled) {
    int asked = partOf(index);
    int group = asked / perGroup;
    int position = (int) (index - firstIndex[asked]);
    int part = best(group, position);
    openings++;
    for (int word = 0; word < words(length(part)); word++) {
      long bits = empty[emptyAt[group] + word] & ~brought[wordAt[part] + word];
      empty[emptyAt[group] + word] ^= bits;
      brought[wordAt[part] + word] |= bits;
      owed[part] -= Long.bitCount(bits);
      for (; bits != 0; bits &= bits - 1) {
        int at = (word << 6) + Long.numberOfTrailingZeros(bits);
        heldPart[firstSlot[group] + at] = part;
        filled.with(firstSlot[group] + at, firstSample[part] + at);
      }
    }
  }

  /**
   * The part that owes its sample at a position and can bring in the largest share of what it owes;
   * of several, the one that brings in most; of those, any.
   */
  private int best(int group, int position) {
    int best = EMPTY;
    long bestFills = 0;
    int equals = 0;
    int end = Math.min(parts, (group + 1) * perGroup);
    for (int part = group * perGroup; part < end; part++) {
      if (position >= length(part)
          || (brought[wordAt[part] + (position >>> 6)] >>> position & 1) == 1) {
        continue;
      }
      long fills = fills(group, part);
      long better =
          best == EMPTY ? 1 : fills * owed[best] - bestFills * owed[part]; // of two fractions
      if (better == 0) {
        better = fills - bestFills;
      }
      if (better > 0) {
        equals = 1;
      } else if (better < 0 || ties.below(++equals) > 0) {
        continue;
      }
      best = part;
      bestFills = fills;
    }
    return best;
  }

  private long fills(int group, int part) {
    long sum = 0;
    for (int word = 0; word < words(length(part)); word++) {
      sum += Long.bitCount(empty[emptyAt[group] + word] & ~brought[wordAt[part] + word]);
    }
    return sum;
  }
}
