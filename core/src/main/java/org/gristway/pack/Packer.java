package org.gristway.pack;

import java.io.IOException;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.stream.Stream;
import org.gristway.Failure;
import org.gristway.Progress;
import org.gristway.dataset.DatasetFolder;
import org.gristway.os.ExclusiveLock;
import org.gristway.os.Folders;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;

/**
 * Packs folders and archives of small files into a dataset, or adds them to one.
 *
 * <p>All is written aside: a new dataset in a hidden folder beside its target, an addition in one
 * inside it. What becomes visible is complete and durable, and becomes so by a rename at the very
 * end. A kill at any moment leaves the target as it was; the next run clears what was left aside.
 *
 * <p>First on the way from a file to a tensor; next: {@link org.gristway.chunk.ChunkFormat}.
 */
public final class Packer {

  /** Where the dataset being replaced is for a moment, where two folders cannot be exchanged. */
  private static final String REPLACED = "replaced";

  private Packer() {}

  /**
   * Packs sources into a new dataset.
   *
   * @param target a folder that does not exist, is empty, or, with {@link PackOptions#force}, is a
   *     dataset
   * @throws Failure if anything is wrong; the target is then as it was
   * @throws java.util.concurrent.CancellationException if the thread is interrupted; likewise
   */
  public static PackReport pack(
      List<Path> sources, Path target, PackOptions options, Progress progress, Notices notices) {
    DatasetFolder.refuseObjectStore(target);
    sources.forEach(DatasetFolder::refuseObjectStore);
    Path place = resolve(target);
    if (place.getParent() == null) {
      throw Failure.wrongCall("%s is the root of everything; name a folder in it", target);
    }
    checkApart(sources, place);
    Path work = work(place);
    if (!Files.exists(work)) { // what a killed run left is cleared first, whatever comes then
      checkTarget(place, target, options.force());
    }
    try (StopSignal stop = new StopSignal();
        ExclusiveLock _ = lock(place, target)) {
      return stop.guard(
          () -> {
            clearKilledPack(work, place);
            checkTarget(place, target, options.force());
            return packAside(sources, place, work, options, notices, progress, stop);
          });
    } catch (IOException failed) {
      throw Failure.io("pack into " + target, failed);
    }
  }

  /** The folder beside a target that all is written to before it appears there. */
  static Path work(Path place) {
    return place.resolveSibling("." + place.getFileName() + ".packing");
  }

  /** Keeps everybody else from writing to a target. */
  static ExclusiveLock lock(Path place, Path target) throws IOException {
    return ExclusiveLock.tryTake(place.resolveSibling("." + place.getFileName() + ".lock"))
        .orElseThrow(
            () ->
                Failure.environment(
                    "another process is packing into %s; wait until it is done", target));
  }

  /** What a killed run left goes; the dataset that it was about to replace comes back. */
  static void clearKilledPack(Path work, Path place) throws IOException {
    Path old = work.resolve(REPLACED);
    if (Files.exists(old) && !Files.exists(place)) {
      Files.move(old, place, StandardCopyOption.ATOMIC_MOVE);
    }
    Folders.deleteTree(work);
  }

  private static PackReport packAside(
      List<Path> sources,
      Path place,
      Path work,
      PackOptions options,
      Notices notices,
      Progress progress,
      StopSignal stop)
      throws IOException {
    PackReport report;
    try (ExclusiveLock _ = lockReplaced(place);
        Snapshot numbering = numbering(options)) {
      Files.createDirectory(work);
      Path fresh = Files.createDirectory(work.resolve("dataset"));
      Path scratch = Files.createDirectory(work.resolve("scratch"));
      report =
          new Packing(sources, fresh, scratch, options, null, numbering, notices, progress, stop)
              .run();
      Folders.sync(fresh);
      checkTarget(place, place, options.force());
      publish(fresh, place, work, options.force());
      Folders.sync(place.resolveSibling("."));
    } catch (IOException | RuntimeException failed) {
      try {
        Folders.deleteTree(work);
      } catch (IOException second) {
        failed.addSuppressed(second);
      }
      throw failed;
    }
    try {
      Folders.deleteTree(work);
    } catch (IOException failed) { // the dataset is there; the next run clears the rest
      notices.leftOut("could not clear " + work + ": " + Failure.reason(failed));
    }
    return report;
  }

  /**
   * Adds the samples of sources to a dataset, as its next version. Versions before it stay as they
   * are, and so do the numbers of labels.
   */
  public static PackReport append(
      List<Path> sources, Path target, PackOptions options, Progress progress, Notices notices) {
    sources.forEach(DatasetFolder::refuseObjectStore);
    DatasetFolder dataset = DatasetFolder.at(target);
    checkApart(sources, resolve(target));
    try (StopSignal stop = new StopSignal();
        DatasetFolder.Change change = dataset.change();
        Snapshot existing = dataset.openNewest();
        Snapshot numbering = numbering(options)) {
      return stop.guard(
          () -> {
            List<Integer> unknown = change.clearKilledAppend(existing.chunkCount());
            if (!unknown.isEmpty()) {
              throw dataset.unnamed(unknown.getFirst());
            }
            Path fresh = Files.createDirectory(change.scratch().resolve("dataset"));
            Path scratch = Files.createDirectory(change.scratch().resolve("scratch"));
            PackReport report =
                new Packing(
                        sources, fresh, scratch, options, existing, numbering, notices, progress,
                        stop)
                    .run();
            change.publish(fresh, report.version(), existing.chunkCount(), report.chunks());
            return report;
          });
    } catch (IOException failed) {
      throw Failure.io("append to " + target, failed);
    }
  }

