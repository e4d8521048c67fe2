package org.gristway.benchmarks;

import java.io.BufferedReader;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.gristway.dataset.Dataset;
import org.jspecify.annotations.Nullable;

/**
 * What a cache over all nodes does without a plan: each sample is in the memory of one node, its
 * owner, and is fetched from there when it is asked for. A node of one rank, which serves what it
 * owns and trains on its part of each epoch.
 *
 * <p>It loads as PyTorch's DataLoader does: each of some threads makes every so manieth batch, a
 * sample after the other, with one request under way, and is at most two batches ahead. Unlike
 * DataLoader's, threads go on into the next epoch by themselves, batches are not copied to another
 * process, and nothing is checked against a checksum: all that is in its favour.
 *
 * <p>Prints {@code ready} once it has connections to all others, waits for a line, and then prints
 * a line of JSON: for each epoch when it ended, and the numbers that samples begin with.
 */
final class OwnersArm {

  private static final int AHEAD = 2;

  private final Dataset dataset;
  private final List<InetSocketAddress> addresses;
  private final int node;
  private final int threads;
  private final int batch;
  private final int epochs;
  private final MemorySegment own;
  private final long[] offsets; // of what this node owns, by sample / nodes

  private OwnersArm(String[] arguments, Arena memory) {
    this.dataset = Dataset.open(Path.of(arguments[0]));
    this.addresses = new ArrayList<>();
    for (String host : arguments[1].split(",")) {
      addresses.add(new InetSocketAddress(host, Integer.parseInt(arguments[2])));
    }
    this.node = Integer.parseInt(arguments[3]);
    this.threads = Integer.parseInt(arguments[4]);
    this.batch = Integer.parseInt(arguments[5]);
    this.epochs = Integer.parseInt(arguments[6]);
    int nodes = addresses.size();
    int owned = Math.toIntExact((dataset.size() - node + nodes - 1) / nodes);
    this.offsets = new long[owned + 1];
    for (int i = 0; i < owned; i++) {
      offsets[i + 1] = offsets[i] + dataset.snapshot().length((long) i * nodes + node);
    }
    this.own = memory.allocate(offsets[owned]);
    for (int i = 0; i < owned; i++) {
      byte[] bytes = dataset.read(dataset.sample((long) i * nodes + node));
      own.asSlice(offsets[i], bytes.length).copyFrom(MemorySegment.ofArray(bytes));
    }
  }

  /**
   * @param arguments dataset, addresses of all nodes (a,b,c), port, number of this node, loading
   *     threads, batch size, epochs
   */
  static void main(String[] arguments) throws IOException, InterruptedException {
    try (Arena memory = Arena.ofShared()) {
      new OwnersArm(arguments, memory).run();
    }
  }

  private MemorySegment owned(long sample) {
    int index = Math.toIntExact(sample / addresses.size());
    return own.asSlice(offsets[index], offsets[index + 1] - offsets[index]);
  }

  private void run() throws IOException, InterruptedException {
    try (ServerSocketChannel server = ServerSocketChannel.open()) {
      server.bind(addresses.get(node));
      Thread.ofPlatform().daemon().start(() -> accept(server));
      List<Worker> workers = new ArrayList<>();
      for (int i = 0; i < threads; i++) {
        workers.add(new Worker(i));
      }
      System.out.println("ready");
      BufferedReader in =
          new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      in.readLine();
      for (Worker worker : workers) {
        Thread.ofPlatform().daemon().start(worker);
      }
      System.out.println(train(workers));
      in.readLine(); // others may still want what this one owns
    }
  }

  private String train(List<Worker> workers) throws InterruptedException {
    StringBuilder json = new StringBuilder("{\"began\": ");
    json.append(System.nanoTime() / 1e9).append(", \"epochs\": [");
    long step = 0;
    for (int epoch = 0; epoch < epochs; epoch++) {
      json.append(epoch == 0 ? "" : ", ").append("{\"numbers\": [");
      long left = order(epoch).length;
      for (String comma = ""; left > 0; step++) {
        Worker worker = workers.get(Math.toIntExact(step % threads));
        Made made = worker.made.take();
        for (int i = 0; i < made.count; i++) {
          json.append(comma).append(made.bytes.getLong(made.starts[i]));
          comma = ", ";
        }
        left -= made.count;
        worker.free.put(made);
      }
      json.append("], \"end\": ").append(System.nanoTime() / 1e9).append('}');
    }
    return json.append("]}").toString();
  }

