package org.gristway.pack;

import java.util.HashSet;
import java.util.Set;
import org.gristway.Failure;

/**
 * What could not be packed. Files that are unreadable stop the pack, after all of them have been
 * told, unless they may be skipped; what is no sample anyway is told and left out. Thread-safe.
 */
final class Troubles {

  /** Beyond this, something is wrong with the source as a whole. */
  private static final int MOST = 1_000_000;

  private final Notices notices;
  private final boolean skip;
  private final Set<Long> excluded = new HashSet<>();
  private long leftOut;
  private long unreadable;
  private boolean denied = true;

  Troubles(Notices notices, boolean skip) {
    this.notices = notices;
    this.skip = skip;
  }

  synchronized void leftOut(String name, String why) {
    leftOut++;
    notices.leftOut("left out: " + name + ": " + why);
  }

  synchronized void unreadable(String name, String why) {
    unreadable++;
    denied &= why.contains("permission");
    notices.leftOut((skip ? "left out: " : "unreadable: ") + name + ": " + why);
  }

  /** A sample that was listed and could not be copied: the next attempt goes without it. */
  synchronized void exclude(long ordinal, String name, String why) {
    unreadable(name, why);
    excluded.add(ordinal);
    if (excluded.size() > MOST) {
      throw Failure.environment("more than %d files cannot be read; nothing was published", MOST);
    }
  }

  synchronized boolean isExcluded(long ordinal) {
    return !excluded.isEmpty() && excluded.contains(ordinal);
  }

  synchronized int excludedCount() {
    return excluded.size();
  }

  /** True if going on is pointless. */
  synchronized boolean isFatal() {
    return unreadable > 0 && !skip;
  }

  /** Fails if there is anything unreadable that may not be skipped. */
  synchronized void check() {
    if (isFatal()) {
      String message =
          "%d file%s could not be read, listed above; nothing was published: mend %s, or leave %s"
              + " out with --skip-unreadable";
      Object[] words = {
        unreadable,
        unreadable == 1 ? "" : "s",
        unreadable == 1 ? "it" : "them",
        unreadable == 1 ? "it" : "them"
      };
      throw denied ? Failure.environment(message, words) : Failure.damaged(message, words);
    }
  }

  synchronized long total() {
    return leftOut + unreadable;
  }
}
