package org.gristway.cli;

import java.io.IOException;
import org.gristway.Failure;
import org.gristway.node.Node;
import org.gristway.node.NodeMain;
import org.gristway.node.RuntimeFolder;
import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;

/** Runs a node under a name. */
@Command(
    name = "serve",
    description = {
      "Runs a node that training processes attach to by its name (node=\"NAME\" in Python), until it"
          + " is interrupted.",
      "Without it, the first training process on a machine starts a node and the last one ends it,"
          + " which is right for most. A named node lives on from job to job, and can be given memory"
          + " limits and priorities of its own. The first process of a job says what is read."
    },
    footer = {"", "Example: gristway serve training"})
final class ServeCommand implements CliCommand {

  private final Console console;

  @Parameters(paramLabel = "NAME", description = "What training processes call it.")
  private String name = "";

  ServeCommand(Console console) {
    this.console = console;
  }

  @Override
  public int run() throws IOException {
    try (Node node = Node.named(RuntimeFolder.named(name), NodeMain.version())) {
      // Ctrl-C is how it ends: the socket is then gone at once.
      Runtime.getRuntime().addShutdownHook(Thread.ofPlatform().unstarted(node::close));
      console.print("node '" + Text.escape(name) + "' is ready");
      console.flush();
      node.serve();
      return DONE;
    } catch (InterruptedException stop) {
      Thread.currentThread().interrupt();
      throw Failure.environment("interrupted");
    }
  }
}
