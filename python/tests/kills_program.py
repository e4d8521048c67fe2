"""A training process that tests kill: `kills_program.py DATASET [option=value ...]`.

It makes a loader and begins an epoch, says `begun`, and is then told on standard input how many
batches to take, a number a line. It writes each batch as a line of JSON with the numbers of its
samples, and `over` in place of a batch when the epoch is; the next is then begun. Where standard input
ends, it takes what is left of the epoch and ends.

Options are those of `gristway.Loader`; `module=torch` reads with StreamDataset and a DataLoader.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

import gristway


def number(sample: gristway.Sample) -> int:
    """A transform: the sample's number in the dataset."""
    return sample.id


def content(sample: gristway.Sample) -> bytes:
    """A transform: the sample's bytes."""
    return bytes(sample.data)


def key_and_content(sample: gristway.Sample) -> tuple[str, bytes]:
    """A transform that asks the node for something on the side."""
    return sample.key, bytes(sample.data)


def as_they_are(samples: list[Any]) -> list[Any]:
    """A collate_fn."""
    return samples


def _loader(path: str, options: dict[str, Any]) -> Iterable[list[int]]:
    if options.pop("module", "gristway") == "gristway":
        return gristway.Loader(path, transform=number, collate_fn=as_they_are, **options)
    from torch.utils.data import DataLoader

    from gristway.torch import StreamDataset

    workers = options.pop("num_workers")
    dataset = StreamDataset(path, transform=number, collate_fn=as_they_are, **options)
    return DataLoader(dataset, batch_size=None, num_workers=workers)


def main() -> None:
    path, *words = sys.argv[1:]
    given = dict(word.split("=", 1) for word in words)
    options = {name: int(text) if text.isdigit() else text for name, text in given.items()}
    loader = _loader(path, options)
    batches = iter(loader)
    print("begun", flush=True)
    for line in sys.stdin:
        for _ in range(int(line)):
            batch = next(batches, None)
            print("over" if batch is None else json.dumps(batch), flush=True)
            if batch is None:
                batches = iter(loader)
    for batch in batches:
        print(json.dumps(batch), flush=True)
    print("over", flush=True)


if __name__ == "__main__":
    main()
