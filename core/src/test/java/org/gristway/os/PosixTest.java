package org.gristway.os;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardWatchEventKinds;
import java.nio.file.WatchKey;
import java.nio.file.WatchService;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Stream;
import org.gristway.pack.Programs;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("java")
class PosixTest {

  @TempDir Path folder;

  private static byte[] bytes(Path path) {
    return path.toString().getBytes(StandardCharsets.UTF_8);
  }

  @Test
  void folders_are_listed_with_the_bytes_of_their_names() throws IOException {
    Files.createFile(folder.resolve("plain"));
    Files.createFile(folder.resolve("été"));
    Files.createDirectory(folder.resolve("n".repeat(255)));
    Programs.sh(folder, "touch \"$(printf 'bad\\377name')\" .hidden ...");
    List<String> names = new ArrayList<>();
    Posix.list(bytes(folder), name -> names.add(HexFormat.of().formatHex(name)));
    assertThat(names)
        .containsExactlyInAnyOrder(
            hex("plain"),
            hex("été"),
            hex("n".repeat(255)),
            "626164ff6e616d65",
            hex(".hidden"),
            hex("..."));
  }

  private static String hex(String text) {
    return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
  }

  @Test
  void what_cannot_be_listed_says_why() throws IOException {
    Path file = Files.createFile(folder.resolve("file"));
    assertThatThrownBy(() -> Posix.list(bytes(file), name -> {}))
        .isInstanceOf(PosixException.class)
        .hasMessage("Not a directory");
    assertThatThrownBy(() -> Posix.list(bytes(folder.resolve("none")), name -> {}))
        .isInstanceOfSatisfying(
            PosixException.class, e -> assertThat(e.number()).isEqualTo(PosixException.ENOENT));
    assertThatThrownBy(() -> Posix.open(new byte[5000], Posix.READ_ONLY))
        .hasMessage("File name too long");
  }

  @Test
  void status_tells_type_size_time_and_identity() throws IOException {
    Path file = Files.write(folder.resolve("file"), new byte[123]);
    Path link = Files.createSymbolicLink(folder.resolve("link"), Path.of("file"));
    Programs.sh(folder, "mkfifo pipe");
    Instant time = Instant.parse("2001-02-03T04:05:06.123456789Z");
    Files.setLastModifiedTime(file, FileTime.from(time));

    FileStatus status = Posix.status(bytes(file), true);
    assertThat(status.type()).isEqualTo(FileStatus.Type.FILE);
    assertThat(status.size()).isEqualTo(123);
    assertThat(status.modified())
        .isEqualTo(time.getEpochSecond() * 1_000_000_000L + time.getNano());
    assertThat(status.inode()).isEqualTo(Files.getAttribute(file, "unix:ino"));
    assertThat(Posix.status(bytes(link), true).isSameFileAs(status)).isTrue();
    assertThat(Posix.status(bytes(link), false).type()).isEqualTo(FileStatus.Type.LINK);
    assertThat(Posix.status(bytes(folder), true).type()).isEqualTo(FileStatus.Type.FOLDER);
    assertThat(Posix.status(bytes(folder.resolve("pipe")), true).type())
        .isEqualTo(FileStatus.Type.OTHER);
    assertThat(Posix.mayRead(bytes(file))).isTrue();
    assertThat(Posix.mayRead(bytes(folder.resolve("none")))).isFalse();
    int fd = Posix.open(bytes(file), Posix.READ_ONLY);
    assertThat(Posix.status(fd).isSameFileAs(status)).isTrue();
    assertThat(Posix.isTerminal(fd)).isFalse();
    Posix.close(fd);
    assertThatThrownBy(() -> Posix.close(fd)).isInstanceOf(PosixException.class);
  }

  @Test
  void loops_of_links_and_real_paths_are_resolved() throws IOException {
    Files.createSymbolicLink(folder.resolve("loop"), Path.of("loop"));
    assertThatThrownBy(() -> Posix.status(bytes(folder.resolve("loop")), true))
        .isInstanceOfSatisfying(
            PosixException.class, e -> assertThat(e.number()).isEqualTo(PosixException.ELOOP));
    Path real = Files.createDirectory(folder.toRealPath().resolve("réal"));
    Files.createSymbolicLink(folder.resolve("link"), Path.of("réal"));
    assertThat(Posix.realPath(bytes(folder.resolve("link/../link/.")))).isEqualTo(bytes(real));
  }

