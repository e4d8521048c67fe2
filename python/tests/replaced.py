"""Two datasets with the same names and sizes and other bytes, and ways to put one in the other's place."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gristway

SAMPLES = 200
SIZE = 1000

Command = Callable[..., subprocess.CompletedProcess[str]]


@dataclass(frozen=True)
class Twins:
    """What is read, and what takes its place. `files` are those of the latter."""

    path: Path
    other: Path
    files: Path
    command: Command

    def pack_anew(self) -> None:
        self.command("pack", "--force", "--chunk-size", "64KiB", self.files, self.path)

    def copy_over(self) -> None:
        """As `cp` does: each file is cut off and written again."""
        for file in self.other.iterdir():
            shutil.copyfile(file, self.path / file.name)

    def write_in_place(self) -> None:
        """As `rsync --inplace` does: files have the same sizes and are never cut off."""
        for file in self.other.iterdir():
            with open(self.path / file.name, "r+b") as written:
                written.write(file.read_bytes())

    def restore(self) -> None:
        shutil.rmtree(self.path)
        shutil.copytree(self.other, self.path)


WAYS = ["pack_anew", "copy_over", "write_in_place", "restore"]


def content(tag: str, key: str) -> bytes:
    return f"{tag} {key} ".encode().ljust(SIZE, tag.encode())


def make_twins(folder: Path, command: Command) -> Twins:
    """Packs both, in many small chunks."""
    for tag in "ab":
        for number in range(SAMPLES):
            file = folder / tag / f"class{number % 4}" / f"{number:05d}.bin"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content(tag, str(file.relative_to(folder / tag))))
        command("pack", "--chunk-size", "64KiB", folder / tag, folder / f"{tag}.gw")
    return Twins(folder / "a.gw", folder / "b.gw", folder / "b", command)


def copied(twins: Twins, folder: Path) -> Twins:
    """The same with a copy of what is read, for one test."""
    path = folder / "read.gw"
    shutil.copytree(twins.path, path)
    return Twins(path, twins.other, twins.files, twins.command)


def told(sample: gristway.Sample) -> tuple[str, bytes, int]:
    """A transform that tells all that training could want of a sample."""
    return sample.key, bytes(sample.data), sample.label


def assert_old(received: list[tuple[str, bytes, int]]) -> None:
    """Each key came with the bytes and the label that it had when the run began."""
    for key, data, label in received:
        assert data == content("a", key), f"{key} came as {data[:40]!r}"
        assert label == int(key[len("class")])


def as_they_are(samples: list[object]) -> list[object]:
    return samples


def collect(batches: object, into: list[tuple[str, bytes, int]]) -> str:
    """Adds all that comes; returns the line of the error that has ended it, or nothing."""
    try:
        for batch in batches:  # type: ignore[attr-defined]
            into += batch
    except gristway.Error as error:
        return str(error)
    return ""


def write_labels(path: Path, label: int) -> None:
    """Writes another label into every record of a snapshot, in place."""
    snapshot = path / "snapshot-000001.gws"
    data = bytearray(snapshot.read_bytes())
    samples_at = int.from_bytes(data[96:104], "little")
    for number in range(SAMPLES):
        at = samples_at + 24 * number + 20
        data[at : at + 4] = label.to_bytes(4, "little")
    with open(snapshot, "r+b") as written:
        written.write(data)
        written.flush()
        os.fsync(written.fileno())
