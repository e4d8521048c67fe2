"""Loader: its order, epochs, workers and errors. Runs with torch and without."""

from __future__ import annotations

import gc
import itertools
import math
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import transforms
from conftest import PackedFiles
from processes import handover_bytes, memory_files, nodes
from reading import keys_of, order_of_read

import gristway
from gristway import Loader, WrongCallError
from gristway.source import Source

if TYPE_CHECKING:
    from served import Served

pytest_plugins = ["served"]

Datasets = Callable[..., PackedFiles]
Run = Callable[..., "subprocess.CompletedProcess[str]"]

# Little memory and small extents: so even a small dataset is read in many pieces, and mixed.
LITTLE: dict[str, Any] = {"memory": "64KiB", "extent": "4KiB"}


@pytest.fixture
def small(dataset: Datasets) -> PackedFiles:
    """103 samples of 4 classes: with batches of 10, the last one has 3."""
    return dataset(samples=103, size=(200, 2000), labels=4)


def flat(batches: Any) -> list[str]:
    return [each for batch in batches for each in batch]


def keyed(packed: PackedFiles, name: str, **more: Any) -> Loader:
    """A loader that gives keys."""
    settings: dict[str, Any] = {"batch_size": 10, "transform": transforms.key, **LITTLE, **more}
    return Loader(packed.path, node=name, **settings)


# What is given


def test_an_epoch_gives_every_sample_once_with_its_own_label(
    small: PackedFiles, node: Served
) -> None:
    with Loader(small.path, batch_size=10, node=node.name, **LITTLE) as loader:
        assert len(loader) == 11
        assert loader.dataset_size == 103
        batches = [([bytes(view) for view in data], list(labels)) for data, labels in loader]
        assert [len(data) for data, _ in batches] == [10] * 10 + [3]
        first = keys_of(small, batches)
        second = keys_of(small, loader)
        assert sorted(first) == sorted(second) == sorted(small.keys)
        assert first != second
        assert first != sorted(first)


def test_a_transform_sees_bytes_label_key_and_parts(small: PackedFiles, node: Served) -> None:
    with keyed(
        small, node.name, transform=transforms.everything, collate_fn=transforms.as_list
    ) as loader:
        samples = flat(loader)
    assert sorted(sample["id"] for sample in samples) == list(range(103))
    for sample in samples:
        key = sample["key"]
        content = (small.files / key).read_bytes()
        assert sample["data"] == content
        assert sample["parts"] == {"": content}
        assert sample["label"] == small.label(key)
        assert not sample["repeat"]
        assert not sample["damaged"]
    assert sorted(sample["key"] for sample in samples) == sorted(small.keys)


def test_without_labels_the_label_is_minus_one(dataset: Datasets, node: Served) -> None:
    packed = dataset(samples=23, size=(16, 40))
    with Loader(packed.path, node=node.name) as loader:
        ((data, labels),) = loader
        assert [int(label) for label in labels] == [-1] * 23
        assert sorted(map(packed.key, data)) == list(packed.keys)


# Order


@pytest.mark.parametrize("policy", ["redirect", "chunk-shuffle", "sample-order", "unbounded"])
def test_the_order_is_that_of_read(
    small: PackedFiles, node: Served, gristway_command: Run, policy: str
) -> None:
    expected = order_of_read(
        gristway_command,
        small.path,
        *("--policy", policy, "--batch-size", 10, "--seed", 5, "--epochs", 2),
        *("--memory", "50%" if policy == "redirect" else "256KiB", "--extent", "4KiB"),
    )
    with Loader(
        small.path,
        batch_size=10,
        seed=5,
        policy=policy,
        memory="50%" if policy == "redirect" else 256 << 10,
        extent=4096,
        node=node.name,
    ) as loader:
        assert keys_of(small, loader) == expected[0, 0]
        assert keys_of(small, loader) == expected[1, 0]


def test_the_order_of_ranks_is_that_of_read(
    small: PackedFiles, node: Served, gristway_command: Run
) -> None:
    options = ("--batch-size", 7, "--ranks", 3, "--memory", "192KiB", "--extent", "4KiB")
    expected = order_of_read(gristway_command, small.path, *options)
    for rank in range(3):
        # Of a world that is given by hand, each rank may be alone on its machine.
        with Loader(small.path, 7, rank=rank, world_size=3, node=node.idle(), **LITTLE) as loader:
            assert keys_of(small, loader) == expected[0, rank]


