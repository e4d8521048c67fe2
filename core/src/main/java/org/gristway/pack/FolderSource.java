package org.gristway.pack;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.gristway.Failure;
import org.gristway.os.Posix;

/**
 * A folder and all below it, in the order of names: what a folder holds stands together, sorted, as
 * its bytes sort. That is the order in which files tend to lie on the disk, and it numbers classes
 * as torchvision's ImageFolder does.
 *
 * <p>Links to files and folders inside the source are followed; those that lead out of it, or back
 * to a folder they are in, are left out.
 */
final class FolderSource implements Source {

  private final Path path;
  private final Path scratch;
  private final int threads;
  private final byte[] root;

  FolderSource(Path path, Path scratch, int threads) {
    this.path = path;
    this.scratch = scratch;
    this.threads = threads;
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

  @Override
  public void list(FileVisitor visitor) throws IOException {
    try (FolderWalk walk = new FolderWalk(root, scratch, threads, visitor)) {
      walk.run();
    }
  }

  static byte[] readSmall(byte[] name) throws IOException {
    return Files.readAllBytes(Path.of(new String(name, StandardCharsets.UTF_8)));
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
      fd = Posix.openToRead(FolderWalk.join(root, name));
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
