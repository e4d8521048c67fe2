"""MapDataset with redirection, in torch's DataLoader, with its samplers."""

from __future__ import annotations

import itertools
import multiprocessing
import traceback
from collections.abc import Iterator
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import transforms
from conftest import PackedFiles
from maps import SIZE, generator, mapped, numbers
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    Subset,
    SubsetRandomSampler,
    WeightedRandomSampler,
    random_split,
)

from gristway import WrongCallError
from gristway.torch import MapDataset

if TYPE_CHECKING:
    from served import Served

pytest_plugins = ["served"]


# The order


@pytest.fixture
def expected(small: PackedFiles, node: Served) -> list[list[int]]:
    """The order of each epoch in batches of 10, read in the training process."""
    dataset = mapped(small, node.name, redirect=True)
    loader = DataLoader(dataset, batch_size=10)
    epochs = []
    for epoch in range(3):
        dataset.set_epoch(epoch)
        epochs.append(numbers(loader))
    del dataset, loader
    node.idle()
    return epochs


def test_every_sample_is_given_once_an_epoch_in_a_random_order(
    expected: list[list[int]],
) -> None:
    for epoch in expected:
        assert sorted(epoch) == list(range(SIZE))
    assert len({tuple(epoch) for epoch in expected}) == 3
    # Asked for in their sequence, they come in another.
    assert sum(1 for index, number in enumerate(expected[0]) if index == number) < 10


@pytest.mark.parametrize(
    ("sets_epoch", "how"),
    [
        (True, {"num_workers": 1, "multiprocessing_context": "fork"}),
        (True, {"num_workers": 2, "multiprocessing_context": "fork", "persistent_workers": True}),
        (True, {"num_workers": 3, "multiprocessing_context": "fork", "prefetch_factor": 1}),
        (
            True,
            {"num_workers": 1, "multiprocessing_context": "forkserver", "persistent_workers": True},
        ),
        (True, {"num_workers": 1, "multiprocessing_context": "spawn", "persistent_workers": True}),
        (False, {"num_workers": 1, "multiprocessing_context": "fork"}),
        (False, {"num_workers": 2, "multiprocessing_context": "fork", "persistent_workers": True}),
        (False, {"num_workers": 3, "multiprocessing_context": "fork", "prefetch_factor": 1}),
    ],
    ids=str,
)
def test_the_order_is_the_same_with_any_workers(
    small: PackedFiles,
    node: Served,
    expected: list[list[int]],
    sets_epoch: bool,
    how: dict[str, Any],
) -> None:
    dataset = mapped(small, node.name, redirect=True)
    loader = DataLoader(dataset, batch_size=10, shuffle=True, **how)
    for epoch in range(3):
        if sets_epoch:
            dataset.set_epoch(epoch)
        assert numbers(loader) == expected[epoch]


@pytest.mark.thorough
@pytest.mark.limit(900)
def test_the_order_is_the_same_with_all_workers(
    small: PackedFiles, node: Served, expected: list[list[int]]
) -> None:
    for start, count, persists, sets_epoch in itertools.product(
        ("fork", "spawn", "forkserver"), (1, 3), (False, True), (False, True)
    ):
        dataset = mapped(small, node.idle(), redirect=True)
        loader = DataLoader(
            dataset,
            batch_size=10,
            shuffle=True,
            num_workers=count,
            multiprocessing_context=start,
            persistent_workers=persists,
        )
        for epoch in range(3):
            if sets_epoch:
                dataset.set_epoch(epoch)
            assert numbers(loader) == expected[epoch], (start, count, persists, sets_epoch)
        del dataset, loader


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("drop_last", [False, True])
def test_epochs_follow_each_other_without_set_epoch(
    small: PackedFiles, node: Served, num_workers: int, drop_last: bool
) -> None:
    dataset = mapped(small, node.name, redirect=True)
    loader = DataLoader(
        dataset,
        batch_size=10,
        shuffle=True,
        drop_last=drop_last,
        num_workers=num_workers,
        persistent_workers=num_workers > 0,
    )
    epochs = [numbers(loader) for _ in range(4)]
    for epoch in epochs:
        assert len(epoch) == len(set(epoch)) == (100 if drop_last else SIZE)
    assert len({tuple(epoch) for epoch in epochs}) == 4


