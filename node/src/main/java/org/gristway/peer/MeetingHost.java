package org.gristway.peer;

import java.io.IOException;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.gristway.Failure;
import org.jspecify.annotations.Nullable;

/** Node 0's end of a {@link Meeting}. */
final class MeetingHost implements Meeting, Door.Porter {

  /** For whoever listened there before to be gone: a job may be started again at once. */
  private static final long LISTEN_MILLIS = 3000;

  private static final int AGAIN_MILLIS = 100;

  /** For guests to hear how it ended. */
  private static final long LEAVING_MILLIS = 1000;

  private final Card own;
  private final MeetingPoint point;
  private final MutualProof proof;
  private final Consumer<String> strangers;
  private final @Nullable InetSocketAddress[] cards; // by node
  private final Door.@Nullable Visit[] guests; // by node: whose card it is
  private @Nullable Door door;
  private @Nullable Failure failure;
  private @Nullable String refusal; // of somebody who may be meant to be of the job
  private boolean isOver; // the cards are those of all nodes, or there is a failure
  private int answering;

  MeetingHost(Card own, MeetingPoint point, MutualProof proof, Consumer<String> strangers) {
    this.own = own;
    this.point = point;
    this.proof = proof;
    this.strangers = strangers;
    this.cards = new InetSocketAddress[own.nodes()];
    this.guests = new Door.Visit[own.nodes()];
    cards[0] = own.at();
  }

  @Override
  public List<InetSocketAddress> gather(long patienceSeconds) throws InterruptedException {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(patienceSeconds);
    Door opened = open();
    synchronized (this) {
      door = opened;
    }
    if (point instanceof MeetingPoint.Folder folder) {
      try {
        folder.publish(own.job(), opened.address());
      } catch (IOException refused) {
        throw Failure.io(
            "tell in " + folder.folder() + " where the nodes of this job meet", refused);
      }
    }
    return await(deadline, patienceSeconds);
  }

  private Door open() throws InterruptedException {
    int port = point instanceof MeetingPoint.Host host ? host.address().getPort() : 0;
    InetSocketAddress at = new InetSocketAddress(own.at().getAddress(), port);
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(LISTEN_MILLIS);
    while (true) {
      try {
        return new Door(at, this);
      } catch (IOException refused) {
        if (!(refused instanceof BindException) || System.nanoTime() > deadline) {
          throw Failure.environment(
              "node 0 cannot listen at %s:%d, where the nodes of this job are to meet: %s; if"
                  + " something else listens there, set GRISTWAY_PORT, or the port in"
                  + " GRISTWAY_NODES, to a free one on all machines",
              at.getAddress().getHostAddress(), port, Failure.reason(refused));
        }
      }
      TimeUnit.MILLISECONDS.sleep(AGAIN_MILLIS);
    }
  }

  private synchronized List<InetSocketAddress> await(long deadline, long patienceSeconds)
      throws InterruptedException {
    while (!isOver) {
      long millis = (deadline - System.nanoTime()) / 1_000_000;
      if (millis <= 0) {
        String told = refusal;
        fail(
            Failure.environment(
                "%s of this job did not come within %d s: are they started, with the same secret,"
                    + " and do they reach node 0 at %s?%s",
                Meeting.names(missing()),
                patienceSeconds,
                own.at().getAddress().getHostAddress(),
                told == null ? "" : " " + told));
      } else {
        wait(millis);
      }
    }
    if (failure != null) {
      throw failure;
    }
    return Arrays.asList(cards);
  }

  private synchronized List<Integer> missing() {
    return IntStream.range(0, cards.length).filter(node -> cards[node] == null).boxed().toList();
  }

  private synchronized void fail(Failure why) {
    if (!isOver) {
      failure = why;
      isOver = true;
      notifyAll();
    }
  }

