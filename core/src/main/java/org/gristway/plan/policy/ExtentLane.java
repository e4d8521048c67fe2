package org.gristway.plan.policy;

/** A lane that delivers what its own rank reads. */
final class ExtentLane extends BatchLane {

  private final ExtentPool pool;

  ExtentLane(ExtentPlan plan, int rank) {
    super(new Places(plan.inputs(), plan.epoch(), rank), plan.epoch());
    this.pool = plan.pool(rank);
  }

  @Override
  public boolean loadsLeft() {
    return pool.loadsLeft();
  }

  @Override
  boolean load() {
    return pool.load(steps);
  }

  @Override
  void deliver() {
    pool.draw(steps, places::deliver);
  }
}
