"""Datasets of a DataLoader whose node's folder is removed under them, or whose node is gone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import transforms
from conftest import PackedFiles
from processes import kill, nodes, the_node
from reading import LITTLE, flat
from torch.utils.data import DataLoader

from gristway.torch import MapDataset, StreamDataset


@pytest.fixture(scope="module")
def packed(dataset: Callable[..., PackedFiles]) -> PackedFiles:
    return dataset(samples=103, size=(200, 2000), labels=4)


@pytest.mark.parametrize("context", ["fork", pytest.param("spawn", marks=pytest.mark.thorough)])
def test_the_workers_of_the_next_epoch_find_the_node_when_its_folder_was_removed(
    packed: PackedFiles, runtime_dir: Path, context: str
) -> None:
    dataset = StreamDataset(packed.path, 10, transform=transforms.key, **LITTLE)
    loader = DataLoader(dataset, batch_size=None, num_workers=1, multiprocessing_context=context)
    for _ in range(2):
        assert sorted(flat(loader)) == sorted(packed.keys)
        node = the_node(runtime_dir)
        shutil.rmtree(runtime_dir)
    assert sorted(flat(loader)) == sorted(packed.keys)
    assert nodes(runtime_dir) == [node]  # the same, and no other


@pytest.mark.parametrize("kind", [StreamDataset, MapDataset])
def test_a_dataset_has_a_state_when_node_and_folder_are_gone(
    packed: PackedFiles, runtime_dir: Path, kind: type[StreamDataset | MapDataset]
) -> None:
    if kind is StreamDataset:
        dataset: StreamDataset | MapDataset = StreamDataset(packed.path, 10, **LITTLE)
        next(iter(dataset))  # type: ignore[call-overload]
    else:
        dataset = MapDataset(packed.path, redirect=True, **LITTLE)
        dataset.__getitems__([1, 2, 3])
    kill(the_node(runtime_dir))
    shutil.rmtree(runtime_dir)
    state = dataset.state_dict()
    assert state["epoch"] == 0
    assert not nodes(runtime_dir)
    runtime_dir.mkdir(mode=0o700)
    dataset.load_state_dict(state)
