"""Ranks of torch.multiprocessing: `worlds_program.py CASES DATASET FOLDER RESULTS`.

Nothing in the environment says which rank a process is. `once` reads with each class, made before and
after the group; `machines` gives each rank a runtime folder of its own, so that they have nothing but
the group's store in common, and has them differ in several ways; `forked` reads what was made before the
ranks were forked, as notebooks do.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch.distributed as dist
import torch.multiprocessing
import transforms
from torch.utils.data import DataLoader, DistributedSampler, Sampler

from gristway import Error, Loader, agreement
from gristway.torch import MapDataset, StreamDataset

HOW: dict[str, Any] = {
    "transform": transforms.number_and_repeat,
    "memory": "256KiB",
    "extent": "4KiB",
}
BATCH = 10
RANKS = 2


def numbers(batches: Any) -> list[int]:
    return [
        number
        for each, repeats in batches
        for number, is_repeat in zip(each.tolist(), repeats.tolist())
        if not is_repeat
    ]


def streamed(dataset: StreamDataset, workers: int) -> list[int]:
    return numbers(DataLoader(dataset, batch_size=None, num_workers=workers))


def mapped(dataset: MapDataset) -> list[int]:
    sampler: DistributedSampler[Any] = DistributedSampler(dataset)
    return numbers(DataLoader(dataset, BATCH, sampler=sampler, num_workers=2))


def once(path: str, _: Path, join: Callable[[], None], passed: StreamDataset) -> Any:
    loader = Loader(path, BATCH, num_workers=1, **HOW)
    stream = StreamDataset(path, BATCH, **HOW)
    redirected = MapDataset(path, redirect=True, **HOW)
    alone = Loader(path, BATCH, rank=0, world_size=1, **HOW)
    before = [len(loader), len(stream)]
    join()
    got = {
        "Loader": numbers(loader),
        "StreamDataset, workers": streamed(stream, 2),
        "MapDataset": mapped(redirected),
        "Loader, made later": numbers(Loader(path, BATCH, **HOW)),
        "StreamDataset, made later": streamed(StreamDataset(path, BATCH, **HOW), 1),
    }
    lengths = [before, [len(loader), len(stream)]]
    parted = {name: until_refused(name, path, 2) for name in PEEKS}
    got |= left_alike(path)
    with Loader(path, BATCH, **HOW) as shared:
        next(iter(shared))
        socket = shared._source._client.where.socket
    return {
        "once": got,
        "lengths": lengths,
        "passed": refused(lambda: passed),
        "alone": len(numbers(alone)),
        "socket": socket,
        "parted": parted,
    }


def loader_that_peeks(path: str, _: int) -> Any:
    loader = Loader(path, BATCH, **HOW)
    if dist.get_rank() == 0:
        next(iter(loader))
    return loader


def stream_that_peeks(path: str, workers: int) -> Any:
    loader = DataLoader(
        StreamDataset(path, BATCH, **HOW),
        batch_size=None,
        num_workers=workers,
        multiprocessing_context="fork" if workers else None,
        prefetch_factor=1 if workers else None,
    )
    if dist.get_rank() == 0:
        next(iter(loader))
    return loader


def map_that_peeks(path: str, workers: int) -> Any:
    dataset = MapDataset(path, redirect=True, **HOW)
    if dist.get_rank() == 0:
        dataset[0]
    return DataLoader(
        dataset,
        BATCH,
        sampler=Plain(dataset),
        num_workers=workers,
        multiprocessing_context="fork" if workers else None,
    )


class Plain(Sampler[int]):
    """A sampler that is told no epoch."""

    def __init__(self, dataset: MapDataset) -> None:
        self._own = range(dist.get_rank(), len(dataset), RANKS)

    def __len__(self) -> int:
        return len(self._own)

    def __iter__(self) -> Iterator[int]:
        return iter(self._own)


def made_that_peeks(loader: Loader, _: int) -> Any:
    if dist.get_rank() == 0:
        next(iter(loader))
    return loader


PEEKS = {"Loader": loader_that_peeks, "Stream": stream_that_peeks, "Map": map_that_peeks}
ALL_PEEKS = {**PEEKS, "made": made_that_peeks}


def until_refused(name: str, path: Any, workers: int) -> str:
    """What comes of a peek of one rank alone."""
    deadline = time.monotonic() + 60
    try:
        loader = ALL_PEEKS[name](path, workers)
        while time.monotonic() < deadline:
            for _ in loader:
                pass
    except Error as wrong:
        return str(wrong)
    return "nothing"


def left_alike(path: str) -> dict[str, list[int]]:
    """A whole epoch, after some that both ranks have left after the same batch, with workers that are
    ahead of training or not; and inside a loop."""
    rank = dist.get_rank()
    dataset = MapDataset(path, redirect=True, **HOW)
    workers: list[dict[str, Any]] = [{}, {"num_workers": 2, "multiprocessing_context": "fork"}]
    stream = DataLoader(StreamDataset(path, BATCH, **HOW), batch_size=None, **workers[rank])
    redirected = DataLoader(dataset, BATCH, sampler=Plain(dataset), **workers[1 - rank])
    loader = Loader(path, BATCH, num_workers=rank, workers="threads", **HOW)
    got = {}
    for name, batches in (("stream", stream), ("map", redirected), ("Loader", loader)):
        for steps in (3, 1):
            list(itertools.islice(iter(batches), steps))
        got[f"{name}, after breaks"] = numbers(batches)
    inside = DataLoader(StreamDataset(path, BATCH, **HOW), batch_size=None)
    outer = []
    for step, batch in enumerate(inside):
        outer.append(batch)
        if step % 2:
            next(iter(inside))
    got["stream, around looks"] = numbers(outer)
    return got


def forked(path: str, _: Path, join: Callable[[], None], made: dict[str, Any]) -> Any:
    """Reads what the process has made that has forked the ranks."""
    join()
    streams = [DataLoader(made["Stream"], batch_size=None, num_workers=count) for count in (0, 1)]
    redirected = DataLoader(made["Map"], BATCH)
    return {
        "refused": [refused(partial(iter, each)) for each in (*streams, redirected)],
        "once": {
            "Loader": numbers(made["Loader"]),
            "exact": mapped(made["exact"]),
            "made in the rank": streamed(StreamDataset(path, BATCH, **HOW), 2),
        },
        "parted": until_refused("made", made["peeked"], 0),
    }


def refused(make: Callable[[], Any]) -> str:
    try:
        next(iter(make()))
    except Error as wrong:
        return f"{type(wrong).__name__}: {wrong}"
    return "nothing"


def machines(path: str, folder: Path, join: Callable[[], None], passed: StreamDataset) -> Any:
    # As if each were on a machine of its own.
    own = folder / str(os.getpid())
    own.mkdir(mode=0o700)
    os.environ["GRISTWAY_RUNTIME_DIR"] = str(own)
    agreement._COME_SECONDS = 3.0
    early = Loader(path, BATCH, seed=os.getpid(), **HOW)
    join()
    rank = dist.get_rank()
    got = {
        "seed": refused(lambda: Loader(path, BATCH, seed=7 + rank, **HOW)),
        "seed, made early": refused(lambda: early),
        "given": refused(
            lambda: Loader(path, BATCH, seed=7 + rank, rank=rank, world_size=RANKS, **HOW)
        ),
        "alike": refused(lambda: Loader(path, BATCH, **HOW)),
        "stream": refused(
            lambda: DataLoader(StreamDataset(path, 3 + rank, **HOW), None, num_workers=1)
        ),
    }
    for name, workers in (("Loader", 0), ("Stream", 0), ("Stream", 1), ("Map", 0)):
        got[f"{name} {workers}"] = until_refused(name, path, workers)
    if rank == 0:
        first = Loader(path, BATCH, **HOW)
        more = folder / "more"
        more.mkdir()
        (more / "one more").write_bytes(b"x" * 300)
        command = [os.environ["GRISTWAY_COMMAND"], "append", str(more), path]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    dist.barrier()
    second = first if rank == 0 else Loader(path, BATCH, **HOW)
    got["append"] = refused(lambda: second)
    got["exact"] = refused(lambda: MapDataset(path, **HOW))
    dist.barrier()
    got["only rank 0"] = refused(lambda: Loader(path, BATCH, **HOW)) if rank == 0 else ""
    dist.barrier()
    return got


def rank_main(rank: int, cases: str, path: str, folder: Path, results: Path, passed: Any) -> None:
    def join() -> None:
        dist.init_process_group(
            "gloo", init_method=f"file://{results}/group", rank=rank, world_size=RANKS
        )

    got = {"once": once, "machines": machines, "forked": forked}[cases](path, folder, join, passed)
    (results / f"{rank}.json").write_text(json.dumps(got))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    what, data, *folders = sys.argv[1:]
    made: Any = StreamDataset(data, BATCH, **HOW)
    if what == "forked":
        made = {
            "Stream": made,
            "Map": MapDataset(data, redirect=True, **HOW),
            "exact": MapDataset(data, **HOW),
            "Loader": Loader(data, BATCH, **HOW),
            "peeked": Loader(data, BATCH, **HOW),
        }
    torch.multiprocessing.start_processes(
        rank_main,
        (what, data, Path(folders[0]), Path(folders[1]), made),
        nprocs=RANKS,
        start_method="fork" if what == "forked" else "spawn",
    )
