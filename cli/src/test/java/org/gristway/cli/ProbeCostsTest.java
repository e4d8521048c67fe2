package org.gristway.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.assertj.core.data.Percentage;
import org.gristway.simulator.CostModel;
import org.gristway.simulator.CostModel.Storage;
import org.gristway.simulator.CostModel.Work;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("java")
class ProbeCostsTest {

  private static final Percentage CLOSE = Percentage.withPercentage(1);

  @TempDir Path folder;

  @Test
  void a_file_says_what_was_measured() throws IOException {
    ProbeResult result = ProbedStorage.CLOUD.result();
    Path file = ProbedStorage.CLOUD.write(folder.resolve("probe.json"));
    assertThat(ProbeFile.read(file)).isEqualTo(result);
  }

  @Test
  void reads_that_were_alone_give_latency_and_stream() {
    Storage storage = ProbeCosts.storage(ProbedStorage.FAST.result());
    assertThat(storage.latency()).isCloseTo(80e-6, within(1e-7));
    assertThat(storage.stream().at(1)).isCloseTo(3e9, CLOSE);
    assertThat(storage.depth()).isEqualTo(16);
  }

  @Test
  void many_reads_at_once_give_what_was_measured_and_what_lies_between() {
    for (ProbedStorage probed :
        List.of(ProbedStorage.FAST, ProbedStorage.CLOUD, ProbedStorage.DISK)) {
      Storage storage = ProbeCosts.storage(probed.result());
      for (ProbeResult.Reads each : probed.result().mostAtOnce()) {
        assertThat(storage.rate(each.bytes(), 16, 1)).isCloseTo(each.rate(), CLOSE);
      }
    }
    // Requests are the limit up to 167 KB, and bytes from there on.
    Storage cloud = ProbeCosts.storage(ProbedStorage.CLOUD.result());
    assertThat(cloud.rate(112_000, 16, 1)).isCloseTo(3_000 * 112_000, CLOSE);
    assertThat(cloud.rate(200_000, 16, 1)).isCloseTo(500e6, CLOSE);
    Storage disk = ProbeCosts.storage(ProbedStorage.DISK.result());
    assertThat(disk.rate(100_000, 16, 1)).isCloseTo(200 * 100_000, CLOSE);
    assertThat(disk.rate(16 << 20, 16, 1)).isCloseTo(180e6, CLOSE);
  }

  @Test
  void storage_without_such_limits_takes_more_for_each_byte() {
    double each = 10e-6;
    double rate = 3e9;
    List<ProbeResult.Reads> reads = new ArrayList<>();
    for (long bytes = 4 << 10; bytes <= 4 << 20; bytes *= 4) {
      reads.add(new ProbeResult.Reads(bytes, 16, bytes / (each + bytes / rate), 0));
      reads.add(new ProbeResult.Reads(bytes, 1, bytes / (16 * each + bytes / rate), 0));
    }
    Storage storage = ProbeCosts.storage(new ProbeResult(1, true, reads, 1, 1, 1, 1, 1, 1, 1));
    Percentage near = Percentage.withPercentage(5);
    for (double bytes = 4 << 10; bytes <= 4 << 20; bytes *= 1.3) {
      assertThat(storage.bySize().at(bytes)).isCloseTo(bytes / (each + bytes / rate), near);
    }
  }

  @Test
  void storage_that_takes_as_long_for_all_sizes_has_no_stream() {
    List<ProbeResult.Reads> reads =
        List.of(
            new ProbeResult.Reads(4 << 10, 1, 100 * (4 << 10), 0),
            new ProbeResult.Reads(1 << 20, 1, 100 * (1 << 20), 0));
    ProbeResult result = new ProbeResult(1, true, reads, 1, 1, 1, 1, 1, 1, 1);
    Storage storage = ProbeCosts.storage(result);
    assertThat(storage.latency()).isCloseTo(0.01, CLOSE);
    assertThat(storage.stream().at(1)).isInfinite();
    assertThat(storage.perProcessor().at(4 << 10)).isInfinite();
  }

  @Test
  void fewer_reads_at_once_give_less() {
    List<ProbeResult.Reads> reads =
        List.of(
            new ProbeResult.Reads(4 << 10, 1, 10e6, 0),
            new ProbeResult.Reads(1 << 20, 1, 100e6, 0),
            new ProbeResult.Reads(4 << 10, 4, 50e6, 0),
            new ProbeResult.Reads(1 << 20, 4, 100e6, 0),
            new ProbeResult.Reads(4 << 10, 16, 100e6, 0),
            new ProbeResult.Reads(1 << 20, 16, 200e6, 0));
    Storage storage = ProbeCosts.storage(new ProbeResult(1, true, reads, 1, 1, 1, 1, 1, 1, 1));
    assertThat(storage.byDepth().at(16)).isEqualTo(1);
    assertThat(storage.byDepth().at(4)).isEqualTo(0.5);
    assertThat(storage.byDepth().at(1)).isCloseTo(0.3, CLOSE);
  }

  @Test
  void processors_that_read_cannot_deliver() {
    CostModel cost = ProbeCosts.of(ProbedStorage.FAST.result(), new Work(1, 1, 1, true));
    assertThat(cost.processors()).isEqualTo(4);
    // Half a processor is busy with what the storage gives.
    assertThat(cost.storage().perProcessor().at(4 << 20)).isCloseTo(2 * 3e9, CLOSE);
  }

  @Test
  void a_file_of_an_older_version_says_nothing_of_processors() throws IOException {
    Path file = ProbedStorage.CLOUD.write(folder.resolve("probe.json"));
    String text = Files.readString(file).replaceAll(",\"processors\":[0-9.]+", "");
    assertThat(text).doesNotContain("processors");
    ProbeResult read = ProbeFile.read(Files.writeString(file, text));
    assertThat(read.reads()).allMatch(each -> each.processors() == 0);
  }

  @Test
  void a_sample_costs_a_checked_copy_and_a_delivery() {
    CostModel cost = ProbeCosts.of(ProbedStorage.FAST.result(), new Work(1, 1, 1, true));
    assertThat(cost.memoryRate()).isEqualTo(5e9);
    assertThat(cost.sampleSeconds()).isEqualTo(1e-6);
  }
}
