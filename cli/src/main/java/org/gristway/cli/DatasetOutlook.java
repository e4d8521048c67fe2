package org.gristway.cli;

import java.util.List;
import org.gristway.plan.PlanInputs;

/**
 * What {@code plan} has found out about a dataset.
 *
 * @param dataset its path
 * @param inputs what all policies have in common; the policy that is named in it is what was asked
 *     for
 * @param epoch that was planned
 * @param memoryBytes of a node
 * @param bounds between what the policies lie
 */
record DatasetOutlook(
    String dataset,
    PlanInputs inputs,
    long epoch,
    long memoryBytes,
    long datasetBytes,
    OrderBounds bounds,
    List<PolicyOutlook> policies) {

  /** True if the dataset has labels that can be mixed. */
  boolean hasLabels() {
    return bounds.ceiling().labels() != null;
  }
}
