package org.gristway.cli;

import java.util.Optional;

/** Finds what somebody most likely meant who has mistyped a name. */
final class Nearest {

  private Nearest() {}

  /** The candidate with the fewest slips of the finger, if they are few for its length. */
  static Optional<String> of(String word, Iterable<String> candidates) {
    String nearest = null;
    int fewest = Math.max(2, word.length() / 4) + 1;
    for (String candidate : candidates) {
      if (Math.abs(candidate.length() - word.length()) < fewest) {
        int slips = slips(word, candidate);
        if (slips < fewest && slips < Math.max(word.length(), candidate.length())) {
          fewest = slips;
          nearest = candidate;
        }
      }
    }
    return Optional.ofNullable(nearest);
  }

  /** Letters added, lost, exchanged or swapped with their neighbour. */
  private static int slips(String one, String other) {
    int[][] cost = new int[one.length() + 1][other.length() + 1];
    for (int i = 0; i <= one.length(); i++) {
      for (int j = 0; j <= other.length(); j++) {
        if (i == 0 || j == 0) {
          cost[i][j] = i + j;
          continue;
        }
        int same = one.charAt(i - 1) == other.charAt(j - 1) ? 0 : 1;
        cost[i][j] =
            Math.min(cost[i - 1][j - 1] + same, Math.min(cost[i - 1][j] + 1, cost[i][j - 1] + 1));
        if (i > 1
            && j > 1
            && one.charAt(i - 1) == other.charAt(j - 2)
            && one.charAt(i - 2) == other.charAt(j - 1)) {
          cost[i][j] = Math.min(cost[i][j], cost[i - 2][j - 2] + 1);
        }
      }
    }
    return cost[one.length()][other.length()];
  }
}
