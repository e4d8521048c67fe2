/**
 * Plans: everything an epoch reads and delivers, decided ahead from the seed. A {@link
 * org.gristway.plan.ReadPolicy} makes a {@link org.gristway.plan.ReadPlan}, whose {@link
 * org.gristway.plan.PlanStep}s are pulled one by one by whoever carries them out. Nothing here
 * reads a clock, a disk or the machine, so that every node computes the same.
 */
@NullMarked
package org.gristway.plan;

import org.jspecify.annotations.NullMarked;
