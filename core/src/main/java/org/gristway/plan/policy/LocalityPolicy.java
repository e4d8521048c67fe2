package org.gristway.plan.policy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.gristway.plan.Caching;
import org.gristway.plan.PlanInputs;
import org.gristway.plan.PlanInputs.Requests;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanSteps;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.ReadPolicy;
import org.gristway.plan.Shares;
import org.gristway.plan.World;
import org.jspecify.annotations.Nullable;

/**
 * Gives each global batch the samples that were asked for, dealt to the ranks that have them in
 * memory: only what keeps the batches equal moves. After Yang and Cong, <i>Accelerating Data
 * Loading in Deep Neural Network Training</i> (2019).
 *
 * <p>In the first epoch each rank gets the samples that it is asked for, and keeps them while its
 * memory lasts. From then on a rank gets those of each global batch that it keeps; a rank that has
 * too few of them takes samples that nobody keeps, from the store, and then samples of ranks that
 * have too many. All ranks compute that alike, so no message is needed to agree on it.
 *
 * <p>Changed against the paper: which rank gets what is moved does not depend on the machines that
 * ranks sit on, so that the order is the same however ranks are grouped; samples that nobody keeps
 * are dealt by turns, so that all read from the store.
 */
public final class LocalityPolicy implements ReadPolicy {

  public static final String NAME = "locality";

  /** Steps that are remembered for the lanes that have not come to them yet. */
  private static final int REMEMBERED = 16;

  private final Shared<Owners> owners = new Shared<>();

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public int planVersion() {
    return 1;
  }

  @Override
  public boolean caches() {
    return true;
  }

  @Override
  public ReadPlan plan(PlanInputs inputs, long epoch) {
    Staging staging = Staging.of(inputs);
    Owners known = owners.of(inputs, 0, () -> Owners.of(inputs, staging.cacheBytes()));
    return new Plan(inputs, epoch, staging, known);
  }

  private static final class Plan implements StagedPlan {

    private final PlanInputs inputs;
    private final long epoch;
    private final Staging staging;
    private final Owners owners;
    private final Shares shares;
    private final Requests requests;
    private final @Nullable StepDeal[] remembered = new StepDeal[REMEMBERED];

    Plan(PlanInputs inputs, long epoch, Staging staging, Owners owners) {
      this.inputs = inputs;
      this.epoch = epoch;
      this.staging = staging;
      this.owners = owners;
      this.shares = inputs.shares();
      this.requests = inputs.requests(epoch);
    }

    @Override
    public PlanInputs inputs() {
      return inputs;
    }

    @Override
    public long epoch() {
      return epoch;
    }

    @Override
    public Staging staging() {
      return staging;
    }

    @Override
    public long bytesAtStart() {
      return epoch == 0 ? 0 : owners.bytes();
    }

    @Override
    public PlanSteps lane(int rank, boolean cold) {
      return new Lane(this, rank, cold || epoch == 0);
    }

    /** Who gets what at a step. Any thread; lanes that go on together share the work. */
    StepDeal deal(long step) {
      int slot = (int) (step % REMEMBERED);
      synchronized (remembered) {
        StepDeal known = remembered[slot];
        if (known == null || known.step() != step) {
          known =
              epoch == 0
                  ? StepDeal.asAsked(step, shares, requests, owners)
                  : StepDeal.byOwner(step, shares, requests, owners);
          remembered[slot] = known;
        }
        return known;
      }
    }
  }

  /**
   * The samples of a step by the rank that gets them.
   *
   * @param starts where the samples of a rank begin; one more than there are ranks
   */
  private record StepDeal(long step, long[] samples, int[] starts) {

    static StepDeal asAsked(long step, Shares shares, Requests requests, Owners owners) {
      int[] starts = starts(step, shares, owners.ranks());
      long[] samples = asked(step, shares, requests, starts);
      return new StepDeal(step, samples, starts);
    }

    private static int[] starts(long step, Shares shares, int ranks) {
      int[] starts = new int[ranks + 1];
      for (int rank = 0; rank < ranks; rank++) {
        starts[rank + 1] = starts[rank] + shares.fresh(rank, step);
      }
      return starts;
    }

    private static long[] asked(long step, Shares shares, Requests requests, int[] starts) {
      long first = shares.firstRequest(0, step);
      long[] samples = new long[starts[starts.length - 1]];
      Arrays.setAll(samples, i -> requests.at(first + i));
      return samples;
    }

