package org.gristway.os;

import java.lang.foreign.MemorySegment;

/** Pages of a mapped file. */
public final class MappedPages {

  private MappedPages() {}

  /**
   * Lets go of pages that are not needed again soon, so that they no longer count as memory of this
   * process. They come back from the file when they are touched.
   *
   * @param pages of a file that is mapped to be read; must begin at a page
   */
  public static void forget(MemorySegment pages) {
    PosixMemory.forget(pages);
  }
}
