"""Trains on several machines, which push samples to each other, with a checkpoint every five steps.
Kill a machine, start the others again, as many as are left, and every sample of the epoch is still
trained with once.

torchrun --nnodes 2 --nproc-per-node 2 --node-rank N --master-addr HOST ddp.py DATASET CHECKPOINT [LOG]

or by srun, with MASTER_ADDR and MASTER_PORT set: see ../torchrun/train.sh and ../slurm/train.sbatch.
CHECKPOINT is a file that all machines can read and write. LOG is a folder, in which each rank notes
which samples it has trained with. See docs/cluster.md for what to set.
"""

import contextlib
import io
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import gristway
import numpy as np
import torch
import torch.distributed as dist
from PIL import Image
from torch import nn
from torch.nn.parallel import DistributedDataParallel

EPOCHS = 2


def transform(sample):
    picture = Image.open(io.BytesIO(sample.data)).convert("RGB").resize((16, 16))
    pixels = torch.from_numpy(np.asarray(picture, dtype=np.float32)).flatten() / 255 - 0.5
    return pixels, sample.label, sample.id


@contextlib.contextmanager
def together(batches):
    """For what all ranks do at once. When a machine is lost it fails at all others; torch says only
    that, and Gristway, within 10 s, which of them it was: where the samples end that it would have
    sent."""
    try:
        yield
    except RuntimeError:
        until = time.monotonic() + 10
        for _ in batches:
            if time.monotonic() > until:  # it was something else
                break
        raise


def save(checkpoint, **state):
    torch.save(state, checkpoint + ".new")
    os.replace(checkpoint + ".new", checkpoint)


def main():
    torch.manual_seed(1)
    # Gristway knows what either launcher says; torch only knows torchrun.
    said = ("RANK", "WORLD_SIZE") if "RANK" in os.environ else ("SLURM_PROCID", "SLURM_NTASKS")
    rank, size = (int(os.environ[name]) for name in said)
    dist.init_process_group("gloo", rank=rank, world_size=size, timeout=timedelta(seconds=30))
    dataset, checkpoint, *log = sys.argv[1:]
    # A rank's share of the batch: the global batch stays the same with fewer machines.
    loader = gristway.Loader(
        dataset, 24 // size, seed=1, memory="8MiB", exchange=1, transform=transform
    )
    model = DistributedDataParallel(nn.Linear(16 * 16 * 3, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    step = 0
    if os.path.exists(checkpoint):
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        loader.load_state_dict(saved["loader"])
        step = saved["step"]
    while loader.epoch < EPOCHS:
        epoch, batches = loader.epoch, iter(loader)
        for pixels, labels, numbers in batches:
            loss = nn.functional.cross_entropy(model(pixels), labels)
            optimizer.zero_grad()
            step += 1
            if log:  # before what all do at once, so that no rank's line is missing behind it
                with (Path(log[0]) / f"{rank}-of-{size}").open("a") as file:
                    print(epoch, step, *numbers.tolist(), file=file)
            with together(batches):
                loss.backward()
            optimizer.step()
            if step % 5 == 0:
                if rank == 0:
                    state = {"model": model.state_dict(), "loader": loader.state_dict()}
                    save(checkpoint, step=step, **state)
                    print(f"step {step}: loss {loss.item():.4f}", flush=True)
                with together(batches):
                    dist.barrier()  # nobody goes on before it is written
    loader.close()
    dist.destroy_process_group()
    if rank == 0:
        print("done", flush=True)


if __name__ == "__main__":
    main()
