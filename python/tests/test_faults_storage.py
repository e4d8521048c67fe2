"""A storage that fails: what passes is waited for, what stays ends the run with what to do."""

from __future__ import annotations

import errno
import gc
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import PackedFiles
from faults import keys, opened, raised
from faulty_mount import FaultyMount, mounted
from processes import eventually

import gristway

# Small enough that chunks are read again and again.
READING = {"memory": "128KiB", "extent": "8KiB"}


@pytest.fixture(scope="module")
def packed(dataset: Callable[..., PackedFiles]) -> PackedFiles:
    return dataset(samples=400, size=(500, 1500))


@pytest.fixture
def mount(packed: PackedFiles, tmp_path: Path) -> Iterator[FaultyMount]:
    with mounted(packed.path.parent, tmp_path / "mounted") as made:
        yield made


def test_errors_of_the_mount_that_pass_are_waited_for(
    packed: PackedFiles, mount: FaultyMount, runtime_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    numbers = itertools.cycle([errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN])
    ends = threading.Event()
    failed = []

    def outage(name: str, _offset: int, size: int) -> int:
        if ends.is_set() or not name.endswith(".gwc"):
            return size
        failed.append(name)
        return -next(numbers)

    with opened(mount.path / packed.path.name, **READING) as loader:
        batches = iter(loader)
        first = [packed.key(view) for view in next(batches)[0]]
        mount.fault = outage
        threading.Timer(2, ends.set).start()
        rest = [packed.key(view) for data, _ in batches for view in data]
        assert loader.stats()["node"]["damaged"] == 0
    assert failed and ends.is_set()
    assert sorted(first + rest) == list(packed.keys)
    told = [line for line in caplog.messages if "it is tried again, for up to 30 seconds" in line]
    assert len(told) == 1 and ".gwc" in told[0]


def test_an_error_that_stays_ends_the_run_with_what_to_do(
    packed: PackedFiles, mount: FaultyMount, runtime_dir: Path
) -> None:
    path = mount.path / packed.path.name
    # As with one bad sector: everything else can be read.
    mount.fault = lambda name, offset, size: (
        -errno.EIO if name.endswith("chunk-000002.gwc") and offset > 0 else size
    )
    start = time.monotonic()
    with opened(path, storage_timeout=1.5, **READING) as loader:
        raised(
            gristway.MachineError,
            lambda: list(loader),
            "chunk-000002.gwc: Input/output error",
            "tried again",
            f"gristway verify {path}",
        )
    assert time.monotonic() - start >= 1.5


@pytest.mark.torch
def test_an_error_that_stays_ends_a_request_by_index_too(
    packed: PackedFiles, mount: FaultyMount, runtime_dir: Path
) -> None:
    from gristway.torch import MapDataset

    dataset = MapDataset(mount.path / packed.path.name, storage_timeout=0.5)
    good = packed.key(dataset[7][0])
    mount.fault = lambda name, _, size: -errno.EIO if name.endswith(".gwc") else size
    raised(gristway.MachineError, lambda: [dataset[i] for i in range(400)], "gristway verify")
    mount.fault = lambda _name, _offset, size: size
    assert packed.key(dataset[7][0]) == good
    gc.collect()  # the error's traceback holds it


def test_closing_does_not_wait_for_further_tries(
    packed: PackedFiles, mount: FaultyMount, runtime_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    failed = []

    def outage(name: str, _offset: int, size: int) -> int:
        if not name.endswith(".gwc"):
            return size
        failed.append(name)
        return -errno.EIO

    mount.fault = outage
    with opened(mount.path / packed.path.name, storage_timeout=3600, **READING):
        eventually(lambda: len(failed) > 20, "reads are tried again")
        start = time.monotonic()
    assert time.monotonic() - start < 20
    # That the node ends too is seen to by the runtime folder.


@pytest.mark.parametrize("given", [5000, 1000])
def test_a_direct_read_that_gives_less_than_there_is_is_read_on(
    given: int, packed: PackedFiles, mount: FaultyMount, runtime_dir: Path
) -> None:
    shortened = []

    def short(name: str, _offset: int, size: int) -> int:
        if not name.endswith(".gwc"):
            return size
        shortened.append(name)
        return given

    mount.fault = short
    with opened(mount.path / packed.path.name, **READING) as loader:
        assert sorted(keys(packed, loader)) == list(packed.keys)
        stats = loader.stats()["node"]
        assert stats["damaged"] == 0
        # Nothing was taken for the end of the file, and read again sample by sample.
        assert stats["reread-bytes"] == 0
    assert shortened


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_damage": 1.5},
        {"max_damage": -0.1},
        {"storage_timeout": -1},
        {"max_damage": float("nan")},
    ],
)
def test_shares_and_times_that_cannot_be_are_wrong_calls(
    wrong: dict[str, float], packed: PackedFiles
) -> None:
    (name,) = wrong
    raised(gristway.WrongCallError, lambda: opened(packed.path, **wrong), name)
