package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine.TypeConversionException;

@Tag("java")
class ByteSizeTest {

  @ParameterizedTest
  @CsvSource({
    "0, 0",
    "65536, 65536",
    "12B, 12",
    "64KiB, 65536",
    "64MiB, 67108864",
    "1gib, 1073741824"
  })
  void readsSizes(String text, long bytes) {
    assertThat(new ByteSize().convert(text)).isEqualTo(bytes);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "64MB",
        "64KB",
        "64k",
        "64M",
        "MiB",
        "-1",
        "1.5MiB",
        "64 MiB x",
        "9999999999GiB"
      })
  void refusesWhatIsNotClear(String text) {
    assertThatThrownBy(() -> new ByteSize().convert(text))
        .isInstanceOf(TypeConversionException.class)
        .hasMessageContaining("'" + text + "'");
  }
}
