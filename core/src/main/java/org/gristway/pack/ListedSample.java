package org.gristway.pack;

import java.util.ArrayList;
import java.util.List;
import org.gristway.chunk.ChunkTable.ShapeNumbers;
import org.gristway.chunk.Shape;
import org.gristway.spool.RecordBuffer;

/**
 * A sample as its source lists it, before any of its bytes are read.
 *
 * @param key its path, in UTF-8
 * @param shape the names of its parts
 * @param lengths of its parts
 * @param places where the source finds each part again; what the number means is its own affair
 * @param marks by which the source knows that a part has not changed since it was listed
 * @param number the label that came with it, or -1
 * @param inClass whether its class is the first folder of its key
 */
@SuppressWarnings("ArrayRecordComponent") // millions pass by; nobody compares them
record ListedSample(
    byte[] key,
    Shape shape,
    long[] lengths,
    long[] places,
    long[] marks,
    int number,
    boolean inClass) {

  long length() {
    long sum = 0;
    for (long length : lengths) {
      sum += length;
    }
    return sum;
  }

  /** Numbers shapes within one run, so that millions of records need not repeat their names. */
  static final class ShapeBook {
    private final ShapeNumbers numbers = new ShapeNumbers();
    private final List<Shape> shapes = new ArrayList<>();

    synchronized int number(Shape shape) {
      int number = numbers.of(shape);
      if (number == shapes.size()) {
        shapes.add(shape);
      }
      return number;
    }

    synchronized Shape shape(int number) {
      return shapes.get(number);
    }
  }

  void write(RecordBuffer to, ShapeBook book) {
    to.putBytes(key)
        .putNumber(book.number(shape))
        .putNumber(number + 1L)
        .putNumber(inClass ? 1 : 0);
    for (int i = 0; i < lengths.length; i++) {
      to.putNumber(lengths[i]).putNumber(places[i]).putNumber(marks[i]);
    }
  }

  static ListedSample read(RecordBuffer from, ShapeBook book) {
    byte[] key = from.takeBytes();
    Shape shape = book.shape((int) from.takeNumber());
    int number = (int) from.takeNumber() - 1;
    boolean inClass = from.takeNumber() == 1;
    int parts = shape.size();
    long[] lengths = new long[parts];
    long[] places = new long[parts];
    long[] marks = new long[parts];
    for (int i = 0; i < parts; i++) {
      lengths[i] = from.takeNumber();
      places[i] = from.takeNumber();
      marks[i] = from.takeNumber();
    }
    return new ListedSample(key, shape, lengths, places, marks, number, inClass);
  }
}
