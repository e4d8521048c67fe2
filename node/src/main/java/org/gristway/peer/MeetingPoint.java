package org.gristway.peer;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.gristway.Failure;
import org.jspecify.annotations.Nullable;

/** How the nodes of a job know where to find the first of them. */
public sealed interface MeetingPoint {

  /** The first node listens at this address. */
  record Host(InetSocketAddress address) implements MeetingPoint {}

  /** The first node writes where it listens into a folder that all can read. */
  record Folder(Path folder) implements MeetingPoint {

    private Path file(String group) {
      return folder.resolve("gristway-" + group);
    }

    /** Tells where the first node listens. */
    void publish(String group, InetSocketAddress address) throws IOException {
      Files.createDirectories(folder);
      Path aside = Files.createTempFile(folder, "gristway-", null);
      Files.writeString(aside, address.getAddress().getHostAddress() + ":" + address.getPort());
      Files.move(aside, file(group), StandardCopyOption.ATOMIC_MOVE);
    }

    /** Where it listens, or null if nobody has told that yet. */
    @Nullable InetSocketAddress look(String group) {
      try {
        return host(Files.readString(file(group)).strip());
      } catch (IOException notYet) {
        return null;
      }
    }

    void clear(String group) throws IOException {
      Files.deleteIfExists(file(group));
    }
  }

  /** As settings have it: {@code host:NAME:PORT} or {@code folder:/a/path}. */
  static MeetingPoint parse(String text) {
    if (text.startsWith("host:")) {
      return new Host(host(text.substring("host:".length())));
    }
    if (text.startsWith("folder:")) {
      return new Folder(Path.of(text.substring("folder:".length())));
    }
    throw Failure.damaged("'%s' is no place for nodes to meet", text);
  }

  private static InetSocketAddress host(String text) {
    int colon = text.lastIndexOf(':');
    try {
      int port = Integer.parseInt(text.substring(colon + 1));
      if (colon > 0) {
        return InetSocketAddress.createUnresolved(text.substring(0, colon), port);
      }
    } catch (IllegalArgumentException noPort) {
      // As below.
    }
    throw Failure.wrongCall("'%s' is not where a node listens: write it as host:port", text);
  }
}
