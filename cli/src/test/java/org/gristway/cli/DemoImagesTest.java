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
  void areRealPicturesAndAlwaysTheSame() throws Exception {
    for (int kind = 0; kind < DemoImages.CLASSES.size(); kind++) {
      byte[] png = DemoImages.png(kind, 3);
      BufferedImage image = ImageIO.read(new ByteArrayInputStream(png));
      assertThat(image.getWidth()).isEqualTo(48);
      assertThat(image.getHeight()).isEqualTo(48);
      assertThat(DemoImages.png(kind, 3)).isEqualTo(png);
      assertThat(DemoImages.png(kind, 4)).isNotEqualTo(png);
    }
  }
}
