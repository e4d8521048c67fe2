package org.gristway.pack;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.function.BooleanSupplier;
import org.gristway.Failure;
import org.gristway.Progress;
import org.gristway.chunk.Key;
import org.gristway.chunk.SampleEntry;
import org.gristway.chunk.Shape;
import org.gristway.pack.ListedSample.ShapeBook;
import org.gristway.spool.RecordBuffer;
import org.gristway.spool.Spool;
import org.jspecify.annotations.Nullable;

/**
 * Turns the files of one source into samples and writes them to a spool, in source order.
 *
 * <p>With parts, this is WebDataset's rule: consecutive files that share their folder and their
 * name up to the first dot are the parts of one sample; its key is that stem, its label the integer
 * in its {@code cls} part. Without, each file is a sample, and its class is its first folder.
 */
final class Lister implements Source.FileVisitor {

  private static final int LONGEST_NUMBER = 24;

  private final Path path;
  private final boolean stemParts;
  private final boolean hasClasses;
  private final Spool spool;
  private final Spool classes;
  private final ShapeBook book;
  private final Troubles troubles;
  private final Progress progress;
  private final BooleanSupplier stopped;
  private final RecordBuffer record = new RecordBuffer();

  private byte @Nullable [] lastClass;
  private byte @Nullable [] stem;
  private int number = SampleEntry.NO_LABEL;
  private boolean isBroken; // a part of the current sample could not be read
  private final List<String> parts = new ArrayList<>();
  private final List<long[]> sizes = new ArrayList<>(); // {length, place, mark}

  /**
   * @param spool takes the samples
   * @param classes takes the names of the folders at the top
   */
  Lister(
      Source source,
      boolean stemParts,
      Spool spool,
      Spool classes,
      ShapeBook book,
      Troubles troubles,
      Progress progress,
      BooleanSupplier stopped) {
    this.path = source.path();
    this.stemParts = stemParts || source instanceof TarSource;
    this.hasClasses = !(source instanceof TarSource);
    this.spool = spool;
    this.classes = classes;
    this.book = book;
    this.troubles = troubles;
    this.progress = progress;
    this.stopped = stopped;
  }

  @Override
  public void topFolder(byte[] name) throws IOException {
    if (hasClasses && !Arrays.equals(name, lastClass)) {
      classes.add(record.clear().putBytes(name));
      lastClass = name;
    }
  }

  @Override
  public void unreadable(byte[] name, String why) {
    troubles.unreadable(path + "/" + Key.escape(name), why);
  }

  @Override
  public void leftOut(byte[] name, String why) {
    troubles.leftOut(path + "/" + Key.escape(name), why);
  }

  @Override
  public void file(byte[] name, long length, long place, long mark, Source.Content content)
      throws IOException {
    if (stopped.getAsBoolean()) {
      throw new CancellationException("interrupted");
    }
    if (!stemParts) {
      add(name, Shape.PLAIN, new long[][] {{length, place, mark}}, SampleEntry.NO_LABEL);
      return;
    }
    int dot = firstDot(name);
    byte[] fileStem = Arrays.copyOf(name, dot);
    String part =
        dot == name.length
            ? ""
            : new String(name, dot + 1, name.length - dot - 1, StandardCharsets.UTF_8);
    boolean standsAlone = part.isEmpty() || parts.contains("");
    if (standsAlone || !Arrays.equals(fileStem, stem)) {
      end();
      stem = fileStem;
    }
    if (parts.contains(part)) {
      throw Failure.wrongCall(
          "%s has '%s' twice: every key must be unique; rename one of them",
          path, Key.escape(name));
    }
    if (parts.size() == Shape.MAX_PARTS) {
      throw Failure.wrongCall(
          "in %s more than %d files in a row share the stem '%s', which makes them one sample; is"
              + " the text after the first dot of these names really a part name?",
          path, Shape.MAX_PARTS, Key.escape(fileStem));
    }
    parts.add(part);
    sizes.add(new long[] {length, place, mark});
    if (part.equals("cls") && length <= LONGEST_NUMBER) {
      try {
        number = parse(content.read());
      } catch (IOException unreadable) {
        unreadable(name, Failure.reason(unreadable));
        isBroken = true;
      }
    }
  }

  /**
   * Where the part name's dot is; the end if there is none. A dot that begins or ends the file's
   * name begins no part name.
   */
  private static int firstDot(byte[] name) {
    int start = name.length;
    while (start > 0 && name[start - 1] != '/') {
      start--;
    }
    for (int i = start + 1; i < name.length - 1; i++) {
      if (name[i] == '.') {
        return i;
      }
    }
    return name.length;
  }

  private static int parse(byte[] content) {
    try {
      return Math.max(
          SampleEntry.NO_LABEL,
          Integer.parseInt(new String(content, StandardCharsets.ISO_8859_1).strip()));
    } catch (NumberFormatException notOne) {
      return SampleEntry.NO_LABEL;
    }
  }

  /** Ends the last sample. */
  void end() throws IOException {
    if (stem != null && !isBroken) {
      add(stem, new Shape(parts), sizes.toArray(long[][]::new), number);
    }
    stem = null;
    isBroken = false;
    parts.clear();
    sizes.clear();
    number = SampleEntry.NO_LABEL;
  }

  private void add(byte[] key, Shape shape, long[][] files, int label) throws IOException {
    long[] lengths = new long[files.length];
    long[] places = new long[files.length];
    long[] marks = new long[files.length];
    for (int i = 0; i < files.length; i++) {
      lengths[i] = files[i][0];
      places[i] = files[i][1];
      marks[i] = files[i][2];
    }
    boolean inClass = hasClasses && label == SampleEntry.NO_LABEL && Key.firstFolder(key) != null;
    new ListedSample(key, shape, lengths, places, marks, label, inClass)
        .write(record.clear(), book);
    spool.add(record);
    progress.advance(1);
  }
}
