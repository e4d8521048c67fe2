package org.gristway.pack;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;
import static org.gristway.pack.Packs.labels;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.stream.Stream;
import org.gristway.Failure.Kind;
import org.gristway.Progress;
import org.gristway.dataset.Dataset;
import org.gristway.dataset.Verifier;
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
                "h.cls",
                "2147483647",
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
            Map.entry("h", Integer.MAX_VALUE),
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

  /** The same tree as each kind of source. */
  private List<Path> sources(String name, SortedMap<String, byte[]> tree) {
    return List.of(
        Trees.write(tree, folder.resolve(name)),
        Trees.tar(tree, folder.resolve(name + ".tar")),
        Trees.tar(tree, folder.resolve(name + ".tgz")),
        Trees.zip(tree, folder.resolve(name + ".zip")));
  }

  @Test
  void a_cls_part_that_is_no_label_is_an_error_that_tells_what_it_holds() {
    PackOptions options = Packs.SMALL_CHUNKS.withStemParts(true);
    Path dataset = folder.resolve("dataset");
    Packs.pack(List.of(source("good", "first.cls", "5")), dataset, options);
    var before = Trees.read(dataset);
    int number = 0;
    for (String text :
        List.of(
            "cat", "-7", "3.0", "3000000000", "", " ", "-1", "1 2", "1".repeat(25), "\u001b7")) {
      String shown = text.length() > 24 ? "25 bytes" : text.isEmpty() ? "empty" : "'" + text + "'";
      SortedMap<String, byte[]> tree =
          Trees.of("a.cls", "1", "a.jpg", "a", "b.cls", text, "b.jpg", "b", "c.jpg", "c");
      for (Path source : sources("source" + number++, tree)) {
        List<String> lines = new ArrayList<>();
        Path none = folder.resolve("none");
        assertFails(
            Kind.DAMAGED,
            () -> Packer.pack(List.of(source), none, options, Progress.NONE, lines::add),
            "1 file could not be read");
        assertThat(none).doesNotExist();
        assertThat(lines)
            .singleElement()
            .asString()
            .startsWith("unreadable: " + source + "/b.cls: ")
            .contains(shown.replace("\u001b", "\\x1b"), "no label", "from 0 to 2147483647");
        assertFails(
            Kind.DAMAGED,
            () -> Packs.append(List.of(source), dataset, options),
            "1 file could not");
        Packs.assertSameFiles(Trees.read(dataset), before);
      }
    }
    // One of each kind is enough to see that what may be skipped is left out as a whole.
    for (Path source : sources("skipped", Trees.of("a.cls", "1", "b.cls", "no", "b.jpg", "b"))) {
      List<String> lines = new ArrayList<>();
      Path some = folder.resolve("some-" + source.getFileName());
      PackReport report =
          Packer.pack(
              List.of(source), some, options.withSkipUnreadable(true), Progress.NONE, lines::add);
      assertThat(report.leftOut()).isEqualTo(1);
      assertThat(lines).singleElement().asString().contains("left out", "b.cls", "'no'");
      assertThat(labels(some)).isEqualTo(Map.of("a", 1));
    }
    Path all = Trees.tar(Trees.of("x.cls", "no"), folder.resolve("all.tar"));
    assertFails(
        Kind.WRONG_CALL,
        () -> Packs.pack(List.of(all), folder.resolve("none"), options.withSkipUnreadable(true)),
        "all that " + all + " holds is left out");
  }

  @Test
  void without_labels_a_cls_part_is_a_part_like_any_other() {
    SortedMap<String, byte[]> tree = Trees.of("x/a.cls", "cat", "x/a.jpg", "a", "y/b.jpg", "b");
    PackOptions options = Packs.SMALL_CHUNKS.withStemParts(true).withLabels(Labels.NONE);
    for (Path source : sources("source", tree)) {
      Path dataset = folder.resolve("of-" + source.getFileName());
      PackReport report = Packs.pack(List.of(source), dataset, options);
      assertThat(report.labelled()).isZero();
      assertThat(report.classes()).isZero();
      assertThat(labels(dataset)).isEqualTo(Map.of("x/a", -1, "y/b", -1));
      assertThat(Packs.contents(dataset).get("x/a").parts().get("cls")).isEqualTo("cat".getBytes());
    }
  }

  @Test
  void folders_are_the_labels_of_every_kind_of_source_if_asked_for() {
    SortedMap<String, byte[]> tree =
        Trees.of(
            "a/",
            "",
            "b/1.cls",
            "7",
            "b/1.jpg",
            "x",
            "c/d/2.jpg",
            "y",
            "d/",
            "",
            "e/3.jpg",
            "",
            "top.jpg",
            "z");
    PackOptions options = Packs.SMALL_CHUNKS.withStemParts(true).withLabels(Labels.FOLDERS);
    Path dotted = Trees.tar(Trees.renamed(tree, name -> "./" + name), folder.resolve("dotted.tar"));
    for (Path source :
        Stream.concat(sources("source", tree).stream(), Stream.of(dotted)).toList()) {
      Path dataset = folder.resolve("of-" + source.getFileName());
      List<String> lines = new ArrayList<>();
      PackReport report = Packer.pack(List.of(source), dataset, options, Progress.NONE, lines::add);
      assertThat(lines).isEmpty();
      assertThat(labels(dataset))
          .as("%s", source)
          .isEqualTo(Map.of("b/1", 1, "c/d/2", 2, "e/3", 4, "top", -1));
      assertThat(report.labelled()).isEqualTo(3);
      assertThat(report.classes()).isEqualTo(3);
      try (Dataset open = Dataset.open(dataset)) {
        assertThat(open.labelName(2)).contains("c");
        assertThat(open.labelName(0)).isEmpty();
      }
    }
  }

  @Test
  void a_tar_of_folders_without_labels_is_told_of() {
    Path folders =
        Trees.tar(
            Trees.of("cat/1.jpg", "", "dog/1.jpg", "", "owl/1.jpg", "", "yak/1.jpg", "", "t", ""),
            folder.resolve("folders.tgz"));
    Path dataset = folder.resolve("dataset");
    assertThat(Packs.packTelling(folders, dataset, Packs.SMALL_CHUNKS))
        .singleElement()
        .asString()
        .contains("('cat', 'dog', 'owl', …)", "--labels folders");
    assertThat(labels(dataset).values()).containsOnly(-1);

    // A folder is a class only beside others, which may be in another tar.
    Path one = Trees.tar(Trees.of("cat/1.jpg", "", "cat/2.jpg", ""), folder.resolve("one.tar"));
    Path two = Trees.tar(Trees.of("dog/1.jpg", ""), folder.resolve("two.tar"));
    assertThat(Packs.packTelling(one, folder.resolve("1"), Packs.SMALL_CHUNKS)).isEmpty();
    List<String> lines = new ArrayList<>();
    Packer.pack(
        List.of(one, two), folder.resolve("2"), Packs.SMALL_CHUNKS, Progress.NONE, lines::add);
    assertThat(lines).singleElement().asString().contains("('cat', 'dog')");

    Path numbered =
        Trees.tar(Trees.of("a/1.cls", "1", "b/1.cls", "2"), folder.resolve("numbered.tar"));
    assertThat(Packs.packTelling(numbered, folder.resolve("3"), Packs.SMALL_CHUNKS)).isEmpty();
    PackOptions unlabelled = Packs.SMALL_CHUNKS.withLabels(Labels.NONE);
    assertThat(Packs.packTelling(folders, folder.resolve("4"), unlabelled)).isEmpty();
  }

  @Test
  void the_report_counts_labels_and_classes() {
    PackReport named =
        Packs.pack(
            source("named", "a/1", "", "a/2", "", "b/", "", "c/1", "", "top", ""), folder("n"));
    assertThat(named.samples()).isEqualTo(4);
    assertThat(named.labelled()).isEqualTo(3);
    assertThat(named.classes()).isEqualTo(2);
    PackReport added = Packs.append(source("more", "c/2", "", "d/2", ""), folder("n"));
    assertThat(added.labelled()).isEqualTo(2);
    assertThat(added.classes()).isEqualTo(2);
    Path tar =
        Trees.tar(Trees.of("1.cls", "9", "2.cls", "4", "3.cls", "9"), folder.resolve("s.tar"));
    assertThat(Packs.pack(tar, folder("t")).classes()).isEqualTo(2);
    Path high = Trees.tar(Trees.of("1.cls", "2147483647"), folder.resolve("high.tar"));
    assertThat(Packs.pack(high, folder("h")).classes()).isEqualTo(-1);
    assertThat(Packs.pack(source("plain", "1", ""), folder("p")).labelled()).isZero();
  }

  private Path folder(String name) {
    return folder.resolve(name + ".gw");
  }

  @Test
  void classes_have_the_numbers_of_the_dataset_that_is_followed() {
    Path train = pack(source("train", "a/1", "", "b/1", "", "c/1", "", "d/1", ""));
    PackOptions options = Packs.SMALL_CHUNKS.withClassesOf(train);
    Path val = folder("val");
    Packs.pack(List.of(source("val", "b/2", "", "d/2", "", "top", "")), val, options);
    assertThat(labels(val)).isEqualTo(Map.of("b/2", 1, "d/2", 3, "top", -1));
    try (Dataset open = Dataset.open(val)) {
      assertThat(open.labelName(1)).contains("b");
      assertThat(open.labelName(3)).contains("d");
      assertThat(open.labelName(0)).isEmpty();
    }
    assertThat(Verifier.verify(val, Progress.NONE).faults()).isEmpty();

    // What is appended follows it too, for classes that the dataset did not have before.
    Packs.append(List.of(source("more", "a/3", "", "b/3", "")), val, options);
    assertThat(labels(val)).containsEntry("a/3", 0).containsEntry("b/3", 1);

    Path tar = Trees.tar(Trees.of("c/4.jpg", ""), folder.resolve("tar.tar"));
    Path ofTar = folder("of-tar");
    assertFails(
        Kind.WRONG_CALL, () -> Packs.pack(List.of(tar), ofTar, options), "--labels folders");
    Packs.pack(List.of(tar), ofTar, options.withLabels(Labels.FOLDERS));
    assertThat(labels(ofTar)).isEqualTo(Map.of("c/4", 2));
  }

  @Test
  void what_cannot_have_the_numbers_of_the_dataset_that_is_followed_is_refused() {
    Path train = pack(source("train", "a/1", "", "c/1", ""));
    PackOptions options = Packs.SMALL_CHUNKS.withClassesOf(train);
    Path val = folder("val");
    for (String name : List.of("b/1", "b/", "d\u001b/1")) {
      Path other = source("val" + name.length(), "a/1", "", name, "");
      assertFails(
          Kind.WRONG_CALL,
          () -> Packs.pack(List.of(other), val, options),
          "'" + name.substring(0, name.indexOf('/')).replace("\u001b", "\\x1b") + "' is no class",
          train.toString());
    }
    Path tar = Trees.tar(Trees.of("1.cls", "3"), folder.resolve("tar.tar"));
    assertFails(Kind.WRONG_CALL, () -> Packs.pack(List.of(tar), val, options), "'1'", "cls");
    assertFails(
        Kind.WRONG_CALL, () -> options.withLabels(Labels.NONE), "without labels", train.toString());
    Path numbered = folder("numbered");
    Packs.pack(tar, numbered);
    assertFails(
        Kind.WRONG_CALL,
        () -> Packs.pack(List.of(source("x", "a/1", "")), val, options.withClassesOf(numbered)),
        numbered + " has no classes with names");
    assertFails(
        Kind.WRONG_CALL,
        () -> Packs.pack(List.of(source("y", "a/1", "")), val, options.withClassesOf(tar)),
        tar.toString());
    assertThat(val).doesNotExist();

    // Numbers that a dataset has already are not changed, and never contradict the other's.
    Packs.pack(source("own", "c/1", ""), val);
    var before = Trees.read(val);
    assertFails(
        Kind.WRONG_CALL,
        () -> Packs.append(List.of(source("z", "a/2", "")), val, options),
        "'c' has the number 0",
        "and 1 in " + train);
    Packs.assertSameFiles(Trees.read(val), before);
  }

  @Test
  void a_sample_is_packed_with_all_its_parts_or_not_at_all() {
    Path source = source("source", "a.jpg", "a", "b.jpg", "b", "b.x.txt", "b", "c.jpg", "c");
    Programs.sh(source, "printf 2 > \"$(printf 'b.\\377')\"");
    Path dataset = folder.resolve("dataset");
    PackOptions options = Packs.SMALL_CHUNKS.withStemParts(true).withSkipUnreadable(true);
    assertThat(Packs.packTelling(source, dataset, options))
        .singleElement()
        .asString()
        .contains("b.\\xff");
    assertThat(labels(dataset)).containsOnlyKeys("a", "c");
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
