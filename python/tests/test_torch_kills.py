"""`kill -9` of a worker, a rank or the node, before the first batch, in an epoch and at its end.

Whatever is killed, nobody hangs, nothing is left, and what is delivered is what would have been
delivered. Each test's tear-down adds that no process of it is alive, and that the runtime folder holds
nothing but sockets.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kills_program
import pytest
import torch
from conftest import PackedFiles
from processes import (
    SOON_SECONDS,
    apart,
    assert_no_node,
    command,
    eventually,
    handover_bytes,
    kill,
    memory_files,
    nodes,
    the_node,
)
from torch.utils.data import DataLoader, get_worker_info

import gristway
from gristway import java
from gristway.torch import MapDataset, StreamDataset

PROGRAM = Path(__file__).with_name("kills_program.py")

SAMPLES = 400
BATCH = 8
BATCHES = SAMPLES // BATCH
# Small enough for many reads an epoch: there is always some reading to be interrupted.
READING: dict[str, Any] = {"seed": 3, "memory": "128KiB", "extent": "8KiB"}

# How many batches of the first epoch are received when somebody dies.
MOMENTS = {"before the first batch": 0, "mid-epoch": 21, "epoch end": BATCHES}

THOROUGH = os.environ.get("GRISTWAY_THOROUGH", "") not in ("", "0")
CONTEXTS = (None, "spawn", "forkserver")

Epochs = list[list[list[str]]]  # keys, by epoch and batch


@pytest.fixture(scope="module")
def packed(dataset: Callable[..., PackedFiles]) -> PackedFiles:
    return dataset(samples=SAMPLES, size=(500, 1500))


@pytest.fixture(autouse=True)
def no_shared_memory_left() -> Iterator[None]:
    before = _shared_memory()
    yield
    # What others on this machine use there, at the same time, is theirs.
    eventually(
        lambda: not any(_is_left(name) for name in _shared_memory() - before),
        "/dev/shm is as it was",
    )


@pytest.fixture(autouse=True)
def the_end_of_a_worker_is_no_news(
    no_shared_memory_left: None, runtime_dir: Path
) -> Iterator[None]:
    """Once a worker of a DataLoader has died, torch raises whenever a child ends: also while what a
    failed test has left is killed."""
    if _torch_handler:
        signal.signal(signal.SIGCHLD, _torch_handler.pop())
    yield
    _torch_handler.append(signal.signal(signal.SIGCHLD, signal.SIG_DFL))


_torch_handler: list[Any] = []


def _shared_memory() -> set[str]:
    """What Gristway, torch and Python name in /dev/shm."""
    ours = ("gristway", "torch_", "sem.", "psm_", "pymp-")
    return {name for name in os.listdir("/dev/shm") if name.startswith(ours)}


def _is_left(name: str) -> bool:
    """True if no process uses it."""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            if f"/dev/shm/{name}\n" in maps.read_text():
                return False
    return os.path.exists(f"/dev/shm/{name}")


@pytest.fixture
def warnings(tmp_path: Path) -> Iterator[Callable[[str], int]]:
    """Returns a function that counts the warnings with a text in them, of this process and of all
    that it has forked."""
    file = tmp_path / "warnings"
    handler = logging.FileHandler(file)
    logger = logging.getLogger("gristway")
    logger.addHandler(handler)
    yield lambda text: sum(text in line for line in file.read_text().splitlines())
    logger.removeHandler(handler)
    handler.close()


# ---- who reads ----------------------------------------------------------------------------------


class Reader:
    """Something that gives the batches of an epoch, each as a list of the samples' bytes."""

    def __init__(self, begin: Callable[[int], Iterator[list[bytes]]], close: Callable[[], None]):
        self.begin = begin
        self.close = close


def _loader(path: Path, num_workers: int, **options: Any) -> Reader:
    loader = gristway.Loader(
        path,
        BATCH,
        transform=kills_program.content,
        collate_fn=kills_program.as_they_are,
        num_workers=num_workers,
        **READING,
        **options,
    )
    return Reader(lambda epoch: iter(loader), loader.close)