  /** Opens the dataset whose classes are numbered already, if there is one. */
  private static @Nullable Snapshot numbering(PackOptions options) {
    Path of = options.classesOf();
    if (of == null) {
      return null;
    }
    Snapshot numbering = DatasetFolder.at(of).openNewest();
    if (!numbering.hasNamedLabels()) {
      numbering.close();
      throw Failure.wrongCall(
          "%s has no classes with names; --classes-of takes a dataset whose classes are folders",
          of);
    }
    return numbering;
  }

  /** A dataset that is about to be replaced is not appended to. */
  private static @Nullable ExclusiveLock lockReplaced(Path place) throws IOException {
    return DatasetFolder.isDataset(place) ? DatasetFolder.at(place).lock() : null;
  }

  /** The target's real path, so that a link to a dataset is replaced where it leads. */
  static Path resolve(Path target) {
    try {
      if (Files.exists(target)) {
        return target.toRealPath();
      }
      if (Files.isSymbolicLink(target)) {
        throw Failure.wrongCall("%s is a link to nothing; delete it, or name another", target);
      }
      Path absolute = target.toAbsolutePath().normalize();
      Path parent = absolute.getParent();
      if (parent == null || !Files.isDirectory(parent)) {
        throw Failure.wrongCall("%s cannot be created: there is no folder %s", target, parent);
      }
      return parent.toRealPath().resolve(absolute.getFileName());
    } catch (IOException failed) {
      throw Failure.io("look at " + target, failed);
    }
  }

  private static void checkTarget(Path place, Path target, boolean force) {
    if (!Files.exists(place)) {
      return;
    }
    if (Files.isDirectory(place)) {
      try (Stream<Path> inside = Files.list(place)) {
        if (inside.findAny().isEmpty()) {
          refuseMountPoint(place, target);
          return;
        }
      } catch (IOException failed) {
        throw Failure.io("list " + target, failed);
      }
    }
    if (!DatasetFolder.isDataset(place)) {
      throw Failure.wrongCall(
          "%s exists and is not a dataset; name a new folder (--force replaces only datasets)",
          target);
    }
    if (!force) {
      throw Failure.wrongCall(
          "%s exists already; replace it with --force, or add to it with 'gristway append'",
          target);
    }
    refuseMountPoint(place, target);
  }

  /** The rename at the end cannot replace one; better to know before hours of work. */
  static void refuseMountPoint(Path place, Path target) {
    try {
      Object device = Files.getAttribute(place, "unix:dev");
      if (!device.equals(Files.getAttribute(place.resolveSibling("."), "unix:dev"))) {
        throw mountPoint(target);
      }
    } catch (IOException failed) {
      throw Failure.io("look at " + target, failed);
    }
  }

  private static Failure mountPoint(Path target) {
    return Failure.wrongCall("%s is a mount point; name a folder inside it", target);
  }

  /** Packing writes beside its target: a source that holds both would grow while being read. */
  static void checkApart(List<Path> sources, Path place) {
    for (Path source : sources) {
      try {
        if (Files.isDirectory(source) && place.startsWith(source.toRealPath())) {
          throw Failure.wrongCall(
              "the target %s lies inside the source %s; name one outside it", place, source);
        }
      } catch (IOException failed) {
        throw Failure.io("look at " + source, failed);
      }
    }
  }

  static void publish(Path fresh, Path place, Path work, boolean force) throws IOException {
    try {
      if (force && DatasetFolder.isDataset(place)) {
        replace(fresh, place, work);
      } else {
        Files.move(fresh, place, StandardCopyOption.ATOMIC_MOVE);
      }
    } catch (DirectoryNotEmptyException appeared) {
      throw Failure.wrongCall(
          "%s appeared while it was being packed; nothing was published", place);
    } catch (AtomicMoveNotSupportedException acrossMounts) {
      throw mountPoint(place);
    } catch (IOException failed) {
      if (Failure.reason(failed).contains("resource busy")) {
        throw mountPoint(place); // of a folder of the same file system
      }
      throw failed;
    }
  }

  private static void replace(Path fresh, Path place, Path work) throws IOException {
    if (Folders.tryExchange(fresh, place)) {
      return;
    }
    Path old = work.resolve(REPLACED);
    Files.move(place, old, StandardCopyOption.ATOMIC_MOVE);
    try {
      Files.move(fresh, place, StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException failed) {
      Files.move(old, place, StandardCopyOption.ATOMIC_MOVE);
      throw failed;
    }
  }
}
