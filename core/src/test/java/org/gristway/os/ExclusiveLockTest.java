package org.gristway.os;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.gristway.Failure;
import org.gristway.dataset.Workers;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("java")
class ExclusiveLockTest {

  @TempDir Path folder;

  @Test
  void one_holder_at_a_time() throws IOException {
    Path path = folder.resolve("lock");
    try (ExclusiveLock held = ExclusiveLock.tryTake(path).orElseThrow()) {
      assertThat(held).isNotNull();
      assertThat(path).exists();
      assertThat(ExclusiveLock.tryTake(path)).isEmpty();
      assertThat(ExclusiveLock.tryTake(path)).isEmpty();
    }
    assertThat(path).doesNotExist();
    ExclusiveLock.tryTake(path).orElseThrow().close();
  }

  @Test
  void a_file_that_a_kill_left_locks_nobody_out() throws IOException {
    Path path = Files.writeString(folder.resolve("lock"), "left behind");
    ExclusiveLock.tryTake(path).orElseThrow().close();
    assertThat(path).doesNotExist();
  }

  @Test
  void a_lock_whose_file_was_deleted_does_not_stop_the_next_holder() throws IOException {
    Path path = folder.resolve("lock");
    try (ExclusiveLock first = ExclusiveLock.tryTake(path).orElseThrow()) {
      Files.delete(path);
      try (ExclusiveLock second = ExclusiveLock.tryTake(path).orElseThrow()) {
        assertThat(second).isNotSameAs(first);
        assertThat(ExclusiveLock.tryTake(path)).isEmpty();
      }
    }
  }

  @Test
  void a_link_in_its_place_is_refused_and_nothing_is_made_where_it_leads() throws IOException {
    Path path = folder.resolve("lock");
    Path elsewhere = folder.resolve("elsewhere");
    for (Path target : List.of(elsewhere, Path.of("lock"))) {
      Files.createSymbolicLink(path, target);
      assertThatThrownBy(() -> ExclusiveLock.tryTake(path))
          .isInstanceOfSatisfying(
              Failure.class, f -> assertThat(f.kind()).isEqualTo(Failure.Kind.ENVIRONMENT))
          .hasMessageContainingAll(path.toString(), target.toString(), "link", "delete it");
      assertThat(elsewhere).doesNotExist();
      assertThat(path).isSymbolicLink();
      Files.delete(path);
    }
    Files.createSymbolicLink(path, Files.createFile(elsewhere));
    assertThatThrownBy(() -> ExclusiveLock.tryTake(path)).isInstanceOf(Failure.class);
    assertThat(elsewhere).isEmptyFile();
  }

  @Test
  void its_file_is_its_holders_alone() throws IOException {
    Path path = folder.resolve("lock");
    try (ExclusiveLock held = ExclusiveLock.tryTake(path).orElseThrow()) {
      assertThat(held).isNotNull();
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(path)))
          .isEqualTo("rw-------");
    }
  }

  @Test
  void many_threads_never_hold_it_together() {
    Path path = folder.resolve("lock");
    AtomicInteger holders = new AtomicInteger();
    AtomicInteger taken = new AtomicInteger();
    Workers.run(
        "lock",
        8,
        () -> {
          for (int i = 0; i < 500; i++) {
            try {
              Optional<ExclusiveLock> lock = ExclusiveLock.tryTake(path);
              if (lock.isPresent()) {
                try (ExclusiveLock _ = lock.get()) {
                  assertThat(holders.incrementAndGet()).isEqualTo(1);
                  taken.incrementAndGet();
                  holders.decrementAndGet();
                }
              }
            } catch (IOException failed) {
              throw new java.io.UncheckedIOException(failed);
            }
          }
        });
    assertThat(taken.get()).isPositive();
  }
}
