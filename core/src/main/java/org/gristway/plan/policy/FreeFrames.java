package org.gristway.plan.policy;

import java.util.Arrays;

/**
 * The frames of a lane that hold nothing. One that was used is taken before one that never was: a
 * lane that needs few frames touches little memory.
 */
final class FreeFrames {

  private final int end;
  private int unused;
  private int[] returned = new int[16];
  private int count;

  FreeFrames(int first, int frames) {
    this.unused = first;
    this.end = first + frames;
  }

  boolean isEmpty() {
    return count == 0 && unused == end;
  }

  int take() {
    return count > 0 ? returned[--count] : unused++;
  }

  void give(int frame) {
    if (count == returned.length) {
      returned = Arrays.copyOf(returned, 2 * count);
    }
    returned[count++] = frame;
  }
}
