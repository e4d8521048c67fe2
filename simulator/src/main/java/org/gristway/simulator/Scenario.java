package org.gristway.simulator;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.gristway.Failure;
import org.gristway.plan.Exchange;
import org.gristway.plan.ExtentCuts;
import org.gristway.plan.policy.ClairvoyantPolicy;
import org.gristway.plan.policy.LocalityPolicy;
import org.gristway.plan.policy.Policies;
import org.gristway.simulator.CostModel.Network;
import org.gristway.simulator.CostModel.Storage;
import org.gristway.simulator.CostModel.Work;

/**
 * What is simulated: a dataset, the machines, what the run is like and which policies are tried. It
 * is a text that can be printed, changed and read again: lines of "key: value" and comments.
 *
 * @param about what it is, in the comments at its head
 * @param simulated nodes that are simulated at most: where there are more, they stand for all
 * @param memory of each node, for frames and caches
 * @param disk of each node, for caches
 * @param ahead batches that are built before they are trained on; 0: none is built in time
 * @param exchange between ranks, with the policies that can
 * @param policies that are tried, and what they have for themselves
 */
public record Scenario(
    String name,
    String about,
    Described dataset,
    int epochs,
    int batchSize,
    int nodes,
    int ranksPerNode,
    int simulated,
    long memory,
    long disk,
    long extentBytes,
    int ahead,
    Exchange exchange,
    long seed,
    CostModel cost,
    List<Tried> policies) {

  /**
   * A policy that is tried.
   *
   * @param memory of each node, in place of the scenario's
   * @param ahead in place of the scenario's
   * @param preload true if what is kept is loaded before training begins
   * @param byFrequency true if what is kept is what a rank is asked for most often
   */
  public record Tried(String name, long memory, int ahead, boolean preload, boolean byFrequency) {

    /** A policy as it is. */
    public Tried(String name, long memory, int ahead) {
      this(name, memory, ahead, false, false);
    }

    public Tried {
      if (!Baseline.labels().contains(name) && !Policies.names().contains(name)) {
        throw Failure.wrongCall(
            "policies: there is no '%s'; there are %s, and of the literature %s",
            name, Policies.names(), Baseline.labels());
      }
      if (preload && !name.equals(LocalityPolicy.NAME)) {
        throw Failure.wrongCall(
            "%s.preload: only '%s' keeps to the end what it has loaded before training",
            name, LocalityPolicy.NAME);
      }
      if (byFrequency && !name.equals(ClairvoyantPolicy.NAME)) {
        throw Failure.wrongCall(
            "%s.by-frequency: only '%s' can keep what is asked for most often",
            name, ClairvoyantPolicy.NAME);
      }
    }
  }

  public Scenario {
    atLeastOne("epochs", epochs);
    atLeastOne("batch", batchSize);
    atLeastOne("nodes", nodes);
    atLeastOne("ranks-per-node", ranksPerNode);
    atLeastOne("simulated", simulated);
    if ((long) nodes * ranksPerNode > dataset.samples()) {
      throw Failure.wrongCall(
          "%d ranks cannot share %d samples", (long) nodes * ranksPerNode, dataset.samples());
    }
    if (ahead < 0) {
      throw Failure.wrongCall("ahead must be 0 or more, not %d", ahead);
    }
    Set<String> names = new HashSet<>();
    for (Tried tried : policies) {
      if (!names.add(tried.name())) {
        throw Failure.wrongCall("policies: '%s' is there twice", tried.name());
      }
    }
    policies = List.copyOf(policies);
  }

  private static void atLeastOne(String key, int value) {
    if (value < 1) {
      throw Failure.wrongCall("%s must be 1 or more, not %d", key, value);
    }
  }

  public int ranks() {
    return nodes * ranksPerNode;
  }

  /** The policies with which ranks mix what they read: none if nothing is exchanged. */
  public List<String> exchanging() {
    return policies.stream()
        .map(Tried::name)
        .filter(_ -> exchange.share() > 0)
        .filter(each -> Policies.names().contains(each) && Policies.named(each).exchanges())
        .toList();
  }

  /** The same with another dataset. */
  public Scenario withDataset(Described other) {
    return with(other, nodes, simulated, exchange, policies);
  }

  /** The same with another share that is exchanged, pushed as far ahead. */
  public Scenario withExchange(double share) {
    return with(dataset, nodes, simulated, new Exchange(share, exchange.window()), policies);
  }

  /** The same on another number of machines. */
  public Scenario withNodes(int other) {
    return with(dataset, other, simulated, exchange, policies);
  }

  /** The same with so many nodes that stand for all. */
  public Scenario withSimulated(int other) {
    return with(dataset, nodes, other, exchange, policies);
  }

  /** The same with so many times the memory, of every policy. */
  public Scenario withMemoryTimes(double factor) {
    List<Tried> other = new ArrayList<>();
    for (Tried tried : policies) {
      long itsMemory = Math.round(tried.memory() * factor);
      other.add(
          new Tried(tried.name(), itsMemory, tried.ahead(), tried.preload(), tried.byFrequency()));
    }
    return with(dataset, nodes, simulated, exchange, other);
  }

  /** The same for some of its policies, which it must have. */
  public Scenario withPolicies(List<String> names) {
    List<Tried> kept = new ArrayList<>();
    for (String each : names) {
      Tried tried =
          policies.stream().filter(policy -> policy.name().equals(each)).findFirst().orElse(null);
      if (tried == null) {
        throw Failure.wrongCall(
            "scenario %s has no policy '%s'; it has %s",
            name, each, policies.stream().map(Tried::name).toList());
      }
      kept.add(tried);
    }
    return with(dataset, nodes, simulated, exchange, kept);
  }

  private Scenario with(
      Described itsDataset,
      int itsNodes,
      int itsSimulated,
      Exchange itsExchange,
      List<Tried> itsPolicies) {
    return new Scenario(
        name,
        about,
        itsDataset,
        epochs,
        batchSize,
        itsNodes,
        ranksPerNode,
        itsSimulated,
        memory,
        disk,
        extentBytes,
        ahead,
        itsExchange,
        seed,
        cost,
        itsPolicies);
  }

  /** The scenario as {@link #parse} reads it, with every key that is not as it would be without. */
  public String text() {
    return ScenarioText.of(this);
  }

  /**
   * Reads a scenario.
   *
   * @param where it is from, for messages
   */
  public static Scenario parse(String text, String where) {
    Lines lines = new Lines(text, where);
    Described dataset =
        Described.parse(
            lines.whole("samples"), lines.text("sample-bytes"), lines.whole("classes", 1));
    long memory = lines.whole("memory");
    int ahead = lines.count("ahead", 4);
    List<Tried> policies = new ArrayList<>();
    for (String policy : lines.text("policies").split(" +")) {
      policies.add(
          new Tried(
              policy,
              lines.whole(policy + ".memory", memory),
              lines.count(policy + ".ahead", ahead),
              lines.isTrue(policy + ".preload", false),
              lines.isTrue(policy + ".by-frequency", false)));
    }
    double rate = lines.number("storage.rate", Double.POSITIVE_INFINITY);
    Storage storage =
        new Storage(
            lines.number("storage.latency", 0),
            rate,
            lines.number("storage.requests", Double.POSITIVE_INFINITY),
            lines.curve("storage.by-size", Double.POSITIVE_INFINITY),
            lines.curve("storage.by-depth", 1),
            lines.curve("storage.per-processor", Double.POSITIVE_INFINITY),
            lines.curve("storage.stream", rate),
            lines.curve("storage.total", Double.POSITIVE_INFINITY),
            lines.number("storage.total-requests", Double.POSITIVE_INFINITY),
            lines.count("storage.depth", 16),
            lines.whole("storage.page", ExtentCuts.PAGE));
    Network network =
        new Network(
            lines.number("network.latency", 0),
            lines.number("network.rate", Double.POSITIVE_INFINITY),
            lines.number("network.bisection", Double.POSITIVE_INFINITY));
    Work work =
        new Work(
            lines.number("work.preparation-rate", Double.POSITIVE_INFINITY),
            lines.number("work.compute-rate", Double.POSITIVE_INFINITY),
            lines.number("work.compute-seconds", 0),
            lines.isTrue("work.barrier", true));
    Scenario read =
        new Scenario(
            lines.text("name"),
            lines.about(),
            dataset,
            lines.count("epochs", 1),
            lines.count("batch", 256),
            lines.count("nodes", 1),
            lines.count("ranks-per-node", 1),
            lines.count("simulated", Integer.MAX_VALUE),
            memory,
            lines.whole("disk", 0),
            lines.whole("extent", 1 << 20),
            ahead,
            new Exchange(
                lines.number("exchange", 0), lines.count("window", Exchange.DEFAULT_WINDOW)),
            lines.seed(),
            new CostModel(
                storage,
                network,
                lines.number("memory-rate", Double.POSITIVE_INFINITY),
                lines.number("sample-seconds", 0),
                lines.number("disk-rate", Double.POSITIVE_INFINITY),
                lines.number("processors", Double.POSITIVE_INFINITY),
                work),
            policies);
    lines.refuseUnread();
    return read;
  }

  /** The keys of a text, each read once. */
  private static final class Lines {
    private final String where;
    private final Map<String, String> values = new LinkedHashMap<>();
    private final StringBuilder about = new StringBuilder();

    Lines(String text, String where) {
      this.where = where;
      int number = 0;
      for (String line : text.split("\n")) {
        number++;
        String stripped = line.strip();
        if (stripped.startsWith("#")) {
          if (values.isEmpty()) {
            about.append(stripped.substring(1).strip()).append('\n');
          }
          continue;
        }
        int colon = stripped.indexOf(':');
        if (colon > 0) {
          String key = stripped.substring(0, colon).strip();
          if (values.put(key, stripped.substring(colon + 1).strip()) != null) {
            throw Failure.wrongCall("%s, line %d: there are two lines of '%s'", where, number, key);
          }
        } else if (!stripped.isEmpty()) {
          throw Failure.wrongCall("%s, line %d: '%s' is not 'key: value'", where, number, stripped);
        }
      }
    }

    String about() {
      return about.toString().strip();
    }

    private String in(String key) {
      return where + ", " + key;
    }

    String text(String key) {
      String value = values.remove(key);
      if (value == null) {
        throw Failure.wrongCall("%s has no '%s'", where, key);
      }
      return value;
    }

    private String text(String key, String otherwise) {
      String value = values.remove(key);
      return value == null ? otherwise : value;
    }

    long whole(String key) {
      return Values.whole(in(key), text(key));
    }

    long whole(String key, long otherwise) {
      return Values.whole(in(key), text(key, Long.toString(otherwise)));
    }

    long seed() {
      String text = text("seed", "0");
      try {
        return Long.parseLong(text);
      } catch (NumberFormatException odd) {
        throw Failure.wrongCall("%s: '%s' is not a whole number", in("seed"), text);
      }
    }

    int count(String key, int otherwise) {
      long value = whole(key, otherwise);
      if (value > Integer.MAX_VALUE) {
        throw Failure.wrongCall("%s: %d is too many", in(key), value);
      }
      return (int) value;
    }

    double number(String key, double otherwise) {
      return Values.number(in(key), text(key, Values.number(otherwise)));
    }

    Curve curve(String key, double otherwise) {
      return Values.curve(in(key), text(key, Values.number(otherwise)));
    }

    boolean isTrue(String key, boolean otherwise) {
      String value = text(key, Boolean.toString(otherwise));
      if (!value.equals("true") && !value.equals("false")) {
        throw Failure.wrongCall("%s: '%s' is neither true nor false", in(key), value);
      }
      return value.equals("true");
    }

    void refuseUnread() {
      if (!values.isEmpty()) {
        throw Failure.wrongCall(
            "%s: there is no key '%s'", where, values.keySet().iterator().next());
      }
    }
  }
}
