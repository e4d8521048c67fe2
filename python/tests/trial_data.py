"""What the samples of a trial hold: bytes that tell whose they are, and of which copy of the dataset.

A sample's length and bytes follow from its key and a tag. Two datasets with the same keys and other
tags have files of the same names and lengths, so only the bytes tell them apart.
"""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

CLASSES = 4


def keys(count: int, seed: int) -> list[str]:
    """Makes keys that hold their sample's length; a few samples are empty, a few large."""
    draw = random.Random(seed)
    made = []
    for number in range(count):
        kind = draw.random()
        length = 0 if kind < 0.02 else draw.randrange(20_000, 70_000) if kind < 0.04 else -1
        length = draw.randrange(60, 4000) if length < 0 else length
        made.append(f"class{number % CLASSES}/{number:05d}-{length}.bin")
    return made


def content(key: str, tag: str) -> bytes:
    """Returns the bytes of a sample."""
    length = int(key.rpartition("-")[2].removesuffix(".bin"))
    head = f"{tag}|{key}|".encode()
    return (head + hashlib.shake_128(head).digest(max(0, length - len(head))))[:length]


def label(key: str) -> int:
    """Returns the label of a sample: the number of its folder."""
    return int(key[len("class") : key.index("/")])


def key_in(data: bytes) -> str | None:
    """Returns whose bytes these are by what they say; None if they are too few to say."""
    parts = bytes(data[:80]).split(b"|")
    return parts[1].decode() if len(parts) > 2 else None


def write(folder: Path, names: list[str], tag: str) -> None:
    """Writes the files that a dataset is packed from."""
    for number in range(CLASSES):
        (folder / f"class{number}").mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(content(name, tag))
