package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Tag("java")
class TextTest {

  @ParameterizedTest
  @CsvSource({
    "0, 0 bytes",
    "1, 1 byte",
    "1023, '1,023 bytes'",
    "1024, 1.0 KiB",
    "1048575, 1.0 MiB",
    "10695475, 10.2 MiB",
    "1099511627776, 1.0 TiB"
  })
  void writesSizes(long bytes, String text) {
    assertThat(Text.bytes(bytes)).isEqualTo(text);
  }

  @Test
  void countsThings() {
    assertThat(Text.count(1, "sample")).isEqualTo("1 sample");
    assertThat(Text.count(1000, "sample")).isEqualTo("1,000 samples");
  }

  @Test
  void escapesNamesTheSameWayAsTextAndAsBytes() throws IOException {
    String name = "\\a\tb\nc\rd é\\";
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    Text.writeEscaped(name.getBytes(StandardCharsets.UTF_8), out);
    assertThat(out.toString(StandardCharsets.UTF_8)).isEqualTo("\\\\a\\tb\\nc\\rd é\\\\");
    assertThat(Text.escape(name)).isEqualTo("\\\\a\\tb\\nc\\rd é\\\\");
  }

  @Test
  void escapesEveryControlCharacterAndNothingElse() throws IOException {
    for (int c = 1; c < 0x3000; c++) {
      String name = "a" + Character.toString(c) + "b";
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      Text.writeEscaped(name.getBytes(StandardCharsets.UTF_8), out);
      String escaped = out.toString(StandardCharsets.UTF_8);
      assertThat(escaped).isEqualTo(Text.escape(name));
      assertThat(escaped.codePoints()).noneMatch(Character::isISOControl);
      if (!Character.isISOControl(c) && c != '\\') {
        assertThat(escaped).isEqualTo(name);
      }
    }
  }

  @Test
  void quotesPathsForShells() {
    assertThat(Text.shellQuote("/tmp/a-b_c.gw")).isEqualTo("/tmp/a-b_c.gw");
    assertThat(Text.shellQuote("it's mine")).isEqualTo("'it'\\''s mine'");
  }

  @Test
  void findsWhatWasMeant() {
    List<String> commands = List.of("pack", "unpack", "ls", "cat");
    assertThat(Nearest.of("pakc", commands)).contains("pack");
    assertThat(Nearest.of("unpak", commands)).contains("unpack");
    assertThat(Nearest.of("sl", commands)).contains("ls");
    assertThat(Nearest.of("frobnicate", commands)).isEmpty();
    assertThat(Nearest.of("xy", commands)).isEmpty();
  }
}
