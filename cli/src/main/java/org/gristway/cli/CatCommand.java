package org.gristway.cli;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.gristway.Failure;
import org.gristway.dataset.Dataset;
import org.gristway.dataset.Sample;
import org.gristway.snapshot.Snapshot;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Writes one sample's bytes. */
@Command(
    name = "cat",
    description = {
      "Writes the bytes of one sample, or of one of its parts, to standard output.",
      "Nothing is written before all of it has passed its checksum."
    },
    footer = {"", "Example: gristway cat flowers.gw roses/12.jpg > rose.jpg"})
final class CatCommand implements CliCommand {

  /** How many keys on either side are looked at for one that may have been meant. */
  private static final int NEIGHBOURS = 100;

  private final Console console;

  @Mixin private DatasetArgument dataset = new DatasetArgument();

  @SuppressWarnings("NullAway.Init")
  @Parameters(index = "1", paramLabel = "KEY", description = "The sample's key.")
  private String key;

  @Option(
      names = "--part",
      paramLabel = "NAME",
      description = "The part to write, where a sample has several.")
  private @Nullable String partName;

  CatCommand(Console console) {
    this.console = console;
  }

  @Override
  public int run() throws IOException {
    try (Dataset opened = Dataset.open(dataset.path())) {
      Sample sample = opened.find(key).orElseThrow(() -> missing(opened));
      opened.writeTo(sample, part(sample), console.out());
      console.flush();
    }
    return DONE;
  }

  private Sample.Part part(Sample sample) {
    if (partName != null) {
      if (sample.parts().getFirst().name().isEmpty() && !partName.isEmpty()) {
        throw Failure.wrongCall("'%s' is a plain file, without parts; leave --part out", key);
      }
      return sample.part(partName);
    }
    if (sample.parts().size() > 1) {
      throw Failure.wrongCall(
          "'%s' has the parts %s; choose one with --part",
          key, String.join(", ", sample.parts().stream().map(Sample.Part::name).toList()));
    }
    return sample.parts().getFirst();
  }

  private Failure missing(Dataset opened) {
    String what = dataset.path() + " has no sample '" + key + "'";
    String advice =
        ownerOfPart(opened)
            .or(() -> contentsOfFolder(opened))
            .or(() -> nearKey(opened.snapshot()))
            .orElse("list what it has with 'gristway ls " + dataset.inShell() + "'");
    return Failure.wrongCall("%s; %s", what, advice);
  }

  private Optional<String> contentsOfFolder(Dataset opened) {
    String folder = key.endsWith("/") ? key : key + "/";
    return opened.withPrefix(folder).iterator().hasNext()
        ? Optional.of(
            String.format(
                "it is a folder: list it with 'gristway ls %s %s'",
                dataset.inShell(), Text.shellQuote(folder)))
        : Optional.empty();
  }

  private Optional<String> nearKey(Snapshot snapshot) {
    String folder = key.substring(0, key.length() - lastName(key).length());
    return Nearest.of(lastName(key), neighbours(snapshot))
        .map(name -> "did you mean '" + folder + name + "'?");
  }

  /** The key may be a part's file name, as it was before packing: {@code key.part}. */
  private Optional<String> ownerOfPart(Dataset opened) {
    int nameStart = key.length() - lastName(key).length();
    for (int dot = key.indexOf('.', nameStart); dot > 0; dot = key.indexOf('.', dot + 1)) {
      String part = key.substring(dot + 1);
      Optional<Sample> owner = opened.find(key.substring(0, dot));
      if (owner.isPresent() && owner.get().parts().stream().anyMatch(p -> p.name().equals(part))) {
        return Optional.of("it is the part '" + part + "' of '" + owner.get().key() + "'");
      }
    }
    return Optional.empty();
  }

  /** The names of the samples around the key's place in key order, in the key's own folder. */
  private List<String> neighbours(Snapshot snapshot) {
    String folder = key.substring(0, key.length() - lastName(key).length());
    long place = snapshot.rankOf(key.getBytes(StandardCharsets.UTF_8));
    List<String> names = new ArrayList<>();
    long end = Math.min(snapshot.sampleCount(), place + NEIGHBOURS);
    for (long rank = Math.max(0, place - NEIGHBOURS); rank < end; rank++) {
      String other = snapshot.key(snapshot.inKeyOrder(rank));
      if (other.startsWith(folder) && other.indexOf('/', folder.length()) < 0) {
        names.add(other.substring(folder.length()));
      }
    }
    return names;
  }

  private static String lastName(String path) {
    return path.substring(path.lastIndexOf('/') + 1);
  }
}
