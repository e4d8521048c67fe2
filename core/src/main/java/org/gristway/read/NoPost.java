package org.gristway.read;

import org.jspecify.annotations.Nullable;

/** The post of a rank whose plan pushes nothing. */
final class NoPost implements Post {

  @Override
  public Parcel begin(int to, long epoch, long step) {
    throw new IllegalStateException("there is no way to push anything to rank " + to);
  }

  @Override
  public void send(Parcel parcel) {
    throw new IllegalStateException("there is no way to send anything");
  }

  @Override
  public @Nullable Parcel poll(int from, long epoch, long step) {
    return null;
  }

  @Override
  public Parcel await(int from, long epoch, long step) {
    throw new IllegalStateException("nothing comes from rank " + from);
  }

  @Override
  public void done(long epoch, long step) {}
}
