package org.gristway.plan;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.gristway.plan.PlanStep.Deliver;
import org.gristway.plan.policy.Policies;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Holds the orders of every policy to those of earlier releases. If this test fails, users' states
 * and results do not mean any more what they meant: raise the policy's plan version.
 */
@Tag("java")
class ExactOrdersTest {

  /**
   * Of each policy: its version, and digests of epochs 0 and 1 for 1 and 3 ranks, and of a rest.
   */
  private static final String EXPECTED =
      """
      sample-order 1 9661e1650f93f892 893808374b53bd77 785374e7b9401b26 5b41781dde1db369 17633a20836a7fbc
      chunk-shuffle 1 b665aa1dc2f56902 b224d1edb2973485 0c406f4e74155a2b ff8fbccb4240ddc7 856861fbc2c4d62f
      redirect 1 b63e72dcae210b92 c7fe22ead77713a5 3fc678e82c8e2357 96b0da69f55e7738 b6dcc4066be3c054
      redirect-position 2 51c5b96d58823e0d bfc20713981afcac 2c26b4b9bc0ffa30 6bf267af6da40105 8d876a00adba7fe9
      clairvoyant 2 9661e1650f93f892 893808374b53bd77 785374e7b9401b26 5b41781dde1db369 17633a20836a7fbc
      clairvoyant-next-use 1 9661e1650f93f892 893808374b53bd77 785374e7b9401b26 5b41781dde1db369 17633a20836a7fbc
      locality 1 9661e1650f93f892 d30f7796f887eeba 785374e7b9401b26 8f0b7d0c30cf6d49 17633a20836a7fbc
      unbounded 1 9661e1650f93f892 893808374b53bd77 785374e7b9401b26 5b41781dde1db369 17633a20836a7fbc
      """;

  /** Of policies that exchange, and homes: digests of epochs 0 and 1 for 4 ranks on 2 nodes. */
  private static final String EXPECTED_OF_EXCHANGE =
      """
      chunk-shuffle AFRESH cf150bc0a259ca27 d23b21212acb562e
      chunk-shuffle HASHED 33f60532dd4974e3 fef41f4e0909e4ed
      chunk-shuffle PLACED 7021a7f0da095892 bc3827fb20c431bd
      redirect AFRESH bb67cfa08abc6781 fe90cad9bd3de656
      redirect HASHED 840be3e42d959ff5 5736d1a2e7ab1397
      redirect PLACED b7a74baebc908754 c1b6c841d2b29f85
      """;

  /** Of each that can: digests of epochs 0 and 1 for 3 ranks that exchange half, and all. */
  private static final String EXCHANGED =
      """
      chunk-shuffle 83962018306bfcc8 2392f364e0ffb733 60b3cb7137b0eae8 563ed9b92317ef23
      redirect d0d9b0e9e396e4c8 ca91f7af7a5e756f fbee9c56dc71f2b9 b63de63448537436
      """;

  private static final TestLayout LAYOUT =
      Layouts.formula("exact", 1000, i -> i % 97 == 0 ? 50_000 : i * 7919L % 3000);

  @Test
  void orders_are_those_of_every_release() throws NoSuchAlgorithmException {
    StringBuilder found = new StringBuilder();
    for (ReadPolicy policy : Policies.all()) {
      found.append(policy.name()).append(' ').append(policy.planVersion());
      for (int ranks : new int[] {1, 3}) {
        for (long epoch : new long[] {0, 1}) {
          found.append(' ').append(digest(policy.plan(inputs(policy, ranks), epoch)));
        }
      }
      ReadState state = Run.begin(policy, inputs(policy, 3), 1).stateAt(0, 10);
      Run rest = Run.resume(policy, inputs(policy, 2), state, Policies::named, 1);
      found.append(' ').append(digest(rest.firstPlan())).append('\n');
    }
    assertThat(found).hasToString(EXPECTED);
  }

  @Test
  void exchanged_orders_are_those_of_every_release() throws NoSuchAlgorithmException {
    StringBuilder found = new StringBuilder();
    for (ReadPolicy policy : Policies.all().stream().filter(ReadPolicy::exchanges).toList()) {
      for (Homes homes : Homes.values()) {
        PlanSettings settings = settings(policy).withExchange(Exchange.of(1).withHomes(homes));
        PlanInputs inputs = PlanInputs.of(inChunks(), 42, new World(4, 2, 0), settings);
        found.append(policy.name()).append(' ').append(homes);
        for (long epoch : new long[] {0, 1}) {
          found.append(' ').append(digest(policy.plan(inputs, epoch)));
        }
        found.append('\n');
      }
    }
    assertThat(found).hasToString(EXPECTED_OF_EXCHANGE);
  }

  private static TestLayout inChunks() {
    long[] lengths = new long[1000];
    Arrays.setAll(lengths, i -> i * 7919L % 3000);
    int[] firsts = new int[20];
    Arrays.setAll(firsts, chunk -> 50 * chunk);
    return new TestLayout("exact chunks", lengths, firsts, new long[20]);
  }

  @Test
  void orders_of_ranks_that_exchange_are_those_of_every_release() throws NoSuchAlgorithmException {
    StringBuilder found = new StringBuilder();
    for (ReadPolicy policy : Policies.all().stream().filter(ReadPolicy::exchanges).toList()) {
      found.append(policy.name());
      PlanInputs inputs = inputs(policy, 3);
      for (double share : new double[] {0.5, 1}) {
        PlanSettings mixed = inputs.settings().withExchange(Exchange.of(share));
        for (long epoch : new long[] {0, 1}) {
          found.append(' ').append(digest(policy.plan(inputs.with(mixed), epoch)));
        }
      }
      found.append('\n');
    }
    assertThat(found).hasToString(EXCHANGED);
  }

  private static PlanInputs inputs(ReadPolicy policy, int ranks) {
    return PlanInputs.of(LAYOUT, 42, World.of(ranks), settings(policy));
  }

  private static PlanSettings settings(ReadPolicy policy) {
    return new PlanSettings(policy.name(), 16, 12 * (16 << 10), 16 << 10, Tail.SHORT);
  }

  /** A digest of which sample comes where. */
  private static String digest(ReadPlan plan) throws NoSuchAlgorithmException {
    List<Deliver> deliveries = Pulled.deliveries(plan);
    ByteBuffer numbers = ByteBuffer.allocate(4 * Long.BYTES * deliveries.size());
    for (Deliver deliver : deliveries) {
      numbers.putLong(deliver.rank()).putLong(deliver.step());
      numbers.putLong(deliver.position()).putLong(deliver.sample());
    }
    byte[] digest = MessageDigest.getInstance("SHA-256").digest(numbers.array());
    return HexFormat.of().formatHex(digest, 0, 8);
  }
}
