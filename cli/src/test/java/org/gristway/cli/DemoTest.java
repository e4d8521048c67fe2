package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("java")
class DemoTest {

  @TempDir Path folder;

  @Test
  void showsEachStepAndCommandsThatWork() throws Exception {
    String out = new Cli().java("-Djava.io.tmpdir=" + folder).call("demo").isDone().outText();
    assertThat(out)
        .contains("1. Make files", "2. Pack", "3. Verify", "4. List", "5. Read a sample")
        .contains("every checksum holds", "has the same bytes as its file", "Times and sizes");
    List<String> advice =
        out.lines().map(String::strip).filter(line -> line.startsWith("./gristway ")).toList();
    assertThat(advice).hasSizeGreaterThanOrEqualTo(4);
    for (String line : advice) {
      String call = line.substring("./gristway ".length()).replaceAll(" [|>].*", "");
      assertThat(new Cli().call((Object[]) call.split(" ")).isDone().out()).isNotEmpty();
    }
  }

  @Test
  void makesNothingInAFolderThatIsNotEmpty() throws Exception {
    Files.createFile(folder.resolve("mine"));
    assertThat(Cli.run("demo", folder).complaint(2)).contains("is not empty");
  }
}
