package org.gristway.plan.policy;

import java.util.Arrays;
import org.gristway.plan.Caching;
import org.gristway.plan.Caching.Rates;
import org.gristway.plan.PlanInputs;

/**
 * In which order samples are worth keeping to a rank: by the time that it saves, over a stretch of
 * epochs, not to get them from farther away.
 *
 * <p>The rank that is asked for a sample first saves everybody the store: in all later epochs the
 * sample comes from there, if that is faster. Any other saves itself the way to that rank, whenever
 * it is asked again. Where others cannot be reached faster than the store, how often a rank is
 * asked is all that counts. Times are those of memory, wherever a sample comes to be kept: tiers
 * are filled in this order, the fastest first.
 */
final class KeepingOrder {

  private final int epochs;
  private final int highest;
  private final int[] grades; // by how often a rank is asked, and whether it is the first

  /**
   * @param byFrequency true if nothing counts but how often a rank is asked
   */
  KeepingOrder(PlanInputs inputs, int epochs, boolean byFrequency) {
    this.epochs = epochs;
    Rates rates = inputs.settings().caching().rates();
    double store = 1.0 / rates.store();
    double own = Math.min(store, 1.0 / rates.of(Caching.MEMORY, true));
    boolean oneNode = inputs.world().nodes() == 1;
    double fetched = Math.min(store, 1.0 / rates.of(Caching.MEMORY, oneNode));
    double others = byFrequency ? store : fetched;
    double[] saved = new double[2 * (epochs + 1)];
    double first = (epochs - 1) * (store - others); // everybody's way to the store
    for (int times = 1; times <= epochs; times++) {
      saved[index(times, false)] = (times - 1) * (others - own);
      saved[index(times, true)] = saved[index(times, false)] + first;
    }
    double[] distinct = Arrays.stream(saved).distinct().sorted().toArray();
    this.highest = distinct.length;
    this.grades =
        Arrays.stream(saved).mapToInt(each -> 1 + Arrays.binarySearch(distinct, each)).toArray();
  }

  /** No grade is higher; the lowest is 1. */
  int highest() {
    return highest;
  }

  /**
   * The grade of a sample; what is worth more has a higher one.
   *
   * @param times that the rank is asked for it in the stretch, 1 or more
   * @param isFirst true if no other is asked for it before
   */
  int grade(int times, boolean isFirst) {
    return grades[index(times, isFirst)];
  }

  private int index(int times, boolean isFirst) {
    return isFirst ? epochs + 1 + times : times;
  }
}
