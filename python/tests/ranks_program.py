"""What each rank of a job does in test_torch_ranks: reads two epochs in each of the ways there are.

Arguments: the dataset, the runtime folder, and a folder for what it has got.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch.distributed as dist
import transforms
from processes import nodes
from torch.utils.data import DataLoader, DistributedSampler

from gristway import Loader
from gristway.torch import MapDataset, StreamDataset

SETTINGS: dict[str, Any] = {"memory": "256KiB", "extent": "4KiB", "seed": 4}
BATCH = 6
EPOCHS = 2

Batches = list[list[tuple[int, bool]]]


def received(batches: Iterable[Any]) -> Batches:
    """Of each sample its number, and whether it is a repeat."""
    return [list(zip(numbers.tolist(), repeats.tolist())) for numbers, repeats in batches]


def count_nodes(folder: Path) -> int:
    """How many nodes there are while all ranks read."""
    dist.barrier()
    found = len(nodes(folder))
    dist.barrier()
    return found


def main(path: str, folder: Path, results: Path) -> None:
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    assert rank == int(os.environ["RANK"])
    got: dict[str, Any] = {}
    how: dict[str, Any] = {"transform": transforms.number_and_repeat, **SETTINGS}

    with Loader(path, BATCH, num_workers=2, **how) as loader:
        got["loader"] = [received(loader) for _ in range(EPOCHS)]
        got["length"] = len(loader)
        got["nodes"] = [count_nodes(folder)]
        got["state"] = loader.state_dict()
        dist.barrier()

    stream = StreamDataset(path, BATCH, **how)
    batches = DataLoader(stream, batch_size=None, num_workers=rank % 3)
    got["stream"] = [received(batches) for _ in range(EPOCHS)]
    got["nodes"].append(count_nodes(folder))
    del stream, batches

    for name, redirect in (("redirect", True), ("exact", False)):
        mapped = MapDataset(path, redirect=redirect, **how)
        sampler: DistributedSampler[Any] = DistributedSampler(mapped, seed=9)
        batches = DataLoader(mapped, batch_size=BATCH, sampler=sampler, num_workers=rank % 3)
        got[name] = []
        for epoch in range(EPOCHS):
            sampler.set_epoch(epoch)
            mapped.set_epoch(epoch)
            got[name].append(received(batches))
        got[f"{name} asked"] = [list(sampler)]
        got["nodes"].append(count_nodes(folder))
        del mapped, batches
    # One rank alone has a node of its own, whatever its job.
    if rank == 1:
        with Loader(path, 50, rank=0, world_size=1, **how) as loader:
            got["alone"] = received(loader)
    dist.barrier()
    (results / f"{rank}-of-{size}.json").write_text(json.dumps(got))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