  @Override
  public void hear(Door.Visit visit) throws IOException {
    Socket socket = visit.socket();
    int node = proof.accept(socket);
    visit.proven();
    Card card = Card.parse(MutualProof.read(socket, Meeting.mostBytes(own.nodes())));
    visit.letIn();
    if (!card.job().equals(own.job())) {
      MutualProof.write(socket, BUSY + "\nnode 0 there is of another job");
      throw new MutualProof.Stranger("it is of another job that has the same secret");
    }
    note(node, card, visit);
    try (SocketChannel channel = visit.channel()) {
      answer(node, card, channel.socket());
    } catch (IOException left) {
      // It comes again, or is missed.
    } finally {
      forget(node, visit);
    }
  }

  /** Takes a card, or ends the meeting if there should be no such node. */
  private synchronized void note(int node, Card card, Door.Visit visit) {
    answering++;
    if (node <= 0 || node >= cards.length || card.nodes() != cards.length) {
      fail(
          Failure.wrongCall(
              "there is a node %d at %s of a job of %d, and this job is to have %d: start as many as"
                  + " the launcher says",
              node, Meeting.text(card.at()), card.nodes(), cards.length));
    } else if (cards[node] != null && !cards[node].equals(card.at())) {
      fail(
          Failure.wrongCall(
              "two nodes say that they are node %d, those at %s and %s: does another job use this"
                  + " secret and meet at the same place?",
              node, Meeting.text(cards[node]), Meeting.text(card.at())));
    } else {
      cards[node] = card.at();
      guests[node] = visit;
      isOver |= missing().isEmpty();
    }
    notifyAll();
  }

  /** Gives a card back whose node has left before all were there. */
  private synchronized void forget(int node, Door.Visit visit) {
    answering--;
    if (!isOver && guests[node] == visit) {
      guests[node] = null;
      cards[node] = null;
    }
    notifyAll();
  }

  /** Tells a guest who is missing until that is nobody, and then where all are. */
  private void answer(int node, Card card, Socket socket) throws IOException {
    socket.setSoTimeout(AGAIN_MILLIS);
    String told = "";
    while (true) {
      String now = told(node, card);
      if (!now.equals(told)) {
        MutualProof.write(socket, now);
        told = now;
      }
      if (!now.startsWith(MISSING)) {
        return;
      }
      try {
        if (socket.getInputStream().read() < 0) {
          return; // it has left
        }
      } catch (SocketTimeoutException stillThere) {
        // As it should be.
      }
    }
  }

  private synchronized String told(int node, Card card) {
    Failure why = failure;
    if (why != null) {
      return (why.kind() == Failure.Kind.WRONG_CALL ? WRONG : LATE) + "\n" + why.getMessage();
    }
    if (!isOver) {
      return MISSING
          + "\n"
          + missing().stream().map(String::valueOf).collect(Collectors.joining("\n"));
    }
    if (node <= 0 || node >= cards.length || !card.at().equals(cards[node])) {
      return BUSY + "\nthe nodes of this job have met already, with another node " + node;
    }
    return ALL + "\n" + Arrays.stream(cards).map(Meeting::text).collect(Collectors.joining("\n"));
  }

  @Override
  public void refused(String host, IOException why) {
    String line =
        "a connection from " + host + " to where nodes meet is refused: " + Failure.reason(why);
    if (why instanceof MutualProof.OtherSecret) {
      synchronized (this) {
        refusal = line;
      }
    }
    strangers.accept(line);
  }

  @Override
  public void close() {
    Door opened;
    synchronized (this) {
      opened = door;
      long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(LEAVING_MILLIS);
      try {
        while (isOver && answering > 0 && System.nanoTime() < deadline) {
          wait(AGAIN_MILLIS);
        }
      } catch (InterruptedException hurry) {
        Thread.currentThread().interrupt();
      }
      for (Door.Visit guest : guests) {
        if (guest != null) {
          Door.close(guest.channel());
        }
      }
    }
    if (opened != null) {
      opened.close();
      if (point instanceof MeetingPoint.Folder folder) {
        try {
          folder.clear(own.job());
        } catch (IOException left) {
          // The next job of this name writes it anew.
        }
      }
    }
  }
}
