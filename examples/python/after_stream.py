"""Trains the network of before.py on the same pictures, packed: whole batches for a DataLoader.

python after_stream.py DATASET
"""

import io
import sys

import numpy as np
import torch
from gristway.torch import StreamDataset
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader


def decode(data):
    picture = Image.open(io.BytesIO(data)).convert("RGB").resize((32, 32))
    return torch.from_numpy(np.asarray(picture, dtype=np.float32)).permute(2, 0, 1) / 255 - 0.5


def transform(sample):
    return decode(sample.data), sample.label


def main():
    torch.manual_seed(1)
    dataset = StreamDataset(sys.argv[1], batch_size=50, seed=1, transform=transform)
    loader = DataLoader(dataset, batch_size=None, num_workers=2)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 5, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(800, 5),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        seen = right = 0
        for images, labels in loader:
            outputs = model(images)
            loss = nn.functional.cross_entropy(outputs, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += len(labels)
            right += int((outputs.argmax(1) == labels).sum())
        print(f"epoch {epoch}: {seen} pictures, {100 * right / seen:.0f} % right")


if __name__ == "__main__":
    main()
