package org.gristway.cli.system;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import org.gristway.cli.Cli;
import org.gristway.testing.SystemTest;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What somebody else than root may not do. */
@SystemTest
class NoPermissionTest {

  private static final int NOBODY = 65534;

  @TempDir Path folder;

  private Path jar;
  private Path source;

  /** Belongs to the user. */
  private Path place;

  @BeforeEach
  void makeSource() throws IOException {
    mode(folder, "rwxr-xr-x");
    jar = folder.resolve("gristway.jar");
    Files.copy(Path.of(System.getProperty("gristway.jar")), jar);
    source = folder.resolve("source");
    for (String name : List.of("a/1", "a/2", "b/3", "b/c/4", "d/5")) {
      Files.createDirectories(source.resolve(name).getParent());
      Files.writeString(source.resolve(name), "the bytes of " + name);
    }
    place = Files.createDirectory(folder.resolve("place"));
    Files.setAttribute(place, "unix:uid", NOBODY);
  }

  private static void mode(Path path, String mode) throws IOException {
    Files.setPosixFilePermissions(path, PosixFilePermissions.fromString(mode));
  }

  private Cli.Result asUser(Object... args) {
    return new Cli()
        .through("setpriv", "--reuid=" + NOBODY, "--regid=" + NOBODY, "--clear-groups")
        .java("-XX:-UsePerfData")
        .jar(jar)
        .in(place)
        .call(args);
  }

  /** A dataset that everybody can read and only root can change. */
  private Path dataset() {
    Path dataset = folder.resolve("data.gw");
    Cli.run("pack", source, dataset).isDone();
    return dataset;
  }

  private void assertUnreadable(String... names) throws IOException {
    Cli.Result result = asUser("pack", source, "new.gw");
    assertThat(result.exit()).isEqualTo(3);
    assertThat(result.out()).isEmpty();
    List<String> lines = result.err().lines().toList();
    assertThat(lines).hasSize(names.length + 1);
    for (int i = 0; i < names.length; i++) {
      assertThat(lines.get(i))
          .isEqualTo("gristway: unreadable: " + source + "/" + names[i] + ": permission denied");
    }
    assertThat(lines.getLast())
        .startsWith("gristway: " + names.length + " file")
        .contains("could not be read", "nothing was published", "--skip-unreadable");
    assertThat(Trees.names(place)).isEmpty();
  }

  private void assertPackedWithout(List<String> left, String... keys) throws IOException {
    Cli.Result result = asUser("pack", "--skip-unreadable", source, "new.gw");
    assertThat(result.exit()).as(result.err()).isZero();
    assertThat(result.err().lines())
        .containsExactlyElementsOf(
            left.stream()
                .map(name -> "gristway: left out: " + source + "/" + name + ": permission denied")
                .toList());
    assertThat(asUser("ls", "new.gw").isDone().outText().lines()).containsExactly(keys);
    assertThat(Trees.names(place)).containsExactly("new.gw");
    Trees.verify(place.resolve("new.gw"));
  }

  @Test
  void filesThatCannotBeReadAreNamedAndMayBeLeftOut() throws IOException {
    mode(source.resolve("a/2"), "---------");
    mode(source.resolve("b/c/4"), "-w--w--w-");
    assertUnreadable("a/2", "b/c/4");
    assertPackedWithout(List.of("a/2", "b/c/4"), "a/1", "b/3", "d/5");
  }

  @Test
  void foldersThatCannotBeListedAreNamedAndMayBeLeftOut() throws IOException {
    mode(source.resolve("b"), "--x--x--x");
    assertUnreadable("b/");
    assertPackedWithout(List.of("b/"), "a/1", "a/2", "d/5");
  }

  @Test
  void filesInAFolderThatCannotBeEnteredAreNamedAndMayBeLeftOut() throws IOException {
    mode(source.resolve("a"), "r--r--r--");
    assertUnreadable("a/1", "a/2");
    assertPackedWithout(List.of("a/1", "a/2"), "b/3", "b/c/4", "d/5");
  }

  @Test
  void aSourceThatCannotBeListedIsNamed() throws IOException {
    mode(source, "---------");
    Cli.Result result = asUser("pack", source, "new.gw");
    assertThat(result.exit()).isEqualTo(3);
    assertThat(result.err()).contains(source.toString(), "permission denied").doesNotContain("bug");
    assertThat(Trees.names(place)).isEmpty();
  }

