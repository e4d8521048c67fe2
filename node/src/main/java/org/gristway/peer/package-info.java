/**
 * The nodes of a job: how they know each other ({@link org.gristway.peer.JobSecret}, {@link
 * org.gristway.peer.Greeting}), push samples to each other ({@link org.gristway.peer.Mesh}), and
 * what becomes of them when one is lost ({@link org.gristway.peer.Peers}).
 */
@NullMarked
package org.gristway.peer;

import org.jspecify.annotations.NullMarked;
