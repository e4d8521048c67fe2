/**
 * What every package shares: {@link org.gristway.Failure}, the one way in which things go wrong,
 * and {@link org.gristway.Progress}, by which long work tells how far it is.
 */
@NullMarked
package org.gristway;

import org.jspecify.annotations.NullMarked;
