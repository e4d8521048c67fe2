import java.nio.file.Path;
import java.util.List;
import org.gristway.Progress;
import org.gristway.dataset.Dataset;
import org.gristway.dataset.Sample;
import org.gristway.pack.PackOptions;
import org.gristway.pack.PackReport;
import org.gristway.pack.Packer;

/**
 * Packs a folder into a dataset and looks into it.
 *
 * <pre>
 * java --enable-native-access=ALL-UNNAMED -cp gristway.jar ReadADataset.java FOLDER DATASET
 * </pre>
 */
public class ReadADataset {

  public static void main(String[] args) {
    Path folder = Path.of(args[0]);
    Path target = Path.of(args[1]);

    // All or nothing: the dataset appears when it is complete. What had to be left out, such as
    // links that lead out of the folder, is told a line at a time.
    PackReport report =
        Packer.pack(
            List.of(folder), target, PackOptions.DEFAULT, Progress.NONE, System.err::println);
    System.out.println("packed " + report.samples() + " samples, " + report.bytes() + " bytes");

    try (Dataset dataset = Dataset.open(target)) {
      // In the order in which the bytes lie on the disk, which is a random one: the fastest way to
      // read everything.
      long bytes = 0;
      for (Sample sample : dataset) {
        bytes += dataset.read(sample).length; // verified before it is returned
      }
      System.out.println("read " + bytes + " bytes");

      // Like a file system, but from one index: folders end with a slash.
      List<String> names = dataset.list("");
      System.out.println("at the top: " + names);

      // By key. A key is the path that a file had below the folder.
      String key = dataset.sample(0).key();
      Sample sample = dataset.find(key).orElseThrow();
      byte[] content = dataset.read(sample);
      System.out.println(
          key
              + " has "
              + content.length
              + " bytes and class "
              + sample.label()
              + dataset.labelName(sample.label()).map(name -> ", " + name).orElse(""));
      System.out.println("no/such/key is there: " + dataset.find("no/such/key").isPresent());
    }
  }
}
