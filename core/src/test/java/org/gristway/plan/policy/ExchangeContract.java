package org.gristway.plan.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import org.gristway.plan.FrameReplay;
import org.gristway.plan.PlanCase;
import org.gristway.plan.PlanStep;
import org.gristway.plan.PlanStep.Receive;
import org.gristway.plan.PlanStep.Send;
import org.gristway.plan.PlanSteps;
import org.gristway.plan.Pulled;
import org.gristway.plan.ReadPlan;
import org.gristway.plan.Resumed;
import org.gristway.testing.Seeds;
import org.junit.jupiter.api.Test;

/** What ranks keep that mix what they read, beside all that every policy keeps. */
abstract class ExchangeContract extends ExtentPolicyContract {

  private static final long SEED = Seeds.of("ExchangeContract");

  /** What is pushed: to whom, for which place, and what. */
  private record Push(int to, long step, int position, long sample, int from) {}

  @Test
  void what_is_received_is_what_another_rank_sends() {
    forEveryCase(each -> assertSentAndReceived(Pulled.byRank(each.plan())));
  }

  @Test
  void what_is_received_from_any_step_on_is_sent_from_there_on() {
    forEveryCase(
        each -> {
          ReadPlan plan = each.plan();
          if (plan.steps() > 0) {
            long from = new Random(each.inputs().seed()).nextLong(plan.steps());
            List<List<PlanStep>> lanes = new ArrayList<>();
            for (int rank = 0; rank < each.ranks(); rank++) {
              List<PlanStep> lane = Pulled.all(new Resumed(plan.lane(rank, true), from));
              FrameReplay replay = FrameReplay.of(plan, rank).addAll(lane);
              assertThat(replay.violations()).isEmpty();
              assertThat(replay.held()).isEmpty();
              assertThat(Pulled.of(Send.class, lane)).allMatch(send -> send.step() >= from);
              lanes.add(lane);
            }
            assertSentAndReceived(lanes);
          }
        });
  }

  private static void assertSentAndReceived(List<List<PlanStep>> lanes) {
    List<Push> sent = new ArrayList<>();
    List<Push> received = new ArrayList<>();
    for (int rank = 0; rank < lanes.size(); rank++) {
      for (Send send : Pulled.of(Send.class, lanes.get(rank))) {
        sent.add(new Push(send.rank(), send.step(), send.position(), send.sample(), rank));
      }
      for (Receive take : Pulled.of(Receive.class, lanes.get(rank))) {
        received.add(new Push(rank, take.step(), take.position(), take.sample(), take.rank()));
      }
    }
    assertThat(received).hasSameSizeAs(sent);
    assertThat(new HashSet<>(received)).isEqualTo(new HashSet<>(sent));
    assertThat(sent).noneMatch(push -> push.to() == push.from());
  }

  @Test
  void a_rank_sends_each_other_in_the_order_of_its_steps_and_a_window_ahead() {
    forEveryCase(
        each -> {
          int window = each.settings().exchange().window();
          for (List<PlanStep> lane : Pulled.byRank(each.plan())) {
            Map<Integer, Long> lastTo = new HashMap<>();
            long delivered = 0; // the step that the rank is at
            for (PlanStep step : lane) {
              switch (step) {
                case Send send -> {
                  assertThat(send.step()).isGreaterThanOrEqualTo(delivered);
                  assertThat(send.step()).isLessThanOrEqualTo(delivered + 1 + window);
                  assertThat(lastTo.getOrDefault(send.rank(), 0L)).isLessThanOrEqualTo(send.step());
                  lastTo.put(send.rank(), send.step());
                }
                case PlanStep.Deliver deliver -> delivered = deliver.step();
                default -> {}
              }
            }
          }
        });
  }

