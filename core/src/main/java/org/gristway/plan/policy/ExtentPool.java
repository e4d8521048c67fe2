package org.gristway.plan.policy;

import java.util.ArrayDeque;
import org.gristway.plan.Draws;
import org.gristway.plan.PlanInputs.Choice;
import org.gristway.plan.PlanStep;
import org.gristway.plan.policy.Deal.Piece;
import org.jspecify.annotations.Nullable;

/**
 * The extents that a rank reads, whole and once each, and the frames that they pass through. It
 * loads pieces in their dealt order as soon as a frame is free; a piece is open from the first
 * sample that is drawn of it to the last. A policy decides only which open piece is drawn from
 * next, or that the next one is opened; a lane decides what becomes of a sample that is drawn.
 *
 * <p>Pieces are opened in the order in which they are loaded, so whatever is wanted next has been
 * asked of the storage before anything that is wanted later. A large piece takes no frame: opened,
 * it is read straight into its batch and is over.
 */
abstract class ExtentPool {

  /** Makes the step that takes a sample out of its frame, or gets one that is read past them. */
  interface Taker {
    PlanStep take(long sample, int frame);
  }

  private record Loaded(Piece piece, int frame) {}

  private final Deal deal;
  private final int rank;
  private final int frames;
  private final FreeFrames freeFrames;
  private final ArrayDeque<Loaded> loaded = new ArrayDeque<>(); // and not opened yet
  private final long pieces;
  private long dealt; // pieces that are loaded or opened
  private @Nullable Piece waiting; // the next piece, which no frame is free for

  /** Random numbers of this rank alone. */
  final Draws draws;

  /** The open pieces, without gaps. */
  private final Piece[] open;

  private final int[] drawn;
  private final int[] openFrame;
  private int openCount;
  private long unopened;
  private long samplesLeft;
  private long samplesOpen;

  ExtentPool(ExtentPlan plan, int rank) {
    this.deal = plan.deal();
    this.rank = rank;
    this.frames = plan.laneFrames();
    this.pieces = deal.pieces(rank);
    this.draws = new Draws(Draws.key(plan.inputs().key(plan.epoch(), Choice.DRAWS), rank));
    int mostOpen = (int) Math.min(plan.drawable(), pieces);
    this.open = new Piece[mostOpen];
    this.drawn = new int[mostOpen];
    this.openFrame = new int[mostOpen];
    this.unopened = pieces;
    this.samplesLeft = deal.samples(rank);
    this.freeFrames = new FreeFrames(plan.firstFrame(rank), frames);
  }

  /**
   * Decides where the next sample comes from: the index of an open piece, or {@link #openCount()}
   * to open the next one.
   */
  abstract int draw();

  /** Called when a piece has been opened and takes index {@code openCount() - 1}. */
  void opened(int samples) {}

  /** Called when a large piece has been read and delivered. */
  void passed() {}

  /**
   * Called when a sample of an open piece has been drawn; {@code left} is what the piece still has.
   */
  void drawn(int index, int left) {}

  /** True if the last open piece takes the index of one that has ended. */
  boolean closesGaps() {
    return true;
  }

  /** How many pieces are open, with those that have ended where gaps are not closed. */
  final int openCount() {
    return openCount;
  }

  /** Pieces that are not open yet. */
  final long unopened() {
    return unopened;
  }

  /** Samples of this rank that are not drawn yet. */
  final long samplesLeft() {
    return samplesLeft;
  }

  /** Samples of the open pieces that are not drawn yet. */
  final long samplesOpen() {
    return samplesOpen;
  }

  /** The samples of the next {@code count} pieces, which must have been loaded. */
  final long samplesOfNext(long count) {
    return loaded.stream().limit(count).mapToLong(next -> next.piece().count()).sum();
  }

  /** Forgets pieces that have ended and left a gap: no open piece may be left. */
  final void restart() {
    openCount = 0;
  }

  /** The samples that an open piece still has. */
  final int left(int index) {
    return open[index].count() - drawn[index];
  }

  /** True while a load into a frame may still come. */
  final boolean loadsLeft() {
    return dealt < pieces;
  }

  /** Adds the step of the next load, if there is one and room for it; true if it did. */
  final boolean load(ArrayDeque<PlanStep> steps) {
    while (dealt < pieces && loaded.size() < frames) {
      Piece piece = waiting != null ? waiting : deal.piece(rank, dealt);
      waiting = null;
      if (piece.large()) {
        loaded.add(new Loaded(piece, PlanStep.IN_BATCH));
        dealt++;
        continue;
      }
      if (freeFrames.isEmpty()) {
        waiting = piece;
        return false;
      }
      int frame = freeFrames.take();
      loaded.add(new Loaded(piece, frame));
      dealt++;
      steps.add(new PlanStep.Load(piece.extent(), frame, piece.again()));
      return true;
    }
    return false;
  }

  /**
   * Draws the next sample, when all is loaded that can be, and adds the steps that get it, take it
   * and end its frame if it was the last there.
   */
  final void draw(ArrayDeque<PlanStep> steps, Taker taker) {
    int index = draw();
    if (index == openCount) {
      Loaded next = loaded.remove();
      unopened--;
      if (next.piece().large()) {
        samplesLeft--;
        steps.add(
            new PlanStep.Load(next.piece().extent(), PlanStep.IN_BATCH, next.piece().again()));
        steps.add(taker.take(deal.sample(next.piece(), 0), PlanStep.IN_BATCH));
        passed();
        return;
      }
      open[openCount] = next.piece();
      drawn[openCount] = 0;
      openFrame[openCount] = next.frame();
      openCount++;
      samplesOpen += next.piece().count();
      opened(next.piece().count());
    }
    long sample = deal.sample(open[index], drawn[index]++);
    samplesLeft--;
    samplesOpen--;
    steps.add(taker.take(sample, openFrame[index]));
    drawn(index, left(index));
    if (left(index) == 0) {
      steps.add(new PlanStep.Release(openFrame[index]));
      close(index);
    }
  }

  private void close(int index) {
    freeFrames.give(openFrame[index]);
    if (closesGaps()) {
      openCount--;
      open[index] = open[openCount];
      drawn[index] = drawn[openCount];
      openFrame[index] = openFrame[openCount];
    }
  }
}
