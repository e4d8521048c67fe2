package org.gristway.dataset;

import java.util.List;
import org.gristway.Failure;

/**
 * One training example, without its bytes.
 *
 * @param id its number in the dataset, from 0
 * @param key its path
 * @param label its class number, or -1 if it has none
 * @param parts its named pieces, one after the other; a plain file has one, without a name
 * @param length the bytes of all its parts
 */
public record Sample(long id, String key, int label, List<Part> parts, long length) {

  /**
   * A piece of a sample.
   *
   * @param name such as {@code jpg}; empty for a plain file
   * @param offset of its first byte, from the sample's first
   * @param length in bytes
   */
  public record Part(String name, long offset, long length) {}

  /** The part with this name. */
  public Part part(String name) {
    for (Part part : parts) {
      if (part.name().equals(name)) {
        return part;
      }
    }
    throw Failure.wrongCall(
        "'%s' has no part '%s'; it has %s",
        key, name, parts.stream().map(part -> "'" + part.name() + "'").toList());
  }

  /** The file that a part was packed from and is unpacked to, as a relative path. */
  public String path(Part part) {
    return part.name().isEmpty() ? key : key + "." + part.name();
  }
}