  @Test
  void ranks_that_have_room_for_a_window_and_a_step_never_wait_for_each_other_for_ever() {
    forEveryCase(
        each -> {
          ReadPlan plan = each.plan();
          Random order = new Random(SEED + each.inputs().seed());
          List<Walk> walks = new ArrayList<>();
          int room = each.settings().exchange().window() + 1;
          for (int rank = 0; rank < each.ranks(); rank++) {
            walks.add(new Walk(rank, plan.lane(rank, true)));
          }
          List<Walk> going = new ArrayList<>(walks);
          while (!going.isEmpty()) {
            // Any one that can go on may be the one that does, for as long as it likes.
            List<Walk> free = going.stream().filter(walk -> walk.canGoOn(walks, room)).toList();
            assertThat(free).as("ranks that can go on of %d", going.size()).isNotEmpty();
            Walk next = free.get(order.nextInt(free.size()));
            for (int i = order.nextInt(200); i >= 0 && next.canGoOn(walks, room); i--) {
              next.goOn(walks);
            }
            going.removeIf(Walk::isDone);
          }
          assertThat(walks).allMatch(walk -> walk.inbox.isEmpty());
        });
  }

  /** A rank on its way through its steps. */
  private static final class Walk {
    final int rank;
    final PlanSteps lane;
    final Map<Push, Boolean> inbox = new HashMap<>();
    long done = -1; // the last step of which all is delivered
    long at = -1; // the step of the last delivery
    PlanStep next;

    Walk(int rank, PlanSteps lane) {
      this.rank = rank;
      this.lane = lane;
      this.next = lane.next();
    }

    boolean isDone() {
      return next == null;
    }

    boolean canGoOn(List<Walk> all, int room) {
      return switch (next) {
        case null -> false;
        case Send send -> send.step() - all.get(send.rank()).done <= room;
        case Receive take -> inbox.containsKey(push(take));
        default -> true;
      };
    }

    void goOn(List<Walk> all) {
      switch (next) {
        case Send send ->
            all.get(send.rank())
                .inbox
                .put(
                    new Push(send.rank(), send.step(), send.position(), send.sample(), rank), true);
        case Receive take -> inbox.remove(push(take));
        case PlanStep.Deliver deliver -> at = deliver.step();
        default -> {}
      }
      next = lane.next();
      // A step is over when the rank comes to one of the next, or ends.
      long now =
          switch (next) {
            case null -> Long.MAX_VALUE / 2;
            case PlanStep.Deliver deliver -> deliver.step();
            case Receive take -> take.step();
            case Send _ -> at + 1; // which stand before the first delivery of a step
            default -> at;
          };
      done = Math.max(done, now - 1);
    }

    private Push push(Receive take) {
      return new Push(rank, take.step(), take.position(), take.sample(), take.rank());
    }
  }

  @Test
  void lanes_share_what_is_drawn_and_do_what_each_does_alone() {
    forEveryCase(
        each -> {
          List<List<PlanStep>> alone = new ArrayList<>();
          List<List<PlanStep>> together = new ArrayList<>();
          List<PlanSteps> lanes = new ArrayList<>();
          ReadPlan shared = each.plan();
          for (int rank = 0; rank < each.ranks(); rank++) {
            alone.add(Pulled.all(each.plan().lane(rank, true)));
            together.add(new ArrayList<>());
            lanes.add(shared.lane(rank, true));
          }
          Random order = new Random(SEED + each.inputs().seed());
          List<Integer> going = new ArrayList<>(IntStream.range(0, each.ranks()).boxed().toList());
          while (!going.isEmpty()) {
            int index = order.nextInt(going.size());
            int rank = going.get(index);
            for (int i = order.nextInt(300); i >= 0; i--) {
              PlanStep next = lanes.get(rank).next();
              if (next == null) {
                going.remove(index);
                break;
              }
              together.get(rank).add(next);
            }
          }
          assertThat(together).isEqualTo(alone);
        });
  }

  @Test
  void lanes_share_what_is_drawn_whatever_threads_they_are_of() {
    for (int i = 0; i < 20; i++) {
      PlanCase random = PlanCase.random(policy(), SEED + i);
      PlanCase each = random.withSettings(adapted(random.settings()));
      ReadPlan shared = each.plan();
      List<PlanSteps> lanes =
          IntStream.range(0, each.ranks()).mapToObj(rank -> shared.lane(rank, true)).toList();
      assertThat(lanes.parallelStream().map(Pulled::all).toList())
          .isEqualTo(Pulled.byRank(each.plan()));
    }
  }
}
