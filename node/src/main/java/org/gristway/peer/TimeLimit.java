package org.gristway.peer;

import java.io.IOException;
import java.net.SocketTimeoutException;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;

/**
 * The time that the other end of a connection has to say what is due. When it is up the connection
 * is closed, so that whoever reads or writes there fails: a time-out of each read would not do, as
 * a stranger may say a byte at a time. Any thread may call.
 */
final class TimeLimit implements AutoCloseable {

  private final SocketChannel channel;
  private final Thread waiting;
  private boolean isOver;
  private boolean isLifted;

  TimeLimit(SocketChannel channel, long millis) {
    this.channel = channel;
    this.waiting = Thread.ofVirtual().name("gristway-limit").start(() -> expire(millis));
  }

  private void expire(long millis) {
    try {
      TimeUnit.MILLISECONDS.sleep(millis);
      expire();
    } catch (InterruptedException inTime) {
      // As it should be.
    }
  }

  /** Ends the time now. */
  synchronized void expire() {
    if (!isLifted) {
      isOver = true;
      Door.close(channel);
    }
  }

  synchronized boolean isOver() {
    return isOver;
  }

  /**
   * Gives the other end any time from now on.
   *
   * @throws SocketTimeoutException if its time was up before
   */
  synchronized void lift() throws IOException {
    if (isOver) {
      throw new SocketTimeoutException("it takes too long");
    }
    close();
  }

  /** Takes the limit away, if there still is one. */
  @Override
  public synchronized void close() {
    isLifted = true;
    waiting.interrupt();
  }
}
