"""Reading a little, and what was read in terms of the samples' keys."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import transforms
from conftest import PackedFiles

from gristway import Loader

if TYPE_CHECKING:
    from served import Served

Datasets = Callable[..., PackedFiles]
Run = Callable[..., "subprocess.CompletedProcess[str]"]

# Little memory and small extents: so even a small dataset is read in many pieces, and mixed.
LITTLE: dict[str, Any] = {"memory": "64KiB", "extent": "4KiB"}


def keyed(packed: PackedFiles, name: str, **more: Any) -> Loader:
    """A loader that gives keys, with the node of a name."""
    settings: dict[str, Any] = {"batch_size": 10, "transform": transforms.key, **LITTLE, **more}
    return Loader(packed.path, node=name, **settings)


def epochs_of(packed: PackedFiles, node: Served, count: int) -> list[list[list[str]]]:
    """The batches of some epochs, of keys."""
    with keyed(packed, node.name) as loader:
        epochs = [list(loader) for _ in range(count)]
    node.idle()
    return epochs


def through_json(state: Any) -> Any:
    return json.loads(json.dumps(state))


def flat(batches: Iterable[Any]) -> list[Any]:
    return [each for batch in batches for each in batch]


def keys_of(packed: PackedFiles, batches: Iterable[Any]) -> list[str]:
    """The keys of the samples in batches of (list of data, labels); the labels must be theirs."""
    keys = []
    for data, labels in batches:
        assert len(data) == len(labels)
        for each, label in zip(data, labels):
            keys.append(packed.key(each))
            assert int(label) == packed.label(keys[-1])
    return keys


def order_of_read(
    run: Callable[..., subprocess.CompletedProcess[str]], path: Path, *options: object
) -> dict[tuple[int, int], list[str]]:
    """The order that `gristway read` prints: for each epoch and rank, the keys delivered."""
    found: dict[tuple[int, int], list[str]] = {}
    for line in run("read", path, "--order", "-", *options).stdout.splitlines():
        epoch, _step, rank, _requested, delivered = line.split("\t")
        found.setdefault((int(epoch), int(rank)), []).append(delivered)
    return found
