package org.gristway.peer;

import org.gristway.read.Parcel;
import org.gristway.read.PostOffice;

/**
 * What a node says to a peer over their connection. All of it arrives in the order in which it is
 * said, or the connection breaks. Nothing waits.
 */
interface Line {

  /** Begins to write and to read. */
  void start();

  /** When something was last heard of the peer, in nanoseconds. */
  long heard();

  /** A rank of this node has come as far. */
  void moved(int rank, PostOffice.Place place);

  /** What a rank of this node pushes to one of the peer. */
  void send(Parcel parcel);

  /**
   * Asks for a sample that a rank of the peer keeps. It ends, there or not, with the answer or with
   * the connection.
   */
  void ask(Wanted sample);

  /** This node is done; the last that is said. */
  void bye();

  /** This node gives the job up; the last that is said. */
  void lost(String why);

  /** Has nothing more come from the peer: whoever waits for the rest of something goes without. */
  void stopHearing();

  /** Ends the connection at once. */
  void abort();
}
