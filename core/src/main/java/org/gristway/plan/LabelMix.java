package org.gristway.plan;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Measures how an epoch's global batches mix the labels of a dataset. For one thread.
 *
 * <p>The <b>entropy</b> of the labels in a batch, in bits, is highest where all classes are there
 * in equal numbers; that of an epoch is the mean, in which a batch counts by its samples. The
 * <b>label variance</b> is how far the numbers of the classes in batches are from what the dataset
 * has of them (squared, over all classes and batches), relative to batches drawn at random without
 * repetition: 1 for a full shuffle, more where samples of a class come together. Samples without a
 * label do not count.
 */
public final class LabelMix {

  private final LabelCounts counts;
  private double bits; // of all samples
  private double squares;
  private double squaresByChance;
  private long samples;

  /** What was measured of one epoch. */
  public record Report(double entropy, double variance) {}

  public LabelMix(LabelCounts counts) {
    this.counts = counts;
  }

  /** Adds one step: the samples that each rank gets, without repeats. */
  public void add(long[][] ofRanks) {
    int[] labels =
        Arrays.stream(ofRanks)
            .flatMapToLong(Arrays::stream)
            .mapToInt(counts::label)
            .filter(label -> label >= 0)
            .sorted()
            .toArray();
    double size = labels.length;
    double distance = size * size * counts.together(); // from a batch that has none of any class
    for (int i = 0; i < labels.length; ) {
      int end = i + 1;
      while (end < labels.length && labels[end] == labels[i]) {
        end++;
      }
      double number = end - i;
      double expected = size * counts.share(labels[i]);
      bits -= number * Math.log(number / size) / Math.log(2);
      distance += number * number - 2 * number * expected;
      i = end;
    }
    samples += labels.length;
    squares += distance;
    if (labels.length > 0 && counts.labelled() > 1) {
      double left = (counts.labelled() - size) / (counts.labelled() - 1);
      squaresByChance += size * (1 - counts.together()) * left;
    }
  }

  /** What has been measured so far, or null if there is nothing to mix. */
  public @Nullable Report report() {
    if (!counts.canMix()) {
      return null;
    }
    return new Report(
        samples == 0 ? 0 : bits / samples, squaresByChance == 0 ? 1 : squares / squaresByChance);
  }
}
