package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.awt.image.BufferedImage;
import java.io.ByteArrayInputStream;
import javax.imageio.ImageIO;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class DemoImagesTest {

  @Test
  void they_are_real_pictures_and_always_the_same() throws Exception {
    for (int kind = 0; kind < DemoImages.CLASSES.size(); kind++) {
      byte[] png = DemoImages.png(kind, 3);
      BufferedImage image = ImageIO.read(new ByteArrayInputStream(png));
      assertThat(image.getWidth()).isEqualTo(DemoImages.SIDE);
      assertThat(image.getHeight()).isEqualTo(DemoImages.SIDE);
      assertThat(DemoImages.png(kind, 3)).isEqualTo(png);
      assertThat(DemoImages.png(kind, 4)).isNotEqualTo(png);
    }
  }

  @Test
  void they_are_as_large_as_small_photographs() {
    for (int number = 0; number < 20; number++) {
      assertThat(DemoImages.png(number % 5, number)).hasSizeBetween(8_000, 13_000);
    }
  }
}
