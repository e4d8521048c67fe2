package org.gristway.cli;

import java.io.IOException;
import java.io.OutputStream;
import java.util.Locale;
import org.gristway.plan.LabelMix;
import org.gristway.plan.PlanInputs;
import tools.jackson.core.JsonGenerator;

/** What {@code plan --json} prints. Programs read it, so its names stay. */
final class PlanJson {

  private PlanJson() {}

  /** Writes the object and a newline. */
  static void write(DatasetOutlook outlook, OutputStream out) throws IOException {
    PlanInputs inputs = outlook.inputs();
    JsonOutput.write(
        out,
        json -> {
          json.writeNumberProperty("seed", inputs.seed());
          json.writeNumberProperty("memoryBytes", outlook.memoryBytes());
          json.writeNumberProperty("extentBytes", inputs.settings().extentBytes());
          json.writeNumberProperty("datasetBytes", outlook.datasetBytes());
          json.writeNumberProperty("samples", inputs.layout().sampleCount());
          json.writeNumberProperty("extents", inputs.cuts().count());
          json.writeNumberProperty("ranks", inputs.world().ranks());
          json.writeNumberProperty("nodes", inputs.world().nodes());
          json.writeNumberProperty("batchSize", inputs.settings().batchSize());
          json.writeNumberProperty("exchange", inputs.settings().exchange().share());
          json.writeStringProperty(
              "homes", inputs.settings().exchange().homes().name().toLowerCase(Locale.ROOT));
          json.writeArrayPropertyStart("policies");
          outlook.policies().forEach(policy -> write(policy, json));
          json.writeEndArray();
          write("floor", outlook.bounds().floor(), json);
          write("ceiling", outlook.bounds().ceiling(), json);
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
      json.writeNumberProperty("movedBytes", epoch.movedBytes());
      json.writeNumberProperty("peakResidentBytes", epoch.peakResidentBytes());
      json.writeNumberProperty("redirected", epoch.redirected());
      write(epoch.order(), json);
      json.writeStringProperty("orderDigest", epoch.orderDigest());
    }
    json.writeEndObject();
  }

  private static void write(String name, OrderMeasures order, JsonGenerator json) {
    json.writeObjectPropertyStart(name);
    write(order, json);
    json.writeEndObject();
  }

  /** Those of labels are left out where there are none to mix. */
  private static void write(OrderMeasures order, JsonGenerator json) {
    ReadJson.write(order.quality(), json);
    json.writeNumberProperty("rankCorrelation", order.rankCorrelation());
    LabelMix.Report labels = order.labels();
    if (labels != null) {
      json.writeNumberProperty("labelEntropy", labels.entropy());
      json.writeNumberProperty("labelVariance", labels.variance());
    }
  }
}
