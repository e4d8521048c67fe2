package org.gristway.node;

import org.gristway.Failure;

/**
 * There is no memory for a batch before others are released. The client that asks may be the one
 * who has them, and have released them since: it is answered at once, so that it can say so and ask
 * again.
 */
final class NoRoom extends RuntimeException {

  NoRoom(Failure why) {
    super(why.getMessage());
  }
}
