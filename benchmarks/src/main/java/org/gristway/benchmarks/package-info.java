/**
 * Every speed that the documents state, as a program that measures it again: {@code
 * ./benchmarks/run NAME}. Arms run interleaved, several rounds each, and medians are compared,
 * since machines are noisy.
 */
@NullMarked
package org.gristway.benchmarks;

import org.jspecify.annotations.NullMarked;
