package org.gristway.pack;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.assertj.core.api.Assertions;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.gristway.Failure;
import org.gristway.Progress;
import org.gristway.dataset.Dataset;
import org.gristway.dataset.Sample;

/** Packs for tests, and what they look at afterwards. */
public final class Packs {

  /** The smallest chunks there are, so that small trees make several. */
  public static final PackOptions SMALL_CHUNKS = PackOptions.DEFAULT.withChunkSize(64 << 10);

  private Packs() {}

  public static PackReport pack(Path source, Path target) {
    return pack(List.of(source), target, SMALL_CHUNKS);
  }

  public static PackReport pack(List<Path> sources, Path target, PackOptions options) {
    return Packer.pack(sources, target, options, Progress.NONE, line -> {});
  }

  /** Packs a tree through a folder beside the target. */
  public static Path pack(Map<String, byte[]> tree, Path target) {
    pack(Trees.write(tree, target.resolveSibling(target.getFileName() + "-source")), target);
    return target;
  }

  public static PackReport append(Path source, Path target) {
    return append(List.of(source), target, SMALL_CHUNKS);
  }

  public static PackReport append(List<Path> sources, Path target, PackOptions options) {
    return Packer.append(sources, target, options, Progress.NONE, line -> {});
  }

  /** Packs and returns what was said to be left out. */
  static List<String> packTelling(Path source, Path target, PackOptions options) {
    List<String> lines = new ArrayList<>();
    Packer.pack(List.of(source), target, options, Progress.NONE, lines::add);
    return lines;
  }

  /** The label and the parts of every sample, by key, each read from the dataset. */
  public static SortedMap<String, Content> contents(Path dataset) {
    SortedMap<String, Content> contents = new TreeMap<>(Trees.SOURCE_ORDER);
    try (Dataset open = Dataset.open(dataset)) {
      for (Sample sample : open) {
        contents.put(sample.key(), content(open, sample));
      }
      assertThat(open.size()).isEqualTo(contents.size());
    }
    return contents;
  }

  public static Content content(Dataset dataset, Sample sample) {
    SortedMap<String, byte[]> parts = new TreeMap<>();
    for (Sample.Part part : sample.parts()) {
      parts.put(part.name(), dataset.read(sample, part));
    }
    return new Content(sample.label(), parts);
  }

  /** What a sample is to its user. Equal if labels, part names and bytes are. */
  public record Content(int label, SortedMap<String, byte[]> parts) {

    @Override
    public boolean equals(Object other) {
      return other instanceof Content that
          && label == that.label
          && List.copyOf(parts.keySet()).equals(List.copyOf(that.parts.keySet()))
          && parts.keySet().stream()
              .allMatch(name -> java.util.Arrays.equals(parts.get(name), that.parts.get(name)));
    }

    @Override
    public int hashCode() {
      return label;
    }

    @Override
    public String toString() {
      Map<String, Integer> hashes = new TreeMap<>();
      parts.forEach((name, bytes) -> hashes.put(name, java.util.Arrays.hashCode(bytes)));
      return label + " " + hashes;
    }
  }

  public static Map<String, Integer> labels(Path dataset) {
    Map<String, Integer> labels = new TreeMap<>();
    try (Dataset open = Dataset.open(dataset)) {
      for (Sample sample : open) {
        labels.put(sample.key(), sample.label());
      }
    }
    return labels;
  }

  /** The keys in the order of their bytes in the chunks. */
  public static List<String> keys(Path dataset) {
    List<String> keys = new ArrayList<>();
    try (Dataset open = Dataset.open(dataset)) {
      open.forEach(sample -> keys.add(sample.key()));
    }
    return keys;
  }

  /** Asserts that two folders hold the same files, byte for byte. */
  public static void assertSameFiles(Path one, Path other) {
    assertSameFiles(Trees.read(one), Trees.read(other));
  }

  public static void assertSameFiles(Map<String, byte[]> one, Map<String, byte[]> other) {
    assertThat(one.keySet()).containsExactlyInAnyOrderElementsOf(other.keySet());
    one.forEach(
        (name, bytes) ->
            assertThat(java.util.Arrays.equals(bytes, other.get(name))).as(name).isTrue());
  }

  /** Asserts that a folder holds exactly these names, hidden ones included. */
  public static void assertHolds(Path folder, String... names) {
    assertThat(names(folder)).containsExactlyInAnyOrder(names);
  }

  public static List<String> names(Path folder) {
    try (Stream<Path> inside = Files.list(folder)) {
      return inside.map(path -> path.getFileName().toString()).sorted().toList();
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }

  /** Asserts that the call fails as it should: of this kind, in one line that names all these. */
  public static void assertFails(Failure.Kind kind, ThrowingCallable call, String... named) {
    Throwable thrown = Assertions.catchThrowable(call);
    assertThat(thrown).isInstanceOf(Failure.class);
    assertThat(thrown).hasMessageNotContainingAny("\n", "\r");
    for (String each : named) {
      assertThat(thrown).hasMessageContaining(each);
    }
    assertThat(((Failure) thrown).kind()).as(thrown.getMessage()).isEqualTo(kind);
  }
}
