package org.gristway.simulator;

import org.gristway.Failure;
import org.gristway.chunk.Extent;

/**
 * What the steps of a plan take. Bytes and seconds; rates are bytes a second.
 *
 * @param storage that all nodes read from
 * @param network between nodes
 * @param memoryRate at which a rank copies samples out of memory
 * @param sampleSeconds that a rank takes for each sample that it delivers, beside its bytes
 * @param diskRate at which a node reads and writes its own disk
 * @param processors of a node, which its ranks read and deliver with
 * @param work that a rank does with a batch
 */
public record CostModel(
    Storage storage,
    Network network,
    double memoryRate,
    double sampleSeconds,
    double diskRate,
    double processors,
    Work work) {

  public CostModel {
    positive("memory-rate", memoryRate);
    notNegative("sample-seconds", sampleSeconds);
    positive("disk-rate", diskRate);
    positive("processors", processors);
  }

  /**
   * Storage that nodes share, if there are several.
   *
   * @param latency of a request, in seconds
   * @param rate of a node, whatever it asks for
   * @param requests a second, of a node
   * @param bySize the rate of a node, by the bytes of a request
   * @param byDepth what part of that rate there is with so many requests under way
   * @param perProcessor the rate that one processor has work enough with, by the bytes of a request
   * @param stream the rate of one request at a time, by the number of nodes that read
   * @param total the rate of all nodes together, by the number of nodes that read
   * @param totalRequests a second, of all nodes together
   * @param depth requests that a node has under way at once
   * @param page bytes that a request begins and ends at a multiple of
   */
  public record Storage(
      double latency,
      double rate,
      double requests,
      Curve bySize,
      Curve byDepth,
      Curve perProcessor,
      Curve stream,
      Curve total,
      double totalRequests,
      int depth,
      long page) {

    public Storage {
      notNegative("storage.latency", latency);
      positive("storage.rate", rate);
      positive("storage.requests", requests);
      positive("storage.total-requests", totalRequests);
      positive("storage.depth", depth);
      positive("storage.page", page);
    }

    /** The bytes that a request for some reads. */
    long covering(Extent extent) {
      long end = extent.offset() + extent.length();
      return Math.ceilDiv(end, page) * page - extent.offset() / page * page;
    }

    /** Bytes a second that a node gets with requests of one size, while so many nodes read. */
    public double rate(long bytes, int requestsAtOnce, double readers) {
      return by(readers).rate(bytes, requestsAtOnce);
    }

    /** What it gives while so many nodes read. */
    Shared by(double readers) {
      return new Shared(this, readers, stream.at(readers), total.at(readers));
    }
  }

  /**
   * Storage while some nodes read.
   *
   * @param readers nodes
   * @param stream the rate of one request at a time
   * @param total the rate of all nodes together
   */
  record Shared(Storage storage, double readers, double stream, double total) {

    /**
     * What a node gets that has its requests under way: as much as it can take, and no more than
     * its part of what all nodes get that read.
     */
    double rate(long bytes, int requestsAtOnce) {
      double size = Math.max(1, bytes);
      double one = size / (storage.latency + size / stream);
      double own =
          Math.min(Math.min(storage.rate, storage.bySize.at(size)), storage.requests * size);
      double alone = Math.min(own, Math.min(storage.depth, requestsAtOnce) * one);
      return Math.min(alone, Math.min(total, storage.totalRequests * size) / readers);
    }

    /** How long one request takes on storage that does nothing else. */
    double alone(long bytes) {
      return storage.latency + bytes / Math.min(storage.rate, stream);
    }
  }

  /**
   * A network.
   *
   * @param latency of a message, in seconds
   * @param rate of a node, each way
   * @param bisection the rate of all nodes together
   */
  public record Network(double latency, double rate, double bisection) {

    public Network {
      notNegative("network.latency", latency);
      positive("network.rate", rate);
      positive("network.bisection", bisection);
    }
  }

  /**
   * What a rank does with a batch: it is prepared (decoded, for example), and then trained on.
   * While one batch is trained on, the next are prepared.
   *
   * @param preparationRate of a rank
   * @param computeRate of a rank
   * @param computeSeconds that come on top, for each batch
   * @param barrier true if all ranks begin a step together, as synchronous training does
   */
  public record Work(
      double preparationRate, double computeRate, double computeSeconds, boolean barrier) {

    public Work {
      positive("work.preparation-rate", preparationRate);
      positive("work.compute-rate", computeRate);
      notNegative("work.compute-seconds", computeSeconds);
    }

    double compute(long bytes) {
      return computeSeconds + bytes / computeRate;
    }
  }

  /**
   * What a byte takes that a rank loads to keep it: a thread reads a sample and prepares it before
   * it reads the next, and there are as many threads as reads go on at once.
   */
  double secondsPerByteKept(long sampleBytes, int nodes, int ranksPerNode) {
    double rate = storage.by(nodes).rate(sampleBytes, storage.depth());
    return ranksPerNode / rate + 1 / work.preparationRate();
  }

  /** The same where one of those threads does it all. */
  double secondsPerByteOneByOne(long sampleBytes, int nodes, int ranksPerNode) {
    double rate = storage.by(nodes).rate(sampleBytes, ranksPerNode);
    return ranksPerNode / rate + storage.depth() / work.preparationRate();
  }

  private static void positive(String name, double value) {
    if (!(value > 0)) {
      throw Failure.wrongCall("%s must be more than 0, not %s", name, Values.number(value));
    }
  }

  private static void notNegative(String name, double value) {
    if (!(value >= 0) || Double.isInfinite(value)) {
      throw Failure.wrongCall("%s must be 0 or more, not %s", name, Values.number(value));
    }
  }
}
