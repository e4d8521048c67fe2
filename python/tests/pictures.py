"""A small dataset of pictures like the demo's, for what the documents and the examples do.

A test file imports the fixture.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# As many as make a few batches an epoch, so that programs take seconds.
PICTURES = 600
CLASSES = ("checks", "cross", "disc", "ring", "stripes")


@dataclass(frozen=True)
class Pictures:
    """`files` is a folder whose first level is the classes, `path` the dataset made of it."""

    files: Path
    path: Path


@pytest.fixture(scope="module")
def pictures(
    tmp_path_factory: pytest.TempPathFactory,
    gristway_command: Callable[..., subprocess.CompletedProcess[str]],
) -> Pictures:
    """Pictures of 64 × 64 pixels, as PNG files."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    drawing = pytest.importorskip("PIL.ImageDraw", reason="Pillow is not installed")
    folder = tmp_path_factory.mktemp("pictures")
    made = Pictures(folder / "shapes", folder / "shapes.gw")
    chance = random.Random(1)
    for number in range(PICTURES):
        name = CLASSES[number % len(CLASSES)]
        file = made.files / name / f"{number // len(CLASSES):04d}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        picture = image.new("RGB", (64, 64), _colour(chance, 0))
        _draw(drawing.Draw(picture), name, _colour(chance, 128), chance.randrange(8))
        picture.save(file)
    gristway_command("pack", made.files, made.path)
    return made


def _colour(chance: random.Random, least: int) -> tuple[int, ...]:
    return tuple(least + chance.randrange(128) for _ in range(3))


def _draw(pen: Any, name: str, colour: tuple[int, ...], at: int) -> None:
    box = (8 + at, 8, 48 + at, 48)
    if name == "disc":
        pen.ellipse(box, fill=colour)
    elif name == "ring":
        pen.ellipse(box, outline=colour, width=6)
    elif name == "cross":
        pen.line((8, 24 + at, 56, 24 + at), fill=colour, width=8)
        pen.line((24 + at, 8, 24 + at, 56), fill=colour, width=8)
    elif name == "stripes":
        for x in range(at, 64, 16):
            pen.rectangle((x, 0, x + 7, 63), fill=colour)
    else:
        for x in range(at, 64, 16):
            for y in range(0, 64, 16):
                pen.rectangle((x, y, x + 7, y + 7), fill=colour)
