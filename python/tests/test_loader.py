"""Loader: its order, epochs, sizes and workers. Runs with torch and without."""

from __future__ import annotations

import gc
import itertools
import math
import os
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import transforms
from conftest import PackedFiles
from processes import handover_bytes, memory_files, nodes
from reading import LITTLE, Datasets, Run, flat, keyed, keys_of, order_of_read

from gristway import Loader, WrongCallError
from gristway import worker_processes as pools
from gristway.source import Source

if TYPE_CHECKING:
    from served import Served

pytest_plugins = ["served"]


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


@pytest.mark.parametrize(
    "policy", ["redirect", "chunk-shuffle", "redirect-position", "sample-order", "unbounded"]
)
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


@pytest.mark.thorough
@pytest.mark.limit(900)
def test_the_order_is_the_same_with_all_workers(small: PackedFiles, node: Served) -> None:
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


def test_threads_that_have_nothing_to_do_keep_no_batch(small: PackedFiles, node: Served) -> None:
    with keyed(
        small, node.name, batch_size=2, num_workers=12, workers="threads", prefetch_factor=1
    ) as loader:
        for _ in range(3):
            assert sorted(flat(loader)) == list(small.keys)


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
        with pytest.raises(WrongCallError, match="a newer one has begun"):
            next(first)


def test_a_forked_child_has_workers_of_its_own(small: PackedFiles, node: Served) -> None:
    with keyed(small, node.name, num_workers=2, multiprocessing_context="fork") as loader:
        expected = list(loader)
        loader.set_epoch(0)
        child = os.fork()
        if child == 0:
            is_same = False
            try:
                is_same = list(loader) == expected
            finally:
                os._exit(0 if is_same else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert list(loader) == expected


def test_batches_that_a_caught_exception_refers_to_are_given_back(
    small: PackedFiles, node: Served
) -> None:
    with keyed(
        small,
        node.name,
        batch_size=2,
        transform=transforms.key_after_a_caught_exception,
        num_workers=1,
        multiprocessing_context="fork",
    ) as loader:
        assert sorted(flat(loader)) == sorted(small.keys)
        assert isinstance(loader._pool, pools.InProcesses)
        assert not loader._pool.kept


def test_a_state_goes_on_with_the_version_that_it_is_about(
    small: PackedFiles, gristway_command: Run, runtime_dir: Path, tmp_path: Path
) -> None:
    path = shutil.copytree(small.path, tmp_path / "dataset")

    def keys() -> Loader:
        return Loader(path, 10, transform=transforms.key, **LITTLE)

    with keys() as loader:
        expected = list(loader)
    with keys() as loader:
        batches = iter(loader)
        received = [next(batches) for _ in range(3)]
        state = loader.state_dict()
    more = tmp_path / "more" / "class0"
    more.mkdir(parents=True)
    (more / "another.bin").write_bytes(b"another")
    gristway_command("append", more.parent, path)
    with keys() as loader:
        assert loader.dataset_size == 104
        loader.load_state_dict(state)
        assert loader.dataset_size == 103
        assert received + list(loader) == expected
        with pytest.raises(WrongCallError, match="seed"):
            loader.load_state_dict({"gristway": state["gristway"].replace("seed 0", "seed 5")})
        assert loader.dataset_size == 103  # it goes on as before


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
