"""What Loader raises: what transforms raise, and what is called wrongly. Runs with torch and without."""

from __future__ import annotations

import contextlib
import copy
import multiprocessing
import os
import pickle
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import transforms
from conftest import PackedFiles
from processes import command
from reading import flat, keyed

import gristway
from gristway import Loader, WrongCallError
from gristway import worker_processes as pools

if TYPE_CHECKING:
    from served import Served

pytest_plugins = ["served"]


# Exceptions


@pytest.mark.parametrize(
    "workers",
    [
        {},
        {"num_workers": 3, "workers": "threads"},
        {"num_workers": 3, "multiprocessing_context": "fork"},
        {"num_workers": 1, "multiprocessing_context": "spawn"},
    ],
    ids=["trainer", "threads", "fork", "spawn"],
)
def test_an_exception_of_a_transform_comes_out_as_itself(
    small: PackedFiles, node: Served, workers: dict[str, Any]
) -> None:
    with keyed(small, node.name) as loader:
        expected = list(loader)
    bad = expected[6][8]
    refuses = transforms.RefuseKey(bad)
    with keyed(small, node.idle(), transform=refuses, **workers) as loader:
        received = []
        with pytest.raises(transforms.Refused) as caught:
            for batch in loader:
                received.append(batch)
        assert received == expected[:6]
        assert caught.value.number == 17
        notes = "\n".join(getattr(caught.value, "__notes__", [repr(caught.value.__cause__)]))
        assert f"'{bad}'" in notes
        if "multiprocessing_context" in workers:
            assert "in __call__" in notes  # where it was raised, in the worker
        # Whoever goes on gets what comes next, without what was ahead of the bad batch.
        assert sorted(flat(batch for batch in _past(loader, bad))) == sorted(small.keys)


def _past(loader: Loader, bad: str) -> Any:
    loader._transform.key = ""  # type: ignore[union-attr]
    loader._end_workers()
    return loader


