"""MapDataset in torch's DataLoader, with its samplers: exact, and with redirection."""

from __future__ import annotations

import copy
import itertools
import pickle
import subprocess
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import transforms
from conftest import PackedFiles
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
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

Datasets = Callable[..., PackedFiles]
Run = Callable[..., "subprocess.CompletedProcess[str]"]
LITTLE: dict[str, Any] = {"memory": "64KiB", "extent": "4KiB"}
SIZE = 103


@pytest.fixture
def small(dataset: Datasets) -> PackedFiles:
    """103 samples of 4 classes: with batches of 10, the last one has 3."""
    return dataset(samples=SIZE, size=(200, 2000), labels=4)


def mapped(packed: PackedFiles, name: str, **more: Any) -> MapDataset:
    """A dataset that gives numbers of samples."""
    settings: dict[str, Any] = {"transform": transforms.number, **LITTLE, **more}
    return MapDataset(packed.path, node=name, **settings)


def numbers(batches: Any) -> list[int]:
    return [int(each) for batch in batches for each in batch]


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# Items


@pytest.mark.parametrize("redirect", [False, True])
def test_an_item_is_bytes_and_label(small: PackedFiles, node: Served, redirect: bool) -> None:
    dataset = mapped(small, node.name, transform=None, redirect=redirect)
    assert len(dataset) == SIZE
    keys = []
    for item in dataset:  # by index, until there is no such index
        data, label = item
        assert type(data) is bytes
        keys.append(small.key(data))
        assert label == small.label(keys[-1])
    assert sorted(keys) == sorted(small.keys)


@pytest.mark.parametrize("redirect", [False, True])
def test_a_transform_sees_bytes_label_and_key(
    small: PackedFiles, node: Served, redirect: bool
) -> None:
    dataset = mapped(small, node.name, transform=transforms.everything, redirect=redirect)
    for sample in dataset.__getitems__(list(range(50))):
        assert sample["data"] == (small.files / sample["key"]).read_bytes()
        assert sample["label"] == small.label(sample["key"])


def test_exact_items_are_those_of_their_index(
    small: PackedFiles, node: Served, gristway_command: Run
) -> None:
    dataset = mapped(small, node.name)
    assert [dataset[index] for index in range(SIZE)] == list(range(SIZE))
    wanted = [7, 7, 0, 102, 7]
    assert dataset.__getitems__(wanted) == wanted
    assert dataset.__getitems__([]) == []
    dataset.set_epoch(3)  # of no consequence
    assert dataset[5] == 5


@pytest.mark.parametrize("redirect", [False, True])
def test_indices_as_torch_users_have_them(small: PackedFiles, node: Served, redirect: bool) -> None:
    dataset = mapped(small, node.name, redirect=redirect)
    found = [
        dataset[np.int64(3)],
        dataset[np.uint8(4)],
        dataset[torch.tensor(5)],
        dataset[-1],
        dataset[-SIZE],
        *dataset.__getitems__([torch.tensor(6), np.int32(7)]),
        *dataset.__getitems__(torch.tensor([8, 9]).tolist()),
    ]
    assert len(set(found)) == 9
    if not redirect:
        assert found == [3, 4, 5, 102, 0, 6, 7, 8, 9]


@pytest.mark.parametrize("redirect", [False, True])
@pytest.mark.parametrize("index", [SIZE, -SIZE - 1, 2**40, -(2**70)])
def test_an_index_beyond_the_end_is_an_index_error(
    small: PackedFiles, node: Served, redirect: bool, index: int
) -> None:
    dataset = mapped(small, node.name, redirect=redirect)
    with pytest.raises(IndexError, match="103 samples"):
        dataset[index]
    with pytest.raises(IndexError):
        dataset.__getitems__([0, index])


@pytest.mark.parametrize("index", [1.5, "1", None, slice(0, 3), [1, 2]], ids=repr)
def test_what_is_no_index_is_a_type_error(small: PackedFiles, node: Served, index: Any) -> None:
    dataset = mapped(small, node.name)
    with pytest.raises(TypeError):
        dataset[index]


# Exact, with samplers


