package org.gristway.cli;

import java.io.IOException;
import java.io.OutputStream;
import java.util.List;
import org.gristway.dataset.Dataset;
import org.gristway.dataset.Portion;
import org.gristway.snapshot.Snapshot;
import tools.jackson.core.JacksonException;
import tools.jackson.core.JsonGenerator;

/**
 * What {@code info --json} prints. Programs read it, so its names stay; it is written as it goes,
 * since a dataset may have millions of classes.
 */
final class InfoJson {

  private final Snapshot snapshot;
  private final Summary summary;
  private final JsonGenerator json;

  private InfoJson(Snapshot snapshot, Summary summary, JsonGenerator json) {
    this.snapshot = snapshot;
    this.summary = summary;
    this.json = json;
  }

  /** Writes the object and a newline. */
  static void write(Dataset dataset, List<Integer> versions, Summary summary, OutputStream out)
      throws IOException {
    JsonOutput.write(
        out, json -> new InfoJson(dataset.snapshot(), summary, json).write(dataset, versions));
  }

  private void write(Dataset dataset, List<Integer> versions) throws JacksonException {
    json.writeStringProperty("path", dataset.path().toString());
    json.writeStringProperty("datasetId", snapshot.datasetId().toString());
    json.writeStringProperty("snapshotId", snapshot.id().toString());
    json.writeNumberProperty("version", snapshot.version());
    json.writeArrayPropertyStart("versions");
    versions.forEach(json::writeNumber);
    json.writeEndArray();
    json.writeNumberProperty("samples", snapshot.sampleCount());
    json.writeNumberProperty("datasetBytes", snapshot.dataBytes());
    json.writeNumberProperty("chunks", snapshot.chunkCount());
    json.writeNumberProperty("chunkFileBytes", chunkFileBytes());
    dataset.portion().ifPresent(this::writePortion);
    json.writeNumberProperty("snapshotBytes", snapshot.fileBytes());
    writeParts();
    writeLabels();
    writeSampleBytes();
  }

  /** Only where chunks are missing. */
  private void writePortion(Portion portion) {
    json.writeObjectPropertyStart("portion");
    json.writeNumberProperty("node", portion.node());
    json.writeNumberProperty("nodes", portion.nodes());
    json.writeNumberProperty("chunks", portion.chunks(snapshot).count());
    json.writeEndObject();
  }

  private long chunkFileBytes() {
    long bytes = 0;
    for (int chunk = 0; chunk < snapshot.chunkCount(); chunk++) {
      bytes += snapshot.chunkFileBytes(chunk);
    }
    return bytes;
  }

  private void writeParts() {
    json.writeArrayPropertyStart("parts");
    for (Summary.ShapeCount shape : summary.shapes()) {
      json.writeStartObject();
      json.writeArrayPropertyStart("names");
      shape.shape().parts().forEach(json::writeString);
      json.writeEndArray();
      json.writeNumberProperty("samples", shape.samples());
      json.writeEndObject();
    }
    json.writeEndArray();
  }

  /** The count is one more than the highest label: as many outputs as a classifier needs. */
  private void writeLabels() {
    json.writeObjectPropertyStart("labels");
    if (snapshot.hasNamedLabels()) {
      json.writeStringProperty("kind", "named");
      json.writeNumberProperty("count", snapshot.namedLabelCount());
      json.writeArrayPropertyStart("names");
      for (int label = 0; label < snapshot.namedLabelCount(); label++) {
        json.writeString(snapshot.labelName(label).orElse(null)); // null is written as null
      }
      json.writeEndArray();
    } else {
      json.writeStringProperty("kind", summary.labels().labelled() == 0 ? "none" : "numbered");
      json.writeNumberProperty("count", summary.labels().highest() + 1L);
    }
    json.writeEndObject();
  }

  private void writeSampleBytes() {
    long samples = snapshot.sampleCount();
    json.writeObjectPropertyStart("sampleBytes");
    json.writeNumberProperty("min", summary.smallest());
    json.writeNumberProperty("mean", samples == 0 ? 0 : (double) snapshot.dataBytes() / samples);
    json.writeNumberProperty("max", summary.largest());
    json.writeEndObject();
  }
}
