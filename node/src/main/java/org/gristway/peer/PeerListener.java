package org.gristway.peer;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import org.gristway.read.Parcel;
import org.gristway.read.PostOffice;

/**
 * What is done about what a peer says over a {@link PeerLink}, whose threads call it: several at
 * once, but one for all that the peer says, in its order. An exception ends the connection.
 */
interface PeerListener {

  /** A rank of the peer has come as far. */
  void moved(int rank, PostOffice.Place place) throws IOException;

  /** An empty parcel for what a rank of the peer pushes to one of this node that has room. */
  Parcel parcel(int from, int to, long epoch, long step) throws IOException;

  /** Refuses a sample that cannot be meant, before there is memory for it. */
  void check(int position, long sample, long length) throws IOException;

  /** A parcel is complete. */
  void arrived(Parcel parcel);

  /** A parcel has been written, and its memory is free. */
  void sent(Parcel parcel);

  /** Refuses a request for a sample that cannot be meant. */
  void checkFetch(int rank, long sample, int tier) throws IOException;

  /** The length of a sample. */
  long length(long sample);

  /**
   * Copies a sample that a rank of this node keeps; false if it does not.
   *
   * @param target of the sample's length; if it was not there, it may hold anything
   */
  boolean copyKept(int rank, long sample, int tier, MemorySegment target);

  /** The peer is done, and says nothing more. */
  void left();

  /** The peer gives the job up. */
  void lost(String why);

  /** The connection has failed. */
  void broken(Exception why);
}
