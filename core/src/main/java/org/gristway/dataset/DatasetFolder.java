package org.gristway.dataset;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
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
 * <p>Chunks and snapshots appear in it by renaming, complete, the snapshot last. A folder that has
 * the chunks of one node only says so in a file of its own. Whatever else is in it belongs to a
 * change under way, or to one that was killed, and is named with a leading dot.
 */
public final class DatasetFolder {

  private static final Pattern SNAPSHOT = Pattern.compile("snapshot-(\\d{6,9})\\.gws");
  private static final Pattern CHUNK = Pattern.compile("chunk-(\\d{6,9})\\.gwc");
  private static final String LOCK = ".lock";
  private static final String CHANGE = ".change";
  private static final String APPENDING = ".appending";

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
        if (!ours && !List.of(Portion.FILE_NAME, LOCK, CHANGE, APPENDING).contains(name)) {
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

  /** True if it has the chunks of one node only, whatever its file says of that. */
  boolean isPortion() {
    return Files.exists(path.resolve(Portion.FILE_NAME));
  }

  /** Which node's chunks these are; nothing if they are all. */
  public Optional<Portion> portion() {
    return Portion.in(path);
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

  /** The failure for a chunk that no snapshot names, and that no killed append left. */
  public Failure unnamed(int chunk) {
    return Failure.damaged(
        "%s is there but no snapshot names it: one is missing; 'gristway rebuild %s' makes it anew",
        chunk(chunk), path);
  }

  /** True while an append is moving its chunks in, or was killed while it did. */
  boolean isAppending() {
    return Files.exists(path.resolve(APPENDING));
  }

  /** Keeps everybody else from changing this dataset. */
  public ExclusiveLock lock() throws IOException {
    return ExclusiveLock.tryTake(path.resolve(LOCK))
        .orElseThrow(
            () ->
                Failure.environment("another process is changing %s; wait until it is done", path));
  }

  /**
   * Begins a change to this dataset. Only one can be under way; what a killed one left aside is
   * cleared.
   */
  public Change change() {
    portion()
        .ifPresent(
            portion -> {
              throw portion.refusal(path, "changed");
            });
    try {
      ExclusiveLock lock = lock();
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
  public final class Change implements AutoCloseable {
    private final ExclusiveLock lock;
    private final Path scratch;

    private Change(ExclusiveLock lock, Path scratch) {
      this.lock = lock;
      this.scratch = scratch;
    }

    public Path scratch() {
      return scratch;
    }

    /**
     * Adds a version: its chunks, then the snapshot that names them. While chunks are there without
     * their snapshot, a file says so: chunks that no snapshot names are otherwise those of a
     * snapshot that was lost, and worth keeping.
     *
     * @param from the folder that all of them are in, complete and durable
     */
    public void publish(Path from, int version, int firstChunk, int chunks) throws IOException {
      Files.createFile(path.resolve(APPENDING));
      Folders.sync(path);
      for (int number = firstChunk; number < firstChunk + chunks; number++) {
        Path to = chunk(number);
        Files.move(from.resolve(to.getFileName()), to, StandardCopyOption.ATOMIC_MOVE);
      }
      Folders.sync(path);
      Path to = snapshot(version);
      Files.move(from.resolve(to.getFileName()), to, StandardCopyOption.ATOMIC_MOVE);
      Folders.sync(path);
      Files.delete(path.resolve(APPENDING));
    }

    /**
     * Deletes the chunks behind the newest version if a killed append left them.
     *
     * @param published how many chunks the newest version has
     * @return the chunks that are there, and whose they are nobody knows
     */
    public List<Integer> clearKilledAppend(int published) throws IOException {
      List<Integer> behind = List.copyOf(chunkNumbers().tailSet(published));
      if (!Files.exists(path.resolve(APPENDING))) {
        return behind;
      }
      for (int number : behind) {
        Files.deleteIfExists(chunk(number));
      }
      Folders.sync(path);
      Files.delete(path.resolve(APPENDING));
      return List.of();
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