def _stream(path: Path, workers: int, **options: Any) -> Reader:
    dataset = StreamDataset(path, BATCH, **READING)
    batches = DataLoader(dataset, batch_size=None, num_workers=workers, **options)
    return Reader(lambda epoch: (data for data, _ in iter(batches)), lambda: None)


def _first(items: list[tuple[bytes, int]]) -> list[bytes]:
    return [data for data, _ in items]


def _map(path: Path, workers: int, redirect: bool) -> Reader:
    dataset = MapDataset(path, redirect=redirect, **READING)
    batches = DataLoader(
        dataset,
        BATCH,
        shuffle=True,
        generator=torch.Generator().manual_seed(7),
        collate_fn=_first,
        num_workers=workers,
    )

    def begin(epoch: int) -> Iterator[list[bytes]]:
        dataset.set_epoch(epoch)
        return iter(batches)

    return Reader(begin, lambda: None)


READERS: dict[str, Callable[[Path], Reader]] = {
    "Loader, 0 workers": lambda path: _loader(path, 0),
    "Loader, 2 workers": lambda path: _loader(path, 2),
    "StreamDataset, 0 workers": lambda path: _stream(path, 0),
    "StreamDataset, 2 workers": lambda path: _stream(path, 2),
    "MapDataset exact, 0 workers": lambda path: _map(path, 0, False),
    "MapDataset exact, 2 workers": lambda path: _map(path, 2, False),
    "MapDataset redirect, 0 workers": lambda path: _map(path, 0, True),
    "MapDataset redirect, 2 workers": lambda path: _map(path, 2, True),
}
if THOROUGH:
    READERS |= {
        "Loader, 2 threads": lambda path: _loader(path, 2, workers="threads"),
        "Loader, 2 spawned workers": lambda path: _loader(path, 2, multiprocessing_context="spawn"),
        "StreamDataset, 3 persistent workers": lambda path: _stream(
            path, 3, persistent_workers=True
        ),
    }


def _read(
    reader: Reader, packed: PackedFiles, epochs: int, strike: Callable[[int, int], None]
) -> Epochs:
    """Reads some epochs. `strike` is told epoch and step after every batch, and before the first."""
    order: Epochs = []
    for epoch in range(epochs):
        batches = reader.begin(epoch)
        order.append([])
        strike(epoch, 0)
        for data in batches:
            order[-1].append([packed.key(each) for each in data])
            del data
            strike(epoch, len(order[-1]))
    return order


def _no_strike(epoch: int, step: int) -> None:
    pass


class Undisturbed:
    """What readers deliver when nobody dies; each kind of order is read once."""

    def __init__(self, packed: PackedFiles) -> None:
        self._packed = packed
        self._orders: dict[str, Epochs] = {}

    def of(self, reader: str) -> Epochs:
        # By promise the order is the same for all numbers of workers, and for a StreamDataset.
        kind = reader.split(",")[0].replace("Loader", "StreamDataset")
        if kind not in self._orders:
            order = _read(
                READERS[f"{kind}, 0 workers"](self._packed.path), self._packed, 2, _no_strike
            )
            for epoch in order:
                assert sorted(key for batch in epoch for key in batch) == list(self._packed.keys)
            self._orders[kind] = order
        return self._orders[kind]


@pytest.fixture(scope="module")
def undisturbed(packed: PackedFiles) -> Undisturbed:
    return Undisturbed(packed)


# ---- the node -----------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("kind", READERS)
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

    assert _read(reader, packed, 2, strike) == expected
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
    expected = _read(_stream(few.path, 0), few, 1, _no_strike)[0]
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
    reader = _loader(packed.path, num_workers, prefetch_factor=1)
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
    reader = _loader(packed.path, 0)

    def strike(epoch: int, step: int) -> None:
        if step % 12 == 5:
            kill(the_node(runtime_dir))

    expected = undisturbed.of("Loader, 0 workers")
    assert _read(reader, packed, 1, strike) == expected[:1]
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
        assert _read(reader, packed, 2, lambda epoch, step: time.sleep(0.005)) == expected
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


