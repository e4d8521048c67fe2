package org.gristway.dataset;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.gristway.Failure;
import org.gristway.chunk.ChunkFormat;
import org.gristway.os.ExclusiveLock;
import org.gristway.os.Folders;
import org.gristway.snapshot.Snapshot;

/**
 * The folder that is a dataset: which files it has, who may change it, what a kill may have left.
 *
 * <p>Chunks and snapshots appear in it by renaming, complete, the snapshot last. Whatever else is
 * in it belongs to a change under way, or to one that was killed, and is named with a leading dot.
 */
public final class DatasetFolder {

  private static final Pattern SNAPSHOT = Pattern.compile("snapshot-(\\d{6,9})\\.gws");
  private static final Pattern CHUNK = Pattern.compile("chunk-(\\d{6,9})\\.gwc");
  private static final String LOCK = ".lock";
  private static final String CHANGE = ".change";

  private final Path path;

  private DatasetFolder(Path path) {
    this.path = path;
  }

  /** Names a dataset that must exist; nothing of it is read yet. */
  public static DatasetFolder at(Path path) {
    refuseObjectStore(path);
    if (!Files.exists(path)) {
      throw Failure.wrongCall("there is no dataset at %s", path);
    }
    DatasetFolder folder = new DatasetFolder(path);
    if (!Files.isDirectory(path)
        || (folder.versions().isEmpty() && folder.chunkNumbers().isEmpty())) {
      throw Failure.wrongCall(
          "%s is not a dataset: it has no snapshot and no chunks; make one with 'gristway pack'",
          path);
    }
    return folder;
  }

  /** Object stores are not paths; a folder named "s3:" is not what anyone means. */
  public static void refuseObjectStore(Path path) {
    String text = path.toString();
    if (text.matches("(?i)(s3|gs|az|abfs|hdfs|https?):/.*")) {
      throw Failure.wrongCall(
          "%s: datasets in object stores are not supported yet; copy it to a folder", text);
    }
  }

  /** True if the folder holds what {@code --force} may replace: a dataset and nothing else. */
  public static boolean isDataset(Path path) {
    if (!Files.isDirectory(path)) {
      return false;
    }
    try (DirectoryStream<Path> files = Files.newDirectoryStream(path)) {
      boolean found = false;
      for (Path file : files) {
        String name = file.getFileName().toString();
        boolean ours = SNAPSHOT.matcher(name).matches() || CHUNK.matcher(name).matches();
        found |= ours;
        if (!ours && !name.equals(LOCK) && !name.equals(CHANGE)) {
          return false;
        }
      }
      return found;
    } catch (IOException failed) {
      throw Failure.io("list " + path, failed);
    }
  }

  public Path path() {
    return path;
  }

  public Path chunk(int number) {
    return path.resolve(ChunkFormat.fileName(number));
  }

  public Path snapshot(int version) {
    return path.resolve(Snapshot.fileName(version));
  }

  /** The versions that have a snapshot. */
  public SortedSet<Integer> versions() {
    return numbers(SNAPSHOT);
  }

  /** The chunks that are there. */
  public SortedSet<Integer> chunkNumbers() {
    return numbers(CHUNK);
  }

  private SortedSet<Integer> numbers(Pattern pattern) {
    if (!Files.isDirectory(path)) {
      return Collections.emptySortedSet();
    }
    SortedSet<Integer> numbers = new TreeSet<>();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(path)) {
      for (Path file : files) {
        Matcher matcher = pattern.matcher(file.getFileName().toString());
        if (matcher.matches()) {
          numbers.add(Integer.parseInt(matcher.group(1)));
        }
      }
    } catch (IOException failed) {
      throw Failure.io("list " + path, failed);
    }
    return numbers;
  }

  /** Opens the newest version. */
  public Snapshot openNewest() {
    SortedSet<Integer> versions = versions();
    if (versions.isEmpty()) {
      throw Failure.damaged(
          "%s has chunks but no snapshot; 'gristway rebuild %s' makes it anew", path, path);
    }
    return Snapshot.open(snapshot(versions.last()));
  }

  /**
   * Begins a change to this dataset. Only one can be under way; what a killed one left is cleared.
   */
  public Change change() {
    try {
      ExclusiveLock lock =
          ExclusiveLock.tryTake(path.resolve(LOCK))
              .orElseThrow(
                  () ->
                      Failure.environment(
                          "another process is changing %s; wait until it is done", path));
      try {
        Path scratch = path.resolve(CHANGE);
        Folders.deleteTree(scratch);
        Files.createDirectory(scratch);
        return new Change(lock, scratch);
      } catch (IOException failed) {
        lock.close();
        throw failed;
      }
    } catch (IOException failed) {
      throw Failure.io("change " + path, failed);
    }
  }

  /** The right to change the dataset, and a place to write what is not complete yet. */
  public static final class Change implements AutoCloseable {
    private final ExclusiveLock lock;
    private final Path scratch;

    private Change(ExclusiveLock lock, Path scratch) {
      this.lock = lock;
      this.scratch = scratch;
    }

    public Path scratch() {
      return scratch;
    }

    @Override
    public void close() {
      try (lock) {
        Folders.deleteTree(scratch);
      } catch (IOException failed) {
        throw Failure.io("clear " + scratch, failed);
      }
    }
  }
}
