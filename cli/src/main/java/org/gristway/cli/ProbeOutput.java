package org.gristway.cli;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.gristway.simulator.CostModel.Storage;

/** What {@code probe} prints. Programs read the JSON, so its names stay. */
final class ProbeOutput {

  private ProbeOutput() {}

  static void writeJson(Path folder, ProbeResult result, OutputStream out) throws IOException {
    JsonOutput.write(
        out,
        json -> {
          json.writeStringProperty("folder", folder.toString());
          json.writeNumberProperty("fileBytes", result.fileBytes());
          json.writeBooleanProperty("direct", result.isDirect());
          json.writeArrayPropertyStart("reads");
          for (ProbeResult.Reads reads : result.reads()) {
            json.writeStartObject();
            json.writeNumberProperty("bytes", reads.bytes());
            json.writeNumberProperty("atOnce", reads.atOnce());
            json.writeNumberProperty("bytesPerSecond", reads.rate());
            json.writeNumberProperty("requestsPerSecond", reads.perSecond());
            json.writeNumberProperty("processors", reads.processors());
            json.writeEndObject();
          }
          json.writeEndArray();
          json.writeNumberProperty("bufferedBytesPerSecond", result.bufferedRate());
          json.writeNumberProperty("cachedBytesPerSecond", result.cachedRate());
          json.writeNumberProperty("smallFilesPerSecond", result.smallFiles());
          json.writeNumberProperty("copyBytesPerSecond", result.copyRate());
          json.writeNumberProperty("checkedCopyBytesPerSecond", result.checkedRate());
          json.writeNumberProperty("deliverySeconds", result.sampleSeconds());
          json.writeNumberProperty("processors", result.processors());
          json.writeNumberProperty("saturatingExtentBytes", result.saturatingBytes());
        });
  }

  static void print(Path folder, ProbeResult result, Console console) throws IOException {
    console.print(
        Text.oneLine(folder.toString())
            + ": reads at random places of a file of "
            + Text.bytes(result.fileBytes())
            + (result.isDirect() ? ", past the page cache" : "; it knows no direct reads"));
    console.print("");
    List<List<String>> rows = new ArrayList<>();
    rows.add(List.of("read", "at once", "a second", "requests a second"));
    for (ProbeResult.Reads reads : result.reads()) {
      rows.add(
          List.of(
              Text.bytes(reads.bytes()),
              Text.number(reads.atOnce()),
              Text.bytes(reads.rate()),
              Text.number(Math.round(reads.perSecond()))));
    }
    Columns.print(rows, _ -> "", console);
    console.print("");
    console.print(
        "through the page cache "
            + Text.bytes(result.bufferedRate())
            + " a second, from it "
            + Text.bytes(result.cachedRate())
            + "; memory is copied at "
            + Text.bytes(result.copyRate())
            + ", with a checksum at "
            + Text.bytes(result.checkedRate()));
    console.print(
        Text.number(Math.round(result.smallFiles()))
            + " small files (10 KB) a second, one a request and more for their names");
    console.print(
        "extents of "
            + Text.bytes(result.saturatingBytes())
            + " get all that this storage gives: smaller ones mix better, and read slower");
    console.print("");
    console.print("For a scenario of 'gristway simulate':");
    Storage storage = ProbeCosts.storage(result);
    console.print(String.format(Locale.ROOT, "storage.latency: %.0fus", 1e6 * storage.latency()));
    console.print(line("storage.rate", storage.rate() / 1e6, "MB"));
    console.print(line("storage.requests", storage.requests(), ""));
    console.print("storage.by-size: " + storage.bySize().rounded(1).textBySize());
    console.print("storage.by-depth: " + storage.byDepth().rounded(100));
    console.print("storage.per-processor: " + storage.perProcessor().rounded(1).textBySize());
    console.print("storage.stream: " + storage.stream().rounded(1));
    console.print(line("memory-rate", result.checkedRate() / 1e6, "MB"));
    console.print(
        String.format(Locale.ROOT, "sample-seconds: %.2fus", 1e6 * result.sampleSeconds()));
    console.print(line("processors", result.processors(), ""));
  }

  private static String line(String key, double value, String unit) {
    return String.format(Locale.ROOT, "%s: %.0f%s", key, value, unit);
  }
}
