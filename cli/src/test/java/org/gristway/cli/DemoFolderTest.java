package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.nio.file.Files;
import java.nio.file.Path;
import org.gristway.Failure;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("java")
class DemoFolderTest {

  @TempDir Path folder;

  @Test
  void makes_the_folder_and_those_above_it() {
    Path wanted = folder.resolve("a/b");
    assertThat(DemoFolder.prepare(wanted, 1)).isEqualTo(wanted).isEmptyDirectory();
    assertThat(DemoFolder.prepare(wanted, 1)).isEqualTo(wanted);
  }

  @Test
  void makes_one_for_temporary_files_if_none_is_given() throws Exception {
    Path made = DemoFolder.prepare(null, 1);
    assertThat(made).isEmptyDirectory();
    assertThat(made.getFileName().toString()).startsWith("gristway-demo-");
    Files.delete(made);
  }

  @Test
  void makes_nothing_where_there_is_too_little_space() {
    Path wanted = folder.resolve("a/b");
    Failure failure =
        catchThrowableOfType(Failure.class, () -> DemoFolder.prepare(wanted, Long.MAX_VALUE));
    assertThat(failure.kind()).isEqualTo(Failure.Kind.ENVIRONMENT);
    assertThat(failure).hasMessageContaining("8.0 EiB").hasMessageContaining("--files");
    assertThat(folder).isEmptyDirectory();
  }
}
