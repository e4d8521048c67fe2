"""`kill -9` of a worker, of a DataLoader and of a Loader: an error at once, or its work is done again."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kills_program
import pytest
import torch
from conftest import PackedFiles
from kills import (
    BATCH,
    BATCHES,
    CONTEXTS,
    MOMENTS,
    READING,
    THOROUGH,
    Undisturbed,
    first_of_each,
    loader_reader,
    read,
)
from processes import (
    apart,
    assert_no_node,
    eventually,
    handover_bytes,
    the_node,
)
from torch.utils.data import DataLoader

import gristway
from gristway.torch import MapDataset, StreamDataset

pytest_plugins = ["nothing_left"]

pytestmark = pytest.mark.usefixtures("no_shared_memory_left", "the_end_of_a_worker_is_no_news")

# ---- a worker of a DataLoader -------------------------------------------------------------------


def _data_loader(kind: str, path: Path) -> DataLoader[Any]:
    options: dict[str, Any] = {"num_workers": 2, "persistent_workers": True}
    if kind == "StreamDataset":
        return DataLoader(StreamDataset(path, BATCH, **READING), batch_size=None, **options)
    return _map_loader(MapDataset(path, redirect="redirect" in kind, **READING), **options)


def _map_loader(dataset: MapDataset, **options: Any) -> DataLoader[Any]:
    generator = torch.Generator().manual_seed(7)
    return DataLoader(
        dataset, BATCH, shuffle=True, generator=generator, collate_fn=first_of_each, **options
    )


def _killing_raises(loader: DataLoader[Any], batches: Iterator[Any], victims: list[int]) -> str:
    """Kills workers; what torch says then. To be done apart: it may say so at any later moment."""
    done: Any = batches._workers_done_event  # type: ignore[attr-defined]
    try:
        # Every worker asks torch's event now and then, under a lock that its processes share. One
        # that is killed while it holds it takes it along, and torch waits for it forever: no
        # matter of ours, so none of them holds it now.
        with done._cond:
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


@pytest.mark.parametrize(
    ("kind", "moment"),
    [
        (kind, moment)
        for kind in ("StreamDataset", "MapDataset exact", "MapDataset redirect")
        for moment in MOMENTS
        if THOROUGH or moment == "mid-epoch" or kind == "MapDataset redirect"
    ],
)
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
    reader = loader_reader(packed.path, 2, multiprocessing_context=context)
    killed = []

    def strike(epoch: int, step: int) -> None:
        if (epoch, step) == (0, MOMENTS[moment]):
            killed.append(_workers()[-1])
            os.kill(killed[0], signal.SIGKILL)

    assert read(reader, packed, 2, strike) == undisturbed.of("Loader, 2 workers")
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
