"""Trains with Lightning on two ranks, and goes on in mid-epoch after it was stopped.

python lightning_train.py DATASET loader|stream|map FOLDER [STEPS]

It stops after STEPS, and goes on from what it finds in FOLDER. There each rank notes which samples it has
trained on.
"""

import sys
from pathlib import Path

import gristway
import lightning
import torch
from gristway.torch import MapDataset, StreamDataset
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler
from torchdata.stateful_dataloader import StatefulDataLoader


def transform(sample):
    inputs = torch.frombuffer(bytearray(sample.data[:16]), dtype=torch.uint8)
    return inputs.float() / 255, sample.label, sample.id


class Model(lightning.LightningModule):
    def __init__(self, path, kind, folder):
        super().__init__()
        self.path, self.kind, self.folder = path, kind, folder
        self.layer = nn.Linear(16, 10)

    def train_dataloader(self):
        if self.kind == "loader":  # knows its rank
            return gristway.Loader(self.path, batch_size=10, transform=transform)
        if self.kind == "stream":  # knows its rank too
            dataset = StreamDataset(self.path, batch_size=10, transform=transform)
            return StatefulDataLoader(dataset, batch_size=None)
        # Of a StatefulDataLoader with shuffle=True Lightning would give each rank an order of its own.
        dataset = MapDataset(self.path, transform=transform, redirect=True)
        return StatefulDataLoader(dataset, batch_size=10, sampler=DistributedSampler(dataset))

    def val_dataloader(self):
        dataset = MapDataset(self.path, transform=transform, redirect=True)
        return DataLoader(dataset, batch_size=10)

    def training_step(self, batch, _):
        inputs, labels, samples = batch
        with open(Path(self.folder, f"rank-{self.global_rank}"), "a") as notes:
            print(f"epoch {self.current_epoch}:", *samples.tolist(), file=notes)
        return nn.functional.cross_entropy(self.layer(inputs), labels)

    def validation_step(self, batch, _):
        inputs, labels, samples = batch
        with open(Path(self.folder, f"validation-{self.global_rank}"), "a") as notes:
            print(
                "check:" if self.trainer.sanity_checking else "validation:",
                *samples.tolist(),
                file=notes,
            )

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main():
    path, kind, folder, *steps = sys.argv[1:]
    stop = int(steps[0]) if steps else -1
    last = Path(folder, "last.ckpt")
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=2,
        max_steps=stop,
        callbacks=[ModelCheckpoint(folder, save_last=True, every_n_train_steps=max(stop, 1))],
        logger=False,
        enable_progress_bar=False,
    )
    trainer.fit(Model(path, kind, folder), ckpt_path=last if last.exists() else None)


if __name__ == "__main__":
    main()
