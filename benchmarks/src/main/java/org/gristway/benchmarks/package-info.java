/** Measurements of Gristway; not part of the product. */
@NullMarked
package org.gristway.benchmarks;

import org.jspecify.annotations.NullMarked;