  @Test
  void two_paths_are_exchanged_in_one_step() throws IOException {
    Path one = Files.createDirectory(folder.resolve("one"));
    Path two = Files.createDirectory(folder.resolve("two"));
    Files.createFile(one.resolve("first"));
    Files.createFile(two.resolve("second"));
    Posix.exchange(bytes(one), bytes(two));
    assertThat(one.resolve("second")).exists();
    assertThat(two.resolve("first")).exists();
    assertThatThrownBy(() -> Posix.exchange(bytes(one), bytes(folder.resolve("none"))))
        .isInstanceOf(PosixException.class);
  }

  @Test
  void a_file_without_a_name_is_seen_by_nobody_and_opened_by_its_owner_alone() throws Exception {
    try (WatchService watch = folder.getFileSystem().newWatchService();
        Arena arena = Arena.ofConfined()) {
      folder.register(watch, StandardWatchEventKinds.ENTRY_CREATE);
      try (NativeFile nameless = NativeFile.createNameless(folder);
          NativeFile unnamed = NativeFile.createAndUnname(folder)) {
        Files.createFile(folder.resolve("last"));
        List<String> seen = new ArrayList<>();
        while (!seen.contains("last")) {
          WatchKey key = watch.take();
          key.pollEvents().forEach(event -> seen.add(event.context().toString()));
          key.reset();
        }
        assertThat(seen).hasSize(2).element(0).asString().startsWith(".gristway-");
        try (Stream<Path> left = Files.list(folder)) {
          assertThat(left).containsExactly(folder.resolve("last"));
        }
        for (NativeFile file : List.of(nameless, unnamed)) {
          assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(open(file))))
              .isEqualTo("rw-------");
          MemorySegment memory = arena.allocateFrom("text");
          file.write(memory, 5, 10_000);
          memory.fill((byte) 0);
          file.readFully(memory, 5, 10_000);
          assertThat(memory.getString(0)).isEqualTo("text");
        }
      }
    }
    assertThatThrownBy(() -> NativeFile.createNameless(folder.resolve("none")))
        .hasMessage("no such file or folder");
  }

  private static Path open(NativeFile file) {
    return Path.of("/proc/self/fd", String.valueOf(file.descriptor()));
  }

  @Test
  void files_are_written_and_read_at_any_place() throws IOException {
    Path path = folder.resolve("file");
    try (Arena arena = Arena.ofConfined();
        NativeFile file = NativeFile.create(path)) {
      MemorySegment memory = arena.allocate(100_000);
      memory.fill((byte) 7);
      file.allocate(300_000);
      assertThat(file.size()).isEqualTo(300_000);
      file.write(memory, 100_000, 150_000);
      file.sync();
      memory.fill((byte) 0);
      file.readFully(memory, 100_000, 100_000);
      assertThat(memory.get(ValueLayout.JAVA_BYTE, 49_999)).isZero();
      assertThat(memory.get(ValueLayout.JAVA_BYTE, 50_000)).isEqualTo((byte) 7);
      assertThat(file.read(memory, 100_000, 250_000)).isEqualTo(50_000);
      assertThat(file.read(memory, 100_000, 400_000)).isZero();
      assertThatThrownBy(() -> file.readFully(memory, 100_000, 250_000))
          .isInstanceOf(EOFException.class);
      assertThatThrownBy(() -> file.read(memory, 100_001, 0))
          .isInstanceOf(IndexOutOfBoundsException.class);
    }
    assertThatThrownBy(() -> NativeFile.create(path)).hasMessage("File exists");
    try (Arena arena = Arena.ofConfined();
        NativeFile file = NativeFile.openDirect(path)) {
      MemorySegment memory = arena.allocate(1 << 20, NativeFile.DIRECT_ALIGNMENT);
      assertThat(file.read(memory, 1 << 20, 0)).isEqualTo(300_000);
      assertThat(memory.get(ValueLayout.JAVA_BYTE, 200_000)).isEqualTo((byte) 7);
    }
  }
}
