package org.gristway.read;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.gristway.pack.Packs.assertFails;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.gristway.Failure;
import org.gristway.Failure.Kind;
import org.gristway.handover.Batch;
import org.gristway.testing.Seeds;
import org.gristway.testing.Thorough;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What holds for samples that are asked for by index, exactly or any of a set. */
@Tag("java")
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class AskedLoaderTest extends AskedSamples {

  private static final int MOST_OPEN = 256;

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void too_many_open_batches_are_refused_until_one_is_closed(boolean redirect) {
    LoaderOptions many = OPTIONS.withRanks(MOST_OPEN);
    try (AskedLoader loader = open(many, redirect)) {
      List<Batch> open = new ArrayList<>();
      for (int i = 0; i < MOST_OPEN; i++) {
        open.add(loader.get(i % SAMPLES));
      }
      assertFails(Kind.WRONG_CALL, () -> loader.get(0), MOST_OPEN + " batches", "close a batch");
      open.remove(100).close();
      open.add(loader.get(0));
      assertFails(Kind.WRONG_CALL, () -> loader.get(1), MOST_OPEN + " batches");
      Received received = new Received(originals);
      open.forEach(received::add); // each still has its own bytes
    }
  }

  @Test
  void a_batch_is_its_users_until_it_is_closed_whatever_epoch_is_set() {
    try (AskedLoader loader = AskedLoader.redirected(originals.path(), OPTIONS)) {
      Batch held = loader.get(1, 2, 3);
      loader.setEpoch(5);
      new Received(originals).add(loader.get(4));
      new Received(originals).add(held);
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void closing_closes_open_batches_and_closing_twice_does_nothing(boolean redirect) {
    AskedLoader loader = open(OPTIONS, redirect);
    Batch batch = loader.get(1, 2);
    loader.close();
    assertThatThrownBy(batch::size).isInstanceOf(IllegalStateException.class);
    batch.close();
    loader.close();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void a_handover_that_does_not_fit_is_refused_with_what_would_do(boolean redirect) {
    long asked = 1L << 50;
    LoaderOptions tooLarge = OPTIONS.withHandover(asked);
    assertFails(
        Kind.ENVIRONMENT,
        () -> open(tooLarge, redirect),
        "a handover of " + asked + " bytes",
        "handover=",
        "to at most ");
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void a_closed_loader_says_so(boolean redirect) {
    AskedLoader loader = open(OPTIONS, redirect);
    loader.close();
    assertFails(Kind.WRONG_CALL, () -> loader.get(3), "closed");
  }

  private static AskedLoader open(LoaderOptions options, boolean redirect) {
    return redirect
        ? AskedLoader.redirected(originals.path(), options)
        : AskedLoader.exact(originals.path(), options);
  }

  @Test
  void closing_while_threads_ask_refuses_them() throws InterruptedException {
    Random random = new Random(Seeds.of("closing_while_threads_ask_refuses_them"));
    for (int i = 0; i < Thorough.count(20, 500); i++) {
      AskedLoader loader = open(OPTIONS, i % 2 == 0);
      List<Throwable> thrown = Collections.synchronizedList(new ArrayList<>());
      List<Thread> askers = new ArrayList<>();
      for (int asker = 0; asker < 3; asker++) {
        int first = asker;
        askers.add(
            Thread.ofPlatform()
                .uncaughtExceptionHandler((_, failure) -> thrown.add(failure))
                .start(
                    () -> {
                      for (long index = first; index < SAMPLES; index += 3) {
                        try (Batch batch = loader.get(index)) {
                          assertThat(batch.bytes(0)).hasSize((int) batch.length(0));
                        }
                      }
                    }));
      }
      TimeUnit.MICROSECONDS.sleep(random.nextInt(5000));
      loader.close();
      for (Thread asker : askers) {
        asker.join();
      }
      assertThat(thrown)
          .allMatch(
              failure ->
                  failure instanceof IllegalStateException
                      || (failure instanceof Failure told && told.kind() == Kind.WRONG_CALL));
    }
  }
}