    static StepDeal byOwner(long step, Shares shares, Requests requests, Owners owners) {
      int ranks = owners.ranks();
      int[] starts = starts(step, shares, ranks);
      long[] asked = asked(step, shares, requests, starts);
      long[] dealt = new long[asked.length];
      int[] ends = Arrays.copyOf(starts, ranks); // of what a rank has got so far
      long[] unowned = new long[asked.length];
      long[] surplus = new long[asked.length];
      int unownedCount = 0;
      int surplusCount = 0;
      for (long sample : asked) {
        int owner = owners.of(sample);
        if (owner == Owners.NONE) {
          unowned[unownedCount++] = sample;
        } else if (ends[owner] < starts[owner + 1]) {
          dealt[ends[owner]++] = sample;
        } else {
          surplus[surplusCount++] = sample;
        }
      }
      System.arraycopy(surplus, 0, unowned, unownedCount, surplusCount);
      fill(dealt, starts, ends, unowned);
      return new StepDeal(step, dealt, starts);
    }

    /** Gives one sample after the other to the ranks that have too few, by turns. */
    private static void fill(long[] dealt, int[] starts, int[] ends, long[] left) {
      int[] open = new int[ends.length];
      int count = 0;
      for (int rank = 0; rank < ends.length; rank++) {
        if (ends[rank] < starts[rank + 1]) {
          open[count++] = rank;
        }
      }
      int next = 0;
      int turn = 0;
      while (count > 0) {
        int rank = open[turn];
        dealt[ends[rank]++] = left[next++];
        if (ends[rank] == starts[rank + 1]) {
          count--;
          System.arraycopy(open, turn + 1, open, turn, count - turn);
        } else {
          turn++;
        }
        if (turn == count) {
          turn = 0;
        }
      }
    }
  }

  private static final class Lane extends SampleLane {

    private final Plan plan;
    private final World world;
    private final int rank;
    private final boolean cold;
    private @Nullable StepDeal deal;

    Lane(Plan plan, int rank, boolean cold) {
      super(plan, rank);
      this.plan = plan;
      this.world = plan.inputs.world();
      this.rank = rank;
      this.cold = cold;
    }

    @Override
    Wanted wanted(long step, int position) {
      if (deal == null || deal.step() != step) {
        deal = plan.deal(step);
      }
      long sample = deal.samples()[deal.starts()[rank] + position];
      int owner = plan.owners.of(sample);
      int after = owner == rank ? Caching.MEMORY : NOT_KEPT;
      if (cold || owner == Owners.NONE) {
        return new Wanted(sample, null, NOT_KEPT, after);
      }
      return new Wanted(sample, source(owner), after, after);
    }

    private PlanStep.Source source(int owner) {
      int node = world.nodeOf(owner);
      boolean here = node == world.nodeOf(rank);
      return new PlanStep.Source(here ? PlanStep.Source.HERE : node, Caching.MEMORY);
    }
  }

  /** Which rank keeps a sample: 4 bytes a sample, outside the heap. */
  private static final class Owners {

    static final int NONE = -1;

    private final int ranks;
    private final MemorySegment table;
    private final long bytes;

    private Owners(int ranks, MemorySegment table, long bytes) {
      this.ranks = ranks;
      this.table = table;
      this.bytes = bytes;
    }

    /** The first reader keeps a sample while its memory lasts; large samples are not kept. */
    static Owners of(PlanInputs inputs, long cacheBytes) {
      long count = inputs.layout().sampleCount();
      MemorySegment table = Arena.ofAuto().allocate(4 * Math.max(1, count), 4);
      table.fill((byte) NONE);
      Accesses accesses = new Accesses(inputs, 0, 1);
      long[] left = new long[inputs.world().ranks()];
      Arrays.fill(left, cacheBytes);
      for (int each = 0; each < left.length; each++) {
        int rank = each;
        accesses.forEach(
            rank,
            0,
            sample -> {
              long length = inputs.layout().length(sample);
              if (length <= left[rank]
                  && !inputs.cuts().isLarge(inputs.layout().location(sample))) {
                table.setAtIndex(ValueLayout.JAVA_INT, sample, rank);
                left[rank] -= length;
              }
            });
      }
      return new Owners(left.length, table, left.length * cacheBytes - Arrays.stream(left).sum());
    }

    int ranks() {
      return ranks;
    }

    int of(long sample) {
      return table.getAtIndex(ValueLayout.JAVA_INT, sample);
    }

    /** What all ranks keep together. */
    long bytes() {
      return bytes;
    }
  }
}
