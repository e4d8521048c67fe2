package org.gristway.peer;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.concurrent.Executor;
import java.util.concurrent.locks.LockSupport;
import org.gristway.read.Threads;

/**
 * Virtual time, in which all threads and messages of a simulated job run, one at a time. Whatever
 * is to be done becomes an event; how long each takes is drawn from the seed, and nothing else
 * decides on what comes next. So a seed always gives the same course of things.
 *
 * <p>Threads are virtual ones on a scheduler of its own, which is no more than these events: where
 * one waits for a lock, a condition or a monitor, it gives way, and where it is woken it becomes an
 * event. Code under simulation must not wait for real time, nor for a monitor that another thread
 * waits for or holds while it waits.
 */
final class Timeline {

  /** Nobody's event: it happens whatever becomes of nodes. */
  static final int NOBODY = -1;

  private static final long FOR_GOOD = Long.MAX_VALUE;

  /** Real time after which a thread that neither runs nor waits is given up. */
  private static final long MOST_UNSETTLED_NANOS = 30_000_000_000L;

  private record Event(long at, long number, int node, boolean isWork, Runnable what) {
    Event at(long time) {
      return new Event(time, number, node, isWork, what);
    }
  }

  /** A thread of a node. It is the scheduler of itself. */
  private final class Strand implements Executor {
    final int number = strands++;
    final int node;
    final Thread thread;
    volatile Runnable ready; // its next stretch
    boolean isDue; // the stretch is an event already

    Strand(int node, String name, Runnable work) {
      this.node = node;
      try {
        thread = BUILDER.newInstance(this).name("node-" + node + "-" + name).unstarted(work);
      } catch (ReflectiveOperationException other) {
        throw new IllegalStateException("this JDK schedules virtual threads otherwise", other);
      }
    }

    @Override
    public void execute(Runnable stretch) {
      ready = stretch;
    }

    void run() {
      Runnable stretch = ready;
      ready = null;
      isDue = false;
      note(number);
      stretch.run();
    }
  }

  private static final Constructor<? extends Thread.Builder> BUILDER = builder();

  private static Constructor<? extends Thread.Builder> builder() {
    try {
      Constructor<? extends Thread.Builder> constructor =
          Class.forName("java.lang.ThreadBuilders$VirtualThreadBuilder")
              .asSubclass(Thread.Builder.class)
              .getDeclaredConstructor(Executor.class);
      constructor.setAccessible(true);
      return constructor;
    } catch (ReflectiveOperationException other) {
      throw new IllegalStateException("this JDK schedules virtual threads otherwise", other);
    }
  }

  private final Random random;
  private final long stretchNanos; // that a stretch of a thread takes to begin, on average
  private final PriorityQueue<Event> events =
      new PriorityQueue<>(
          Comparator.<Event>comparingLong(event -> event.at)
              .thenComparingLong(event -> event.number));
  private final List<Strand> living = new ArrayList<>();
  private final List<Event> held = new ArrayList<>(); // of nodes that stand still for good
  private final long[] stillUntil; // by node
  private int strands;
  private long number;
  private long now;
  private long lastWork;
  private long digest;

  Timeline(Random random, int nodes, long stretchNanos) {
    this.random = random;
    this.stillUntil = new long[nodes];
    this.stretchNanos = stretchNanos;
  }

  long now() {
    return now;
  }

  /** When something last happened beside signs of life and looking for them. */
  long lastWork() {
    return lastWork;
  }

  /** What has happened, in a number. */
  long digest() {
    return digest;
  }

  /** Makes something part of what has happened. */
  void note(long what) {
    digest = (digest ^ what) * 0x9E3779B97F4A7C15L;
    digest ^= digest >>> 29;
  }

  /** A time around an average; now and then one of ten times that. */
  long about(long averageNanos) {
    double often = -Math.log(1 - random.nextDouble());
    return (long) (averageNanos * Math.min(often, 5) * (random.nextInt(50) == 0 ? 10 : 1));
  }