  @Test
  void anArchiveThatCannotBeReadIsNamed() throws IOException {
    Path tar = folder.resolve("source.tar");
    Commands.run("tar", "-C", source.toString(), "-cf", tar.toString(), "a");
    mode(tar, "---------");
    assertThat(asUser("pack", tar, "new.gw").complaint(3))
        .contains(tar.toString())
        .containsIgnoringCase("permission denied");
    assertThat(Trees.names(place)).isEmpty();
  }

  @Test
  void aTargetWhoseFolderCannotBeWrittenToIsNamed() throws IOException {
    Path closed = Files.createDirectory(folder.resolve("closed"));
    assertThat(asUser("pack", source, closed.resolve("new.gw")).complaint(3))
        .contains(closed.resolve("new.gw") + ": ")
        .contains("ermission denied; check who owns it and its mode");
    assertThat(Trees.names(closed)).isEmpty();
  }

  @Test
  void aPageWhoseFolderCannotBeWrittenToIsNamed() throws IOException {
    Path closed = Files.createDirectory(folder.resolve("closed"));
    Path page = Files.writeString(closed.resolve("plan.html"), "old");
    assertThat(asUser("plan", dataset(), "--html", page).complaint(3))
        .contains(page + ": permission denied");
    assertThat(page).hasContent("old");
  }

  @Test
  void aDatasetOfSomebodyElseIsNotChanged() throws IOException {
    Path dataset = dataset();
    Path copy = Trees.copy(dataset, folder.resolve("copy.gw"));
    Path more = Files.createDirectory(place.resolve("more"));
    Files.writeString(more.resolve("6"), "more");
    mode(more.resolve("6"), "rw-r--r--");
    for (Cli.Result result :
        List.of(
            asUser("append", more, dataset),
            asUser("rebuild", dataset),
            asUser("pack", "--force", more, dataset))) {
      assertThat(result.complaint(3)).contains(dataset.toString(), "ermission denied");
    }
    Trees.assertIdentical(dataset, copy);
  }

  @Test
  void aDatasetThatCanOnlyBeReadServesAllReaders() {
    Path dataset = dataset();
    asUser("verify", dataset).isDone();
    asUser("info", dataset).isDone();
    assertThat(asUser("cat", dataset, "b/c/4").isDone().outText()).isEqualTo("the bytes of b/c/4");
    asUser("unpack", dataset, "files").isDone();
    assertThat(place.resolve("files/d/5")).hasContent("the bytes of d/5");
  }

  /** Nobody knows whether it is damaged, so it is not called that. */
  @ParameterizedTest
  @ValueSource(strings = {"chunk-000000.gwc", "snapshot-000001.gws"})
  void aDatasetThatCannotBeReadIsNotTakenForADamagedOne(String name) throws IOException {
    Path dataset = dataset();
    Path file = dataset.resolve(name);
    mode(file, "-w-------");
    for (Cli.Result result :
        List.of(
            asUser("verify", dataset),
            asUser("cat", dataset, "a/1"),
            asUser("unpack", dataset, "files"))) {
      assertThat(result.complaint(3))
          .contains(file.toString())
          .contains("ermission denied; check who owns it and its mode");
    }
  }

  @Test
  void unpackNamesAFolderThatItCannotWriteTo() throws IOException {
    Path closed = Files.createDirectory(folder.resolve("closed"));
    Path dataset = dataset();
    assertThat(asUser("unpack", dataset, closed).complaint(3)).contains("permission denied");
    assertThat(asUser("unpack", dataset, closed.resolve("new")).complaint(3))
        .contains("permission denied");
    assertThat(Trees.names(closed)).isEmpty();
  }

  @Test
  void demoNamesAFolderThatItCannotWriteTo() throws IOException {
    Path closed = Files.createDirectory(folder.resolve("closed"));
    Cli.Result result = asUser("demo", closed);
    assertThat(result.exit()).isEqualTo(3);
    assertThat(result.err()).contains("permission denied").hasLineCount(1);
    assertThat(Trees.names(closed)).isEmpty();
  }
}
