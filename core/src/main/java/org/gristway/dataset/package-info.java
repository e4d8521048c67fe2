/**
 * A dataset as users see it: a folder of chunks and snapshots that is opened, read, listed,
 * verified, rebuilt and unpacked. Start at {@link org.gristway.dataset.Dataset}.
 */
@NullMarked
package org.gristway.dataset;

import org.jspecify.annotations.NullMarked;
