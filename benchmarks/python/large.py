"""Ten million samples: what a worker takes for itself, and how soon the first batch comes.

`large.py ARM DATASET` is one arm in a fresh process, which prints one JSON object. The arms called
`bare` are PyTorch alone, with batches that are made up: ours are compared with what they take.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import storage

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GRISTWAY = ROOT / "gristway"

SAMPLES = 10_000_000
SIZE = 100
BATCH = 256
BATCHES = 500  # of each worker, before its memory is looked at
WORKERS = 2
BLOCK = 512  # of a tar
ARMS = ["bare-stream", "ours-stream", "bare-map", "ours-map", "exact-map"]


def write_tar(path: Path, count: int) -> None:
    """A tar of samples that nobody needs as files; as arrays, which takes seconds."""
    import numpy as np

    header = np.zeros(BLOCK, np.uint8)

    def put(at: int, text: str) -> None:
        header[at : at + len(text)] = np.frombuffer(text.encode(), np.uint8)

    name = "c00/00000000.bin"
    put(0, name)
    put(100, "0000644\0" + "0000000\0" + "0000000\0" + f"{SIZE:011o}\0" + f"{0:011o}\0")
    put(148, " " * 8)
    put(156, "0")
    put(257, "ustar\00000")
    digits = [at for at, letter in enumerate(name) if letter == "0"]
    noise = np.random.default_rng(1).integers(0, 256, (1 << 16, SIZE), np.uint8)
    with open(path, "wb") as out:
        for start in range(0, count, 1 << 16):
            numbers = np.arange(start, min(count, start + (1 << 16)))
            entries = np.zeros((len(numbers), 2 * BLOCK), np.uint8)
            entries[:, :BLOCK] = header
            # The last two digits of the number are the folder, so that there are a hundred.
            for at, power in zip(digits, [1, 0, 7, 6, 5, 4, 3, 2, 1, 0], strict=True):
                entries[:, at] += (numbers // 10**power % 10).astype(np.uint8)
            sums = entries[:, :BLOCK].sum(axis=1, dtype=np.int64)
            for place in range(6):
                entries[:, 148 + place] = ord("0") + (sums >> (3 * (5 - place)) & 7)
            entries[:, 154] = 0
            entries[:, BLOCK : BLOCK + SIZE] = noise[: len(numbers)]
            out.write(entries.tobytes())
        out.write(bytes(2 * BLOCK))


def make(folder: Path, count: int) -> Path:
    dataset = folder / f"large-{count}"
    if not dataset.exists():
        print(f"making {dataset}", file=sys.stderr)
        folder.mkdir(parents=True, exist_ok=True)
        tar = folder / "large.tar"
        try:
            write_tar(tar, count)
            subprocess.run([str(GRISTWAY), "pack", str(tar), str(dataset)], check=True)
        finally:
            tar.unlink(missing_ok=True)
    return dataset


def run(options: argparse.Namespace) -> None:
    dataset = make(options.folder, options.samples)
    for round_number in range(options.rounds or 5):
        for arm in options.arms or ARMS:
            line = {"kind": "large", "arm": arm, "round": round_number, **run_arm(arm, dataset)}
            options.out.write(json.dumps(line) + "\n")
            options.out.flush()
            print(line, file=sys.stderr)


def run_arm(arm: str, dataset: Path) -> dict[str, Any]:
    groups = storage.Storage("nvme", dataset, 0)
    try:
        done = subprocess.run(
            [sys.executable, str(HERE / "large.py"), arm, str(dataset)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": f"{HERE}:{ROOT / 'python' / 'src'}"},
            preexec_fn=lambda: groups.count(os.getpid()),
        )
    finally:
        groups.close()
    if done.returncode != 0:
        return {"error": (done.stderr.strip().splitlines() or ["failed without a word"])[-1]}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**result, "peak_memory": groups.peak_bytes}


def private(process: int) -> int:
    """The bytes that would be free if this process were not there."""
    total = 0
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("Private_Clean", "Private_Dirty"):
            total += int(value.split()[0]) * 1024
    return total


def loader_of(arm: str, path: str) -> Callable[[], Any]:
    """Creates the loader of an arm; everything is imported by then."""
    import torch
    from arm import listed
    from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler

    made_up = [bytes(SIZE)] * BATCH

    class BareStream(IterableDataset[Any]):
        def __iter__(self) -> Iterator[Any]:
            while True:
                yield list(made_up), torch.zeros(BATCH, dtype=torch.int64)

    class BareMap(Dataset[Any]):
        def __len__(self) -> int:
            return SAMPLES

        def __getitem__(self, index: int) -> tuple[bytes, int]:
            return made_up[0], 0

    def stream(dataset: Any) -> Any:
        return DataLoader(
            dataset, batch_size=None, num_workers=WORKERS, multiprocessing_context="fork"
        )

    def by_index(dataset: Any) -> Any:
        return DataLoader(
            dataset,
            batch_size=BATCH,
            sampler=RandomSampler(dataset),
            num_workers=WORKERS,
            collate_fn=listed,
            multiprocessing_context="fork",
        )

    if arm == "bare-stream":
        return lambda: stream(BareStream())
    if arm == "bare-map":
        return lambda: by_index(BareMap())
    from gristway.torch import MapDataset, StreamDataset

    if arm == "ours-stream":
        return lambda: stream(StreamDataset(path, batch_size=BATCH))
    return lambda: by_index(MapDataset(path, redirect=arm == "ours-map"))


def main() -> None:
    arm, path = sys.argv[1:]
    create = loader_of(arm, path)
    begin = time.perf_counter()
    loader = create()
    batches = iter(loader)
    next(batches)
    first = time.perf_counter() - begin
    workers = [worker.pid for worker in batches._workers]
    for _ in range(BATCHES * WORKERS):
        next(batches)
    result = {
        "first_batch": first,
        "worker": max(private(worker) for worker in workers),
        "trainer": private(os.getpid()),
    }
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
