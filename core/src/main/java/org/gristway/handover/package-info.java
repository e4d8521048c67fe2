/**
 * The handover: shared memory in which batches are built and reach a trainer. {@link
 * org.gristway.handover.Handover} owns the memory, {@link org.gristway.handover.AreaQueue} says
 * whose turn it is, {@link org.gristway.handover.BatchLayout} says where things stand in it.
 */
@NullMarked
package org.gristway.handover;

import org.jspecify.annotations.NullMarked;
