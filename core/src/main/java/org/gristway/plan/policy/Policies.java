package org.gristway.plan.policy;

import java.util.List;
import org.gristway.Failure;
import org.gristway.plan.ReadPolicy;

/** All policies there are, from the floor to the ceiling. */
public final class Policies {

  public static final String DEFAULT = RedirectPolicy.NAME;

  private static final List<ReadPolicy> ALL =
      List.of(
          new SampleOrderPolicy(),
          new ChunkShufflePolicy(),
          new RedirectPolicy(),
          new RedirectPositionPolicy(),
          new ClairvoyantPolicy(),
          new ClairvoyantNextUsePolicy(),
          new LocalityPolicy(),
          new UnboundedPolicy());

  private Policies() {}

  public static List<ReadPolicy> all() {
    return ALL;
  }

  public static List<String> names() {
    return ALL.stream().map(ReadPolicy::name).toList();
  }

  /** The policy with this name. */
  public static ReadPolicy named(String name) {
    for (ReadPolicy policy : ALL) {
      if (policy.name().equals(name)) {
        return policy;
      }
    }
    throw Failure.wrongCall("there is no policy '%s'; there are %s", name, names());
  }
}
