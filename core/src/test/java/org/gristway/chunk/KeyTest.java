package org.gristway.chunk;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Tag("java")
class KeyTest {

  @ParameterizedTest
  @ValueSource(strings = {"a", "a/b", "...", "a/.b", "a/..b", "..a/b", " ", "é/中", "a\\b", "a\nb"})
  void relative_paths_are_keys(String key) {
    assertThat(Key.fault(key.getBytes(UTF_8))).isNull();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"", "/", "/a", "a/", "a//b", ".", "..", "./a", "a/.", "a/../b", "../a", "a\0b"})
  void what_could_lead_out_of_a_folder_is_no_key(String key) {
    assertThat(Key.fault(key.getBytes(UTF_8))).isNotNull();
  }

  @Test
  void keys_are_text_of_a_length_that_paths_have() {
    assertThat(Key.fault("x".repeat(4095).getBytes(UTF_8))).isNull();
    assertThat(Key.fault("x".repeat(4096).getBytes(UTF_8))).contains("longer");
    assertThat(Key.fault(new byte[] {'a', (byte) 0xe9})).contains("UTF-8");
    assertThat(Key.fault(new byte[] {(byte) 0xed, (byte) 0xa0, (byte) 0x80})).contains("UTF-8");
  }

  @Test
  void names_of_any_bytes_can_be_shown() {
    assertThat(Key.escape("été".getBytes(UTF_8))).isEqualTo("été");
    assertThat(Key.escape(new byte[] {'a', (byte) 0xff, '\\', 0x7f, 1}))
        .isEqualTo("a\\xff\\x5c\\x7f\\x01");
  }

  @Test
  void a_key_is_shown_without_control_characters() {
    assertThat(Key.escape("é\u001b]0;x\u0007\n\u007f\u009b1m".getBytes(UTF_8)))
        .isEqualTo("é\\x1b]0;x\\x07\\n\\x7f\\x9b1m");
  }

  @Test
  void the_first_folder_is_what_stands_before_the_first_slash() {
    assertThat(Key.firstFolder("a/b/c".getBytes(UTF_8))).isEqualTo("a".getBytes(UTF_8));
    assertThat(Key.firstFolder("a".getBytes(UTF_8))).isNull();
  }
}
