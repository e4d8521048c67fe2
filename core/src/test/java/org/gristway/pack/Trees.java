package org.gristway.pack;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.random.RandomGenerator;
import java.util.stream.Stream;
import java.util.zip.GZIPOutputStream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;

/**
 * Source trees in memory: paths and bytes, in the order of their paths' bytes, folder by folder. A
 * path that ends with a slash is a folder.
 */
public final class Trees {

  /** Pieces of names: several scripts, several lengths in UTF-8, and what shells dislike. */
  private static final List<String> LETTERS =
      List.of(
          "a", "b", "c", "X", "Y", "0", "1", "7", "_", "-", " ", "'", "%", "$", "*", "\\", "é", "ß",
          "ñ", "α", "ω", "ж", "Я", "中", "文", "あ", "ع", "ש", "한", "😀", "𝔾", "e\u0301", "\n");

  private Trees() {}

  /** Order in which folder sources list: component by component, each by its bytes. */
  public static final Comparator<String> SOURCE_ORDER =
      (one, other) -> Arrays.compareUnsigned(sortable(one), sortable(other));

  private static byte[] sortable(String path) {
    byte[] bytes = path.getBytes(StandardCharsets.UTF_8);
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = bytes[i] == '/' ? 0 : bytes[i];
    }
    return bytes;
  }

  /** A tree from path, content, path, content. */
  public static SortedMap<String, byte[]> of(String... pathsAndTexts) {
    SortedMap<String, byte[]> tree = new TreeMap<>(SOURCE_ORDER);
    for (int i = 0; i < pathsAndTexts.length; i += 2) {
      tree.put(pathsAndTexts[i], pathsAndTexts[i + 1].getBytes(StandardCharsets.UTF_8));
    }
    return tree;
  }

  /** So many files of random names, depths and sizes; names hold dots here and there. */
  public static SortedMap<String, byte[]> random(RandomGenerator random, int files) {
    SortedMap<String, byte[]> tree = new TreeMap<>(SOURCE_ORDER);
    List<String> folders = folders(random);
    while (tree.size() < files) {
      String name = name(random);
      for (int dots = random.nextInt(3); dots > 0; dots--) {
        name += "." + name(random);
      }
      put(tree, folders.get(random.nextInt(folders.size())) + name, bytes(random, size(random)));
    }
    return tree;
  }

  /** So many samples of one to four parts, as in a WebDataset tar; no two share a stem. */
  public static SortedMap<String, byte[]> randomParts(RandomGenerator random, int samples) {
    SortedMap<String, byte[]> tree = new TreeMap<>(SOURCE_ORDER);
    List<String> folders = folders(random);
    List<String> parts = List.of("jpg", "json", "seg.png", "txt", "é.x");
    for (int i = 0; i < samples; i++) {
      String stem = folders.get(random.nextInt(folders.size())) + i + name(random);
      int count = 1 + random.nextInt(4);
      for (int part = 0; part < count; part++) {
        put(tree, stem + "." + parts.get(part), bytes(random, size(random)));
      }
    }
    return tree;
  }

  private static List<String> folders(RandomGenerator random) {
    List<String> folders = new ArrayList<>(List.of("", ""));
    for (int i = 0; i < 12; i++) {
      folders.add(folders.get(random.nextInt(folders.size())) + name(random) + i + "/");
    }
    return folders;
  }

  /** Adds a file unless its path is a folder of others, or the other way round. */
  private static void put(SortedMap<String, byte[]> tree, String path, byte[] content) {
    SortedMap<String, byte[]> below = tree.tailMap(path + "/");
    if (!below.isEmpty() && below.firstKey().startsWith(path + "/")) {
      return;
    }
    for (int slash = path.indexOf('/'); slash > 0; slash = path.indexOf('/', slash + 1)) {
      if (tree.containsKey(path.substring(0, slash))) {
        return;
      }
    }
    tree.put(path, content);
  }

  private static String name(RandomGenerator random) {
    StringBuilder name = new StringBuilder();
    for (int left = 1 + random.nextInt(8); left > 0; left--) {
      name.append(LETTERS.get(random.nextInt(LETTERS.size())));
    }
    return name.toString();
  }

  /** Mostly small, some empty, a few large. */
  private static int size(RandomGenerator random) {
    return random.nextInt(12) == 0 ? 0 : (int) Math.exp(random.nextDouble() * 11.5);
  }

  public static byte[] bytes(RandomGenerator random, int size) {
    byte[] bytes = new byte[size];
    random.nextBytes(bytes);
    return bytes;
  }

  /** Writes a tree into a folder, which is made; returns the folder. */
  public static Path write(Map<String, byte[]> tree, Path folder) {
    try {
      Files.createDirectories(folder);
      for (Map.Entry<String, byte[]> file : tree.entrySet()) {
        Path path = folder.resolve(file.getKey());
        if (file.getKey().endsWith("/")) {
          Files.createDirectories(path);
        } else {
          Files.createDirectories(path.getParent());
          Files.write(path, file.getValue());
        }
      }
      return folder;
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }

  /** All files below a folder. */
  public static SortedMap<String, byte[]> read(Path folder) {
    SortedMap<String, byte[]> tree = new TreeMap<>(SOURCE_ORDER);
    try (Stream<Path> paths = Files.walk(folder)) {
      for (Path path : (Iterable<Path>) paths.filter(Files::isRegularFile)::iterator) {
        tree.put(folder.relativize(path).toString(), Files.readAllBytes(path));
      }
      return tree;
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }

  /** Writes a tar, compressed if its name says so, with entries in the tree's order. */
  public static Path tar(Map<String, byte[]> tree, Path file) {
    return tar(tree, file, TarArchiveOutputStream.LONGFILE_POSIX);
  }

  static Path tar(Map<String, byte[]> tree, Path file, int longNames) {
    try (OutputStream plain = new BufferedOutputStream(Files.newOutputStream(file));
        OutputStream out = file.toString().endsWith("gz") ? new GZIPOutputStream(plain) : plain;
        TarArchiveOutputStream tar = new TarArchiveOutputStream(out, "UTF-8")) {
      tar.setLongFileMode(longNames);
      tar.setAddPaxHeadersForNonAsciiNames(longNames == TarArchiveOutputStream.LONGFILE_POSIX);
      for (Map.Entry<String, byte[]> each : tree.entrySet()) {
        TarArchiveEntry entry = new TarArchiveEntry(each.getKey(), true);
        entry.setModTime(0);
        if (!entry.isDirectory()) {
          entry.setSize(each.getValue().length);
        }
        tar.putArchiveEntry(entry);
        tar.write(each.getValue());
        tar.closeArchiveEntry();
      }
      return file;
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }

  /** Writes a zip, with entries in the tree's order, deflated. */
  public static Path zip(Map<String, byte[]> tree, Path file) {
    try (ZipOutputStream zip =
        new ZipOutputStream(new BufferedOutputStream(Files.newOutputStream(file)))) {
      for (Map.Entry<String, byte[]> each : tree.entrySet()) {
        zip.putNextEntry(new ZipEntry(each.getKey()));
        zip.write(each.getValue());
        zip.closeEntry();
      }
      return file;
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }

  /** The same tree below a folder, or with other changes to its paths. */
  public static Map<String, byte[]> renamed(
      Map<String, byte[]> tree, java.util.function.UnaryOperator<String> name) {
    Map<String, byte[]> result = new LinkedHashMap<>();
    tree.forEach((path, content) -> result.put(name.apply(path), content));
    return result;
  }
}
