package org.gristway.plan;

import java.util.Arrays;
import java.util.function.LongPredicate;

/**
 * The samples that a plan is about: all of a dataset, or those that are left of an epoch, or those
 * that a user has named. Immutable; a set that is not all of the dataset costs a bit a sample.
 */
public final class SampleSet {

  private static final int WORDS_PER_BLOCK = 8;

  private final long universe;
  private final long count;
  private final long[] words; // empty if all are in it
  private final long[] before; // how many of the set lie before each block of words

  private SampleSet(long universe, long[] words) {
    this.universe = universe;
    this.words = words;
    this.before = new long[words.length / WORDS_PER_BLOCK + 1];
    long sum = 0;
    for (int i = 0; i < words.length; i++) {
      if (i % WORDS_PER_BLOCK == 0) {
        before[i / WORDS_PER_BLOCK] = sum;
      }
      sum += Long.bitCount(words[i]);
    }
    this.count = words.length == 0 ? universe : sum;
    if (words.length % WORDS_PER_BLOCK == 0) {
      before[before.length - 1] = sum;
    }
  }

  /** All samples of a dataset of this size. */
  public static SampleSet all(long sampleCount) {
    return new SampleSet(sampleCount, new long[0]);
  }

  /** The samples for which the predicate holds. */
  public static SampleSet where(long sampleCount, LongPredicate isIn) {
    long[] words = new long[Math.max(1, Math.toIntExact((sampleCount + 63) / 64))];
    for (long sample = 0; sample < sampleCount; sample++) {
      if (isIn.test(sample)) {
        words[(int) (sample >>> 6)] |= 1L << sample;
      }
    }
    return new SampleSet(sampleCount, words);
  }

  public boolean isAll() {
    return words.length == 0;
  }

  /** How many are in it. */
  public long count() {
    return count;
  }

  public boolean contains(long sample) {
    return sample >= 0
        && sample < universe
        && (isAll() || (words[(int) (sample >>> 6)] >>> sample & 1) == 1);
  }

  /** How many of the set have a smaller number than {@code sample}. */
  public long rank(long sample) {
    if (isAll()) {
      return sample;
    }
    if (sample >= universe) {
      return count;
    }
    int word = (int) (sample >>> 6);
    long rank = before[word / WORDS_PER_BLOCK];
    for (int i = word / WORDS_PER_BLOCK * WORDS_PER_BLOCK; i < word; i++) {
      rank += Long.bitCount(words[i]);
    }
    return rank + Long.bitCount(words[word] & ((1L << sample) - 1));
  }

  /** The sample that has {@code rank} of the set before it. */
  public long nth(long rank) {
    if (isAll()) {
      return rank;
    }
    int block = Arrays.binarySearch(before, rank);
    if (block < 0) {
      block = -block - 2;
    } else {
      while (block + 1 < before.length && before[block + 1] == rank) {
        block++; // blocks without a sample of the set
      }
    }
    long left = rank - before[block];
    int word = block * WORDS_PER_BLOCK;
    while (left >= Long.bitCount(words[word])) {
      left -= Long.bitCount(words[word++]);
    }
    long bits = words[word];
    for (; left > 0; left--) {
      bits &= bits - 1;
    }
    return ((long) word << 6) + Long.numberOfTrailingZeros(bits);
  }

  /** This set without the samples whose bits are set. */
  SampleSet without(long[] delivered) {
    long[] left = new long[delivered.length];
    for (int i = 0; i < left.length; i++) {
      left[i] = (isAll() ? allOfWord(i) : words[i]) & ~delivered[i];
    }
    return new SampleSet(universe, left);
  }

  private long allOfWord(int word) {
    long behind = universe - ((long) word << 6);
    return behind >= 64 ? -1L : behind <= 0 ? 0 : (1L << behind) - 1;
  }
}