  /** Has something be done at a time, unless its node stands still then. */
  void at(long time, int node, Runnable what) {
    events.add(new Event(time, number++, node, true, what));
  }

  /** The same for what goes on for ever, and so is no sign that a job does. */
  void upkeepAt(long time, int node, Runnable what) {
    events.add(new Event(time, number++, node, false, what));
  }

  /** The threads of a node. */
  Threads threads(int node) {
    return (name, work) -> {
      Strand strand = new Strand(node, name, work);
      living.add(strand);
      return strand.thread;
    };
  }

  /** Lets time pass for the thread that calls. */
  void sleep(int node, long nanos) throws InterruptedException {
    Thread sleeper = Thread.currentThread();
    boolean[] isOver = new boolean[1];
    at(
        now + nanos,
        node,
        () -> {
          isOver[0] = true;
          LockSupport.unpark(sleeper);
        });
    while (!isOver[0]) {
      if (Thread.interrupted()) {
        throw new InterruptedException();
      }
      LockSupport.park(this);
    }
  }

  /** Now and then lets others run in between. */
  void mayGiveWay() {
    if (Thread.currentThread().isVirtual() && random.nextInt(4) == 0) {
      Thread.yield();
    }
  }

  /** Has all that a node does stand still for a time. */
  void standStill(int node, long nanos) {
    stillUntil[node] = now + nanos;
  }

  void standStillForGood(int node) {
    stillUntil[node] = FOR_GOOD;
  }

  /** Ends all standing still. */
  void wakeAll() {
    Arrays.fill(stillUntil, 0);
    events.addAll(held);
    held.clear();
  }

  /** Does what comes next; false if there is nothing. */
  boolean step() {
    settle();
    Event event = events.poll();
    if (event == null) {
      return false;
    }
    now = Math.max(now, event.at);
    long until = event.node == NOBODY ? 0 : stillUntil[event.node];
    if (until == FOR_GOOD) {
      held.add(event);
    } else if (until > now) {
      events.add(event.at(until));
    } else {
      note(now);
      note(event.number);
      if (event.isWork) {
        lastWork = now;
      }
      event.what.run();
    }
    return true;
  }

  /**
   * Makes events of the threads that can go on. The system wakes those that wait for a monitor in a
   * thread of its own: each is waited for until it either waits or can go on, and then they come in
   * the order of their numbers.
   */
  private void settle() {
    for (int i = 0; i < living.size(); i++) {
      Strand strand = living.get(i);
      long start = 0;
      while (strand.ready == null && isUnsettled(strand.thread.getState())) {
        start = start == 0 ? System.nanoTime() : start;
        if (System.nanoTime() - start > MOST_UNSETTLED_NANOS) {
          throw new IllegalStateException(
              strand.thread.getName() + " waits for a monitor that a waiting thread holds");
        }
        Thread.yield();
      }
      if (strand.ready != null && !strand.isDue) {
        strand.isDue = true;
        at(now + about(stretchNanos), strand.node, strand::run);
      }
    }
    living.removeIf(strand -> strand.thread.getState() == Thread.State.TERMINATED);
  }

  private static boolean isUnsettled(Thread.State state) {
    return state == Thread.State.RUNNABLE || state == Thread.State.BLOCKED;
  }

  /** Where each thread is. */
  String state() {
    StringBuilder text = new StringBuilder("at " + now / 1_000_000 + " ms");
    for (Strand strand : living) {
      text.append("\n  ").append(strand.thread.getName()).append(' ');
      text.append(strand.thread.getState());
      for (StackTraceElement frame : strand.thread.getStackTrace()) {
        if (frame.getClassName().startsWith("org.gristway")) {
          text.append(" < ").append(frame.getFileName()).append(':').append(frame.getLineNumber());
        }
      }
    }
    return text.toString();
  }
}