  /** The samples of this rank in an epoch: the same permutation for all, dealt by turns. */
  private int[] order(int epoch) {
    int[] all = new int[Math.toIntExact(dataset.size())];
    Random random = new Random(epoch);
    for (int i = 0; i < all.length; i++) {
      int other = random.nextInt(i + 1);
      all[i] = all[other];
      all[other] = i;
    }
    int nodes = addresses.size();
    int[] part = new int[(all.length - node + nodes - 1) / nodes];
    for (int i = 0; i < part.length; i++) {
      part[i] = all[i * nodes + node];
    }
    return part;
  }

  private void accept(ServerSocketChannel server) {
    try {
      while (true) {
        SocketChannel channel = server.accept();
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        Thread.ofPlatform().daemon().start(() -> serve(channel));
      }
    } catch (IOException closed) {
      // It is over.
    }
  }

  /** Answers each number of a sample with its length and its bytes. */
  private void serve(SocketChannel channel) {
    ByteBuffer asked = ByteBuffer.allocateDirect(8);
    ByteBuffer head = ByteBuffer.allocateDirect(4);
    try (channel) {
      while (true) {
        fill(asked.clear(), channel);
        ByteBuffer bytes = owned(asked.flip().getLong()).asByteBuffer();
        head.clear().putInt(bytes.remaining()).flip();
        ByteBuffer[] answer = {head, bytes};
        while (bytes.hasRemaining()) {
          channel.write(answer);
        }
      }
    } catch (IOException closed) {
      // Whoever asked is done.
    }
  }

  private static void fill(ByteBuffer buffer, ReadableByteChannel channel) throws IOException {
    while (buffer.hasRemaining()) {
      if (channel.read(buffer) < 0) {
        throw new EOFException();
      }
    }
  }

  /** A batch, whose memory is used again. */
  private static final class Made {
    final ByteBuffer bytes;
    final int[] starts;
    int count;

    Made(int samples, int bytes) {
      this.bytes = ByteBuffer.allocateDirect(bytes).order(ByteOrder.LITTLE_ENDIAN);
      this.starts = new int[samples];
    }
  }

  /** A thread that loads: makes every so manieth batch. */
  private final class Worker implements Runnable {

    private final int number;
    private final @Nullable SocketChannel[] owners;
    private final ByteBuffer asked = ByteBuffer.allocateDirect(8);
    private final ByteBuffer head = ByteBuffer.allocateDirect(4);
    final BlockingQueue<Made> made = new ArrayBlockingQueue<>(AHEAD);
    final BlockingQueue<Made> free = new ArrayBlockingQueue<>(AHEAD + 1);

    Worker(int number) throws IOException, InterruptedException {
      this.number = number;
      this.owners = new SocketChannel[addresses.size()];
      long longest = 0;
      for (long sample = 0; sample < dataset.size(); sample++) {
        longest = Math.max(longest, dataset.snapshot().length(sample));
      }
      for (int i = 0; i < AHEAD; i++) {
        free.add(new Made(batch, Math.toIntExact(batch * longest)));
      }
      for (int owner = 0; owner < owners.length; owner++) {
        if (owner != node) {
          owners[owner] = connect(addresses.get(owner));
        }
      }
    }

    private SocketChannel connect(InetSocketAddress address)
        throws IOException, InterruptedException {
      long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
      while (true) {
        try {
          SocketChannel channel = SocketChannel.open(address);
          channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
          return channel;
        } catch (IOException notYet) {
          if (System.nanoTime() > deadline) {
            throw notYet;
          }
          TimeUnit.MILLISECONDS.sleep(50);
        }
      }
    }

    @Override
    public void run() {
      try {
        long step = 0;
        for (int epoch = 0; epoch < epochs; epoch++) {
          int[] order = order(epoch);
          for (int at = 0; at < order.length; at += batch, step++) {
            if (step % threads == number) {
              Made next = free.take();
              load(next, order, at);
              made.put(next);
            }
          }
        }
      } catch (IOException failed) {
        System.err.println("a sample could not be fetched: " + failed);
        System.exit(1);
      } catch (InterruptedException never) {
        throw new IllegalStateException(never);
      }
    }

    private void load(Made into, int[] order, int from) throws IOException {
      into.bytes.clear();
      into.count = Math.min(batch, order.length - from);
      for (int i = 0; i < into.count; i++) {
        into.starts[i] = into.bytes.position();
        long sample = order[from + i];
        SocketChannel owner = owners[Math.toIntExact(sample % owners.length)];
        if (owner == null) {
          into.bytes.put(owned(sample).asByteBuffer());
        } else {
          fetch(sample, owner, into.bytes);
        }
      }
    }

    private void fetch(long sample, SocketChannel owner, ByteBuffer into) throws IOException {
      asked.clear().putLong(sample).flip();
      while (asked.hasRemaining()) {
        owner.write(asked);
      }
      fill(head.clear(), owner);
      into.limit(into.position() + head.flip().getInt());
      fill(into, owner);
      into.limit(into.capacity());
    }
  }
}
