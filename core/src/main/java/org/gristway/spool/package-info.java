/**
 * Data that is too much for memory and not worth keeping: written to a temporary folder, read back
 * in order, deleted. This is what keeps packing inside a fixed heap whatever the size of a dataset.
 */
@NullMarked
package org.gristway.spool;

import org.jspecify.annotations.NullMarked;
