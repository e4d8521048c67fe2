import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import org.gristway.handover.Batch;
import org.gristway.plan.ReadState;
import org.gristway.read.Loader;
import org.gristway.read.LoaderOptions;

/**
 * Feeds training from a dataset, is stopped in the middle of an epoch, and goes on from there.
 *
 * <pre>
 * java --enable-native-access=ALL-UNNAMED -cp gristway.jar TrainFromADataset.java DATASET CHECKPOINT
 * </pre>
 */
public class TrainFromADataset {

  public static void main(String[] args) throws IOException {
    Path dataset = Path.of(args[0]);
    Path checkpoint = Path.of(args[1]);

    // All that enters the order, and nothing of the machine: the same options give the same order
    // everywhere. The memory is what reading may hold, however large the dataset is.
    LoaderOptions options =
        LoaderOptions.DEFAULT.withMemory(64 << 20).withBatchSize(2).withSeed(7).withEpochs(2);

    try (Loader loader = Loader.open(dataset, options)) {
      // Every sample once, in an order that is new in each epoch.
      for (Batch batch : loader.epoch()) {
        train(batch);
      }
      System.out.println("epoch 0 has read " + loader.report(0).samples() + " samples");

      // Or batch by batch. A few may be open at once; each is yours until you close it.
      try (Batch batch = loader.next(0)) {
        train(batch);
      }

      // A few lines of text, to be kept with the model. It counts what was received, not what has
      // been read ahead.
      Files.writeString(checkpoint, loader.state().toString());
    }

    // With the same options, the order goes on as if nothing had happened. With others (more ranks,
    // say), what is left of the epoch is dealt anew, and no sample is lost or comes twice.
    ReadState state = ReadState.parse(Files.readString(checkpoint));
    System.out.println("goes on in epoch " + state.epoch());
    try (Loader loader = Loader.open(dataset, options, state)) {
      for (Batch batch : loader.epoch()) {
        train(batch);
      }
    }
  }

  private static void train(Batch batch) {
    StringBuilder line = new StringBuilder();
    line.append("epoch ").append(batch.epoch()).append(" step ").append(batch.step()).append(':');
    for (int i = 0; i < batch.size(); i++) {
      MemorySegment bytes = batch.data(i); // where they stand in memory: a view, not a copy
      line.append(' ').append(batch.key(i)).append(" of class ").append(batch.label(i));
      line.append(", ").append(bytes.byteSize()).append(" bytes;");
    }
    System.out.println(line);
  }
}
