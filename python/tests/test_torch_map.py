"""MapDataset in torch's DataLoader, with its samplers: items, and what index gets what."""

from __future__ import annotations

import copy
import itertools
import pickle
import traceback
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import transforms
from conftest import PackedFiles
from maps import SIZE, generator, mapped, numbers
from reading import Run
from torch.utils.data import (
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
