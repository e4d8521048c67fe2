"""Fashion-MNIST as small files: 60,000 pictures to train with and 10,000 to test with.

The pictures come from Debian's package dataset-fashion-mnist: from where it is installed, or
fetched and taken apart without installing it. They are written as a user of small files would have
them: one PGM file a picture, in one folder a class.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CLASSES = 10
SIDE = 28
HEADER = b"P5\n28 28\n255\n"

PACKAGE = "dataset-fashion-mnist"
INSTALLED = Path("usr/share/datasets/fashion-mnist")
SPLITS = {"train": "train", "test": "t10k"}


def write_files(target: Path, idx_folder: Path | None = None) -> None:
    """Writes target/train/CLASS/NUMBER.pgm and target/test/CLASS/NUMBER.pgm.

    idx_folder holds the package's four gzipped IDX files; None finds or fetches them.
    """
    with tempfile.TemporaryDirectory() as temporary:
        idx_folder = idx_folder or _idx_folder(Path(temporary))
        for split, prefix in SPLITS.items():
            images = _read_idx(idx_folder / f"{prefix}-images-idx3-ubyte.gz")
            labels = _read_idx(idx_folder / f"{prefix}-labels-idx1-ubyte.gz")
            for label in range(CLASSES):
                (target / split / str(label)).mkdir(parents=True, exist_ok=True)
            for number, (image, label) in enumerate(zip(images, labels, strict=True)):
                file = target / split / str(label) / f"{number:05}.pgm"
                file.write_bytes(HEADER + image.tobytes())


def read_files(folder: Path) -> tuple[list[str], NDArray[np.uint8], NDArray[np.int64]]:
    """The keys, pictures and labels of a folder that write_files made, by opening every file."""
    keys = sorted(
        f"{label.name}/{file.name}" for label in os.scandir(folder) for file in os.scandir(label)
    )
    images = np.empty((len(keys), SIDE * SIDE), np.uint8)
    for row, key in enumerate(keys):
        images[row] = np.frombuffer((folder / key).read_bytes(), np.uint8, offset=len(HEADER))
    labels = np.array([int(key[0]) for key in keys], np.int64)
    return keys, images, labels


def _idx_folder(temporary: Path) -> Path:
    if (Path("/") / INSTALLED).is_dir():
        return Path("/") / INSTALLED
    subprocess.run(["apt-get", "-qq", "download", PACKAGE], cwd=temporary, check=True)
    (package,) = temporary.glob(f"{PACKAGE}_*.deb")
    subprocess.run(["dpkg", "-x", package, temporary], check=True)
    return temporary / INSTALLED


def _read_idx(file: Path) -> NDArray[np.uint8]:
    """An IDX file: two zeros, the type (8: bytes), the number of dimensions, their sizes, data."""
    with gzip.open(file) as stream:
        data = stream.read()
    if data[:3] != b"\0\0\x08":
        raise ValueError(f"{file} is no IDX file of bytes")
    dimensions = data[3]
    sizes = np.frombuffer(data, ">u4", dimensions, offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dimensions).reshape(sizes)