def test_items_one_by_one_are_all_different(small: PackedFiles, node: Served) -> None:
    dataset = mapped(small, node.name, redirect=True)
    for _ in range(2):
        assert sorted(dataset[index] for index in range(SIZE)) == list(range(SIZE))
    for num_workers in (0, 2):
        dataset.set_epoch(5 + num_workers)
        loader = DataLoader(dataset, batch_size=None, shuffle=True, num_workers=num_workers)
        assert sorted(int(each) for each in loader) == list(range(SIZE))


@pytest.mark.limit(20)
@pytest.mark.parametrize(
    "sizes",
    [[10, 3, 10, 7, 30, 20, 23], [3, 10, 30, 20, 7, 10, 23], [1] * 50 + [53], [50] + [1] * 53],
    ids=["smaller", "larger", "one-last", "one-first"],
)
@pytest.mark.parametrize("num_workers", [0, 1, 2])
def test_batches_of_different_sizes_give_every_sample_once(
    small: PackedFiles, node: Served, num_workers: int, sizes: list[int]
) -> None:
    assert sum(sizes) == SIZE
    ends = list(itertools.accumulate(sizes))
    batches = [list(range(end - size, end)) for size, end in zip(sizes, ends)]
    dataset = mapped(small, node.name, redirect=True)
    loader = DataLoader(dataset, batch_sampler=batches, num_workers=num_workers)
    for epoch in range(2):
        dataset.set_epoch(epoch)
        found = [batch.tolist() for batch in loader]
        assert [len(batch) for batch in found] == sizes
        assert sorted(itertools.chain(*found)) == list(range(SIZE))


def test_another_batch_size_in_the_next_epoch(small: PackedFiles, node: Served) -> None:
    dataset = mapped(small, node.name, redirect=True)
    for epoch, size in enumerate((10, 25, 4)):
        dataset.set_epoch(epoch)
        loader = DataLoader(
            dataset, batch_sampler=BatchSampler(RandomSampler(dataset), size, False), num_workers=2
        )
        assert sorted(numbers(loader)) == list(range(SIZE))


# Epochs

WORKERS: list[dict[str, Any]] = [
    {"num_workers": 0},
    {"num_workers": 2},
    {"num_workers": 2, "persistent_workers": True},
]


@pytest.mark.parametrize("how", WORKERS, ids=["0", "2", "2-persistent"])
def test_an_epoch_can_be_chosen(
    small: PackedFiles, node: Served, expected: list[list[int]], how: dict[str, Any]
) -> None:
    dataset = mapped(small, node.name, redirect=True)
    loader = DataLoader(dataset, batch_size=10, shuffle=True, **how)
    for epoch in (2, 0, 0, 1):
        dataset.set_epoch(epoch)
        assert numbers(loader) == expected[epoch]
    with pytest.raises(WrongCallError, match="no epoch -1"):
        dataset.set_epoch(-1)


@pytest.mark.parametrize("sets_epoch", [True, False])
@pytest.mark.parametrize("how", WORKERS, ids=["0", "2", "2-persistent"])
def test_a_break_is_followed_by_a_complete_epoch(
    small: PackedFiles,
    node: Served,
    expected: list[list[int]],
    how: dict[str, Any],
    sets_epoch: bool,
) -> None:
    dataset = mapped(small, node.name, redirect=True, transform=transforms.sleepy_number)
    loader = DataLoader(dataset, batch_size=10, shuffle=True, **how)
    next(iter(loader))  # a look before training
    for epoch in range(1, 3):
        if sets_epoch:
            dataset.set_epoch(epoch)
        assert numbers(loader) == expected[epoch]
    for number in range(2):  # broken off sooner and later
        for batch, _ in enumerate(loader):
            if batch == number:
                break
    if sets_epoch:
        dataset.set_epoch(0)
        assert numbers(loader) == expected[0]
    assert sorted(numbers(loader)) == list(range(SIZE))


