package org.gristway.pack;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.gristway.Failure;
import org.gristway.chunk.Key;
import org.gristway.os.FileStatus;
import org.gristway.os.Posix;
import org.gristway.os.PosixException;
import org.gristway.spool.RecordBuffer;
import org.gristway.spool.SortedSpool;
import org.jspecify.annotations.Nullable;

/**
 * A folder and all below it, in the order of names: what a folder holds stands together, sorted, as
 * its bytes sort. That is the order in which files tend to lie on the disk, and it numbers classes
 * as torchvision's ImageFolder does.
 *
 * <p>Links to files and folders inside the source are followed; those that lead out of it, or back
 * to a folder they are in, are left out.
 */
final class FolderSource implements Source {

  private static final int NAMES_IN_MEMORY = 8 << 20;

  private final Path path;
  private final Path scratch;
  private final byte[] root;

  FolderSource(Path path, Path scratch) {
    this.path = path;
    this.scratch = scratch;
    try {
      this.root = path.toRealPath().toString().getBytes(StandardCharsets.UTF_8);
    } catch (IOException failed) {
      throw Failure.io("open " + path, failed);
    }
  }

  @Override
  public Path path() {
    return path;
  }

  @Override
  public boolean isSeekable() {
    return true;
  }

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

  @Override
  public void list(FileVisitor visitor) throws IOException {
    FileStatus status = Posix.status(root, true);
    walk(new byte[0], new Ancestor(status, 0, null), visitor);
  }

  private void walk(byte[] folder, Ancestor here, FileVisitor visitor) throws IOException {
    try (SortedSpool names =
        new SortedSpool(
            scratch.resolve("names-" + System.identityHashCode(this) + "-" + here.depth),
            NAMES_IN_MEMORY)) {
      RecordBuffer nothing = new RecordBuffer();
      try {
        Posix.list(absolute(folder), name -> names.add(name, nothing));
      } catch (PosixException failed) {
        visitor.unreadable(folder, Failure.reason(failed));
        return;
      }
      SortedSpool.Cursor cursor = names.sorted();
      while (cursor.next()) {
        RecordBuffer key = cursor.key();
        byte[] name = Arrays.copyOfRange(key.array(), key.offset(), key.offset() + key.length());
        visit(join(folder, name), here, visitor);
      }
    }
  }

  private void visit(byte[] name, Ancestor here, FileVisitor visitor) throws IOException {
    if (!Key.isUtf8(name)) {
      visitor.unreadable(name, "its name is not UTF-8; rename it");
      return;
    }
    byte[] full = absolute(name);
    FileStatus status;
    try {
      status = Posix.status(full, false);
      if (status.type() == FileStatus.Type.LINK) {
        status = Posix.status(full, true);
        if (!isInside(Posix.realPath(full))) {
          visitor.leftOut(name, "it is a link that leads out of the source");
          return;
        }
      }
    } catch (PosixException failed) {
      if (failed.number() == PosixException.ELOOP) {
        visitor.leftOut(name, "it is a link in a loop of links");
      } else {
        visitor.unreadable(name, Failure.reason(failed));
      }
      return;
    }
    switch (status.type()) {
      case FOLDER -> {
        if (here.includes(status)) {
          visitor.leftOut(name, "it is a link back to a folder it is in");
          return;
        }
        if (here.depth == 0) {
          visitor.topFolder(name);
        }
        walk(name, new Ancestor(status, here.depth + 1, here), visitor);
      }
      case FILE -> {
        if (!Posix.mayRead(full)) {
          visitor.unreadable(name, "permission denied");
        } else if (Key.fault(name) != null) {
          visitor.unreadable(name, "its path cannot be a key: " + Key.fault(name));
        } else {
          long length = status.size();
          long modified = status.modified();
          visitor.file(name, length, 0, modified, () -> Files.readAllBytes(file(full)));
        }
      }
      default -> visitor.leftOut(name, "it is neither a file nor a folder");
    }
  }

  private boolean isInside(byte[] real) {
    return real.length > root.length
        && (root.length == 1 || real[root.length] == '/')
        && Arrays.equals(real, 0, root.length, root, 0, root.length);
  }

  private static Path file(byte[] name) {
    return Path.of(new String(name, StandardCharsets.UTF_8));
  }

  private byte[] absolute(byte[] name) {
    return join(root, name);
  }

  private static byte[] join(byte[] folder, byte[] name) {
    if (folder.length == 0 || name.length == 0) {
      return folder.length == 0 ? name : folder;
    }
    byte[] joined = Arrays.copyOf(folder, folder.length + 1 + name.length);
    joined[folder.length] = '/';
    System.arraycopy(name, 0, joined, folder.length + 1, name.length);
    return joined;
  }

  @Override
  public Reader open() {
    return new FileReader();
  }

  private final class FileReader implements Reader {
    private int fd = -1;
    private long position;
    private long length;
    private long modified;

    @Override
    public void begin(ListedSample sample, int part) throws IOException {
      close();
      String suffix = sample.shape().parts().get(part);
      byte[] name = sample.key();
      if (!suffix.isEmpty()) {
        byte[] end = ("." + suffix).getBytes(StandardCharsets.UTF_8);
        name = Arrays.copyOf(name, name.length + end.length);
        System.arraycopy(end, 0, name, name.length - end.length, end.length);
      }
      fd = Posix.openToRead(absolute(name));
      position = 0;
      length = sample.lengths()[part];
      modified = sample.marks()[part];
    }

    @Override
    public int read(MemorySegment target) throws IOException {
      int count = Posix.read(fd, target, target.byteSize(), position);
      position += count;
      return count;
    }

    @Override
    public void end() throws IOException {
      boolean same = Posix.status(fd).isSameContentAs(length, modified);
      close();
      if (!same) {
        throw new ChangedException();
      }
    }

    @Override
    public void close() throws IOException {
      if (fd >= 0) {
        Posix.close(fd);
        fd = -1;
      }
    }
  }
}