@pytest.mark.parametrize("num_workers", [0, 2])
def test_exact_with_every_sampler(small: PackedFiles, node: Served, num_workers: int) -> None:
    dataset = mapped(small, node.name)
    weights = [1.0] * 50 + [5.0] * 53
    samplers: list[Any] = [
        SequentialSampler(dataset),
        RandomSampler(dataset, generator=generator(1)),
        RandomSampler(dataset, replacement=True, num_samples=60, generator=generator(1)),
        SubsetRandomSampler([5, 80, 3, 99, 41], generator=generator(1)),
        WeightedRandomSampler(weights, 60, generator=generator(1)),
        DistributedSampler(dataset, num_replicas=4, rank=1, seed=1),
    ]
    for sampler in samplers:
        for each in samplers:
            if hasattr(each, "generator") and each.generator is not None:
                each.generator.manual_seed(1)
        expected = list(sampler)
        if getattr(sampler, "generator", None) is not None:
            sampler.generator.manual_seed(1)
        loader = DataLoader(
            dataset,
            batch_size=10,
            sampler=sampler,
            num_workers=num_workers,
            multiprocessing_context="fork" if num_workers else None,
            generator=generator(7),
        )
        assert numbers(loader) == expected, sampler


@pytest.mark.parametrize("num_workers", [0, 2])
def test_exact_with_subset_and_random_split(
    small: PackedFiles, node: Served, num_workers: int
) -> None:
    dataset = mapped(small, node.name)
    subset = Subset(dataset, [9, 4, 77, 12])
    assert numbers(DataLoader(subset, batch_size=3, num_workers=num_workers)) == [9, 4, 77, 12]
    training, validation = random_split(dataset, [0.8, 0.2], generator=generator(1))
    found = [
        numbers(DataLoader(part, batch_size=10, shuffle=True, num_workers=num_workers))
        for part in (training, validation)
    ]
    assert sorted(found[0]) == sorted(training.indices)
    assert sorted(found[1]) == sorted(validation.indices)
    assert sorted(found[0] + found[1]) == list(range(SIZE))


def test_exact_ranks_get_what_the_distributed_sampler_says(
    small: PackedFiles, node: Served
) -> None:
    found = []
    for rank in range(3):
        dataset = mapped(small, node.idle(), rank=rank, world_size=3)
        sampler = DistributedSampler(dataset, num_replicas=3, rank=rank, seed=2)
        found.append(numbers(DataLoader(dataset, batch_size=10, sampler=sampler)))
        assert found[-1] == list(sampler)
        del dataset, sampler
    assert Counter(itertools.chain(*found)).total() == 105  # with its padding
    assert set(itertools.chain(*found)) == set(range(SIZE))


# Redirection: the order


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


@pytest.mark.limit(900)
def test_the_order_is_the_same_with_all_workers(
    small: PackedFiles, node: Served, expected: list[list[int]], thorough: bool
) -> None:
    if not thorough:
        pytest.skip("all start methods with all worker counts: in the thorough run")
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


# Redirection: epochs

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


# Not with workers that persist: they still carry out requests of the epoch that was broken off.
@pytest.mark.parametrize("how", WORKERS[:2], ids=["0", "2"])
def test_a_break_and_set_epoch_are_followed_by_a_complete_epoch(
    small: PackedFiles, node: Served, how: dict[str, Any]
) -> None:
    dataset = mapped(small, node.name, redirect=True, transform=transforms.sleepy_number)
    loader = DataLoader(dataset, batch_size=10, shuffle=True, **how)
    for epoch in range(3):
        dataset.set_epoch(epoch)
        for number, _batch in enumerate(loader):
            if number == epoch:
                break
    dataset.set_epoch(3)
    assert sorted(numbers(loader)) == list(range(SIZE))


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_break_without_set_epoch_is_told_or_harmless(
    small: PackedFiles, node: Served, num_workers: int
) -> None:
    dataset = mapped(small, node.name, redirect=True)
    loader = DataLoader(dataset, batch_size=10, shuffle=True, num_workers=num_workers)
    next(iter(loader))
    if num_workers == 0:
        # Nobody tells the dataset that an epoch was broken off.
        with pytest.raises(WrongCallError, match="set_epoch"):
            list(loader)
    else:
        assert sorted(numbers(loader)) == list(range(SIZE))


