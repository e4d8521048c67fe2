package org.gristway.cli;

import java.io.IOException;
import java.io.OutputStream;
import java.util.List;
import org.gristway.plan.Quality;
import org.gristway.read.EpochReport;
import org.gristway.read.Loader;
import tools.jackson.core.JsonGenerator;

/** What {@code read --json} prints. Programs read it, so its names stay. */
final class ReadJson {

  private ReadJson() {}

  /** Writes the object and a newline. */
  static void write(
      Loader loader,
      long memoryBytes,
      List<EpochResult> epochs,
      Quality.Report quality,
      OutputStream out)
      throws IOException {
    JsonOutput.write(
        out,
        json -> {
          json.writeStringProperty("policy", loader.options().policy());
          json.writeNumberProperty("seed", loader.options().seed());
          json.writeNumberProperty("memoryBytes", memoryBytes);
          json.writeNumberProperty("extentBytes", loader.cuts().frameBytes());
          json.writeNumberProperty("datasetBytes", loader.dataset().snapshot().dataBytes());
          json.writeNumberProperty("handoverBytes", loader.handoverBytes());
          json.writeArrayPropertyStart("epochs");
          epochs.forEach(epoch -> write(epoch, json));
          json.writeEndArray();
          json.writeObjectPropertyStart("quality");
          write(quality, json);
          json.writeEndObject();
        });
  }

  private static void write(EpochResult epoch, JsonGenerator json) {
    EpochReport report = epoch.report();
    json.writeStartObject();
    json.writeNumberProperty("epoch", report.epoch());
    json.writeNumberProperty("samples", report.samples());
    json.writeNumberProperty("bytes", report.bytes());
    json.writeNumberProperty("seconds", epoch.seconds());
    json.writeNumberProperty("storageReads", report.storageReads());
    json.writeNumberProperty("storageBytes", report.storageBytes());
    json.writeNumberProperty("rereadBytes", report.rereadBytes());
    json.writeNumberProperty("fetched", report.fetched());
    json.writeNumberProperty("fetchedBytes", report.fetchedBytes());
    json.writeNumberProperty("fallBacks", report.fallBacks());
    json.writeNumberProperty("peakResidentBytes", report.peakResidentBytes());
    json.writeNumberProperty("redirected", report.redirected());
    json.writeNumberProperty("repeated", report.repeated());
    json.writeNumberProperty("damaged", report.damaged());
    json.writeNumberProperty("stallSeconds", epoch.stallSeconds());
    json.writeStringProperty("orderDigest", epoch.orderDigest());
    json.writeEndObject();
  }

  /** The same names in {@code plan --json}. */
  static void write(Quality.Report quality, JsonGenerator json) {
    json.writeNumberProperty("mateRatio", quality.mateRatio());
    json.writeNumberProperty("rankMateRatio", quality.rankMateRatio());
    json.writeNumberProperty("worstBatch", quality.worstBatch());
    json.writeNumberProperty("distinctExtents", quality.distinctExtents());
    json.writeNumberProperty("spread", quality.spread());
  }
}
