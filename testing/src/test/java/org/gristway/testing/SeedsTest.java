package org.gristway.testing;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class SeedsTest {
  private String given;

  @BeforeEach
  void remember() {
    given = System.getProperty("gristway.seed");
  }

  @AfterEach
  void restore() {
    if (given == null) {
      System.clearProperty("gristway.seed");
    } else {
      System.setProperty("gristway.seed", given);
    }
  }

  @Test
  void givenSeedIsUsed() {
    System.setProperty("gristway.seed", "7");
    assertThat(Seeds.of("givenSeedIsUsed")).isEqualTo(7);
  }

  @Test
  void seedsDifferWhenNoneIsGiven() {
    System.clearProperty("gristway.seed");
    assertThat(Seeds.of("first")).isNotEqualTo(Seeds.of("second"));
  }
}
