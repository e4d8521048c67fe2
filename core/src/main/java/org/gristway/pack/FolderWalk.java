package org.gristway.pack;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.gristway.Failure;
import org.gristway.chunk.Key;
import org.gristway.os.FileStatus;
import org.gristway.os.Posix;
import org.gristway.os.PosixException;
import org.gristway.spool.RecordBuffer;
import org.gristway.spool.SortedSpool;
import org.jspecify.annotations.Nullable;

/**
 * Goes through a folder and all below it in the order of names, while other threads look ahead: on
 * a network mount every look at a file is a round trip, and there may be millions of them.
 *
 * <p>Folders of up to {@value #SMALL} names are listed and looked at ahead, {@value #AHEAD} at a
 * time; the names of a larger one are sorted in a spool, and its files looked at in blocks.
 */
final class FolderWalk implements AutoCloseable {

  private static final int SMALL = 2_000;
  private static final int AHEAD = 8;
  private static final int BLOCK = 256;
  private static final int NAMES_IN_MEMORY = 8 << 20;

  private final byte[] root;
  private final Path scratch;
  private final Source.FileVisitor visitor;
  private final ExecutorService lookers;
  private static final AtomicLong SPOOLS = new AtomicLong();

  private final Queue<SortedSpool> large = new ConcurrentLinkedQueue<>();

  FolderWalk(byte[] root, Path scratch, int threads, Source.FileVisitor visitor) {
    this.root = root;
    this.scratch = scratch;
    this.visitor = visitor;
    this.lookers =
        Executors.newFixedThreadPool(
            threads, Thread.ofPlatform().name("gristway-look-", 0).daemon().factory());
  }

  /** What a look at a name found. */
  private sealed interface Found {}

  private record FoundFile(byte[] name, long length, long modified) implements Found {}

  private record FoundFolder(byte[] name, FileStatus status) implements Found {}

  private record NoSample(byte[] name, String why) implements Found {}

  private record Unreadable(byte[] name, String why) implements Found {}

  /** A folder's contents in order: found already, or names that are still to be looked at. */
  private sealed interface Contents {}

  private record Small(List<Found> found) implements Contents {}

  private record Large(SortedSpool names) implements Contents {}

  /** A folder on the way from the root to where the walk is: to notice when it comes round. */
  private record Ancestor(FileStatus status, int depth, @Nullable Ancestor parent) {
    boolean includes(FileStatus folder) {
      for (Ancestor at = this; at != null; at = at.parent) {
        if (at.status.isSameFileAs(folder)) {
          return true;
        }
      }
      return false;
    }
  }

  void run() throws IOException {
    Ancestor top = new Ancestor(Posix.status(root, true), 0, null);
    walk(new byte[0], list(new byte[0]), top);
  }

  private void walk(byte[] folder, Contents contents, Ancestor here) throws IOException {
    switch (contents) {
      case Small small -> visitAll(small.found, here);
      case Large large -> {
        try (SortedSpool names = large.names) {
          visitBlocks(folder, names, here);
        }
      }
    }
  }

  private void visitBlocks(byte[] folder, SortedSpool names, Ancestor here) throws IOException {
    SortedSpool.Cursor cursor = names.sorted();
    Queue<Future<List<Found>>> ahead = new ArrayDeque<>();
    boolean more = true;
    while (more || !ahead.isEmpty()) {
      while (more && ahead.size() < AHEAD) {
        List<byte[]> block = new ArrayList<>(BLOCK);
        while (block.size() < BLOCK && (more = cursor.next())) {
          RecordBuffer key = cursor.key();
          block.add(Arrays.copyOfRange(key.array(), key.offset(), key.offset() + key.length()));
        }
        ahead.add(lookers.submit(() -> lookAt(folder, block)));
      }
      Future<List<Found>> next = ahead.poll();
      if (next != null) {
        visitAll(await(next), here);
      }
    }
  }

  private void visitAll(List<Found> found, Ancestor here) throws IOException {
    Queue<Future<Contents>> ahead = new ArrayDeque<>();
    int asked = 0;
    for (Found next : found) {
      switch (next) {
        case FoundFile file ->
            visitor.file(
                file.name,
                file.length,
                0,
                file.modified,
                () -> FolderSource.readSmall(absolute(file.name)));
        case NoSample no -> visitor.leftOut(no.name, no.why);
        case Unreadable no -> visitor.unreadable(no.name, no.why);
        case FoundFolder folder -> {
          for (; asked < found.size() && ahead.size() < AHEAD; asked++) {
            if (found.get(asked) instanceof FoundFolder(byte[] name, FileStatus status)
                && !here.includes(status)) {
              ahead.add(lookers.submit(() -> list(name)));
            }
          }
          enter(folder, here, ahead);
        }
      }
    }
  }

