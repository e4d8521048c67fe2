package org.gristway.plan;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.gristway.chunk.Extent;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class ExtentCutsTest {

  private interface Check {
    void on(TestLayout layout, ExtentCuts cuts);
  }

  private static void forRandomCuts(String test, Check check) {
    Random random = new Random(Seeds.of(test));
    for (int i = 0; i < Thorough.count(200, 5000); i++) {
      TestLayout layout = Layouts.random(random);
      check.on(layout, ExtentCuts.cut(layout, 4096L * (1 + random.nextInt(100))));
    }
  }

  @Test
  void every_sample_lies_in_one_extent() {
    forRandomCuts(
        "every_sample_lies_in_one_extent",
        (layout, cuts) -> {
          long sample = 0;
          for (long extent = 0; extent < cuts.count(); extent++) {
            assertThat(cuts.firstSample(extent)).as(layout.id()).isEqualTo(sample);
            assertThat(cuts.firstSample(extent + 1)).as(layout.id()).isGreaterThan(sample);
            for (; sample < cuts.firstSample(extent + 1); sample++) {
              assertThat(cuts.extentOf(sample)).as(layout.id()).isEqualTo(extent);
              Extent location = layout.location(sample);
              Extent in = cuts.extent(extent);
              assertThat(location.chunk()).as(layout.id()).isEqualTo(in.chunk());
              assertThat(location.offset()).isGreaterThanOrEqualTo(in.offset());
              assertThat(location.offset() + location.length())
                  .isLessThanOrEqualTo(in.offset() + in.length());
            }
          }
          assertThat(sample).isEqualTo(layout.sampleCount());
        });
  }

  @Test
  void an_extent_fits_a_frame_or_is_one_large_sample() {
    forRandomCuts(
        "an_extent_fits_a_frame_or_is_one_large_sample",
        (layout, cuts) -> {
          for (long extent = 0; extent < cuts.count(); extent++) {
            boolean single = cuts.firstSample(extent + 1) - cuts.firstSample(extent) == 1;
            long pages = ExtentCuts.coveringBytes(cuts.extent(extent));
            assertThat(pages <= cuts.frameBytes() || single).as(layout.id()).isTrue();
            assertThat(cuts.isLarge(cuts.extent(extent))).isEqualTo(pages > cuts.frameBytes());
          }
        });
  }

  @Test
  void no_extent_has_room_for_the_next_sample() {
    forRandomCuts(
        "no_extent_has_room_for_the_next_sample",
        (layout, cuts) -> {
          for (long extent = 1; extent < cuts.count(); extent++) {
            long next = cuts.firstSample(extent);
            if (layout.location(next).chunk() == layout.location(next - 1).chunk()) {
              Extent more = cuts.span(cuts.firstSample(extent - 1), next);
              assertThat(cuts.isLarge(more)).as("%s: %d", layout.id(), extent).isTrue();
            }
          }
        });
  }

  @Test
  void the_pages_of_an_extent_are_what_reading_it_reads() {
    assertThat(ExtentCuts.coveringBytes(new Extent(0, 4096, 4096))).isEqualTo(4096);
    assertThat(ExtentCuts.coveringBytes(new Extent(0, 4095, 1))).isEqualTo(4096);
    assertThat(ExtentCuts.coveringBytes(new Extent(0, 4095, 2))).isEqualTo(8192);
    assertThat(ExtentCuts.coveringBytes(new Extent(0, 4095, 4098))).isEqualTo(12288);
    assertThat(ExtentCuts.coveringBytes(new Extent(0, 4096, 0))).isZero();
  }

  @Test
  void a_dataset_of_many_extents_is_cut_as_one_of_few() {
    ExtentCuts cuts = ExtentCuts.cut(Layouts.fixed(50_000, 2048), 4096);
    assertThat(cuts.count()).isEqualTo(25_000);
    for (long extent = 0; extent <= cuts.count(); extent++) {
      assertThat(cuts.firstSample(extent)).isEqualTo(2 * extent);
    }
  }

  @Test
  void empty_samples_without_end_do_not_make_one_extent() {
    ExtentCuts cuts = ExtentCuts.cut(Layouts.fixed(2_500_000, 0), 4096);
    assertThat(cuts.count()).isEqualTo(3);
  }
}
