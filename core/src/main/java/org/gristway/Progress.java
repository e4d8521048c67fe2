package org.gristway;

/**
 * Hears how far long work has come. Called from any thread, often: keep it cheap. Work goes on
 * whatever this does.
 */
public interface Progress {

  /** Hears nothing. */
  Progress NONE =
      new Progress() {
        @Override
        public void begin(String what, Unit unit, long total) {}

        @Override
        public void advance(long amount) {}

        @Override
        public void end() {}
      };

  /** What is counted. */
  enum Unit {
    BYTES,
    SAMPLES
  }

  /**
   * A stage of the work begins; the one before it has ended.
   *
   * @param total how much there is to do, or 0 where nobody knows yet
   */
  void begin(String what, Unit unit, long total);

  /** So much more is done. */
  void advance(long amount);

  /** The last stage has ended. */
  void end();
}
