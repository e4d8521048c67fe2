/**
 * Plans in virtual time: what a run would take on machines that are not here. {@link
 * org.gristway.simulator.Scenario} says what is simulated, {@link
 * org.gristway.simulator.Simulation} does it, with the very plans that a real run carries out and a
 * {@link org.gristway.simulator.CostModel} for the time that each step takes. Beside them stand the
 * {@link org.gristway.simulator.Baseline baselines} of the literature, which react to time and so
 * cannot be plans.
 */
@NullMarked
package org.gristway.simulator;

import org.jspecify.annotations.NullMarked;
