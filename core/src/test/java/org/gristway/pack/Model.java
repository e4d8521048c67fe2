package org.gristway.pack;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import org.gristway.pack.Packs.Content;

/** What a dataset must hold, computed from its sources the plain way, all in memory. */
final class Model {

  /**
   * A source.
   *
   * @param files in the order in which the source lists them
   * @param stem whether files are parts of samples
   * @param classes whether first folders are classes
   */
  record Files(Map<String, byte[]> files, boolean stem, boolean classes) {}

  private Model() {}

  static SortedMap<String, Content> of(Files... sources) {
    Set<String> names = new TreeSet<>(Trees.SOURCE_ORDER);
    for (Files source : sources) {
      if (source.classes) {
        source.files.keySet().stream()
            .filter(path -> path.contains("/"))
            .forEach(path -> names.add(path.substring(0, path.indexOf('/'))));
      }
    }
    Map<String, Integer> numbers = new HashMap<>();
    names.forEach(name -> numbers.put(name, numbers.size()));
    SortedMap<String, Content> contents = new TreeMap<>(Trees.SOURCE_ORDER);
    for (Files source : sources) {
      samples(source)
          .forEach(
              (key, parts) -> {
                boolean inClass = source.classes && key.contains("/");
                int label = inClass ? numbers.get(key.substring(0, key.indexOf('/'))) : -1;
                contents.put(key, new Content(label, parts));
              });
    }
    return contents;
  }

  private static Map<String, SortedMap<String, byte[]>> samples(Files source) {
    Map<String, SortedMap<String, byte[]>> samples = new LinkedHashMap<>();
    source.files.forEach(
        (path, bytes) -> {
          if (!path.endsWith("/")) {
            int dot = source.stem ? path.indexOf('.', path.lastIndexOf('/') + 2) : -1;
            boolean named = dot > 0 && dot < path.length() - 1;
            String key = named ? path.substring(0, dot) : path;
            samples
                .computeIfAbsent(key, fresh -> new TreeMap<>())
                .put(named ? path.substring(dot + 1) : "", bytes);
          }
        });
    return samples;
  }

  /** What a folder of keys holds, folders with a slash, in key order. */
  static List<String> children(Set<String> keysInOrder, String folder) {
    String prefix = folder.isEmpty() ? "" : folder + "/";
    Set<String> children = new LinkedHashSet<>();
    for (String key : keysInOrder) {
      if (key.startsWith(prefix)) {
        String rest = key.substring(prefix.length());
        int slash = rest.indexOf('/');
        children.add(slash < 0 ? rest : rest.substring(0, slash + 1));
      }
    }
    return new ArrayList<>(children);
  }

  /** All folders that keys have, "" for the top among them. */
  static Set<String> folders(Set<String> keys) {
    Set<String> folders = new TreeSet<>(List.of(""));
    for (String key : keys) {
      for (int slash = key.indexOf('/'); slash > 0; slash = key.indexOf('/', slash + 1)) {
        folders.add(key.substring(0, slash));
      }
    }
    return folders;
  }
}
