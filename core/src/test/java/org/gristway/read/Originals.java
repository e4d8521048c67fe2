package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.gristway.chunk.ChunkFormat;
import org.gristway.chunk.Extent;
import org.gristway.dataset.Dataset;
import org.gristway.dataset.Sample;
import org.gristway.handover.Batch;

/** What a dataset holds, by sample: what deliveries are held against, and what tests damage. */
final class Originals {

  private record Original(
      String key, int label, byte[] bytes, List<Sample.Part> parts, Extent location) {}

  private final Path path;
  private final List<Original> samples = new ArrayList<>();

  private Originals(Path path) {
    this.path = path;
  }

  /** Reads a sound dataset. */
  static Originals of(Path path) {
    Originals originals = new Originals(path);
    try (Dataset dataset = Dataset.open(path)) {
      for (Sample sample : dataset) {
        originals.samples.add(
            new Original(
                sample.key(),
                sample.label(),
                dataset.read(sample),
                sample.parts(),
                dataset.snapshot().location(sample.id())));
      }
    }
    return originals;
  }

  Path path() {
    return path;
  }

  int count() {
    return samples.size();
  }

  /** The sum of all lengths. */
  long bytes() {
    return samples.stream().mapToLong(sample -> sample.bytes.length).sum();
  }

  /** The length of the longest. */
  int longest() {
    return samples.stream().mapToInt(sample -> sample.bytes.length).max().orElse(0);
  }

  String key(long sample) {
    return samples.get((int) sample).key;
  }

  int length(long sample) {
    return samples.get((int) sample).bytes.length;
  }

  byte[] data(long sample) {
    return samples.get((int) sample).bytes;
  }

  Extent location(long sample) {
    return samples.get((int) sample).location;
  }

  Path chunk(long sample) {
    return path.resolve(ChunkFormat.fileName(location(sample).chunk()));
  }

  /** A place's bytes, label, key and parts are those of the sample that it says it holds. */
  void assertOwn(Batch batch, int place) {
    Original own = samples.get((int) batch.sample(place));
    assertThat(batch.key(place)).isEqualTo(own.key);
    assertThat(batch.label(place)).as(own.key).isEqualTo(own.label);
    assertThat(batch.length(place)).as(own.key).isEqualTo(own.bytes.length);
    assertThat(batch.bytes(place)).as(own.key).isEqualTo(own.bytes);
    assertThat(batch.partEnds(place))
        .as(own.key)
        .containsExactly(own.parts.stream().mapToLong(p -> p.offset() + p.length()).toArray());
  }

  /** Flips one byte of a sample in its chunk; doing it again brings it back. */
  void flip(long sample, int at) {
    try (RandomAccessFile file = new RandomAccessFile(chunk(sample).toFile(), "rw")) {
      long position = location(sample).offset() + at;
      file.seek(position);
      int value = file.read();
      file.seek(position);
      file.write(value ^ 0x20);
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }
}