@pytest.mark.limit(60)
def test_a_worker_that_cannot_be_replaced_is_an_error(
    small: PackedFiles, node: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with keyed(small, node.name, num_workers=2, multiprocessing_context="fork") as loader:
        batches = iter(loader)
        next(batches)
        pool = loader._pool
        assert isinstance(pool, pools.InProcesses)

        def refuses(worker: Any) -> None:
            raise BlockingIOError("no more processes")

        monkeypatch.setattr(pools._Worker, "_start", refuses)
        for worker in pool._workers:
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(BlockingIOError, match="no more processes"):
            list(batches)


@pytest.mark.limit(60)
def test_workers_that_cannot_all_be_started_leave_none(
    small: PackedFiles, node: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = pools._Worker._start
    started: list[int] = []

    def refuses_the_third(worker: Any) -> None:
        if len(started) == 2:
            raise BlockingIOError("no more processes")
        start(worker)
        started.append(worker.pid)

    monkeypatch.setattr(pools._Worker, "_start", refuses_the_third)
    with keyed(small, node.name, num_workers=3, multiprocessing_context="fork") as loader:
        with pytest.raises(BlockingIOError, match="no more processes"):
            next(iter(loader))
        assert len(started) == 2
        assert not any(command(pid) for pid in started)


@pytest.mark.limit(60)
def test_an_iteration_that_another_thread_ends_is_over(small: PackedFiles, node: Served) -> None:
    gate = threading.Event()

    def waits(sample: gristway.Sample) -> str:
        gate.wait(30)
        return sample.key

    loader = keyed(small, node.name, transform=waits, num_workers=1, workers="threads")
    batches = iter(loader)
    ended = threading.Event()

    def consume() -> None:
        with contextlib.suppress(gristway.Error):  # of the batch that it had, if it had one
            list(batches)
        ended.set()

    threading.Thread(target=consume, daemon=True).start()
    time.sleep(0.2)  # until it waits for the first batch
    loader.close()
    gate.set()
    assert ended.wait(30)


def test_an_exception_that_cannot_be_pickled_still_tells_what_and_where(
    small: PackedFiles, node: Served
) -> None:
    bad = small.keys[50]
    refuses = transforms.RefuseKey(bad, "Unpicklable")
    with keyed(small, node.name, transform=refuses, num_workers=2) as loader:
        with pytest.raises(RuntimeError, match="Unpicklable: this and that") as caught:
            list(loader)
        assert any(f"'{bad}'" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_stop_iteration_of_a_transform_does_not_end_the_epoch_as_if_it_were_complete(
    small: PackedFiles, node: Served, num_workers: int
) -> None:
    refuses = transforms.RefuseKey(small.keys[50], "StopIteration")
    with keyed(small, node.name, transform=refuses, num_workers=num_workers) as loader:
        with pytest.raises(RuntimeError):
            list(loader)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_an_exception_of_collate_fn_comes_out_as_itself(
    small: PackedFiles, node: Served, num_workers: int
) -> None:
    def refuse(samples: list[str]) -> None:
        raise transforms.Refused("cannot", len(samples))

    with keyed(small, node.name, collate_fn=refuse, num_workers=num_workers) as loader:
        with pytest.raises(transforms.Refused) as caught:
            next(iter(loader))
        assert caught.value.number == 10


def test_what_cannot_be_sent_from_a_worker_is_told(small: PackedFiles, node: Served) -> None:
    with keyed(
        small, node.name, transform=transforms.view, collate_fn=len, num_workers=1
    ) as loader:
        with pytest.raises(TypeError, match="memoryview"):
            next(iter(loader))


# Wrong calls


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 0}, "batch_size must be 1 "),
        ({"num_workers": -1}, "num_workers"),
        ({"batch_size": None}, "batch_size must be a whole number, not None"),
        ({"batch_size": "64"}, "batch_size must be a whole number, not '64'"),
        ({"batch_size": 8.0}, "batch_size must be a whole number, not 8.0"),
        ({"num_workers": None}, "num_workers must be a whole number, not None"),
        ({"prefetch_factor": "2"}, "prefetch_factor must be a whole number, not '2'"),
        ({"max_damage": None}, "max_damage is a share of the samples, .* not None"),
        ({"storage_timeout": None}, "storage_timeout must be .* not None"),
        ({"exchange": "x"}, "exchange is a share of the samples, .* not 'x'"),
        ({"window": "2"}, "window must be a whole number, not '2'"),
        ({"seed": 1 << 63}, "seed must be .* not 9223372036854775808"),
        ({"seed": 0.5}, "seed must be a whole number, not 0.5"),
        ({"rank": 0, "world_size": "2"}, "world_size must be a whole number, not '2'"),
        ({"rank": "0", "world_size": 2}, "rank must be a whole number, not '0'"),
        ({"multiprocessing_context": "thread"}, "multiprocessing_context must be one of"),
        ({"prefetch_factor": 0}, "prefetch_factor"),
        ({"workers": "fibers"}, "'processes' or 'threads'"),
        ({"collate_fn": transforms.as_list, "transform": None}, "needs a transform"),
        ({"memory": "a lot"}, "is not a size"),
        ({"memory": 0}, "is not a size"),
        ({"extent": "1000"}, "4 ?KiB|4096"),
        ({"policy": "guess"}, "guess"),
        ({"rank": 1}, "both rank and world_size"),
        ({"rank": 2, "world_size": 2}, "no rank 2 in a world of 2"),
        ({"node": "a/b"}, "a/b"),
    ],
    ids=lambda each: ",".join(each) if isinstance(each, dict) else "",
)
def test_wrong_arguments_are_refused(
    small: PackedFiles, runtime_dir: Path, arguments: dict[str, Any], message: str
) -> None:
    settings: dict[str, Any] = {"batch_size": 10, "transform": transforms.key, **arguments}
    with pytest.raises(WrongCallError, match=message) as caught:
        Loader(small.path, **settings)
    assert caught.value.kind == "wrong-call"
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


def test_a_loader_takes_what_a_data_loader_takes_for_its_workers(
    small: PackedFiles, node: Served
) -> None:
    context = multiprocessing.get_context("spawn")
    with keyed(
        small, node.name, num_workers=1, multiprocessing_context=context, prefetch_factor=None
    ) as loader:
        assert sorted(flat(loader)) == sorted(small.keys)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_loader_cannot_be_copied(
    small: PackedFiles, node: Served, copied: Callable[[Loader], Any]
) -> None:
    with keyed(small, node.name) as loader:
        with pytest.raises(WrongCallError, match="cannot be copied.*make it in each process"):
            copied(loader)
        assert sorted(flat(loader)) == sorted(small.keys)


def test_a_dataset_that_is_not_there_is_refused(tmp_path: Path, runtime_dir: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(WrongCallError, match=str(path)) as caught:
            Loader(path)
        assert "\n" not in str(caught.value)


def test_a_node_that_is_not_there_is_refused(small: PackedFiles, runtime_dir: Path) -> None:
    with pytest.raises(gristway.MachineError, match="gristway serve nobody"):
        Loader(small.path, node="nobody")


def test_a_path_may_have_spaces_and_other_letters(
    small: PackedFiles, node: Served, tmp_path: Path
) -> None:
    folder = tmp_path / "mön dataset=1"
    shutil.copytree(small.path, folder)
    with keyed(PackedFiles(folder, small.files, small.keys, (0, 0), 4), node.name) as loader:
        assert sorted(flat(loader)) == sorted(small.keys)
