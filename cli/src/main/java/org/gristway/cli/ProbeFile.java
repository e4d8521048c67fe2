package org.gristway.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.gristway.Failure;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** A file that {@code probe --json} has written. */
public final class ProbeFile {

  private ProbeFile() {}

  /** What was measured. */
  public static ProbeResult read(Path file) {
    if (!Files.isRegularFile(file)) {
      throw Failure.wrongCall("there is no file %s: 'gristway probe DIR --json' prints one", file);
    }
    try {
      return parse(JsonMapper.shared().readTree(Files.readAllBytes(file)));
    } catch (IOException failed) {
      throw Failure.io("read " + file, failed);
    } catch (JacksonException | IllegalArgumentException none) {
      throw Failure.wrongCall("%s is not what 'gristway probe DIR --json' prints", file);
    }
  }

  private static ProbeResult parse(JsonNode json) {
    List<ProbeResult.Reads> reads = new ArrayList<>();
    for (JsonNode each : json.path("reads")) {
      reads.add(
          new ProbeResult.Reads(
              (long) positive(each, "bytes"),
              (int) positive(each, "atOnce"),
              positive(each, "bytesPerSecond"),
              each.path("processors").asDouble(0))); // which those of older versions lack
    }
    if (reads.stream().noneMatch(each -> each.atOnce() == 1)) {
      throw new IllegalArgumentException("no reads, or none that were alone");
    }
    return new ProbeResult(
        (long) positive(json, "fileBytes"),
        json.path("direct").asBoolean(),
        reads,
        positive(json, "bufferedBytesPerSecond"),
        positive(json, "cachedBytesPerSecond"),
        positive(json, "smallFilesPerSecond"),
        positive(json, "copyBytesPerSecond"),
        positive(json, "checkedCopyBytesPerSecond"),
        positive(json, "deliverySeconds"),
        Math.max(1, json.path("processors").asInt(1)));
  }

  private static double positive(JsonNode json, String name) {
    double value = json.path(name).asDouble(0);
    if (!(value > 0)) {
      throw new IllegalArgumentException(name);
    }
    return value;
  }
}
