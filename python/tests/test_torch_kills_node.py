"""`kill -9` of the node: the order goes on exactly where it was."""

from __future__ import annotations

import gc
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import kills_program
import pytest
from conftest import PackedFiles
from kills import (
    BATCH,
    BATCHES,
    MOMENTS,
    READERS,
    READING,
    THOROUGH,
    Epochs,
    Undisturbed,
    loader_reader,
    no_strike,
    read,
    stream_reader,
)
from processes import (
    assert_no_node,
    eventually,
    kill,
    nodes,
    the_node,
)
from torch.utils.data import DataLoader, get_worker_info

import gristway
from gristway.torch import StreamDataset

pytest_plugins = ["nothing_left"]

pytestmark = pytest.mark.usefixtures("no_shared_memory_left", "the_end_of_a_worker_is_no_news")


@pytest.mark.parametrize(
    ("kind", "moment"),
    [
        (kind, moment)
        for kind in READERS
        for moment in MOMENTS
        if THOROUGH or moment == "mid-epoch" or kind == "MapDataset redirect, 2 workers"
    ],
)
@pytest.mark.limit(30)
def test_when_the_node_is_killed_the_order_goes_on_exactly_where_it_was(
    kind: str,
    moment: str,
    packed: PackedFiles,
    undisturbed: Undisturbed,
    runtime_dir: Path,
    warnings: Callable[[str], int],
) -> None:
    expected = undisturbed.of(kind)
    reader = READERS[kind](packed.path)
    killed = []

    def strike(epoch: int, step: int) -> None:
        if (epoch, step) == (0, MOMENTS[moment]):
            killed.append(the_node(runtime_dir))
            kill(killed[0])

    assert read(reader, packed, 2, strike) == expected
    if "Loader" in kind or "0 workers" in kind:
        assert warnings("it is started again") == 1
    elif moment == "mid-epoch":
        # Each worker of a DataLoader that has lost it says so; new ones do not know that it died.
        assert warnings("it is started again") >= 1
    assert killed and killed[0] not in nodes(runtime_dir)
    reader.close()
    del reader
    gc.collect()  # a DataLoader whose workers persist refers to itself
    assert_no_node(runtime_dir)


@pytest.mark.limit(60)
def test_memory_of_a_killed_node_is_not_taken_for_that_of_the_next(
    packed: PackedFiles, undisturbed: Undisturbed, runtime_dir: Path
) -> None:
    expected = undisturbed.of("Loader, 0 workers")[0]
    for breaks in range(3):  # each has the node begin anew, as the one that is started again does
        with gristway.Loader(packed.path, BATCH, **READING) as loader:
            for _ in range(breaks):
                loader.set_epoch(0)
                next(iter(loader))
            loader.set_epoch(0)
            got = []
            for step, (data, _) in enumerate(loader):
                got.append([packed.key(bytes(each)) for each in data])
                if step == 5:
                    kill(the_node(runtime_dir))
            assert got == expected
        assert_no_node(runtime_dir)


class Straggler:
    """A transform that in the last worker of a DataLoader waits until a file is there."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __call__(self, sample: gristway.Sample) -> bytes:
        worker = get_worker_info()
        while worker and worker.id == worker.num_workers - 1 and not self._file.exists():
            time.sleep(0.01)
        self._file.with_name(f"seen-{sample.id}").touch()
        return bytes(sample.data)


@pytest.mark.limit(30)
def test_a_worker_that_is_far_behind_when_the_node_is_killed_gets_the_rest_from_the_new_one(
    dataset: Callable[..., PackedFiles], runtime_dir: Path, tmp_path: Path
) -> None:
    # The other worker has all that it needs, and will not ask for what is read in between.
    samples = 16 * BATCH
    few = dataset(samples=samples, size=(500, 1500))
    expected = read(stream_reader(few.path, 0), few, 1, no_strike)[0]
    assert_no_node(runtime_dir)
    gate = tmp_path / "gate"
    stream = StreamDataset(
        few.path,
        BATCH,
        transform=Straggler(gate),
        collate_fn=kills_program.as_they_are,
        **READING,
    )
    loader = DataLoader(stream, batch_size=None, num_workers=2, prefetch_factor=8)
    batches = iter(loader)
    eventually(
        lambda: len(list(tmp_path.glob("seen-*"))) == samples // 2, "the first worker is done", 20
    )
    kill(the_node(runtime_dir))
    gate.touch()
    assert [[few.key(data) for data in batch] for batch in batches] == expected


@pytest.mark.parametrize("num_workers", [0, 2])
def test_after_three_quick_deaths_of_the_node_there_is_an_error_that_says_so(
    num_workers: int, packed: PackedFiles, undisturbed: Undisturbed, runtime_dir: Path
) -> None:
    expected = undisturbed.of("Loader, 0 workers")
    reader = loader_reader(packed.path, num_workers, prefetch_factor=1)
    batches = reader.begin(0)
    received = []
    begin = time.monotonic()
    with pytest.raises(gristway.LostNodeError, match="has died 3 times") as raised:
        while True:
            for node in nodes(runtime_dir):
                kill(node)
            received.append([packed.key(data) for data in next(batches)])
    assert raised.value.kind == "lost-node"
    assert time.monotonic() - begin < 20
    assert 2 <= len(received) < BATCHES
    assert received == expected[0][: len(received)]
    reader.close()


def test_deaths_of_the_node_that_are_far_apart_never_become_an_error(
    packed: PackedFiles,
    undisturbed: Undisturbed,
    runtime_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gristway.node._QUICK_SECONDS", 0.0)
    reader = loader_reader(packed.path, 0)

    def strike(epoch: int, step: int) -> None:
        if step % 12 == 5:
            kill(the_node(runtime_dir))

    expected = undisturbed.of("Loader, 0 workers")
    assert read(reader, packed, 1, strike) == expected[:1]
    reader.close()


def test_a_death_that_several_calls_notice_counts_once(
    packed: PackedFiles, undisturbed: Undisturbed, runtime_dir: Path
) -> None:
    # Keys, states and counters are asked for beside the batches, over a connection of their own.
    with gristway.Loader(
        packed.path,
        BATCH,
        transform=kills_program.key_and_content,
        collate_fn=kills_program.as_they_are,
        **READING,
    ) as loader:
        keys = []
        for step, batch in enumerate(loader):
            keys.append([key for key, data in batch if packed.data(key) == data])
            loader.state_dict()
            if step in (10, 20):
                kill(the_node(runtime_dir))
    assert keys == undisturbed.of("Loader, 0 workers")[0]


def test_batches_that_a_dead_node_has_given_are_transformed_all_the_same(
    packed: PackedFiles, undisturbed: Undisturbed, runtime_dir: Path, tmp_path: Path
) -> None:
    # Its worker gets to the batches that are waiting only after the node is gone.
    gate = tmp_path / "gate"
    loader = gristway.Loader(
        packed.path,
        BATCH,
        transform=Gate(gate),
        collate_fn=kills_program.as_they_are,
        num_workers=1,
        prefetch_factor=4,
        **READING,
    )
    batches = iter(loader)
    eventually(gate.with_name("arrived").exists, "the first sample is in its transform")
    time.sleep(0.3)  # for the batches behind it to be taken from the node
    kill(the_node(runtime_dir))
    gate.touch()
    order = [[packed.key(data) for data in batch] for batch in batches]
    assert order == undisturbed.of("Loader, 0 workers")[0]
    loader.close()


class Gate:
    """A transform that waits until a file is there."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __call__(self, sample: gristway.Sample) -> bytes:
        self._file.with_name("arrived").touch()
        while not self._file.exists():
            time.sleep(0.01)
        return bytes(sample.data)


