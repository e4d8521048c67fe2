package org.gristway.cli;

import java.util.Locale;
import org.gristway.Progress;
import org.gristway.plan.PlanStep.Deliver;
import org.gristway.plan.PlannedOrder;
import org.gristway.plan.Quality;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.policy.ClairvoyantPolicy;
import org.gristway.plan.policy.LocalityPolicy;
import org.gristway.simulator.CostModel;
import org.gristway.simulator.CostModel.Storage;
import org.jspecify.annotations.Nullable;

/**
 * How to read a dataset, and why.
 *
 * @param samplesTried of the dataset, with which settings were run in virtual time
 * @param runnerUp the second best, or null if there is none
 */
record Recommendation(
    Recommender.Asked asked, long samplesTried, Advised best, @Nullable Advised runnerUp) {

  /**
   * Settings, and what an epoch that is not the first would do to the dataset.
   *
   * @param mateRatio see {@link Quality}
   */
  record Advised(Candidate settings, long storageReads, long storageBytes, double mateRatio) {

    /** Goes through the plan of such an epoch. */
    static Advised of(Candidate settings, ReadPlan plan, Progress progress) {
      PlannedOrder planned = new PlannedOrder(plan, false);
      Quality quality = new Quality(plan.inputs().cuts());
      for (Deliver[][] step = planned.next(); step != null; step = planned.next()) {
        quality.add(PlannedEpoch.fresh(step, progress));
      }
      return new Advised(settings, planned.reads(), planned.bytes(), quality.report().mateRatio());
    }
  }

  /** Why the best is the best, in two sentences. */
  String reason() {
    return best.settings().removesStall()
        ? whyNoStall() + " " + whyThisMemory()
        : whyLeastStall() + " " + whatBounds();
  }

  private String whyNoStall() {
    Candidate settings = best.settings();
    String waits =
        String.format(
            "Training takes %s a second on a node and would wait %s of an epoch once the first is"
                + " over",
            Text.bytes(asked.bytesWanted()), percent(settings.stallShare()));
    if (best.storageReads() == 0) {
      return String.format(
          Locale.ROOT,
          "%s: by then, after %.1f s of waiting, all samples are in memory.",
          waits,
          settings.firstEpochStall());
    }
    return String.format(
        "%s: an epoch is %s of %s on average, and this storage gives %s a second%s.",
        waits,
        Text.count(best.storageReads(), "read"),
        Text.bytes(meanRead()),
        Text.bytes(given()),
        settings.isFullShuffle() ? " that way" : "");
  }

  private double meanRead() {
    return (double) best.storageBytes() / best.storageReads();
  }

  /** Bytes a second that the storage of a node gives for reads as the best settings have them. */
  private double given() {
    Storage storage = asked.cost().storage();
    return storage.rate(Math.round(meanRead()), storage.depth(), 1);
  }

  private String whyThisMemory() {
    Candidate settings = best.settings();
    String memory = Text.bytes(settings.memory());
    if (settings.isFullShuffle()) {
      return String.format(
          "Nothing that was tried does so with less than %s of memory and mixes as well: the order is"
              + " a full shuffle.",
          memory);
    }
    String mates =
        String.format(
            Locale.ROOT,
            "two samples of a batch come from the same extent %.1f times as often as by chance",
            best.mateRatio());
    String enough =
        percent(Recommender.ENOUGH_TO_MIX)
            + " of the dataset with which networks have been trained as well as with a full shuffle";
    return settings.mixes()
        ? String.format(
            "%s is the least memory tried that does so and holds the %s: %s.",
            memory, enough, mates)
        : String.format(
            "Less memory would do to read, but all of it goes into mixing: it holds %s, and not the"
                + " %s, so that %s.",
            percent(settings.share()), enough, mates);
  }

  private String whyLeastStall() {
    return String.format(
        "Nothing that was tried removes the stall: training takes %s a second on a node and would"
            + " wait %s of an epoch this way, %s.",
        Text.bytes(asked.bytesWanted()),
        percent(best.settings().stallShare()),
        runnerUp == null ? "the only one" : "the least");
  }

  /** What keeps the stall from going away. */
  enum Bound {
    LOADER,
    BYTES,
    REQUESTS,
    MEMORY
  }

  /** What keeps the stall of the best settings from going away, if it does not. */
  @Nullable Bound bound() {
    if (best.settings().removesStall()) {
      return null;
    }
    if (best.storageReads() == 0
        || loaderSeconds() > (1 - Recommender.NO_STALL) * asked.stepSeconds()) {
      return Bound.LOADER;
    }
    if (asked.bytesWanted() > (1 - Recommender.NO_STALL) * asked.cost().storage().rate()) {
      return Bound.BYTES;
    }
    return asked.bytesWanted() > (1 - Recommender.NO_STALL) * given()
        ? Bound.REQUESTS
        : Bound.MEMORY;
  }

  /** What the loader of a rank takes for a batch once it is read: what stays is not copied. */
  private double loaderSeconds() {
    CostModel cost = asked.cost();
    double copy = best.storageReads() == 0 ? 0 : asked.meanBytes() / cost.memoryRate();
    double others = Math.max(1, asked.ranksPerNode() / cost.processors());
    return asked.batchSize() * (cost.sampleSeconds() + copy) * others;
  }

  private String whatBounds() {
    Bound bound = bound();
    if (bound == Bound.LOADER) {
      return String.format(
          Locale.ROOT,
          "The loader bounds it: it takes %.3g ms for a batch of %s that is in memory, and a step"
              + " takes %.3g ms.",
          1000 * loaderSeconds(),
          Text.count(asked.batchSize(), "sample"),
          1000 * asked.stepSeconds());
    }
    if (bound == Bound.MEMORY) {
      return String.format(
          "The memory bounds it: the storage gives enough, %s a second, but %s hold too little of"
              + " what comes next.",
          Text.bytes(given()), Text.bytes(best.settings().memory()));
    }
    return String.format(
        "The storage bounds it: it gives %s a second%s, and only a memory for the whole dataset (%s)"
            + "%s would end that%s.",
        Text.bytes(bound == Bound.BYTES ? asked.cost().storage().rate() : given()),
        bound == Bound.BYTES ? "" : " in reads of " + Text.bytes(meanRead()),
        Text.bytes(asked.datasetBytes()),
        asked.world().nodes() == 1 ? "" : " on each node",
        asked.world().nodes() == 1 ? "" : orShares());
  }

  /** What is not tried, since no probe says how fast other nodes are. */
  private String orShares() {
    return String.format(
        ", or one for a node's share of it (%s), with '%s' or '%s' and a network that is faster",
        Text.bytes((double) asked.datasetBytes() / asked.world().nodes()),
        LocalityPolicy.NAME,
        ClairvoyantPolicy.NAME);
  }

  /** Why the second best is second, in a sentence; empty if there is none. */
  String whySecond() {
    if (runnerUp == null) {
      return "";
    }
    Candidate second = runnerUp.settings();
    return String.format(
        Locale.ROOT,
        "It %s, in %s of memory against %s, with a mate ratio of %.1f against %.1f (1 is a full"
            + " shuffle).",
        second.removesStall()
            ? "removes the stall too"
            : "would wait " + percent(second.stallShare()) + " of an epoch",
        Text.bytes(second.memory()),
        Text.bytes(best.settings().memory()),
        runnerUp.mateRatio(),
        best.mateRatio());
  }

  private static String percent(double share) {
    return String.format(Locale.ROOT, "%.1f %%", 100 * share);
  }
}
