package org.gristway.chunk;

import java.util.HashSet;
import java.util.List;
import org.gristway.Failure;

/**
 * The names of a sample's parts, in the order in which their bytes follow each other. Most datasets
 * have one shape, or a few.
 *
 * <p>A plain file has a single part without a name. A named part's file is called {@code key.part}.
 *
 * @param parts the names; only a single part may have the empty name
 */
public record Shape(List<String> parts) {

  /** A sample of more parts than this is refused: it is a misread naming scheme, not a sample. */
  public static final int MAX_PARTS = 1024;

  /** The shape of a plain file. */
  public static final Shape PLAIN = new Shape(List.of(""));

  public Shape {
    parts = List.copyOf(parts);
    if (parts.isEmpty() || parts.size() > MAX_PARTS) {
      throw Failure.damaged("a sample cannot have %d parts", parts.size());
    }
    if (new HashSet<>(parts).size() < parts.size()) {
      throw Failure.damaged("a sample has two parts of the same name among %s", parts);
    }
  }

  public int size() {
    return parts.size();
  }
}
