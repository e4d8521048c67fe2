package org.gristway.dataset;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.gristway.pack.Packs.assertFails;

import java.nio.file.Path;
import java.util.List;
import java.util.NoSuchElementException;
import org.gristway.Failure.Kind;
import org.gristway.pack.Packs;
import org.gristway.pack.Trees;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("java")
class DatasetTest {

  @TempDir Path folder;

  @Test
  void what_is_no_dataset_is_refused() {
    assertFails(Kind.WRONG_CALL, () -> Dataset.open(folder.resolve("none")), "none");
    assertFails(Kind.WRONG_CALL, () -> Dataset.open(folder), "not a dataset");
    Path file = Trees.write(Trees.of("file", ""), folder).resolve("file");
    assertFails(Kind.WRONG_CALL, () -> Dataset.open(file), "not a dataset");
    assertFails(Kind.WRONG_CALL, () -> Dataset.open(Path.of("s3://x/y")), "object stores");
  }

  @Test
  void versions_that_are_not_there_are_refused() {
    Path dataset = Packs.pack(Trees.of("a/1", "one"), folder.resolve("dataset"));
    Packs.append(Trees.write(Trees.of("b/2", "two"), folder.resolve("more")), dataset);
    try (Dataset first = Dataset.open(dataset, 1);
        Dataset second = Dataset.open(dataset, 2)) {
      assertThat(first.size()).isEqualTo(1);
      assertThat(second.size()).isEqualTo(2);
      assertThat(first.snapshot().datasetId()).isEqualTo(second.snapshot().datasetId());
      assertThat(first.snapshot().id()).isNotEqualTo(second.snapshot().id());
      assertThat(first.path()).isEqualTo(dataset);
    }
    for (int version : new int[] {0, 3, -1}) {
      assertFails(
          Kind.WRONG_CALL, () -> Dataset.open(dataset, version), "no version " + version, "1, 2");
    }
  }

  @Test
  void a_version_that_was_packed_anew_is_refused_by_the_id_of_its_snapshot() {
    Path dataset = Packs.pack(Trees.of("a/1", "one"), folder.resolve("dataset"));
    try (Dataset begun = Dataset.open(dataset)) {
      String id = begun.snapshot().id().toString();
      Packs.append(Trees.write(Trees.of("b/2", "two"), folder.resolve("more")), dataset);
      try (Dataset same = Dataset.open(dataset, 1, id);
          Dataset shared = begun.share()) {
        assertThat(same.size()).isEqualTo(1);
        assertThat(shared.snapshot()).isSameAs(begun.snapshot());
      }
      assertFails(Kind.WRONG_CALL, () -> Dataset.open(dataset, 0, id), "replaced", id);
      // The same names and sizes make the same dataset to all but its content.
      Path other = Trees.write(Trees.of("a/1", "ONE"), folder.resolve("other"));
      Packs.pack(List.of(other), dataset, Packs.SMALL_CHUNKS.withForce(true));
      assertFails(Kind.WRONG_CALL, () -> Dataset.open(dataset, 1, id), "replaced", id);
      assertFails(Kind.WRONG_CALL, begun::share, "replaced", id);
      try (Dataset now = Dataset.open(dataset, 1)) {
        assertThat(now.snapshot().datasetId()).isEqualTo(begun.snapshot().datasetId());
        assertThat(now.snapshot().id()).isNotEqualTo(begun.snapshot().id());
      }
    }
  }

  @Test
  void a_snapshot_is_closed_with_the_last_that_shares_it() {
    Dataset first = Dataset.open(Packs.pack(Trees.of("a/1", "one"), folder.resolve("dataset")));
    Dataset second = first.share();
    first.close();
    first.close();
    assertThat(second.sample(0).key()).isEqualTo("a/1");
    second.close();
    assertThatThrownBy(() -> second.sample(0)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(second::share).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void ids_and_parts_that_are_not_there_are_refused() {
    Path dataset = Packs.pack(Trees.of("a/1", "one"), folder.resolve("dataset"));
    try (Dataset open = Dataset.open(dataset)) {
      assertFails(Kind.WRONG_CALL, () -> open.sample(1), "sample 1");
      assertFails(Kind.WRONG_CALL, () -> open.sample(-1), "sample -1");
      assertFails(Kind.WRONG_CALL, () -> open.sample(0).part("jpg"), "'a/1'", "'jpg'", "['']");
      assertThat(open.sample(0).part("").length()).isEqualTo(3);
      var samples = open.iterator();
      samples.next();
      assertThatThrownBy(samples::next).isInstanceOf(NoSuchElementException.class);
      var none = open.withPrefix("b").iterator();
      assertThatThrownBy(none::next).isInstanceOf(NoSuchElementException.class);
    }
  }

  @Test
  void folders_are_listed_in_the_order_of_names_with_a_folder_before_what_extends_its_name() {
    Path dataset =
        Packs.pack(
            Trees.of("a/2", "", "a/10", "", "a!", "", "a.b", "", "a0/x", "", "B/c/d", ""),
            folder.resolve("dataset"));
    try (Dataset open = Dataset.open(dataset)) {
      assertThat(open.list("")).containsExactly("B/", "a/", "a!", "a.b", "a0/");
      assertThat(open.list("a")).containsExactly("10", "2");
      assertThat(open.list("a/")).containsExactly("10", "2");
      assertThat(open.list("B")).containsExactly("c/");
      assertThat(open.list("B/c")).containsExactly("d");
      assertThat(open.list("a!")).isEmpty();
    }
  }
}
