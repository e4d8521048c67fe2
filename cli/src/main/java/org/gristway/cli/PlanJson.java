package org.gristway.cli;

import java.io.IOException;
import java.io.OutputStream;
import java.util.List;
import org.gristway.plan.PlanInputs;
import tools.jackson.core.JsonGenerator;

/** What {@code plan --json} prints. Programs read it, so its names stay. */
final class PlanJson {

  private PlanJson() {}

  /** Writes the object and a newline. */
  static void write(
      PlanInputs inputs,
      long memoryBytes,
      long datasetBytes,
      List<PolicyOutlook> policies,
      OutputStream out)
      throws IOException {
    JsonOutput.write(
        out,
        json -> {
          json.writeNumberProperty("seed", inputs.seed());
          json.writeNumberProperty("memoryBytes", memoryBytes);
          json.writeNumberProperty("extentBytes", inputs.settings().extentBytes());
          json.writeNumberProperty("datasetBytes", datasetBytes);
          json.writeNumberProperty("samples", inputs.layout().sampleCount());
          json.writeNumberProperty("extents", inputs.cuts().count());
          json.writeNumberProperty("ranks", inputs.world().ranks());
          json.writeNumberProperty("nodes", inputs.world().nodes());
          json.writeNumberProperty("batchSize", inputs.settings().batchSize());
          json.writeArrayPropertyStart("policies");
          policies.forEach(policy -> write(policy, json));
          json.writeEndArray();
        });
  }

  /** A policy that cannot plan has its reason in place of everything else. */
  private static void write(PolicyOutlook outlook, JsonGenerator json) {
    json.writeStartObject();
    json.writeStringProperty("policy", outlook.policy().name());
    json.writeNumberProperty("planVersion", outlook.policy().planVersion());
    PlannedEpoch epoch = outlook.epoch();
    if (epoch == null) {
      json.writeStringProperty("refusal", outlook.refusal());
    } else {
      json.writeNumberProperty("steps", epoch.steps());
      json.writeNumberProperty("storageReads", epoch.storageReads());
      json.writeNumberProperty("storageBytes", epoch.storageBytes());
      json.writeNumberProperty("peakResidentBytes", epoch.peakResidentBytes());
      json.writeNumberProperty("redirected", epoch.redirected());
      ReadJson.write(epoch.quality(), json);
      json.writeStringProperty("orderDigest", epoch.orderDigest());
    }
    json.writeEndObject();
  }
}