  private void enter(FoundFolder folder, Ancestor here, Queue<Future<Contents>> ahead)
      throws IOException {
    if (here.includes(folder.status)) {
      visitor.leftOut(asFolder(folder.name), "it is a link back to a folder it is in");
      return;
    }
    if (here.depth == 0) {
      visitor.topFolder(folder.name);
    }
    Contents contents = await(ahead.remove());
    walk(folder.name, contents, new Ancestor(folder.status, here.depth + 1, here));
  }

  private static <T> T await(Future<T> future) throws IOException {
    try {
      return future.get();
    } catch (InterruptedException stop) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", stop);
    } catch (ExecutionException failed) {
      switch (failed.getCause()) {
        case IOException known -> throw known;
        case RuntimeException known -> throw known;
        case null, default -> throw new IllegalStateException(failed);
      }
    }
  }

  private Contents list(byte[] folder) throws IOException {
    List<byte[]> names = new ArrayList<>();
    SortedSpool[] many = {null};
    try {
      RecordBuffer nothing = new RecordBuffer();
      Posix.list(
          absolute(folder),
          name -> {
            names.add(name);
            if (names.size() > SMALL) {
              if (many[0] == null) {
                many[0] = newSpool();
              }
              for (byte[] each : names) {
                many[0].add(each, nothing);
              }
              names.clear();
            }
          });
      if (many[0] == null) {
        names.sort(Arrays::compareUnsigned);
        return new Small(lookAt(folder, names));
      }
      for (byte[] each : names) {
        many[0].add(each, nothing);
      }
      many[0].spill(); // it may wait for its turn for long, and others with it
      return new Large(many[0]);
    } catch (PosixException failed) {
      return new Small(List.of(new Unreadable(asFolder(folder), Failure.reason(failed))));
    }
  }

  /** A name with a slash at its end: no part of a sample of the same stem. */
  private static byte[] asFolder(byte[] name) {
    byte[] longer = name.length == 0 ? name : Arrays.copyOf(name, name.length + 1);
    if (name.length > 0) {
      longer[name.length] = '/';
    }
    return longer;
  }

  private SortedSpool newSpool() {
    Path path = scratch.resolve("names-" + SPOOLS.getAndIncrement());
    SortedSpool spool = new SortedSpool(path, NAMES_IN_MEMORY);
    large.add(spool);
    return spool;
  }

  private List<Found> lookAt(byte[] folder, List<byte[]> names) throws IOException {
    List<Found> found = new ArrayList<>(names.size());
    for (byte[] name : names) {
      found.add(lookAt(join(folder, name)));
    }
    return found;
  }

  private Found lookAt(byte[] name) throws IOException {
    if (!Key.isUtf8(name)) {
      return new Unreadable(name, "its name is not UTF-8; rename it");
    }
    byte[] full = absolute(name);
    FileStatus status;
    try {
      status = Posix.status(full, false);
      if (status.type() == FileStatus.Type.LINK) {
        status = Posix.status(full, true);
        if (!isInside(Posix.realPath(full))) {
          boolean isFolder = status.type() == FileStatus.Type.FOLDER;
          String why = "it is a link that leads out of the source";
          return new NoSample(isFolder ? asFolder(name) : name, why);
        }
      }
    } catch (PosixException failed) {
      return failed.number() == PosixException.ELOOP
          ? new NoSample(name, "it is a link in a loop of links")
          : new Unreadable(name, Failure.reason(failed));
    }
    return switch (status.type()) {
      case FOLDER -> new FoundFolder(name, status);
      case FILE -> {
        if (!status.isReadableByAll() && !Posix.mayRead(full)) {
          yield new Unreadable(name, "permission denied");
        }
        String fault = Key.fault(name);
        yield fault != null
            ? new Unreadable(name, "its path cannot be a key: " + fault)
            : new FoundFile(name, status.size(), status.modified());
      }
      default -> new NoSample(name, "it is neither a file nor a folder");
    };
  }

  private boolean isInside(byte[] real) {
    return real.length >= root.length
        && (root.length == 1 || real.length == root.length || real[root.length] == '/')
        && Arrays.equals(real, 0, root.length, root, 0, root.length);
  }

  private byte[] absolute(byte[] name) {
    return join(root, name);
  }

  /** The path of a name in a folder; either may be empty. */
  static byte[] join(byte[] folder, byte[] name) {
    if (folder.length == 0 || name.length == 0) {
      return folder.length == 0 ? name : folder;
    }
    byte[] joined = Arrays.copyOf(folder, folder.length + 1 + name.length);
    joined[folder.length] = '/';
    System.arraycopy(name, 0, joined, folder.length + 1, name.length);
    return joined;
  }

  @Override
  public void close() throws IOException {
    lookers.shutdownNow();
    try {
      // Nobody may still write to the scratch folder when it is cleared.
      boolean unused = lookers.awaitTermination(1, TimeUnit.MINUTES);
    } catch (InterruptedException stop) {
      Thread.currentThread().interrupt();
    }
    for (SortedSpool spool : large) {
      spool.close();
    }
  }
}
