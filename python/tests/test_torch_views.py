"""Tensors over the node's memory: what is written to them stays theirs."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import transforms
from conftest import PackedFiles
from reading import LITTLE
from torch.utils.data import DataLoader

from gristway import Loader, Sample, batch
from gristway.torch import MapDataset, StreamDataset

if TYPE_CHECKING:
    from served import Served

pytest_plugins = ["served"]

# Torch warns, once, of tensors over memory that was not meant to be written.
pytestmark = pytest.mark.filterwarnings("ignore:The given")

WAYS = {
    "frombuffer": lambda data: torch.frombuffer(data, dtype=torch.uint8),
    "from_numpy": lambda data: torch.from_numpy(np.frombuffer(data, np.uint8)),
}


def written(sample: Sample) -> tuple[bytes, bytes]:
    """What a sample has, and what it has when one was subtracted in place, in all ways."""
    before = bytes(sample.data)
    for way in WAYS.values():
        way(sample.data).sub_(1)
    return before, bytes(sample.data)


def check(small: PackedFiles, pairs: list[tuple[bytes, bytes]]) -> None:
    assert sorted(small.key(before) for before, _ in pairs) == sorted(small.keys)
    for before, after in pairs:
        assert after == bytes((each - 2) % 256 for each in before)


@pytest.mark.parametrize("policy", ["redirect", "unbounded"])
@pytest.mark.parametrize("workers", ["none", "processes", "threads"])
def test_what_is_written_in_place_changes_no_later_epoch(
    small: PackedFiles, node: Served, policy: str, workers: str
) -> None:
    with Loader(
        small.path,
        10,
        transform=written,
        collate_fn=transforms.as_list,
        num_workers=0 if workers == "none" else 2,
        workers="threads" if workers == "threads" else "processes",
        policy=policy,
        node=node.name,
        **LITTLE,
    ) as loader:
        for _ in range(4):
            check(small, [pair for batch in loader for pair in batch])


@pytest.mark.parametrize("policy", ["redirect", "unbounded"])
def test_so_it_is_with_a_kernel_that_cannot_look_for_written_pages(
    small: PackedFiles, node: Served, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "_kernel_looks", False)
    monkeypatch.setattr(batch, "_LOOK_PAGES", 3)
    test_what_is_written_in_place_changes_no_later_epoch(small, node, policy, "none")


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("redirect", [True, False])
def test_what_is_written_in_place_changes_no_later_request(
    small: PackedFiles, node: Served, redirect: bool, workers: int
) -> None:
    dataset = MapDataset(small.path, transform=written, redirect=redirect, node=node.name, **LITTLE)
    loader = DataLoader(dataset, 7, num_workers=workers, collate_fn=transforms.as_list)
    for epoch in range(3):
        dataset.set_epoch(epoch)
        check(small, [pair for batch in loader for pair in batch])


def test_what_is_written_in_place_changes_no_other_rank(small: PackedFiles, node: Served) -> None:
    """Ranks of one machine read from the same node."""
    given: dict[str, Any] = {"transform": written, "collate_fn": transforms.as_list}
    ranks = [
        StreamDataset(
            small.path, 10, rank=rank, world_size=2, policy="unbounded", node=node.name,
            **given, **LITTLE,
        )
        for rank in range(2)
    ]  # fmt: skip
    for _ in range(3):
        check(small, [pair for rank in ranks for batch in rank for pair in batch])


@pytest.mark.parametrize("policy", ["redirect", "unbounded"])
@pytest.mark.parametrize("way", WAYS)
def test_a_tensor_that_is_kept_keeps_what_was_written_to_it(
    small: PackedFiles, node: Served, policy: str, way: str
) -> None:
    with Loader(small.path, 10, policy=policy, node=node.name, **LITTLE) as loader:
        views, _ = next(iter(loader))
        tensors = [WAYS[way](view) for view in views]
        before = [bytes(view) for view in views]
        del views
        for tensor in tensors:
            tensor.fill_(7)
        for _ in range(3):  # the same samples come again, beside those that are kept
            loader.set_epoch(0)
            again = next(iter(loader))[0]
            assert [bytes(view) for view in again] == before
            del again
        assert all(bool((tensor == 7).all()) for tensor in tensors)


class DiesOnce:
    """Writes to each sample, and takes its process along when it meets the last one of a batch."""

    def __init__(self, flag: Path) -> None:
        self.flag = flag

    def __call__(self, sample: Sample) -> tuple[bytes, bytes]:
        done = written(sample)
        if sample.id == 50 and not self.flag.exists():
            self.flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return done


@pytest.mark.parametrize("policy", ["redirect", "unbounded"])
def test_a_worker_that_takes_the_place_of_a_dead_one_gets_clean_bytes(
    small: PackedFiles, node: Served, tmp_path: Path, policy: str
) -> None:
    flag = tmp_path / "died"
    with Loader(
        small.path,
        40,
        transform=DiesOnce(flag),
        collate_fn=transforms.as_list,
        num_workers=1,
        policy=policy,
        node=node.name,
        **LITTLE,
    ) as loader:
        check(small, [pair for batch in loader for pair in batch])
        assert flag.exists()
