"""What was read, in terms of the samples' keys."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from conftest import PackedFiles


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