# ---- a worker of a DataLoader -------------------------------------------------------------------


def _data_loader(kind: str, path: Path) -> DataLoader[Any]:
    options: dict[str, Any] = {"num_workers": 2, "persistent_workers": True}
    if kind == "StreamDataset":
        return DataLoader(StreamDataset(path, BATCH, **READING), batch_size=None, **options)
    return _map_loader(MapDataset(path, redirect="redirect" in kind, **READING), **options)


def _map_loader(dataset: MapDataset, **options: Any) -> DataLoader[Any]:
    generator = torch.Generator().manual_seed(7)
    return DataLoader(
        dataset, BATCH, shuffle=True, generator=generator, collate_fn=_first, **options
    )


def _killing_raises(loader: DataLoader[Any], batches: Iterator[Any], victims: list[int]) -> str:
    """Kills workers; what torch says then. To be done apart: it may say so at any later moment."""
    try:
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
        for _ in batches:
            pass
        for _ in loader:
            pass
    except (RuntimeError, OSError, EOFError) as raised:
        # Or it is raised again whenever another child of this process ends.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # For a moment torch still thinks that it lives, and cannot fetch what it has sent.
        return str(raised) if isinstance(raised, RuntimeError) else "cannot fetch"
    return ""


def _workers() -> list[int]:
    """The processes that multiprocessing has started from this one."""
    return sorted(child.pid or 0 for child in multiprocessing.active_children())


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("kind", ["StreamDataset", "MapDataset exact", "MapDataset redirect"])
@pytest.mark.limit(30)
def test_when_a_worker_of_a_dataloader_is_killed_torch_raises_at_once(
    kind: str, moment: str, packed: PackedFiles, undisturbed: Undisturbed, runtime_dir: Path
) -> None:
    expected = undisturbed.of(kind)

    def train() -> tuple[str, float, list[Any]]:
        loader = _data_loader(kind, packed.path)
        dataset: Any = loader.dataset
        batches = iter(loader)
        for _ in range(MOMENTS[moment]):
            next(batches)
        begin = time.monotonic()
        said = _killing_raises(loader, batches, _workers()[-1:])
        took = time.monotonic() - begin
        del batches, loader
        # The node has noticed, and the dataset is as good as new.
        dataset.set_epoch(0)
        if isinstance(dataset, MapDataset):
            return said, took, list(_map_loader(dataset))
        return said, took, [data for data, _ in DataLoader(dataset, batch_size=None)]

    said, took, again = apart(train)
    assert re.match("DataLoader worker .* (is killed by signal|exited unexp)|cannot fetch", said)
    assert took < 10
    assert [[packed.key(each) for each in batch] for batch in again] == expected[0]
    assert_no_node(runtime_dir)


def test_what_killed_workers_of_dataloaders_had_is_given_back(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    def train() -> list[int]:
        dataset = StreamDataset(packed.path, BATCH, **READING)
        node = the_node(runtime_dir)
        alone = _sockets(node)
        used = []
        for _ in range(4):
            loader = DataLoader(dataset, batch_size=None, num_workers=2)
            batches = iter(loader)
            next(batches)
            _killing_raises(loader, batches, _workers())
            del batches, loader
            eventually(lambda: _sockets(node) == alone, "only this process is connected")
            used.append(handover_bytes(node))
        return used

    used = apart(train)
    assert 0 < used[3] <= 1.5 * used[0]


def _sockets(node: int) -> int:
    """How many sockets a node has open; one of them for each client."""
    links = [_link(f"/proc/{node}/fd/{entry}") for entry in os.listdir(f"/proc/{node}/fd")]
    return sum(link.startswith("socket:") for link in links)


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


# ---- a worker of a Loader -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("context", "moment"),
    [
        (context, moment)
        for context in CONTEXTS
        for moment in MOMENTS
        if THOROUGH or context is None or moment == "mid-epoch"
    ],
)
@pytest.mark.limit(60)
def test_a_worker_of_a_loader_that_is_killed_is_replaced_and_its_work_done_again(
    context: str | None,
    moment: str,
    packed: PackedFiles,
    undisturbed: Undisturbed,
    runtime_dir: Path,
    warnings: Callable[[str], int],
) -> None:
    reader = _loader(packed.path, 2, multiprocessing_context=context)
    killed = []

    def strike(epoch: int, step: int) -> None:
        if (epoch, step) == (0, MOMENTS[moment]):
            killed.append(_workers()[-1])
            os.kill(killed[0], signal.SIGKILL)

    assert _read(reader, packed, 2, strike) == undisturbed.of("Loader, 2 workers")
    assert warnings(f"worker process {killed[0]} has died by SIGKILL") == 1
    assert warnings("it is replaced") == 1
    assert len(multiprocessing.active_children()) == 2
    reader.close()
    assert not multiprocessing.active_children()


