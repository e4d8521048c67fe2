/**
 * The process that reads for the trainers of a machine. {@link org.gristway.node.Node} takes their
 * connections, {@link org.gristway.node.RankFeed} has each rank's batches by their number, and
 * {@link org.gristway.node.Message} is what both sides say.
 */
@NullMarked
package org.gristway.node;

import org.jspecify.annotations.NullMarked;