def test_the_seed_decides_the_order(small: PackedFiles, node: Served) -> None:
    orders = []
    for seed in (0, 1, 1, -1, 2**63 - 1):
        with keyed(small, node.idle(), seed=seed) as loader:
            orders.append(flat(loader))
    assert orders[1] == orders[2]
    assert len({tuple(order) for order in orders}) == 4


WORKERS: list[dict[str, Any]] = [
    {"num_workers": 2, "multiprocessing_context": "fork", "persistent_workers": False},
    {"num_workers": 3, "multiprocessing_context": "fork", "prefetch_factor": 4},
    {"num_workers": 1, "multiprocessing_context": "fork", "prefetch_factor": 1},
    {"num_workers": 12, "workers": "threads"},
    {"num_workers": 2, "workers": "threads", "persistent_workers": False},
    {"num_workers": 1, "multiprocessing_context": "spawn"},
    {"num_workers": 2, "multiprocessing_context": "forkserver"},
]


@pytest.mark.parametrize("workers", WORKERS, ids=lambda each: "-".join(map(str, each.values())))
def test_the_order_is_the_same_with_any_workers(
    small: PackedFiles, node: Served, workers: dict[str, Any]
) -> None:
    with keyed(small, node.name) as loader:
        expected = [list(loader), list(loader)]
    with keyed(small, node.idle(), transform=transforms.uneven, **workers) as loader:
        assert [list(loader), list(loader)] == expected


@pytest.mark.limit(900)
def test_the_order_is_the_same_with_all_workers(
    small: PackedFiles, node: Served, thorough: bool
) -> None:
    if not thorough:
        pytest.skip("all start methods with all worker counts: in the thorough run")
    with keyed(small, node.name) as loader:
        expected = [list(loader), list(loader)]
    for count, start, persists, ahead in itertools.product(
        (1, 3), ("fork", "spawn", "forkserver", "threads"), (False, True), (1, 3)
    ):
        how = {"workers": "threads"} if start == "threads" else {"multiprocessing_context": start}
        with keyed(
            small,
            node.idle(),
            num_workers=count,
            persistent_workers=persists,
            prefetch_factor=ahead,
            **how,
        ) as loader:
            assert [list(loader), list(loader)] == expected, (count, start, persists, ahead)


def test_a_batch_is_shared_by_all_workers(small: PackedFiles, node: Served) -> None:
    seen: dict[str, set[Any]] = {}
    for workers in ("processes", "threads"):
        with keyed(
            small,
            node.idle(),
            batch_size=60,
            num_workers=3,
            workers=workers,
            transform=transforms.process_and_thread,
            collate_fn=transforms.as_list,
        ) as loader:
            first = next(iter(loader))
        seen[workers] = {who for _, *who in map(tuple, first) for who in [tuple(who)]}
    assert len({pid for pid, _ in seen["processes"]}) == 3
    assert os.getpid() not in {pid for pid, _ in seen["processes"]}
    assert {pid for pid, _ in seen["threads"]} == {os.getpid()}
    assert "MainThread" not in {name for _, name in seen["threads"]}


# Epochs


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("persistent", [True, False])
def test_a_break_is_followed_by_the_next_epoch_complete(
    small: PackedFiles, node: Served, num_workers: int, persistent: bool
) -> None:
    with keyed(small, node.name) as loader:
        expected = [flat(loader) for _ in range(8)]
    with keyed(
        small, node.idle(), num_workers=num_workers, persistent_workers=persistent
    ) as loader:
        for epoch in range(7):
            assert loader.epoch == epoch
            for batch in loader:
                assert batch == expected[epoch][:10]
                break
        assert flat(loader) == expected[7]