def _suicide(sample: gristway.Sample) -> int:
    if sample.id == 77:
        os.kill(os.getpid(), signal.SIGKILL)
    return sample.id


def test_a_transform_that_kills_its_worker_again_and_again_is_an_error(
    packed: PackedFiles, undisturbed: Undisturbed, runtime_dir: Path
) -> None:
    with gristway.Loader(
        packed.path, BATCH, transform=_suicide, num_workers=2, **READING
    ) as loader:
        begin = time.monotonic()
        batches = 0
        with pytest.raises(gristway.Error, match="has died by SIGKILL .* others before it"):
            for _ in loader:
                batches += 1
        assert time.monotonic() - begin < 20
        assert batches < BATCHES
        # It goes on with the next epoch, if that is wanted, and ends in the same way.
        with pytest.raises(gristway.Error, match="has died"):
            list(loader)
    assert not multiprocessing.active_children()


if THOROUGH:

    @pytest.mark.parametrize("context", CONTEXTS, ids=str)
    def test_a_worker_of_a_loader_may_be_idle_for_long(
        context: str | None,
        packed: PackedFiles,
        runtime_dir: Path,
        warnings: Callable[[str], int],
    ) -> None:
        # Idle workers look every few seconds whether their trainer lives.
        with gristway.Loader(
            packed.path,
            BATCH,
            transform=kills_program.number,
            num_workers=1,
            multiprocessing_context=context,
            **READING,
        ) as loader:
            batches = iter(loader)
            next(batches)
            (worker,) = multiprocessing.active_children()
            time.sleep(6)
            assert len(list(batches)) == BATCHES - 1
            assert multiprocessing.active_children() == [worker]
        assert warnings("has died") == 0


# ---- a rank -------------------------------------------------------------------------------------


class Trainer:
    """A training process that does as it is told; see kills_program.py."""

    def __init__(self, packed: PackedFiles, job: dict[str, str], **options: object) -> None:
        given = {"batch_size": BATCH, **READING, **options}
        words = [f"{name}={value}" for name, value in given.items()]
        self.process = subprocess.Popen(
            [sys.executable, PROGRAM, packed.path, *words],
            env={**os.environ, **job},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begun(self) -> Trainer:
        """Waits until it has begun an epoch."""
        assert self._line() == "begun"
        return self

    def _line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def take(self, count: int) -> list[list[int]]:
        """Some batches."""
        assert self.process.stdin
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return [json.loads(self._line()) for _ in range(count)]

    def rest(self) -> list[list[int]]:
        """What is left of the epoch; then it ends."""
        said, _ = self.process.communicate()
        *batches, over = said.splitlines()
        assert over == "over" and self.process.returncode == 0
        return [json.loads(batch) for batch in batches]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def _job(rank: int, of: int, name: str = "job") -> dict[str, str]:
    """What torchrun sets."""
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(of),
        "LOCAL_WORLD_SIZE": str(of),
        "TORCHELASTIC_RUN_ID": name,
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": "29500",
    }


@pytest.fixture(scope="module")
def ranks_undisturbed(packed: PackedFiles) -> list[list[list[int]]]:
    """What each of two ranks receives in an epoch when nobody dies."""
    trainers = [Trainer(packed, _job(rank, 2)) for rank in range(2)]
    orders = [trainer.begun().rest() for trainer in trainers]
    assert sorted(number for order in orders for batch in order for number in batch) == list(
        range(SAMPLES)
    )
    return orders