def test_views_outlive_the_node_that_they_came_from(
    packed: PackedFiles, undisturbed: Undisturbed, runtime_dir: Path
) -> None:
    with gristway.Loader(packed.path, BATCH, **READING) as loader:
        batches = iter(loader)
        views, _ = next(batches)
        kill(the_node(runtime_dir))
        received = [views, *(next(batches)[0] for _ in range(2))]
        assert_no_node_but_one(runtime_dir)
        keys = [[packed.key(view) for view in batch] for batch in received]
    assert keys == undisturbed.of("Loader, 0 workers")[0][:3]
    # And the loader.
    assert [packed.key(view) for view in views] == keys[0]


def assert_no_node_but_one(folder: Path) -> None:
    eventually(lambda: len(nodes(folder)) == 1, "there is one node")


def test_after_a_state_was_loaded_too_the_order_goes_on_where_it_was(
    packed: PackedFiles, undisturbed: Undisturbed, runtime_dir: Path
) -> None:
    with gristway.Loader(packed.path, BATCH, **READING) as loader:
        batches = iter(loader)
        for _ in range(15):
            next(batches)
        state = loader.state_dict()
    with gristway.Loader(packed.path, BATCH, **READING) as loader:
        loader.load_state_dict(state)
        order: Epochs = [[], []]
        for epoch in order:
            for data, _ in loader:
                epoch.append([packed.key(view) for view in data])
                del data
                if len(epoch) == 10:
                    kill(the_node(runtime_dir))
    expected = undisturbed.of("Loader, 0 workers")
    assert order == [expected[0][15:], expected[1]]


@pytest.mark.limit(900)
def test_at_random_moments_too_nothing_is_lost_or_repeated(
    packed: PackedFiles,
    undisturbed: Undisturbed,
    runtime_dir: Path,
) -> None:
    seed = int(os.environ.get("GRISTWAY_SEED", random.randrange(2**32)))
    print(f"seed {seed} (again: GRISTWAY_SEED={seed})")
    generator = random.Random(seed)
    for _ in range(60 if THOROUGH else 2):
        kind = generator.choice(list(READERS))
        delay = generator.random() * 0.6
        print(kind, delay)
        expected = undisturbed.of(kind)
        reader = READERS[kind](packed.path)
        killer = threading.Timer(delay, _kill_nodes, [runtime_dir])
        killer.start()
        assert read(reader, packed, 2, lambda epoch, step: time.sleep(0.005)) == expected
        killer.join()
        reader.close()
        del reader
        gc.collect()
        assert_no_node(runtime_dir)


def _kill_nodes(folder: Path) -> None:
    for node in nodes(folder):
        os.kill(node, signal.SIGKILL)


def test_the_socket_of_a_killed_node_is_taken_away_by_the_next(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    with gristway.Loader(packed.path, BATCH, **READING) as loader:
        batches = iter(loader)
        next(batches)
        kill(the_node(runtime_dir))
        left = list(runtime_dir.iterdir())
        assert [file.is_socket() for file in left] == [True]
        made = left[0].stat().st_ctime_ns
        assert sum(1 for _ in batches) == BATCHES - 1
        assert list(runtime_dir.iterdir()) == left
        assert left[0].stat().st_ctime_ns > made
    assert_no_node(runtime_dir)
    assert not list(runtime_dir.iterdir())
