"""What tests of kills share: who reads, and what they read when nobody dies."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kills_program
import torch
from conftest import PackedFiles
from torch.utils.data import DataLoader

import gristway
from gristway.torch import MapDataset, StreamDataset

SAMPLES = 400
BATCH = 8
BATCHES = SAMPLES // BATCH
# Small enough for many reads an epoch: there is always some reading to be interrupted.
READING: dict[str, Any] = {"seed": 3, "memory": "128KiB", "extent": "8KiB"}

# How many batches of the first epoch are received when somebody dies.
MOMENTS = {"before the first batch": 0, "mid-epoch": 21, "epoch end": BATCHES}

THOROUGH = os.environ.get("GRISTWAY_THOROUGH", "") not in ("", "0")
CONTEXTS = (None, "spawn", "forkserver")

Epochs = list[list[list[str]]]  # keys, by epoch and batch


class Reader:
    """Something that gives the batches of an epoch, each as a list of the samples' bytes."""

    def __init__(self, begin: Callable[[int], Iterator[list[bytes]]], close: Callable[[], None]):
        self.begin = begin
        self.close = close


def loader_reader(path: Path, num_workers: int, **options: Any) -> Reader:
    loader = gristway.Loader(
        path,
        BATCH,
        transform=kills_program.content,
        collate_fn=kills_program.as_they_are,
        num_workers=num_workers,
        **READING,
        **options,
    )
    return Reader(lambda epoch: iter(loader), loader.close)


def stream_reader(path: Path, workers: int, **options: Any) -> Reader:
    dataset = StreamDataset(path, BATCH, **READING)
    batches = DataLoader(dataset, batch_size=None, num_workers=workers, **options)
    return Reader(lambda epoch: (data for data, _ in iter(batches)), lambda: None)


def first_of_each(items: list[tuple[bytes, int]]) -> list[bytes]:
    return [data for data, _ in items]


def map_reader(path: Path, workers: int, redirect: bool) -> Reader:
    dataset = MapDataset(path, redirect=redirect, **READING)
    batches = DataLoader(
        dataset,
        BATCH,
        shuffle=True,
        generator=torch.Generator().manual_seed(7),
        collate_fn=first_of_each,
        num_workers=workers,
    )

    def begin(epoch: int) -> Iterator[list[bytes]]:
        dataset.set_epoch(epoch)
        return iter(batches)

    return Reader(begin, lambda: None)


READERS: dict[str, Callable[[Path], Reader]] = {
    "Loader, 0 workers": lambda path: loader_reader(path, 0),
    "Loader, 2 workers": lambda path: loader_reader(path, 2),
    "StreamDataset, 0 workers": lambda path: stream_reader(path, 0),
    "StreamDataset, 2 workers": lambda path: stream_reader(path, 2),
    "MapDataset exact, 0 workers": lambda path: map_reader(path, 0, False),
    "MapDataset exact, 2 workers": lambda path: map_reader(path, 2, False),
    "MapDataset redirect, 0 workers": lambda path: map_reader(path, 0, True),
    "MapDataset redirect, 2 workers": lambda path: map_reader(path, 2, True),
}
if THOROUGH:
    READERS |= {
        "Loader, 2 threads": lambda path: loader_reader(path, 2, workers="threads"),
        "Loader, 2 spawned workers": lambda path: loader_reader(
            path, 2, multiprocessing_context="spawn"
        ),
        "StreamDataset, 3 persistent workers": lambda path: stream_reader(
            path, 3, persistent_workers=True
        ),
    }


def read(
    reader: Reader, packed: PackedFiles, epochs: int, strike: Callable[[int, int], None]
) -> Epochs:
    """Reads some epochs. `strike` is told epoch and step after every batch, and before the first."""
    order: Epochs = []
    for epoch in range(epochs):
        batches = reader.begin(epoch)
        order.append([])
        strike(epoch, 0)
        for data in batches:
            order[-1].append([packed.key(each) for each in data])
            del data
            strike(epoch, len(order[-1]))
    return order


def no_strike(epoch: int, step: int) -> None:
    pass


class Undisturbed:
    """What readers deliver when nobody dies; each kind of order is read once."""

    def __init__(self, packed: PackedFiles) -> None:
        self._packed = packed
        self._orders: dict[str, Epochs] = {}

    def of(self, reader: str) -> Epochs:
        # By promise the order is the same for all numbers of workers, and for a StreamDataset.
        kind = reader.split(",")[0].replace("Loader", "StreamDataset")
        if kind not in self._orders:
            order = read(
                READERS[f"{kind}, 0 workers"](self._packed.path), self._packed, 2, no_strike
            )
            for epoch in order:
                assert sorted(key for batch in epoch for key in batch) == list(self._packed.keys)
            self._orders[kind] = order
        return self._orders[kind]
