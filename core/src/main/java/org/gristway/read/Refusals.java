package org.gristway.read;

import java.nio.file.Files;
import java.nio.file.Path;
import org.gristway.Failure;
import org.gristway.dataset.Dataset;
import org.gristway.dataset.Portion;
import org.gristway.plan.Homes;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.World;

/** What does not go together, of a dataset and the options that it is to be read with. */
final class Refusals {

  private Refusals() {}

  /**
   * Refuses what cannot be read.
   *
   * @param knowsOthers true if ranks can push to those of other nodes
   */
  static void check(
      Dataset dataset,
      LoaderOptions options,
      ReadPolicy policy,
      Beginning beginning,
      boolean knowsOthers) {
    dataset.portion().ifPresent(portion -> checkPortion(dataset.path(), portion, options));
    checkExchange(policy, options, knowsOthers);
    checkCache(policy, options.cache());
    if (policy.caches() && beginning.samples() != null) {
      throw Failure.wrongCall(
          "policy '%s' decides what to keep for a whole dataset, and reads no part of one",
          policy.name());
    }
  }

  /** Chunks of one node are read by that node, which gives all others what they deliver of them. */
  private static void checkPortion(Path path, Portion portion, LoaderOptions options) {
    if (options.exchange().homes() != Homes.PLACED) {
      throw Failure.wrongCall(
          "%s holds only the chunks of %s, and those of the others are missing: it is read by all %d"
              + " nodes together, with an exchange of 1 and placed homes",
          path, portion, portion.nodes());
    }
    World world = options.world();
    if (world.nodes() != portion.nodes() || world.node() != portion.node()) {
      throw Failure.wrongCall(
          "%s holds only the chunks of %s, and this is node %d of %d",
          path, portion, world.node(), world.nodes());
    }
  }

  private static void checkExchange(ReadPolicy policy, LoaderOptions options, boolean knowsOthers) {
    if (!options.isExchanging()) {
      return;
    }
    if (!policy.exchanges()) {
      throw Failure.wrongCall(
          "policy '%s' gives each rank what that reads itself: exchange is for those that read whole"
              + " extents",
          policy.name());
    }
    int ranks = options.world().ranks();
    if (!knowsOthers && options.ranks() < ranks) {
      throw Failure.wrongCall(
          "%d of %d ranks are on other nodes: to mix what they read, nodes must know each other",
          ranks - options.ranks(), ranks);
    }
  }

  private static void checkCache(ReadPolicy policy, Cache cache) {
    // Those whose ranks can mix what they read are those that read whole extents.
    if (!cache.isNone() && !policy.caches() && !policy.exchanges()) {
      throw Failure.wrongCall(
          "policy '%s' has no use for a cache: it reads no whole extents, or keeps all of them",
          policy.name());
    }
    if (cache.memory() > 0 && policy.caches()) {
      throw Failure.wrongCall(
          "policy '%s' keeps samples in the memory that it reads with: give it more of that",
          policy.name());
    }
    Path folder = cache.folder();
    if (folder != null && !Files.isDirectory(folder)) {
      throw Failure.wrongCall("there is no folder '%s' to keep what was read in", folder);
    }
  }
}
