package org.gristway.cli;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.gristway.Progress;
import org.gristway.chunk.Shape;
import org.gristway.snapshot.LabelTally;
import org.gristway.snapshot.Snapshot;

/**
 * What one scan over a snapshot tells of a dataset.
 *
 * @param shapes the lists of part names in use, with the number of samples that have each
 * @param classes the first few named labels that have samples, with the number of those
 * @param labels those that samples have, counted
 * @param smallest bytes of the smallest sample; 0 if there is none
 * @param largest bytes of the largest sample; 0 if there is none
 */
record Summary(
    List<ShapeCount> shapes,
    List<ClassCount> classes,
    LabelTally labels,
    long smallest,
    long largest) {

  /** How many samples have these parts. */
  record ShapeCount(Shape shape, long samples) {}

  /** How many samples are of this class. */
  record ClassCount(String name, long samples) {}

  /** Counting more of them would cost memory for each, and nobody reads them. */
  private static final int MOST_CLASSES = 10;

  private static final int STEP = 1 << 16;

  /** Scans a snapshot. */
  static Summary of(Snapshot snapshot, Progress progress) {
    long[] firstClasses = new long[countedLabels(snapshot)];
    Map<Shape, long[]> shapes = new IdentityHashMap<>();
    snapshot.shapes().forEach(shape -> shapes.put(shape, new long[1]));
    LabelTally labels = new LabelTally();
    long smallest = Long.MAX_VALUE;
    long largest = 0;
    long samples = snapshot.sampleCount();
    progress.begin("reading", Progress.Unit.SAMPLES, samples);
    for (long id = 0; id < samples; id++) {
      int label = snapshot.label(id);
      labels.add(label);
      if (label >= 0 && label < firstClasses.length) {
        firstClasses[label]++;
      }
      shapes.computeIfAbsent(snapshot.shape(id), _ -> new long[1])[0]++;
      long length = snapshot.length(id);
      smallest = Math.min(smallest, length);
      largest = Math.max(largest, length);
      if ((id + 1) % STEP == 0) {
        progress.advance(STEP);
      }
    }
    progress.end();
    return new Summary(
        counts(snapshot, shapes),
        classes(snapshot, firstClasses),
        labels,
        samples == 0 ? 0 : smallest,
        largest);
  }

  /** Enough labels for the classes that are shown: some numbers may have no sample. */
  private static int countedLabels(Snapshot snapshot) {
    int label = 0;
    for (int found = 0; label < snapshot.namedLabelCount() && found < MOST_CLASSES; label++) {
      found += snapshot.labelName(label).isPresent() ? 1 : 0;
    }
    return label;
  }

  private static List<ClassCount> classes(Snapshot snapshot, long[] counts) {
    List<ClassCount> classes = new ArrayList<>();
    for (int label = 0; label < counts.length; label++) {
      long samples = counts[label];
      snapshot.labelName(label).ifPresent(name -> classes.add(new ClassCount(name, samples)));
    }
    return List.copyOf(classes);
  }

  private static List<ShapeCount> counts(Snapshot snapshot, Map<Shape, long[]> counts) {
    List<ShapeCount> used = new ArrayList<>();
    for (Shape shape : snapshot.shapes()) {
      long[] count = counts.get(shape);
      if (count != null && count[0] > 0) {
        used.add(new ShapeCount(shape, count[0]));
      }
    }
    return List.copyOf(used);
  }
}
