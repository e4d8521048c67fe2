/**
 * Reading: a plan carried out against real storage, inside a memory budget. {@link
 * org.gristway.read.Loader} is what users hold; {@link org.gristway.read.PlanExecutor} does the
 * work of one lane.
 */
@NullMarked
package org.gristway.read;

import org.jspecify.annotations.NullMarked;
