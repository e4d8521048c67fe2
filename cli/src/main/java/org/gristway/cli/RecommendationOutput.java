package org.gristway.cli;

import java.io.IOException;
import java.io.OutputStream;
import java.util.Locale;
import org.gristway.plan.policy.UnboundedPolicy;
import org.gristway.simulator.CostModel.Storage;
import tools.jackson.core.JsonGenerator;

/** What {@code plan --recommend} prints. Programs read the JSON, so its names stay. */
final class RecommendationOutput {

  private final String dataset;
  private final Recommendation recommendation;

  RecommendationOutput(String dataset, Recommendation recommendation) {
    this.dataset = dataset;
    this.recommendation = recommendation;
  }

  void print(Console console) throws IOException {
    Recommender.Asked asked = recommendation.asked();
    Storage storage = asked.cost().storage();
    console.print(
        String.format(
            Locale.ROOT,
            "%s: %s, %s; steps of %s with batches of %s, %s on %s with up to %s of memory each",
            Text.oneLine(dataset),
            Text.count(asked.layout().sampleCount(), "sample"),
            Text.bytes(asked.datasetBytes()),
            milliseconds(asked.stepSeconds()),
            Text.number(asked.batchSize()),
            Text.count(asked.world().ranks(), "rank"),
            Text.count(asked.world().nodes(), "node"),
            Text.bytes(asked.memory())));
    console.print(
        String.format(
            Locale.ROOT,
            "storage: %s and %s a second, %s a read%s",
            Text.bytes(storage.rate()),
            Text.count(Math.round(storage.requests()), "read"),
            milliseconds(storage.latency()),
            asked.world().nodes() > 1 ? ", taken to be such on each node by itself" : ""));
    if (recommendation.samplesTried() < asked.layout().sampleCount()) {
      console.print(
          String.format(
              "tried in virtual time with %s of them, in the same proportions",
              Text.number(recommendation.samplesTried())));
    }
    console.print("");
    print("recommended", recommendation.best(), recommendation.reason(), console);
    Recommendation.Advised second = recommendation.runnerUp();
    if (second != null) {
      console.print("");
      print("runner-up", second, recommendation.whySecond(), console);
    }
  }

  private void print(String title, Recommendation.Advised advised, String why, Console console)
      throws IOException {
    Candidate settings = advised.settings();
    String memory = size(settings.memory());
    String extent = size(settings.extentBytes());
    boolean takesMemory = !settings.policy().equals(UnboundedPolicy.NAME);
    console.print(
        String.format(
            "%s: --policy %s%s --extent %s",
            title, settings.policy(), takesMemory ? " --memory " + memory : "", extent));
    Recommender.Asked asked = recommendation.asked();
    console.print(
        String.format(
            Locale.ROOT,
            "  gristway.Loader(\"%s\", batch_size=%d, policy=\"%s\"%s, extent=\"%s\")",
            Text.oneLine(dataset),
            asked.batchSize(),
            settings.policy(),
            takesMemory ? ", memory=\"" + memory + "\"" : "",
            extent));
    console.print("  " + why);
  }

  /** As an option takes it: in the largest unit that leaves it whole. */
  static String size(long bytes) {
    String[] units = {"GiB", "MiB", "KiB"};
    for (int i = 0; i < units.length; i++) {
      long unit = 1L << (30 - 10 * i);
      if (bytes >= unit && bytes % unit == 0) {
        return bytes / unit + units[i];
      }
    }
    return Long.toString(bytes);
  }

  private static String milliseconds(double seconds) {
    return String.format(Locale.ROOT, seconds < 0.01 ? "%.2f ms" : "%,.0f ms", 1000 * seconds);
  }

  void writeJson(OutputStream out) throws IOException {
    Recommender.Asked asked = recommendation.asked();
    Storage storage = asked.cost().storage();
    JsonOutput.write(
        out,
        json -> {
          json.writeNumberProperty("stepSeconds", asked.stepSeconds());
          json.writeNumberProperty("memoryBytes", asked.memory());
          json.writeNumberProperty("datasetBytes", asked.datasetBytes());
          json.writeNumberProperty("samples", asked.layout().sampleCount());
          json.writeNumberProperty("samplesTried", recommendation.samplesTried());
          json.writeNumberProperty("ranks", asked.world().ranks());
          json.writeNumberProperty("nodes", asked.world().nodes());
          json.writeNumberProperty("batchSize", asked.batchSize());
          json.writeNumberProperty("wantedBytesPerSecond", asked.bytesWanted());
          json.writeNumberProperty("storageBytesPerSecond", storage.rate());
          json.writeNumberProperty("storageReadsPerSecond", storage.requests());
          json.writeNumberProperty("storageLatencySeconds", storage.latency());
          Recommendation.Bound bound = recommendation.bound();
          json.writeBooleanProperty("removesStall", bound == null);
          if (bound == null) {
            json.writeNullProperty("boundBy");
          } else {
            json.writeStringProperty("boundBy", bound.name().toLowerCase(Locale.ROOT));
          }
          json.writeName("recommended");
          write(recommendation.best(), recommendation.reason(), json);
          json.writeName("runnerUp");
          Recommendation.Advised second = recommendation.runnerUp();
          if (second == null) {
            json.writeNull();
          } else {
            write(second, recommendation.whySecond(), json);
          }
        });
  }

  private static void write(Recommendation.Advised advised, String reason, JsonGenerator json) {
    Candidate settings = advised.settings();
    json.writeStartObject();
    json.writeStringProperty("policy", settings.policy());
    json.writeNumberProperty("memoryBytes", settings.memory());
    json.writeNumberProperty("extentBytes", settings.extentBytes());
    json.writeNumberProperty("stallShare", settings.stallShare());
    json.writeNumberProperty("firstEpochStallSeconds", settings.firstEpochStall());
    json.writeNumberProperty("storageReads", advised.storageReads());
    json.writeNumberProperty("storageBytes", advised.storageBytes());
    json.writeNumberProperty("mateRatio", advised.mateRatio());
    json.writeStringProperty("reason", reason);
    json.writeEndObject();
  }
}
