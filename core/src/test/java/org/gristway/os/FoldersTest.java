package org.gristway.os;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.gristway.pack.Packs;
import org.gristway.pack.Programs;
import org.gristway.pack.Trees;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("java")
class FoldersTest {

  @TempDir Path folder;

  @Test
  void a_tree_is_deleted_and_links_in_it_are_not_followed() throws IOException {
    Path tree = Trees.write(Trees.of("a/b/c", "1", "d", "2", "e/", ""), folder.resolve("tree"));
    Path precious = Trees.write(Trees.of("file", "text"), folder.resolve("precious"));
    Files.createSymbolicLink(tree.resolve("a/link"), precious);
    Programs.sh(tree, "mkdir \"$(printf 'bad\\377')\" && touch \"$(printf 'bad\\377/x')\"");
    Folders.deleteTree(tree);
    Packs.assertHolds(folder, "precious");
    assertThat(precious.resolve("file")).hasContent("text");
  }

  @Test
  void what_is_not_there_is_deleted_already() throws IOException {
    Folders.deleteTree(folder.resolve("none"));
    Path link = Files.createSymbolicLink(folder.resolve("link"), folder);
    Folders.deleteTree(link);
    Packs.assertHolds(folder);
  }

  @Test
  void exchanged_folders_have_each_others_names() throws IOException {
    Path fresh = Trees.write(Trees.of("fresh", ""), folder.resolve("one"));
    Path old = Trees.write(Trees.of("old", ""), folder.resolve("two"));
    assertThat(Folders.tryExchange(fresh, old)).isTrue();
    Packs.assertHolds(old, "fresh");
    Packs.assertHolds(fresh, "old");
    Folders.sync(folder);
  }
}
