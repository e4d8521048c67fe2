package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;

import org.gristway.chunk.Extent;
import org.gristway.plan.SampleLayout;
import org.gristway.simulator.Described;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class ExcerptTest {

  private static final SampleLayout WHOLE =
      new Described(50_000, Described.Kind.LOGNORMAL, 20_000, 10_000, 1).layout(3);

  @Test
  void a_small_dataset_is_taken_as_it_is() {
    assertThat(Excerpt.of(WHOLE, 50_000)).isSameAs(WHOLE);
  }

  @Test
  void chunks_are_those_of_the_whole_and_lie_at_equal_distances() {
    SampleLayout excerpt = Excerpt.of(WHOLE, 10_000);
    int perChunk = (int) WHOLE.firstSample(1);
    assertThat(WHOLE.chunkCount()).isEqualTo(15);
    assertThat(excerpt.chunkCount()).isEqualTo(3);
    assertThat(excerpt.sampleCount()).isEqualTo(3 * perChunk);
    for (int chunk = 0; chunk < 3; chunk++) {
      assertThat(excerpt.firstSample(chunk)).isEqualTo((long) chunk * perChunk);
      long there = WHOLE.firstSample(5 * chunk);
      for (int i = 0; i < perChunk; i++) {
        long sample = excerpt.firstSample(chunk) + i;
        Extent expected = WHOLE.location(there + i);
        assertThat(excerpt.length(sample)).isEqualTo(expected.length());
        assertThat(excerpt.location(sample))
            .isEqualTo(new Extent(chunk, expected.offset(), expected.length()));
      }
    }
    assertThat(excerpt.firstSample(3)).isEqualTo(excerpt.sampleCount());
  }

  @Test
  void neighbours_of_a_chunk_are_taken_for_one() {
    SampleLayout coarse = new CoarseLayout(WHOLE, 100);
    long perChunk = WHOLE.firstSample(1);
    assertThat(perChunk % 100).isNotZero();
    assertThat(coarse.chunkCount()).isEqualTo(15);
    assertThat(coarse.firstSample(1)).isEqualTo(Math.ceilDiv(perChunk, 100));
    assertThat(coarse.firstSample(15)).isEqualTo(coarse.sampleCount());
    for (int chunk = 0; chunk < 15; chunk++) {
      long at = 0;
      for (long i = coarse.firstSample(chunk); i < coarse.firstSample(chunk + 1); i++) {
        assertThat(coarse.location(i)).isEqualTo(new Extent(chunk, at, coarse.length(i)));
        at += coarse.length(i);
      }
      Extent last = WHOLE.location(WHOLE.firstSample(chunk + 1) - 1);
      assertThat(at).isEqualTo(last.offset() + last.length());
    }
  }
}
