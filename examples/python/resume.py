"""Trains as loader.py does, with a checkpoint every ten batches. Kill it at any moment, start it
again, and it ends with the same model as if nothing had happened.

python resume.py DATASET CHECKPOINT
"""

import io
import os
import sys

import gristway
import numpy as np
import torch
from PIL import Image
from torch import nn


def decode(data):
    picture = Image.open(io.BytesIO(data)).convert("RGB").resize((32, 32))
    return torch.from_numpy(np.asarray(picture, dtype=np.float32)).permute(2, 0, 1) / 255 - 0.5


def transform(sample):
    return decode(sample.data), sample.label


def main():
    torch.manual_seed(1)
    dataset, checkpoint = sys.argv[1:]
    loader = gristway.Loader(dataset, batch_size=50, seed=1, transform=transform, num_workers=2)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 5, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(800, 5),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    if os.path.exists(checkpoint):
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        step = saved["step"]
        print(f"goes on after batch {step}, in epoch {loader.epoch}", flush=True)
    # The epoch that comes next; the first iteration may be the rest of one.
    while loader.epoch < 3:
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 10 == 0:
                state = {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "loader": loader.state_dict(),
                    "step": step,
                }
                torch.save(state, checkpoint + ".new")
                os.replace(checkpoint + ".new", checkpoint)
                print(f"batch {step}: loss {loss.item():.5f}", flush=True)
    print("done")


if __name__ == "__main__":
    main()
