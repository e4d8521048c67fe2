package org.gristway.pack;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;
import static org.gristway.pack.Packs.labels;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.gristway.Failure.Kind;
import org.gristway.dataset.Dataset;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("java")
class LabelsTest {

  @TempDir Path folder;

  private Path source(String name, String... pathsAndTexts) {
    return Trees.write(Trees.of(pathsAndTexts), folder.resolve(name));
  }

  private Path pack(Path... sources) {
    Path dataset = folder.resolve("dataset");
    Packs.pack(List.of(sources), dataset, Packs.SMALL_CHUNKS);
    return dataset;
  }

  @Test
  void classes_are_first_folders_numbered_in_the_order_of_their_code_points() {
    Path dataset =
        pack(
            source(
                "source",
                "é/1",
                "",
                "a/1",
                "",
                "a-b/1",
                "",
                "a.b/1",
                "",
                "Z/1",
                "",
                "a/deep/er/2",
                "",
                "\uffee/1",
                "",
                "\ud83d\ude00/1",
                "",
                "root",
                ""));
    assertThat(labels(dataset))
        .isEqualTo(
            Map.of(
                "root",
                -1,
                "Z/1",
                0,
                "a/1",
                1,
                "a/deep/er/2",
                1,
                "a-b/1",
                2,
                "a.b/1",
                3,
                "é/1",
                4,
                "\uffee/1",
                5,
                "\ud83d\ude00/1",
                6));
    try (Dataset open = Dataset.open(dataset)) {
      assertThat(open.labelName(0)).contains("Z");
      assertThat(open.labelName(1)).contains("a");
      assertThat(open.labelName(6)).contains("\ud83d\ude00");
      assertThat(open.labelName(7)).isEmpty();
      assertThat(open.labelName(-1)).isEmpty();
      assertThat(open.snapshot().hasNamedLabels()).isTrue();
    }
  }

  @Test
  void an_empty_class_folder_takes_a_number() {
    Path dataset = pack(source("source", "a/1", "", "b/", "", "c/1", "", "d/", ""));
    assertThat(labels(dataset)).isEqualTo(Map.of("a/1", 0, "c/1", 2));
    try (Dataset open = Dataset.open(dataset)) {
      assertThat(open.labelName(1)).isEmpty();
      assertThat(open.labelName(2)).contains("c");
    }
  }

  @Test
  void classes_of_several_sources_are_numbered_together() {
    Path zip = Trees.zip(Trees.of("b/3", "", "d/", ""), folder.resolve("three.zip"));
    Path dataset =
        pack(source("one", "c/1", "", "a/1", ""), source("two", "b/2", "", "e/2", ""), zip);
    assertThat(labels(dataset)).isEqualTo(Map.of("a/1", 0, "b/2", 1, "b/3", 1, "c/1", 2, "e/2", 4));
  }

  @Test
  void a_dataset_without_folders_has_no_labels() {
    Path dataset = pack(source("source", "one", "1", "two", "2"));
    assertThat(labels(dataset)).isEqualTo(Map.of("one", -1, "two", -1));
    try (Dataset open = Dataset.open(dataset)) {
      assertThat(open.snapshot().hasNamedLabels()).isFalse();
      assertThat(open.snapshot().namedLabelCount()).isZero();
    }
  }

  @Test
  void labels_in_tars_are_the_integers_in_their_cls_parts() {
    Path tar =
        Trees.tar(
            Trees.of(
                "a/1.cls",
                "7",
                "a/1.jpg",
                "",
                "b/2.cls",
                " 12\n",
                "c.cls",
                "0",
                "d.cls",
                "-3",
                "e.cls",
                "cat",
                "f.cls",
                "",
                "g.cls",
                "1.5",
                "h.cls",
                "2147483647",
                "i.cls",
                "2147483648",
                "j.cls",
                "1".repeat(100),
                "k.jpg",
                "5",
                "l.xcls",
                "5",
                "m.cls",
                "\t+4 "),
            folder.resolve("source.tar"));
    Path dataset = pack(tar);
    assertThat(labels(dataset))
        .containsOnly(
            Map.entry("a/1", 7),
            Map.entry("b/2", 12),
            Map.entry("c", 0),
            Map.entry("d", -1),
            Map.entry("e", -1),
            Map.entry("f", -1),
            Map.entry("g", -1),
            Map.entry("h", Integer.MAX_VALUE),
            Map.entry("i", -1),
            Map.entry("j", -1),
            Map.entry("k", -1),
            Map.entry("l", -1),
            Map.entry("m", 4));
    try (Dataset open = Dataset.open(dataset)) {
      assertThat(open.labelName(7)).isEmpty();
      assertThat(open.snapshot().hasNamedLabels()).isFalse();
      var sample = open.find("b/2").orElseThrow();
      assertThat(open.read(sample, sample.part("cls"))).isEqualTo(" 12\n".getBytes());
    }
  }

  @Test
  void labels_in_compressed_tars_are_the_same() {
    Path tar =
        Trees.tar(Trees.of("1.cls", "3", "1.jpg", "x", "2.cls", "4"), folder.resolve("s.tgz"));
    assertThat(labels(pack(tar))).isEqualTo(Map.of("1", 3, "2", 4));
  }

  @Test
  void with_parts_a_number_in_a_folder_source_goes_before_the_folder() {
    Path one = source("one", "1.cls", "3", "1.jpg", "x", "2.cls", "4");
    Path dataset = folder.resolve("dataset");
    Packs.pack(List.of(one), dataset, Packs.SMALL_CHUNKS.withStemParts(true));
    assertThat(labels(dataset)).isEqualTo(Map.of("1", 3, "2", 4));
  }

  @Test
  void folder_names_and_numbers_are_not_mixed() {
    Path tar = Trees.tar(Trees.of("n1.cls", "3"), folder.resolve("source.tar"));
    Path classes = source("source", "a/1", "x");
    assertFails(Kind.WRONG_CALL, () -> pack(classes, tar), "label", "cls");
    Packs.assertHolds(folder, "source", "source.tar");

    Path dataset = pack(classes);
    var before = Trees.read(dataset);
    assertFails(Kind.WRONG_CALL, () -> Packs.append(tar, dataset), "'n1'", "cls");
    Packs.assertSameFiles(Trees.read(dataset), before);
  }

  @Test
  void numbers_stay_when_more_is_appended_and_new_classes_come_behind() {
    Path dataset = pack(source("source", "b/1", "", "d/1", ""));
    Packs.append(source("more", "a/2", "", "b/2", "", "c/2", "", "d/2", "", "e/2", ""), dataset);
    Packs.append(source("still more", "0/3", "", "c/3", ""), dataset);
    assertThat(labels(dataset))
        .isEqualTo(
            Map.of(
                "b/1", 0, "d/1", 1, "a/2", 2, "b/2", 0, "c/2", 3, "d/2", 1, "e/2", 4, "0/3", 5,
                "c/3", 3));
    try (Dataset open = Dataset.open(dataset)) {
      assertThat(List.of("b", "d", "a", "c", "e", "0"))
          .allMatch(
              name ->
                  open.labelName(List.of("b", "d", "a", "c", "e", "0").indexOf(name))
                      .orElseThrow()
                      .equals(name));
    }
  }

  @Test
  void a_dataset_without_labels_gets_some_with_what_is_appended() {
    Path dataset = pack(source("source", "root", ""));
    Packs.append(source("more", "a/1", ""), dataset);
    assertThat(labels(dataset)).isEqualTo(Map.of("root", -1, "a/1", 0));
  }
}
