package org.gristway.node;

import java.nio.file.Path;
import org.gristway.Failure;
import org.gristway.os.Posix;

/**
 * Runs a node for a job: {@code NodeMain SOCKET}. It says {@code ready} when it listens, and ends
 * with its last client. Training code starts it, so it loads nothing that it does not need.
 */
public final class NodeMain {

  private static final int BUG = 70;

  private NodeMain() {}

  public static void main(String[] args) throws InterruptedException {
    // A thread that dies with nobody waiting for it is a bug, and clients must not wait for it.
    Thread.setDefaultUncaughtExceptionHandler(
        (thread, thrown) -> {
          System.err.println("a bug in the node, in " + thread.getName() + ": " + thrown);
          Runtime.getRuntime().halt(BUG);
        });
    int status = 0;
    try (Node node = Node.forJob(Path.of(args[0]), version())) {
      // Schedulers signal every process of a job, and trainers that are told to end save their
      // state
      // first. The node ends with them; meanwhile a signal only waits for that.
      Runtime.getRuntime().addShutdownHook(Thread.ofPlatform().unstarted(node::endWhenUnused));
      Posix.ignore(Posix.USER_SIGNAL);
      System.out.println("ready");
      boolean isAwaited = !System.out.checkError(); // or who has started it is gone
      System.out.close();
      node.serve(isAwaited);
    } catch (Failure failure) {
      System.err.println(failure.getMessage());
      status = failure.kind().number();
    }
    // Threads that wait for storage must not keep a node alive that nobody uses.
    Runtime.getRuntime().halt(status);
  }

  /** The manifest's, so that the pom is the only place that has it. */
  public static String version() {
    String version = NodeMain.class.getPackage().getImplementationVersion();
    return version == null ? "(unpackaged)" : version;
  }
}
