"""Trains with Accelerate, and goes on in mid-epoch after it was stopped.

torchrun --nproc-per-node 2 accelerate_train.py DATASET loader|stream|map FOLDER [STEPS]

It stops after STEPS, and goes on from what it finds in FOLDER. There each rank notes which samples it has
trained on.
"""

import sys
from pathlib import Path

import gristway
import torch
from accelerate import Accelerator
from gristway.torch import MapDataset, StreamDataset
from torch import nn
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

EPOCHS = 2


def transform(sample):
    inputs = torch.frombuffer(bytearray(sample.data[:16]), dtype=torch.uint8)
    return inputs.float() / 255, sample.label, sample.id


def main():
    path, kind, folder, *steps = sys.argv[1:]
    stop = int(steps[0]) if steps else None
    accelerator = Accelerator(cpu=True)
    if kind == "loader":  # knows its rank: passes through prepare() as it is
        loader = gristway.Loader(path, batch_size=10, transform=transform)
    elif kind == "stream":  # knows its rank too, and prepare() would deal its batches again
        dataset = StreamDataset(path, batch_size=10, transform=transform)
        loader = StatefulDataLoader(dataset, batch_size=None)
    else:
        dataset = MapDataset(path, transform=transform, redirect=True)
        loader = accelerator.prepare(DataLoader(dataset, batch_size=10, shuffle=True))
    model = nn.Linear(16, 10)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))

    checkpoint = Path(folder, "checkpoint.pt")
    first_epoch = done = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        accelerator.unwrap_model(model).load_state_dict(saved["model"])
        first_epoch, done = saved["epoch"], saved["done"]
        if kind != "map":
            loader.load_state_dict(saved["loader"])
    for epoch in range(first_epoch, EPOCHS):
        batches = loader
        if kind == "map":
            loader.set_epoch(epoch)
            batches = accelerator.skip_first_batches(loader, done) if done else loader
        for inputs, labels, samples in batches:
            # Only what prepare() has made puts batches on the device.
            inputs, labels = inputs.to(accelerator.device), labels.to(accelerator.device)
            with open(Path(folder, f"rank-{accelerator.process_index}"), "a") as notes:
                print(f"epoch {epoch}:", *samples.tolist(), file=notes)
            accelerator.backward(nn.functional.cross_entropy(model(inputs), labels))
            optimizer.step()
            optimizer.zero_grad()
            done += 1
            if epoch * len(loader) + done == stop:
                state = {"model": accelerator.unwrap_model(model).state_dict()}
                state |= {"epoch": epoch, "done": done}
                if kind != "map":
                    state["loader"] = loader.state_dict()
                accelerator.save(state, checkpoint)
                accelerator.end_training()
                return
        done = 0
    accelerator.end_training()


if __name__ == "__main__":
    main()
