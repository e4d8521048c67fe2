"""The same samples in the format of each loader: `formats.py FORMAT TREE TARGET [COUNT SIZE]`.

A tree of files comes first; everything else is made from it, in a process of the environment that
reads it. Loaders that pack keep the order they are given, so they get a shuffled one, as
`gristway pack` gives its datasets. Chunks are 64 MiB wherever a loader has a size for them, so that
all of them have the same number to shuffle.

A raw sample begins with its number, eight bytes: a check of an epoch can tell what it was given.
"""

from __future__ import annotations

import io
import random
import sys
from pathlib import Path

import numpy as np

CLASSES = 100
CHUNK = 64 << 20


def label_of(number: int, count: int) -> int:
    return number * CLASSES // count


def files(target: Path, count: int, size: int) -> None:
    """Incompressible files of one size in a hundred class folders, the same on every run."""
    noise = np.random.default_rng(count * 31 + size).bytes((4 << 20) + size)
    offsets = random.Random(size)
    for label in range(CLASSES):
        (target / f"class-{label:03d}").mkdir(parents=True)
    for number in range(count):
        at = offsets.randrange(4 << 20)
        path = target / f"class-{label_of(number, count):03d}" / f"{number:08d}.bin"
        with open(path, "wb", buffering=0) as file:
            file.write(number.to_bytes(8, "little") + noise[at : at + size - 8])


def jpeg_files(target: Path, count: int, size: int) -> None:
    """JPEG pictures of 500 × 375 (as many of ImageNet are) and about `size` bytes.

    Decoding one costs the same whether its content was seen before, so that some dozens of
    pictures are enough for any number of files.
    """
    from PIL import Image

    generator = np.random.default_rng(7)
    pictures = []
    for _ in range(64):
        across = np.linspace(0, generator.integers(80, 256), 500)[None, :, None]
        down = np.linspace(0, generator.integers(80, 256), 375)[:, None, None]
        coarse = generator.normal(0, 30, (75, 100, 3)).repeat(5, 0).repeat(5, 1)
        fine = generator.normal(0, 20, (375, 500, 3))
        pixels = (across + down) / 2 * generator.random(3) + coarse + fine + 60
        image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
        # Noise decides the size, so that the quality that gives it is looked for once a picture.
        best = b""
        for quality in range(95, 40, -1):
            out = io.BytesIO()
            image.save(out, "jpeg", quality=quality)
            best = out.getvalue()
            if len(best) <= size:
                break
        pictures.append(best)
    for label in range(CLASSES):
        (target / f"class-{label:03d}").mkdir(parents=True)
    for number in range(count):
        folder = target / f"class-{label_of(number, count):03d}"
        (folder / f"{number:08d}.jpg").write_bytes(pictures[number % len(pictures)])


def shuffled(tree: Path) -> list[tuple[str, int]]:
    """(path, label) of every file below a tree, in an order that is random and always the same."""
    found = [(str(p), int(p.parent.name.removeprefix("class-"))) for p in sorted(tree.glob("*/*"))]
    random.Random(0).shuffle(found)
    return found


def read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


def webdataset(tree: Path, target: Path) -> None:
    import webdataset

    target.mkdir()
    pattern = str(target / "%05d.tar")
    with webdataset.ShardWriter(pattern, maxsize=CHUNK, maxcount=1 << 30, verbose=0) as out:
        for path, label in shuffled(tree):
            key = Path(path).stem
            out.write({"__key__": key, "bin": read(path), "cls": str(label).encode()})


def streaming(tree: Path, target: Path) -> None:
    from streaming import MDSWriter

    columns = {"data": "bytes", "label": "int"}
    with MDSWriter(out=str(target), columns=columns, size_limit=CHUNK) as out:
        for path, label in shuffled(tree):
            out.write({"data": read(path), "label": label})


def litdata_sample(entry: tuple[str, int]) -> dict[str, object]:
    return {"data": read(entry[0]), "label": entry[1]}


def litdata(tree: Path, target: Path) -> None:
    import litdata as library

    library.optimize(
        fn=litdata_sample,
        inputs=shuffled(tree),
        output_dir=str(target),
        chunk_bytes=CHUNK,
        num_workers=2,
    )


class FfcvSamples:
    def __init__(self, tree: Path) -> None:
        self.entries = shuffled(tree)

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: int) -> tuple[object, int]:
        path, label = self.entries[index]
        return np.frombuffer(read(path), np.uint8), label


def ffcv(tree: Path, target: Path) -> None:
    from ffcv.fields import BytesField, IntField
    from ffcv.writer import DatasetWriter

    fields = {"data": BytesField(), "label": IntField()}
    # Its bounded shuffle holds two batches' worth of pages: with the smallest page, half of this
    # dataset; with the usual one of 8 MiB, all of it and more.
    writer = DatasetWriter(str(target), fields, page_size=2 << 20, num_workers=2)
    writer.from_indexed_dataset(FfcvSamples(tree), shuffle_indices=False)


if __name__ == "__main__":
    kind, source, where = sys.argv[1:4]
    match kind:
        case "files" | "jpeg-files":
            make = files if kind == "files" else jpeg_files
            make(Path(where), int(sys.argv[4]), int(sys.argv[5]))
        case "webdataset":
            webdataset(Path(source), Path(where))
        case "streaming":
            streaming(Path(source), Path(where))
        case "litdata":
            litdata(Path(source), Path(where))
        case "ffcv":
            ffcv(Path(source), Path(where))
        case _:
            sys.exit(f"no format is called {kind}")
