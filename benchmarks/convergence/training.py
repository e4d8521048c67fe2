"""Trains a small network on batches that come from anywhere, and tests it after every epoch.

All that may differ between two trainings with the same seed is the order of the samples: the
network starts from the same weights and takes the same number of steps at the same rates.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import fashion
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import BatchSampler, RandomSampler

Images = NDArray[np.uint8]
Labels = NDArray[np.int64]
# An epoch's batches: pictures (samples x 784) and their labels.
Epoch = Callable[[], Iterable[tuple[Images, Labels]]]

BATCH_SIZE = 128
EPOCHS = 10
TOP_RATE = 0.05


@dataclass
class Outcome:
    """What a training gave; the lists have one entry an epoch."""

    accuracy: list[float] = field(default_factory=list)  # of the test pictures, in percent
    loss: list[float] = field(default_factory=list)  # of the training batches, mean
    clumping: list[float] = field(default_factory=list)  # of labels in batches, see clumping()
    digest: list[str] = field(default_factory=list)  # SHA-256 of the pictures in training's order


def train(
    epoch: Epoch,
    test: tuple[Images, Labels],
    *,
    steps_per_epoch: int,
    seed: int,
    epochs: int = EPOCHS,
) -> Outcome:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(seed)
    network = small_cnn().to(device)
    optimizer = torch.optim.SGD(
        network.parameters(), lr=TOP_RATE, momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    # Down to 0 at the last step, so that the final accuracy is not that of a random last stretch.
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: (1 + math.cos(math.pi * step / (steps_per_epoch * epochs))) / 2
    )
    test_images = scaled(test[0], device)
    test_labels = torch.from_numpy(test[1]).to(device)

    outcome = Outcome()
    for _ in range(epochs):
        network.train()
        digest = hashlib.sha256()
        labels_of_batches: list[Labels] = []
        losses: list[Tensor] = []
        for images, labels in epoch():
            digest.update(images.tobytes())
            labels_of_batches.append(labels)
            predicted = network(scaled(images, device))
            loss = nn.functional.cross_entropy(predicted, torch.from_numpy(labels).to(device))
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
            rate.step()
            losses.append(loss.detach())
        if len(losses) != steps_per_epoch:
            raise ValueError(f"{len(losses)} batches came in place of {steps_per_epoch}")
        outcome.accuracy.append(accuracy(network, test_images, test_labels))
        outcome.loss.append(torch.stack(losses).mean().item())
        outcome.clumping.append(clumping(labels_of_batches))
        outcome.digest.append(digest.hexdigest())
    return outcome


def small_cnn() -> nn.Module:
    """Two convolutions and two dense layers. Batch normalization is in it on purpose: it makes a
    network feel batches whose samples are alike."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * (fashion.SIDE // 4) ** 2, 128),
        nn.ReLU(),
        nn.Linear(128, fashion.CLASSES),
    )


def scaled(images: Images, device: torch.device) -> Tensor:
    """Bytes as a network wants them: about -1 to 1, in squares."""
    pixels = torch.from_numpy(images).to(device)
    return pixels.view(-1, 1, fashion.SIDE, fashion.SIDE).float().div_(127.5).sub_(1)


def accuracy(network: nn.Module, images: Tensor, labels: Tensor) -> float:
    network.eval()
    right = 0
    with torch.inference_mode():
        for some, theirs in zip(torch.split(images, 1000), torch.split(labels, 1000), strict=True):
            right += int((network(some).argmax(1) == theirs).sum())
    return 100 * right / len(labels)


def clumping(labels_of_batches: Sequence[Labels]) -> float:
    """How much more the number of a class's samples varies from batch to batch than by chance.

    1 is a true shuffle; batches of one class each give the batch size. It is the mean over batches
    of the chi-squared statistic of their label counts, divided by its degrees of freedom.
    """
    shares = np.bincount(np.concatenate(labels_of_batches)) / sum(map(len, labels_of_batches))
    values = []
    for labels in labels_of_batches:
        expected = len(labels) * shares
        counts = np.bincount(labels, minlength=len(shares))
        values.append(((counts - expected) ** 2 / expected).sum() / (len(shares) - 1))
    return float(np.mean(values))


def global_shuffle(images: Images, labels: Labels, seed: int) -> Epoch:
    """The reference: all samples in memory, and torch's sampler draws from all of them."""
    sampler = RandomSampler(range(len(labels)), generator=torch.Generator().manual_seed(seed))

    def epoch() -> Iterator[tuple[Images, Labels]]:
        for numbers in BatchSampler(sampler, BATCH_SIZE, drop_last=False):
            yield images[numbers], labels[numbers]

    return epoch
