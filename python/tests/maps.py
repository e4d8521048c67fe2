"""MapDatasets for tests."""

from __future__ import annotations

from typing import Any

import torch
import transforms
from conftest import PackedFiles
from reading import LITTLE

from gristway.torch import MapDataset

SIZE = 103  # samples of the fixture `small`


def mapped(packed: PackedFiles, name: str, **more: Any) -> MapDataset:
    """A dataset that gives numbers of samples."""
    settings: dict[str, Any] = {"transform": transforms.number, **LITTLE, **more}
    return MapDataset(packed.path, node=name, **settings)


def numbers(batches: Any) -> list[int]:
    return [int(each) for batch in batches for each in batch]


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
