"""Trains on several GPUs or processors of a machine, and saves when the job is told to end: SIGTERM, as
schedulers send it before they take a machine away. Started again, it goes on with the next batch.

torchrun --nproc-per-node 2 preempted.py DATASET CHECKPOINT [LOG]

LOG is a folder, in which each rank notes which samples it has trained with.
"""

import io
import os
import signal
import sys
from pathlib import Path

import gristway
import numpy as np
import torch
import torch.distributed as dist
from PIL import Image
from torch import nn
from torch.nn.parallel import DistributedDataParallel

EPOCHS = 5


def transform(sample):
    picture = Image.open(io.BytesIO(sample.data)).convert("RGB").resize((16, 16))
    pixels = torch.from_numpy(np.asarray(picture, dtype=np.float32)).flatten() / 255 - 0.5
    return pixels, sample.label, sample.id


def main():
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    dataset, checkpoint, *log = sys.argv[1:]
    told = []
    signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))

    loader = gristway.Loader(dataset, 4, seed=1, memory="8MiB", transform=transform)
    model = DistributedDataParallel(nn.Linear(16 * 16 * 3, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    if os.path.exists(checkpoint):
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        loader.load_state_dict(saved["loader"])
    while loader.epoch < EPOCHS:
        epoch = loader.epoch
        for pixels, labels, numbers in loader:
            loss = nn.functional.cross_entropy(model(pixels), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if log:
                with (Path(log[0]) / f"{rank}").open("a") as file:
                    print(epoch, *numbers.tolist(), file=file)
            # The signal reaches ranks at different steps; all end after the same one.
            ends = torch.tensor(len(told))
            dist.all_reduce(ends)
            if ends:
                if rank == 0:
                    state = {"model": model.state_dict(), "loader": loader.state_dict()}
                    torch.save(state, checkpoint + ".new")
                    os.replace(checkpoint + ".new", checkpoint)
                    print(f"saved in epoch {epoch}", flush=True)
                dist.barrier()
                dist.destroy_process_group()
                return
    dist.destroy_process_group()
    if rank == 0:
        print("done", flush=True)


if __name__ == "__main__":
    main()
