package org.gristway.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.gristway.pack.Packs.assertFails;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.gristway.Failure;
import org.gristway.Failure.Kind;
import org.gristway.plan.policy.Policies;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("java")
class ReadStateTest {

  /** As it is drawn on the class. */
  private static final String TEXT =
      """
      gristway-state 1
      dataset 4f1c0b6a9d2e8375/1
      seed 0
      epoch 2
      segment policy=redirect version=1 ranks=4 batch=256 memory=536870912 extent=1048576 tail=short steps=310
      segment policy=redirect version=1 ranks=2 batch=256 memory=1073741824 extent=1048576 tail=short steps=17
      end
      """;

  private static final ReadState STATE =
      new ReadState(
          "4f1c0b6a9d2e8375/1",
          0,
          2,
          List.of(
              new Segment(
                  new PlanSettings("redirect", 256, 512L << 20, 1 << 20, Tail.SHORT), 1, 4, 310),
              new Segment(
                  new PlanSettings("redirect", 256, 1L << 30, 1 << 20, Tail.SHORT), 1, 2, 17)));

  @Test
  void the_text_is_as_it_is_documented() {
    assertThat(STATE).hasToString(TEXT);
    assertThat(ReadState.parse(TEXT)).isEqualTo(STATE);
  }

  @Test
  void every_state_is_read_as_it_was_written() {
    Random random = new Random(Seeds.of("every_state_is_read_as_it_was_written"));
    for (int i = 0; i < Thorough.count(500, 20_000); i++) {
      List<Segment> segments = new ArrayList<>();
      for (int segment = random.nextInt(4); segment > 0; segment--) {
        ReadPolicy policy = Policies.all().get(random.nextInt(Policies.all().size()));
        segments.add(
            new Segment(
                new PlanSettings(
                        policy.name(),
                        1 + random.nextInt(Integer.MAX_VALUE),
                        random.nextLong(Long.MAX_VALUE),
                        4096L * (1 + random.nextInt(1 << 18)),
                        Tail.values()[random.nextInt(3)])
                    .withExchange(exchange(random)),
                1 + random.nextInt(100),
                1000 + random.nextInt(1000),
                1 + random.nextInt(3),
                random.nextLong(Long.MAX_VALUE)));
      }
      ReadState state =
          new ReadState(
              Long.toHexString(random.nextLong()) + "/" + random.nextInt(10),
              random.nextLong(),
              random.nextLong(Long.MAX_VALUE),
              segments);
      assertThat(ReadState.parse(state.toString())).isEqualTo(state);
    }
  }

  private static Exchange exchange(Random random) {
    return switch (random.nextInt(3)) {
      case 0 -> Exchange.NONE;
      case 1 -> new Exchange(random.nextDouble(), 1 + random.nextInt(64));
      default -> new Exchange(1, 1 + random.nextInt(64), Homes.values()[random.nextInt(3)]);
    };
  }

  @Test
  void a_state_of_a_later_format_is_refused_as_such() {
    assertFails(
        Kind.WRONG_CALL,
        () -> ReadState.parse("gristway-state 2\nanything"),
        "format 2",
        "knows 1");
  }

  @Test
  void what_is_not_a_state_is_refused() {
    for (String text :
        List.of("", "\n", " ", "gristway", "gristway-state", "gristway-state x", "{}", "\0\0\0")) {
      assertFails(Kind.DAMAGED, () -> ReadState.parse(text), "not a state");
    }
    for (String field : TEXT.lines().toList().getLast().split(" ")) {
      assertFails(Kind.DAMAGED, () -> ReadState.parse(TEXT.replace(field, "")), "not a state");
    }
  }

  @Test
  void a_state_that_is_cut_off_is_refused() {
    List<String> notRefused = new ArrayList<>();
    for (int length = 0; length < TEXT.length() - 1; length++) {
      String cut = TEXT.substring(0, length);
      if (!outcome(cut).equals("refused")) {
        notRefused.add("... " + cut.substring(Math.max(0, length - 20)));
      }
    }
    assertThat(notRefused).isEmpty();
  }

  @Test
  void a_changed_state_is_read_or_refused_but_nothing_else() {
    Random random = new Random(Seeds.of("a_changed_state_is_read_or_refused_but_nothing_else"));
    for (int i = 0; i < Thorough.count(5000, 200_000); i++) {
      StringBuilder text = new StringBuilder(TEXT);
      for (int change = random.nextInt(4); change >= 0; change--) {
        int at = random.nextInt(text.length());
        int end = Math.min(text.length(), at + random.nextInt(4));
        switch (random.nextInt(4)) {
          case 0 -> text.setCharAt(at, (char) random.nextInt(128));
          case 1 -> text.replace(at, end, Long.toString(random.nextLong()));
          case 2 -> text.insert(at, text.substring(at, end));
          default -> text.delete(at, end);
        }
      }
      assertThat(outcome(text.toString())).as("%s", text).isIn("refused", "read");
    }
  }

  private static String outcome(String text) {
    try {
      ReadState.parse(text);
      return "read";
    } catch (Failure failure) {
      return failure.kind() == Kind.ENVIRONMENT ? failure.toString() : "refused";
    } catch (RuntimeException other) {
      return other.toString();
    }
  }
}
