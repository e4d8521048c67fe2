"""A rank of a job of several nodes: `cluster_program.py DATASET [option=value ...]`.

It reads as it is told on standard input, a line at a time: a number of batches to take, `state` to
print its state, `counters` for those of its node, `warnings` for what it has logged, `break` to go on
with the next epoch, `epoch N` to go on with that one. It answers each
batch with a line of JSON, the keys of its samples, and `over` in place of a batch when the epoch is.
An error is a line that begins with `raised`. `state=FILE` goes on from a state; the other options are
those of `gristway.Loader`.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import kills_program

import gristway


def say(answer: Any) -> None:
    print(json.dumps(answer), flush=True)


class Warnings(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def main() -> None:
    path, *words = sys.argv[1:]
    given = dict(word.split("=", 1) for word in words)
    state = given.pop("state", None)
    options: dict[str, Any] = {
        name: int(text) if text.isdigit() else text for name, text in given.items()
    }
    warnings = Warnings()
    logging.getLogger("gristway").addHandler(warnings)
    loader = gristway.Loader(path, transform=key, collate_fn=kills_program.as_they_are, **options)
    if state:
        loader.load_state_dict(json.loads(Path(state).read_text()))
    batches = iter(loader)
    for line in sys.stdin:
        if line == "state\n":
            say(loader.state_dict())
        elif line == "counters\n":
            say(loader.stats()["node"])
        elif line == "warnings\n":
            say(warnings.lines)
        elif line == "break\n":
            batches = iter(loader)
        elif line.startswith("epoch "):
            loader.set_epoch(int(line.split()[1]))
            batches = iter(loader)
        else:
            for _ in range(int(line)):
                batch = next(batches, None)
                say("over" if batch is None else batch)
                if batch is None:
                    batches = iter(loader)
    loader.close()


def key(sample: gristway.Sample) -> str:
    """A transform: the sample's key."""
    return sample.key


if __name__ == "__main__":
    try:
        main()
    except gristway.Error as wrong:
        print(f"raised {type(wrong).__name__}: {wrong}", flush=True)