@pytest.mark.parametrize("workers", ["processes", "threads"])
def test_breaks_use_up_no_memory_of_the_node(
    small: PackedFiles, node: Served, workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = Source.batch

    def late(*arguments: Any) -> Any:
        result = batch(*arguments)
        time.sleep(0.02)  # so that the break comes while a batch is on its way
        return result

    monkeypatch.setattr(Source, "batch", late)
    with keyed(
        small, node.name, num_workers=2, workers=workers, persistent_workers=False
    ) as loader:
        for _ in range(15):  # more than there are batches in memory
            next(iter(loader))
        gc.collect()
        time.sleep(0.1)
        assert len([file for file in memory_files(node.pid) if "handover" in file]) == 1
        assert sorted(flat(loader)) == sorted(small.keys)


def test_a_break_counts_no_memory_twice(small: PackedFiles, node: Served) -> None:
    with keyed(small, node.name) as loader:
        for _ in range(15):
            next(iter(loader))
        stats = loader.stats()["node"]
        assert stats["handover-bytes"] <= handover_bytes(node.pid)
        assert stats["resident-bytes"] <= 64 << 10
        assert stats["samples"] >= 150  # what was given is counted over all of them


def test_an_epoch_can_be_chosen(small: PackedFiles, node: Served) -> None:
    with keyed(small, node.name, num_workers=2) as loader:
        epochs = [flat(loader) for _ in range(3)]
        loader.set_epoch(1)
        assert loader.epoch == 1
        assert flat(loader) == epochs[1]
        assert flat(loader) == epochs[2]
        loader.set_epoch(0)
        assert flat(loader) == epochs[0]
        loader.set_epoch(1)
        next(iter(loader))
        loader.set_epoch(1)  # from its beginning
        assert flat(loader) == epochs[1]
        loader.set_epoch(1000)
        assert sorted(flat(loader)) == sorted(small.keys)
        with pytest.raises(WrongCallError, match="no epoch -1"):
            loader.set_epoch(-1)


def test_only_the_latest_iteration_goes_on(small: PackedFiles, node: Served) -> None:
    with keyed(small, node.name) as loader:
        first = iter(loader)
        next(first)
        second = iter(loader)
        assert len(flat(second)) == 103
        assert list(first) == []


def test_iterating_after_close_is_refused(small: PackedFiles, node: Served) -> None:
    loader = keyed(small, node.name)
    loader.close()
    loader.close()
    with pytest.raises(WrongCallError, match="closed"):
        iter(loader)


def test_a_loader_that_nobody_has_any_more_leaves_nothing(small: PackedFiles, node: Served) -> None:
    loader = keyed(small, node.name, num_workers=2)
    iterator = iter(loader)
    next(iterator)
    del loader
    assert len(flat(iterator)) == 93  # what is iterated over goes on
    del iterator
    node.idle()


# Sizes


@pytest.mark.parametrize("num_workers", [0, 5])
def test_a_dataset_smaller_than_a_batch_is_one_batch(
    dataset: Datasets, node: Served, num_workers: int
) -> None:
    packed = dataset(samples=3)
    with keyed(packed, node.name, num_workers=num_workers, batch_size=256) as loader:
        assert len(loader) == 1
        (batch,) = loader
        assert sorted(batch) == list(packed.keys)
    with keyed(packed, node.idle(), batch_size=256, drop_last=True) as loader:
        assert len(loader) == 0
        assert list(loader) == []


def test_drop_last_leaves_out_what_fills_no_batch(small: PackedFiles, node: Served) -> None:
    with keyed(small, node.name, drop_last=True) as loader:
        assert len(loader) == 10
        batches = list(loader)
        assert [len(batch) for batch in batches] == [10] * 10
        assert len(set(flat(batches))) == 100
        assert set(flat(loader)) != set(flat(batches))  # not the same ones every time


def test_batches_of_one(small: PackedFiles, node: Served) -> None:
    with keyed(small, node.name, batch_size=1, num_workers=2) as loader:
        batches = list(loader)
        assert [len(batch) for batch in batches] == [1] * 103
        assert sorted(flat(batches)) == sorted(small.keys)


@pytest.mark.parametrize("world_size", [2, 3, 8])
def test_ranks_share_an_epoch_and_have_as_many_batches(
    small: PackedFiles, node: Served, world_size: int
) -> None:
    delivered: Counter[str] = Counter()
    for rank in range(world_size):
        with keyed(
            small,
            node.idle(),
            rank=rank,
            world_size=world_size,
            transform=transforms.everything,
            collate_fn=transforms.as_list,
        ) as loader:
            batches = list(loader)
            assert len(batches) == len(loader) == math.ceil(103 / (10 * world_size))
            delivered.update(s["key"] for s in flat(batches) if not s["repeat"])
    assert delivered == Counter(small.keys)


# Several at once


def test_several_loaders_at_once(dataset: Datasets, small: PackedFiles, runtime_dir: Path) -> None:
    other = dataset(samples=41, size=(100, 300))
    with (
        Loader(small.path, 10, **LITTLE) as training,
        Loader(other.path, 10, **LITTLE) as validation,
        Loader(small.path, 10, **LITTLE) as twin,
    ):
        assert len(nodes(runtime_dir)) == 3  # two trainings never share one
        expected = keys_of(small, training)
        mixed: dict[str, list[str]] = {"training": [], "twin": []}
        training.set_epoch(0)
        for batch, same in zip(training, twin):
            mixed["training"] += keys_of(small, [batch])
            mixed["twin"] += keys_of(small, [same])
            if len(mixed["training"]) % 50 == 0:
                assert sorted(keys_of(other, validation)) == list(other.keys)
        assert mixed["training"] == mixed["twin"] == expected


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


# What is counted


def test_stats_count_what_was_received(small: PackedFiles, node: Served) -> None:
    size = sum(len(small.data(key)) for key in small.keys)
    with keyed(small, node.name) as loader:
        assert loader.stats()["batches"] == 0
        next(iter(loader))
        stats = loader.stats()
        assert stats["batches"] == 1
        assert stats["samples"] == 10
        assert 0 < stats["bytes"] < size
        list(loader)
        stats = loader.stats()
        assert stats["samples"] == 113
        assert stats["bytes"] > size
        assert 0 <= stats["stall_seconds"] <= stats["seconds"]
        assert stats["stall_share"] == pytest.approx(
            stats["stall_seconds"] / stats["seconds"], rel=0.2
        )
        assert stats["node"]["storage-bytes"] >= size
        assert stats["node"]["damaged"] == 0


def test_one_warning_when_training_waits(
    small: PackedFiles,
    node: Served,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("gristway.loader._STALL_AFTER_SECONDS", 0.1)
    with keyed(small, node.name, transform=transforms.slow, batch_size=2) as loader:
        for _ in itertools.islice(loader, 2):
            time.sleep(0.2)
        list(itertools.islice(iter(loader), 2))
        list(itertools.islice(iter(loader), 2))
    (warning,) = [record for record in caplog.records if record.name.startswith("gristway")]
    assert warning.levelname == "WARNING"
    assert "% of the time" in warning.getMessage()


def test_no_warning_when_training_does_not_wait(
    small: PackedFiles,
    node: Served,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("gristway.loader._STALL_AFTER_SECONDS", 0.1)
    with keyed(small, node.name) as loader:
        for _ in loader:
            time.sleep(0.05)
    assert not caplog.records


# Programs


def run_program(text: str, *arguments: object, flags: tuple[str, ...] = ()) -> str:
    """Runs a Python program; its output, errors included. It must succeed."""
    done = subprocess.run(
        [sys.executable, *flags, "-c", textwrap.dedent(text), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_without_torch_batches_are_of_numpy(small: PackedFiles, node: Served) -> None:
    out = run_program(
        """
        import sys
        import numpy, gristway

        def shape(sample):
            return {"size": len(sample.data), "array": numpy.ones((2, 3), "f4"), "key": sample.key}

        node = sys.argv[2]
        loader = gristway.Loader(sys.argv[1], 10, node=node)
        views, labels = next(iter(loader))
        assert type(views[0]) is memoryview and len(views) == 10
        assert type(labels) is numpy.ndarray and labels.dtype == "int64"
        loader.close()
        for workers in (0, 2):
            loader = gristway.Loader(
                sys.argv[1], 10, transform=shape, num_workers=workers, node=node
            )
            batches = list(loader)
            batch = batches[0]
            assert batch["array"].shape == (10, 2, 3) and batch["array"].dtype == "float32"
            assert batch["size"].dtype == "int64"
            assert type(batch["key"]) is list
            assert len({key for batch in batches for key in batch["key"]}) == 103
            loader.close()
        try:
            gristway.Loader(sys.argv[1], pin_memory=True)
        except gristway.WrongCallError as wrong:
            print(wrong)
        assert "torch" not in sys.modules
        """,
        small.path,
        node.name,
    )
    assert out == "pin_memory needs torch: import it first\n"


def test_without_numpy_batches_are_lists(small: PackedFiles, node: Served) -> None:
    run_program(
        """
        import sys

        class NotInstalled:
            def find_spec(self, name, path=None, target=None):
                if name == "numpy":
                    raise ModuleNotFoundError(name)

        sys.meta_path.insert(0, NotInstalled())
        import gristway

        def pair(sample):
            return sample.key, sample.label

        node = sys.argv[2]
        loader = gristway.Loader(sys.argv[1], 10, node=node)
        views, labels = next(iter(loader))
        assert type(labels) is list and type(labels[0]) is int
        loader.close()
        for workers in (0, 2):
            with gristway.Loader(
                sys.argv[1], 10, transform=pair, num_workers=workers, node=node
            ) as loader:
                keys, labels = next(iter(loader))
                assert len(keys) == len(labels) == 10, (keys, labels)
                assert [int(key[5:9]) for key in keys] == list(labels)
        """,
        small.path,
        node.name,
    )


def test_a_program_that_leaves_all_open_ends_quietly(small: PackedFiles, node: Served) -> None:
    out = run_program(
        """
        import sys, gristway

        def key(sample):
            return sample.key

        how = {"transform": key, "num_workers": 2}
        loaders = [
            gristway.Loader(sys.argv[1], 10, **how),
            gristway.Loader(sys.argv[1], 10, node=sys.argv[2], workers="threads", **how),
            gristway.Loader(sys.argv[1], 10, node=sys.argv[2]),
        ]
        iterators = [iter(loader) for loader in loaders]
        batches = [next(iterator) for iterator in iterators]
        print("done")
        """,
        small.path,
        node.name,
        flags=("-X", "dev"),
    )
    assert out == "done\n"


TRAINING = """
import sys, time
import gristway

def key(sample):
    if {slow}:
        time.sleep(60)
    return sample.key

if __name__ == "__main__":
    loader = gristway.Loader(sys.argv[1], 10, transform=key, {arguments})
    print("begun", flush=True)
    while True:
        for batch in loader:
            pass
"""


@pytest.mark.parametrize(
    ("arguments", "slow"),
    [
        ("", True),
        ("num_workers=2, workers='threads'", True),
        ("num_workers=2, multiprocessing_context='fork'", False),
        ("num_workers=2, multiprocessing_context='fork'", True),
        ("num_workers=1, multiprocessing_context='spawn'", False),
    ],
    ids=lambda each: str(each).replace("multiprocessing_context=", "").replace(" ", ""),
)
def test_ctrl_c_ends_at_once_and_quietly(
    small: PackedFiles, runtime_dir: Path, tmp_path: Path, arguments: str, slow: bool
) -> None:
    program = tmp_path / "train.py"
    program.write_text(TRAINING.format(arguments=arguments, slow=slow))
    training = subprocess.Popen(
        [sys.executable, str(program), str(small.path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert training.stdout is not None
        assert training.stdout.readline() == "begun\n"
        time.sleep(1.5 if "spawn" in arguments else 0.5)
        os.killpg(training.pid, signal.SIGINT)  # as a terminal does: to all of its processes
        begun = time.monotonic()
        out, err = training.communicate(timeout=20)
        took = time.monotonic() - begun
    finally:
        training.kill()
        training.wait()
    assert training.returncode == -signal.SIGINT
    assert out == ""
    assert err.count("Traceback") == 1, err
    assert err.rstrip().endswith("KeyboardInterrupt"), err
    assert took < 2
    deadline = time.monotonic() + 2
    while nodes(runtime_dir):
        assert time.monotonic() < deadline, "the node lives on"
        time.sleep(0.02)
