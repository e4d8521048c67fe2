package org.gristway.pack;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
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
 * {@link Labels} may say otherwise.
 */
final class Lister implements Source.FileVisitor {

  private static final int LONGEST_NUMBER = 24;

  /** Of so many folders the names are told, if nothing comes of them. */
  private static final int SHOWN_FOLDERS = 3;

  private final Path path;
  private final boolean stemParts;
  private final boolean readsNumbers;
  private final boolean hasClasses;
  private final Spool spool;
  private final Spool classes;
  private final ShapeBook book;
  private final Troubles troubles;
  private final Progress progress;
  private final BooleanSupplier stopped;
  private final RecordBuffer record = new RecordBuffer();

  private byte @Nullable [] lastClass;
  private boolean hasNumbers;
  private final Set<String> unusedFolders = new LinkedHashSet<>();
  private byte @Nullable [] stem;
  private int number = SampleEntry.NO_LABEL;
  private boolean isBroken; // a part of the current sample could not be read
  private final List<String> parts = new ArrayList<>();
  private final List<long[]> sizes = new ArrayList<>(); // {length, place, mark}
  private final List<LeftOut> missing = new ArrayList<>(); // of the current sample

  /** An entry that is left out; its name makes it a part of a sample. */
  private record LeftOut(byte[] name, String why) {}

  /**
   * @param spool takes the samples
   * @param classes takes the names of the folders at the top
   */
  Lister(
      Source source,
      PackOptions options,
      Spool spool,
      Spool classes,
      ShapeBook book,
      Troubles troubles,
      Progress progress,
      BooleanSupplier stopped) {
    this.path = source.path();
    boolean isTar = source instanceof TarSource;
    this.stemParts = options.stemParts() || isTar;
    this.readsNumbers = options.labels() == Labels.USUAL;
    this.hasClasses =
        options.labels() == Labels.FOLDERS || (options.labels() == Labels.USUAL && !isTar);
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

  /** No sample goes without one of its parts: if one is unreadable, all are left out. */
  @Override
  public void unreadable(byte[] name, String why) throws IOException {
    tellUnreadable(name, why);
    if (beginsPart(name)) {
      isBroken = true;
    }
  }

  /** A part that is left out makes its sample unreadable, if the sample has any other part. */
  @Override
  public void leftOut(byte[] name, String why) throws IOException {
    if (!beginsPart(name)) {
      tellLeftOut(name, why);
      return;
    }
    if (missing.size() == Shape.MAX_PARTS) {
      missing.forEach(part -> tellLeftOut(part.name, part.why)); // they are no sample
      missing.clear();
    }
    missing.add(new LeftOut(name, why));
  }

  private void tellUnreadable(byte[] name, String why) {
    troubles.unreadable(path + "/" + Key.escape(name), why);
  }

  private void tellLeftOut(byte[] name, String why) {
    boolean isFolder = name.length > 0 && name[name.length - 1] == '/';
    byte[] shown = isFolder ? Arrays.copyOf(name, name.length - 1) : name;
    troubles.leftOut(path + "/" + Key.escape(shown), why);
  }

  /** Begins or continues the sample that a name makes its file a part of; false if it is none. */
  private boolean beginsPart(byte[] name) throws IOException {
    byte[] key = Source.withoutDots(name);
    int dot = firstDot(key);
    if (!stemParts || dot == key.length) {
      return false;
    }
    if (parts.contains("")) {
      end(); // a file without a part name is a sample by itself
    }
    begin(Arrays.copyOf(key, dot));
    return true;
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
    if (standsAlone) {
      end();
    }
    begin(fileStem);
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
    if (part.equals("cls") && readsNumbers) {
      hasNumbers = true;
      try {
        number = label(length, content);
      } catch (IOException unreadable) {
        unreadable(name, Failure.reason(unreadable));
      }
    }
  }

  /** Goes on with the sample of this stem, or ends the one before and begins it. */
  private void begin(byte[] fileStem) throws IOException {
    if (!Arrays.equals(fileStem, stem)) {
      end();
      stem = fileStem;
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

  /** The label in a {@code cls} part. What is none is no accident that may pass unseen. */
  private static int label(long length, Source.Content content) throws IOException {
    if (length > LONGEST_NUMBER) {
      throw noLabel("it has " + length + " bytes");
    }
    byte[] bytes = content.read();
    try {
      int label = Integer.parseInt(new String(bytes, StandardCharsets.ISO_8859_1).strip());
      if (label >= 0) {
        return label;
      }
    } catch (NumberFormatException none) {
      // Told below.
    }
    throw noLabel(bytes.length == 0 ? "it is empty" : "it holds '" + Key.escape(bytes) + "'");
  }

  private static IOException noLabel(String what) {
    return new IOException(
        what
            + ", which is no label: labels are whole numbers from 0 to 2147483647 (--labels none"
            + " packs such parts without labels)");
  }

  /** Ends the last sample. */
  void end() throws IOException {
    if (stem != null) {
      tellMissing(stem);
      if (!isBroken && !parts.isEmpty()) {
        add(stem, new Shape(parts), sizes.toArray(long[][]::new), number);
      }
    }
    stem = null;
    isBroken = false;
    parts.clear();
    sizes.clear();
    number = SampleEntry.NO_LABEL;
  }

  /** Tells of the entries of the current sample that are left out. */
  private void tellMissing(byte[] ofStem) {
    boolean hasOthers = isBroken || !parts.isEmpty();
    for (LeftOut part : missing) {
      if (hasOthers) {
        isBroken = true;
        String what = ", and the sample '" + Key.escape(ofStem) + "' has other parts";
        tellUnreadable(part.name, part.why + what);
      } else {
        tellLeftOut(part.name, part.why);
      }
    }
    missing.clear();
  }

  /**
   * The folders that could have been classes, if no label came of anything in this source: some of
   * their names, at most one more than is shown.
   */
  Set<String> unusedFolders() {
    return hasNumbers ? Set.of() : unusedFolders;
  }

  /** Tells what to do if folders that nothing came of are classes; one alone is none. */
  static Optional<String> adviceOn(Set<String> unusedFolders) {
    if (unusedFolders.size() < 2) {
      return Optional.empty();
    }
    String names =
        unusedFolders.stream()
            .limit(SHOWN_FOLDERS)
            .map(name -> "'" + name + "'")
            .collect(Collectors.joining(", "));
    return Optional.of(
        "samples in a tar have no 'cls' parts, and so no labels; if their folders are classes ("
            + names
            + (unusedFolders.size() > SHOWN_FOLDERS ? ", …" : "")
            + "), pack them with --labels folders");
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
    byte[] folder = Key.firstFolder(key);
    if (folder != null && !hasClasses && readsNumbers && unusedFolders.size() <= SHOWN_FOLDERS) {
      unusedFolders.add(Key.escape(folder));
    }
    boolean inClass = hasClasses && label == SampleEntry.NO_LABEL && folder != null;
    new ListedSample(key, shape, lengths, places, marks, label, inClass)
        .write(record.clear(), book);
    spool.add(record);
    progress.advance(1);
  }
}