# Some of the samples


@pytest.mark.parametrize("num_workers", [0, 2])
def test_training_and_validation_never_share_a_sample(
    small: PackedFiles, node: Served, num_workers: int
) -> None:
    training, validation = random_split(range(SIZE), [80, 23], generator=generator(4))
    for part in (training.indices, validation.indices):
        dataset = mapped(small, node.idle(), redirect=True, indices=part)
        assert len(dataset) == SIZE  # indices count over the whole dataset
        for sampler in (SubsetRandomSampler(part), part):
            loader = DataLoader(dataset, batch_size=10, sampler=sampler, num_workers=num_workers)
            for epoch in range(2):
                dataset.set_epoch(epoch)
                assert sorted(numbers(loader)) == sorted(part)
        subset = Subset(dataset, part)
        loader = DataLoader(subset, batch_size=10, shuffle=True, num_workers=num_workers)
        for epoch in range(2):
            dataset.set_epoch(epoch)
            assert sorted(numbers(loader)) == sorted(part)
        del dataset, loader, subset


def _generated() -> Iterator[int]:
    yield from (5, 3, 102)


@pytest.mark.parametrize(
    "indices",
    [
        [5, 3, 102],
        (5, 3, 102),
        np.array([5, 3, 102]),
        torch.tensor([5, 3, 102]),
        {5, 3, 102},
        [np.int32(5), 3, torch.tensor(102)],
        _generated,
    ],
    ids=["list", "tuple", "array", "tensor", "set", "mixed", "generator"],
)
def test_indices_may_be_given_as_anything(small: PackedFiles, node: Served, indices: Any) -> None:
    given = indices() if callable(indices) else indices
    dataset = mapped(small, node.name, redirect=True, indices=given)
    assert sorted(dataset.__getitems__([3, 5, 102])) == [3, 5, 102]


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([], "at least one"),
        ([3, -1], "-1"),
        ([3, 5, 3], "twice"),
        ([3, SIZE], "103"),
        ([3, 10_000], "103 samples"),
    ],
)
def test_wrong_indices_are_refused(
    small: PackedFiles, runtime_dir: Path, indices: list[int], message: str
) -> None:
    with pytest.raises(WrongCallError, match=message) as caught:
        MapDataset(small.path, redirect=True, indices=indices)
    assert "\n" not in str(caught.value)


def test_indices_are_for_redirection(small: PackedFiles, runtime_dir: Path) -> None:
    with pytest.raises(WrongCallError, match="Subset"):
        MapDataset(small.path, indices=[1, 2])


# What no sampler without replacement asks for


@pytest.mark.parametrize("num_workers", [0, 1])
def test_an_index_outside_the_set_is_refused(
    small: PackedFiles, node: Served, num_workers: int
) -> None:
    dataset = mapped(small, node.name, redirect=True, indices=range(80))
    loader = DataLoader(dataset, batch_size=10, num_workers=num_workers)
    with pytest.raises(WrongCallError, match="rank 0 has 80 in an epoch.*split") as caught:
        list(loader)
    traceback.clear_frames(caught.tb)


@pytest.mark.parametrize("num_workers", [0, 1])
def test_drawing_with_replacement_is_refused(
    small: PackedFiles, node: Served, num_workers: int
) -> None:
    dataset = mapped(small, node.name, redirect=True)
    sampler = WeightedRandomSampler([1.0] * SIZE, SIZE, generator=generator(1))
    loader = DataLoader(dataset, batch_size=10, sampler=sampler, num_workers=num_workers)
    with pytest.raises(WrongCallError, match="draw without replacement") as caught:
        list(loader)
    traceback.clear_frames(caught.tb)


