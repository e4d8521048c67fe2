/**
 * Counters: named numbers that another process can read at any time without asking the one that
 * counts.
 */
@NullMarked
package org.gristway.counters;

import org.jspecify.annotations.NullMarked;