# Redirection: some of the samples


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


def test_a_split_without_its_indices_is_told(
    small: PackedFiles, node: Served, caplog: pytest.LogCaptureFixture
) -> None:
    dataset = mapped(small, node.name, redirect=True)
    training, validation = random_split(dataset, [80, 23], generator=generator(4))
    for epoch in range(2):
        for part in (training, validation):
            dataset.set_epoch(epoch)
            list(DataLoader(part, batch_size=10, shuffle=True))
    (notice,) = [record.getMessage() for record in caplog.records]
    assert "80 of 103 indices" in notice and "indices=" in notice


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


# Redirection: what no sampler without replacement asks for


@pytest.mark.parametrize("num_workers", [0, 1])
def test_an_index_outside_the_set_is_refused(
    small: PackedFiles, node: Served, num_workers: int
) -> None:
    dataset = mapped(small, node.name, redirect=True, indices=range(80))
    loader = DataLoader(dataset, batch_size=10, num_workers=num_workers)
    with pytest.raises(WrongCallError, match="index 80 is not among the 80.*split") as caught:
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


# Redirection: ranks


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


# Others


@pytest.mark.parametrize("redirect", [False, True])
@pytest.mark.parametrize("num_workers", [0, 2])
def test_an_exception_of_a_transform_comes_out_with_the_key(
    small: PackedFiles, node: Served, num_workers: int, redirect: bool
) -> None:
    bad = small.keys[33]
    refuses = transforms.RefuseKey(bad, "KeyError")
    dataset = mapped(small, node.name, transform=refuses, redirect=redirect)
    with pytest.raises(KeyError) as caught:
        list(DataLoader(dataset, batch_size=10, num_workers=num_workers))
    told = str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
    assert f"'{bad}'" in told
    assert "no such field" in told
    # Or else the workers are part of a cycle, and torch takes 5 s for each to end.
    traceback.clear_frames(caught.tb)


@pytest.mark.parametrize("redirect", [False, True])
@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))]
)
def test_a_copy_outlives_the_original(
    small: PackedFiles, node: Served, redirect: bool, copied: Callable[[MapDataset], MapDataset]
) -> None:
    first = mapped(small, node.name, redirect=redirect)
    second = copied(first)
    del first
    assert sorted(numbers(DataLoader(second, batch_size=10))) == list(range(SIZE))
    second.set_epoch(1)
    assert sorted(numbers(DataLoader(second, batch_size=10, num_workers=2))) == list(range(SIZE))


def test_a_state_is_refused_where_workers_read(small: PackedFiles, node: Served) -> None:
    dataset = mapped(small, node.name, redirect=True)
    iterator = iter(DataLoader(dataset, batch_size=10, num_workers=2))
    next(iterator)
    with pytest.raises(WrongCallError, match="StatefulDataLoader"):
        dataset.state_dict()


def test_kept_views_keep_their_content(small: PackedFiles, node: Served) -> None:
    dataset = mapped(small, node.name, redirect=True, transform=transforms.view)
    kept = [dataset[index] for index in range(3)]
    content = [bytes(view) for view in kept]
    for index in range(3, SIZE):
        dataset[index]
    assert [bytes(view) for view in kept] == content


def test_views_that_are_all_kept_are_refused_with_a_remedy(
    small: PackedFiles, node: Served
) -> None:
    dataset = mapped(small, node.name, redirect=True, transform=transforms.view)
    kept = []
    with pytest.raises(WrongCallError, match="let go of views.*copy"):
        for first in range(0, 100, 5):
            kept.append(dataset.__getitems__(list(range(first, first + 5))))
    assert kept


def test_exact_views_keep_their_content(small: PackedFiles, node: Served) -> None:
    dataset = mapped(small, node.name, transform=transforms.view)
    kept = [dataset[index] for index in range(SIZE)]
    assert len({small.key(view) for view in kept}) == SIZE