def test_an_index_asked_for_twice_is_refused(small: PackedFiles, node: Served) -> None:
    dataset = mapped(small, node.name, redirect=True)
    dataset[3]
    with pytest.raises(WrongCallError, match="index 3 was asked for before in epoch 0"):
        dataset[3]
    with pytest.raises(WrongCallError, match="index 4 was asked for before"):
        dataset.__getitems__([4, 5, 4])
    dataset.set_epoch(1)
    dataset[3]


@pytest.mark.parametrize("who", ["threads", "processes"])
def test_threads_and_processes_that_ask_by_hand_get_each_sample_once_an_epoch(
    small: PackedFiles, node: Served, who: str
) -> None:
    dataset = mapped(small, node.name, redirect=True)
    context = multiprocessing.get_context("fork")
    pool = ThreadPool(8) if who == "threads" else context.Pool(4, _take, [dataset])
    ask = dataset.__getitem__ if who == "threads" else _ask
    with pool:
        for epoch in range(4):
            assert sorted(pool.map(ask, range(SIZE), chunksize=1)) == list(range(SIZE))
            if epoch == 2:
                dataset.set_epoch(0)
        pool.close()
        pool.join()


_taken: list[MapDataset] = []


def _take(dataset: MapDataset) -> None:
    _taken.append(dataset)


def _ask(index: int) -> int:
    return int(_taken[0][index])


def test_more_than_a_share_at_once_is_refused(small: PackedFiles, node: Served) -> None:
    dataset = mapped(small, node.name, redirect=True, rank=1, world_size=2)
    with pytest.raises(WrongCallError, match="60 samples.*rank 1 has 5[12] in an epoch"):
        dataset.__getitems__(list(range(60)))


def test_a_refused_request_takes_nothing_away(small: PackedFiles, node: Served) -> None:
    dataset = mapped(small, node.name, redirect=True, indices=range(100))
    found = dataset.__getitems__(list(range(50)))
    for wrong in ([100], [50, 101], [3]):
        with pytest.raises(WrongCallError):
            dataset.__getitems__(wrong)
    found += dataset.__getitems__(list(range(50, 100)))
    assert sorted(found) == list(range(100))


def test_ranks_that_each_draw_everything_are_refused(small: PackedFiles, node: Served) -> None:
    ranks = [mapped(small, node.name, redirect=True, rank=rank, world_size=2) for rank in range(2)]
    loaders = [iter(DataLoader(rank, batch_size=10)) for rank in ranks]  # no DistributedSampler
    with pytest.raises(WrongCallError, match="do several ranks each draw everything"):
        for _ in range(11):
            for loader in loaders:
                next(loader)


# Ranks


@pytest.mark.parametrize("world_size", [2, 3, 4])
@pytest.mark.parametrize("drop_last", [False, True])
def test_ranks_with_a_distributed_sampler_share_an_epoch(
    small: PackedFiles, node: Served, world_size: int, drop_last: bool
) -> None:
    ranks = [
        mapped(
            small,
            node.name,  # all on one node, which so sees what all of them ask for
            redirect=True,
            rank=rank,
            world_size=world_size,
            transform=transforms.number_and_repeat,
        )
        for rank in range(world_size)
    ]
    samplers = [
        DistributedSampler(rank, world_size, number, seed=3, drop_last=drop_last)
        for number, rank in enumerate(ranks)
    ]
    loaders = [
        DataLoader(rank, batch_size=10, sampler=sampler) for rank, sampler in zip(ranks, samplers)
    ]
    each = SIZE // world_size + (0 if drop_last or SIZE % world_size == 0 else 1)
    for epoch in range(3):
        for rank, sampler in zip(ranks, samplers):
            rank.set_epoch(epoch)
            sampler.set_epoch(epoch)
        given: list[int] = []
        for batches in zip(*loaders):
            for found, is_repeat in batches:
                given += [n for n, again in zip(found.tolist(), is_repeat.tolist()) if not again]
        assert sum(len(sampler) for sampler in samplers) == each * world_size
        assert len(given) == len(set(given))
        # What the sampler pads with are repeats here too; what it drops is left out.
        assert len(given) == (each * world_size if drop_last else SIZE)