@pytest.mark.parametrize("moment", MOMENTS)
def test_when_a_rank_is_killed_the_other_goes_on_and_the_node_ends_with_the_last(
    moment: str,
    packed: PackedFiles,
    ranks_undisturbed: list[list[list[int]]],
    runtime_dir: Path,
) -> None:
    survivor, victim = (Trainer(packed, _job(rank, 2)) for rank in range(2))
    survivor.begun()
    victim.begun()
    node = the_node(runtime_dir)
    received = survivor.take(7)
    assert victim.take(MOMENTS[moment] // 2) == ranks_undisturbed[1][: MOMENTS[moment] // 2]
    victim.kill()
    received += survivor.take(7)
    assert the_node(runtime_dir) == node
    assert received + survivor.rest() == ranks_undisturbed[0]
    assert_no_node(runtime_dir)
    assert not list(runtime_dir.iterdir())


def test_a_rank_that_is_killed_and_started_again_gets_what_it_had_from_the_same_node(
    packed: PackedFiles, ranks_undisturbed: list[list[list[int]]], runtime_dir: Path
) -> None:
    other, victim = (Trainer(packed, _job(rank, 2)).begun() for rank in range(2))
    node = the_node(runtime_dir)
    victim.take(12)
    victim.kill()
    again = Trainer(packed, _job(1, 2)).begun()
    assert the_node(runtime_dir) == node
    assert again.rest() == ranks_undisturbed[1]
    assert other.rest() == ranks_undisturbed[0]
    assert_no_node(runtime_dir)


def test_the_memory_of_a_rank_that_is_killed_is_given_back(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    survivor = Trainer(packed, _job(0, 2)).begun()
    survivor.take(3)
    node = the_node(runtime_dir)
    alone = memory_files(node)
    victim = Trainer(packed, _job(1, 2)).begun()
    victim.take(3)
    assert len(memory_files(node)) > len(alone)
    victim.kill()
    eventually(lambda: memory_files(node) == alone, "the node has what the survivor needs")
    assert len(survivor.rest()) == BATCHES // 2 - 3


@pytest.mark.parametrize(
    ("options", "moment"),
    [
        (options, moment)
        for options in (
            {"num_workers": 0},
            {"num_workers": 2},
            {"num_workers": 2, "multiprocessing_context": "spawn"},
            {"num_workers": 2, "multiprocessing_context": "forkserver"},
            {"num_workers": 2, "module": "torch"},
        )
        for moment in MOMENTS
        if THOROUGH or len(options) == 1 or moment == "mid-epoch"
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else value,
)
def test_when_the_only_rank_is_killed_its_workers_and_the_node_end_by_themselves(
    options: dict[str, object], moment: str, packed: PackedFiles, runtime_dir: Path
) -> None:
    trainer = Trainer(packed, {}, **options).begun()
    trainer.take(MOMENTS[moment])
    node = the_node(runtime_dir)
    before = _processes_of(runtime_dir)
    assert {node, trainer.process.pid} < before or options["num_workers"] == 0
    trainer.kill()
    # Workers of a DataLoader look every five seconds whether it lives.
    patience = SOON_SECONDS * (2 if "module" in options else 1)
    eventually(lambda: not _processes_of(runtime_dir), "all have ended", patience)
    assert not list(runtime_dir.iterdir())


def _processes_of(folder: Path) -> set[int]:
    """The processes, other than this one, that were started with a runtime folder and are alive."""
    found = set()
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdigit() and command(int(entry)):
                environment = Path("/proc", entry, "environ").read_bytes()
                if f"GRISTWAY_RUNTIME_DIR={folder}".encode() in environment.split(b"\0"):
                    found.add(int(entry))
    return found


def test_when_the_node_of_two_ranks_is_killed_both_go_on_with_one_new_node(
    packed: PackedFiles, ranks_undisturbed: list[list[list[int]]], runtime_dir: Path
) -> None:
    trainers = [Trainer(packed, _job(rank, 2)) for rank in range(2)]
    received = [trainer.begun().take(9) for trainer in trainers]
    killed = the_node(runtime_dir)
    kill(killed)
    for trainer in trainers:
        assert trainer.process.stdin
        trainer.process.stdin.write("9\n")  # both at once
        trainer.process.stdin.flush()
    for trainer, batches in zip(trainers, received):
        batches += [json.loads(trainer._line()) for _ in range(9)]
    assert the_node(runtime_dir) != killed
    assert [had + trainer.rest() for trainer, had in zip(trainers, received)] == ranks_undisturbed
    assert_no_node(runtime_dir)


@pytest.fixture
def slow_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has Java take a second longer to start."""
    home = tmp_path / "slow-java"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text('JAVA_VERSION="25"\n')
    program = home / "bin" / "java"
    program.write_text(f'#!/bin/sh\nsleep 1\nexec "{java.find_java()}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("GRISTWAY_JAVA_HOME", str(home))


def test_a_node_that_is_killed_while_it_starts_is_started_again(
    packed: PackedFiles, runtime_dir: Path, slow_java: None
) -> None:
    trainer = Trainer(packed, {})
    kill(eventually(lambda: nodes(runtime_dir), "a node is starting")[0])
    assert len(trainer.begun().rest()) == BATCHES
    assert_no_node(runtime_dir)


def test_a_node_that_is_just_ending_is_not_mistaken_for_a_loss(
    packed: PackedFiles, runtime_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # For half a second it closes every connection, as one does whose last client has just gone.
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text('JAVA_VERSION="25"\n')
    program = home / "bin" / "java"
    program.write_text(
        f"""#!{sys.executable}
import os, socket, sys, time
if os.path.exists({str(tmp_path / "ended")!r}):
    os.execv({str(java.find_java())!r}, sys.argv)
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[-1])
server.listen()
print("ready", flush=True)
end = time.monotonic() + 0.5
server.settimeout(0.5)
while time.monotonic() < end:
    try:
        server.accept()[0].close()
    except TimeoutError:
        pass
open({str(tmp_path / "ended")!r}, "w").close()
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("GRISTWAY_JAVA_HOME", str(home))
    with gristway.Loader(packed.path, BATCH, **READING) as loader:
        assert sum(1 for _ in loader) == BATCHES


def test_a_node_whose_rank_was_killed_while_it_started_does_not_stay(
    packed: PackedFiles, runtime_dir: Path, slow_java: None
) -> None:
    trainer = Trainer(packed, {})
    eventually(lambda: nodes(runtime_dir), "a node is starting")
    trainer.kill()
    time.sleep(1)
    assert_no_node(runtime_dir)


def test_when_a_rank_is_killed_while_it_starts_the_node_the_other_gets_one_all_the_same(
    packed: PackedFiles,
    ranks_undisturbed: list[list[list[int]]],
    runtime_dir: Path,
    slow_java: None,
) -> None:
    victim = Trainer(packed, _job(0, 2))
    eventually(lambda: nodes(runtime_dir), "a node is starting")
    survivor = Trainer(packed, _job(1, 2))
    time.sleep(0.4)  # it waits for that node
    victim.kill()
    assert survivor.begun().rest() == ranks_undisturbed[1]
    assert_no_node(runtime_dir)


def test_a_process_that_is_forked_while_a_node_starts_keeps_nobody_from_starting_another(
    packed: PackedFiles, runtime_dir: Path, slow_java: None
) -> None:
    opened: list[gristway.Loader] = []
    opener = threading.Thread(
        target=lambda: opened.append(gristway.Loader(packed.path, BATCH, **READING))
    )
    opener.start()
    eventually(lambda: nodes(runtime_dir), "a node is starting")
    time.sleep(0.3)  # before that, subprocess itself would wait for whatever is forked
    sleeper = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    sleeper.start()
    opener.join()
    begin = time.monotonic()
    with gristway.Loader(packed.path, 2 * BATCH, **READING) as other:
        assert len(other) == BATCHES // 2
    assert time.monotonic() - begin < 20
    opened[0].close()
    sleeper.kill()
    sleeper.join()
