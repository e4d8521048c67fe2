"""Trains with transformers.Trainer, and goes on in mid-epoch after it was stopped.

torchrun --nproc-per-node 2 transformers_train.py DATASET loader|map FOLDER [STEPS]

It stops after STEPS, and goes on from what it finds in FOLDER. There each rank notes which samples it has
trained on.
"""

import sys
from pathlib import Path

import gristway
import torch
from gristway.torch import MapDataset
from torch import nn
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint


def transform(sample):
    inputs = torch.frombuffer(bytearray(sample.data[:16]), dtype=torch.uint8)
    return {"inputs": inputs.float() / 255, "labels": sample.label, "samples": sample.id}


class Model(nn.Module):
    def __init__(self, folder):
        super().__init__()
        self.folder = folder
        self.epoch = 0
        self.layer = nn.Linear(16, 10)

    def forward(self, inputs, labels, samples):
        with open(Path(self.folder, f"rank-{torch.distributed.get_rank()}"), "a") as notes:
            print(f"epoch {self.epoch}:", *samples.tolist(), file=notes)
        return {"loss": nn.functional.cross_entropy(self.layer(inputs), labels)}


class LoaderTrainer(Trainer):
    """Trains from a gristway.Loader, which knows its rank."""

    loader = None

    def get_train_dataloader(self):
        return self.loader


class Tell(TrainerCallback):
    """Tells the epoch before Trainer leaves out what was trained on, and stops after some steps."""

    def __init__(self, model, loader, stop):
        self.model, self.loader, self.stop = model, loader, stop

    def on_epoch_begin(self, args, state, control, **others):
        self.model.epoch = int(state.epoch)
        if self.loader is not None:
            self.loader.set_epoch(int(state.epoch))

    def on_step_end(self, args, state, control, **others):
        control.should_training_stop = state.global_step == self.stop


def main():
    path, kind, folder, *steps = sys.argv[1:]
    stop = int(steps[0]) if steps else None
    model = Model(folder)
    arguments = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=10,
        num_train_epochs=2,
        save_steps=stop or 1_000_000,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
    )
    if kind == "loader":
        trainer = LoaderTrainer(model, arguments)
        trainer.loader = gristway.Loader(path, batch_size=10, transform=transform)
        trainer.add_callback(Tell(model, trainer.loader, stop))
    else:
        dataset = MapDataset(path, transform=transform, redirect=True)
        trainer = Trainer(model, arguments, train_dataset=dataset)
        trainer.add_callback(Tell(model, None, stop))
    trainer.train(resume_from_checkpoint=get_last_checkpoint(folder))


if __name__ == "__main__":
    main()
