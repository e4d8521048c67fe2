package org.gristway.read;

import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.gristway.handover.AreaQueue;
import org.gristway.handover.Batch;
import org.gristway.handover.Handover;
import org.gristway.plan.Run;
import org.jspecify.annotations.Nullable;

/**
 * The batches of one rank: the thread that builds them, and how far the rank's trainer has come.
 * Starting and ending is for the loader, the rest for whoever trains as this rank; where that is,
 * any thread may see.
 */
final class RankLane {

  private final Run run;
  private final Handover.RankAreas areas;
  private final Thread thread;
  private volatile int stepsAtOnce;
  private volatile long epoch;
  private volatile long step;
  private @Nullable Batch iterated; // the one that an iterator has returned last

  /**
   * @param failed told why no more batches come, if they should
   */
  RankLane(
      int number,
      Run run,
      PlanExecutor executor,
      Handover.RankAreas areas,
      Threads threads,
      Consumer<Throwable> failed) {
    this.run = run;
    this.areas = areas;
    this.thread = threads.unstarted("gristway-lane-" + number, () -> build(executor, failed));
    this.epoch = run.firstEpoch();
    this.step = run.firstStep();
  }

  private void build(PlanExecutor executor, Consumer<Throwable> failed) {
    Throwable why = null;
    try {
      int area = executor.build(stepsAtOnce);
      while (area != AreaQueue.NONE) {
        areas.queue().publish(area);
        area = executor.build(stepsAtOnce);
      }
    } catch (InterruptedException closed) {
      // Nobody waits for what would have come.
    } catch (Throwable thrown) {
      why = thrown;
    }
    areas.queue().end(why);
    if (why != null) {
      failed.accept(why);
    }
  }

  /** Begins to build batches, of so many steps each. */
  void start(int steps) {
    stepsAtOnce = steps;
    thread.start();
  }

  /** Has no more batches built; whoever waits for one is told why, if there is a reason. */
  void end(@Nullable Throwable why) {
    areas.queue().end(why);
    thread.interrupt();
  }

  Thread thread() {
    return thread;
  }

  Handover.RankAreas areas() {
    return areas;
  }

  /** The epoch that the trainer is in, or that comes next. */
  long epoch() {
    return epoch;
  }

  /** How many steps of that it has received. */
  long step() {
    return step;
  }

  /** Notes that the trainer has a batch more; true if that was the last of its epoch. */
  boolean advance() {
    step = Math.min(step + stepsAtOnce, run.steps(epoch));
    boolean isLast = step == run.steps(epoch);
    if (isLast) {
      step = 0;
      epoch++;
    }
    return isLast;
  }

  /**
   * The rest of the epoch. Each batch is closed when the next one is asked for.
   *
   * @param endEpoch the first that there is nothing of
   * @param next gives a batch, and has {@link #advance} count it
   */
  Iterable<Batch> rest(long endEpoch, Supplier<Batch> next) {
    long current = epoch;
    return () ->
        new Iterator<>() {
          @Override
          public boolean hasNext() {
            closeIterated();
            return epoch == current && current < endEpoch && !skipsEmpty(current);
          }

          @Override
          public Batch next() {
            if (!hasNext()) {
              throw new NoSuchElementException();
            }
            Batch batch = next.get();
            iterated = batch;
            return batch;
          }
        };
  }

  private void closeIterated() {
    Batch last = iterated;
    if (last != null) {
      last.close();
      iterated = null;
    }
  }

  /** An epoch without batches is over as soon as it is asked for. */
  private boolean skipsEmpty(long current) {
    boolean isEmpty = run.steps(current) == 0;
    if (isEmpty) {
      epoch = current + 1;
    }
    return isEmpty;
  }
}
