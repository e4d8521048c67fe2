"""A training process of a trial: `trial_rank.py SETTINGS`, which are JSON.

It does what it is told on standard input and answers on standard output, a line of JSON each:

    {"do": "begin", "epoch": 0}   begins an epoch; {"begun": true}
    {"do": "next"}                takes a batch; {"batch": [[key, fault, is_repeat, is_damaged], ...]},
                                  or {"over": true}; a fault is "" or what is wrong with the sample
    {"do": "state"}               {"state": ...}
    {"do": "fork"}                forks a child that keeps the views of the last batch; {"forked": true}
    {"do": "join"}                has that child look at its views again; {"joined": fault}
    {"do": "scribble"}            writes through the views of the last batch; {"scribbled": count}
    {"do": "close"}               {"closed": true}, and ends

What is raised is answered with {"error": kind, "message": text}.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import trial_data

import gristway

Row = tuple[str, str, bool, bool]


def examine(sample: gristway.Sample) -> Row:
    """A transform: what is wrong with a sample."""
    key = sample.key
    data = bytes(sample.data)
    fault = ""
    if data != trial_data.content(key, TAG):
        fault = f"bytes are not those of {key}, but begin with {data[:40]!r}"
    elif sample.label != trial_data.label(key):
        fault = f"{key} has the label {sample.label}"
    return key, fault, sample.is_repeat, sample.is_damaged


def as_they_are(rows: list[Any]) -> list[Any]:
    """A collate_fn."""
    return rows


TAG = "A"


class Trainer:
    """Reads in one of the ways that users have."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._way: str = settings["way"]
        self._options: dict[str, Any] = settings["options"]
        self._batches: Iterator[Any] | None = None
        self._data: list[memoryview] = []
        self._child: tuple[int, int, int] | None = None
        self.loader: Any = None
        self._dataset: Any = None
        self._sampler: Any = None
        path = settings["path"]
        if self._way in ("loader", "views"):
            how = {} if self._way == "views" else {"transform": examine, "collate_fn": as_they_are}
            self.loader = gristway.Loader(path, **how, **self._options)
            if settings["state"]:
                self.loader.load_state_dict(settings["state"])
            return
        from torch.utils.data import DataLoader, DistributedSampler

        from gristway.torch import MapDataset, StreamDataset

        workers = self._options.pop("num_workers")
        if self._way == "stream":
            self._dataset = StreamDataset(
                path, transform=examine, collate_fn=as_they_are, **self._options
            )
            self.loader = DataLoader(self._dataset, batch_size=None, num_workers=workers)
            return
        size = self._options.pop("batch_size")
        self._options.pop("drop_last")
        redirect = self._way == "redirect"
        self._dataset = MapDataset(path, transform=examine, redirect=redirect, **self._options)
        world = int(os.environ.get("WORLD_SIZE", "1"))
        if world > 1:
            self._sampler = DistributedSampler(
                self._dataset, num_replicas=world, rank=int(os.environ["RANK"]), seed=5
            )
        self.loader = DataLoader(
            self._dataset,
            size,
            shuffle=self._sampler is None,
            sampler=self._sampler,
            collate_fn=as_they_are,
            num_workers=workers,
        )

    def begin(self, epoch: int) -> None:
        self._batches = None
        self._data = []
        if self._dataset is not None:
            self._dataset.set_epoch(epoch)
            if self._sampler is not None:
                self._sampler.set_epoch(epoch)
        elif self.loader.epoch != epoch:
            self.loader.set_epoch(epoch)
        self._batches = iter(self.loader)

    def next(self) -> list[Row] | None:
        assert self._batches is not None
        self._data = []
        batch = next(self._batches, None)
        if batch is None:
            return None
        if self._way != "views":
            return list(batch)
        self._data, labels = batch
        return [_row(data, int(label)) for data, label in zip(self._data, labels)]

    def fork(self) -> None:
        """Forks a child that keeps the views, and looks at them when it is told to."""
        if self._child is not None:
            return
        told, tell = os.pipe()
        heard, say = os.pipe()
        child = os.fork()
        if child:
            os.close(told)
            os.close(say)
            self._child = (child, tell, heard)
            return
        fault = "the child could not look"
        with contextlib.suppress(BaseException):
            os.close(tell)
            os.close(heard)
            os.read(told, 1)
            rows = [_row(data, None) for data in self._data]
            fault = next((row[1] for row in rows if row[1]), "")
        with contextlib.suppress(OSError):
            os.write(say, fault.encode() or b"ok")
        os._exit(0)

    def join(self) -> str:
        if self._child is None:
            return ""
        child, tell, heard = self._child
        self._child = None
        with contextlib.suppress(BrokenPipeError):
            os.write(tell, b"x")
        said = os.read(heard, 4096).decode()
        os.close(tell)
        os.close(heard)
        os.waitpid(child, 0)
        return "" if said == "ok" else f"in a forked child: {said or 'no answer'}"

    def scribble(self) -> int:
        """Writes through views as code does that takes them for its own."""
        import torch

        written = 0
        for data in self._data:
            if len(data):
                with contextlib.suppress(RuntimeError, ValueError, TypeError):
                    torch.frombuffer(data, dtype=torch.uint8).add_(1)
                    written += 1
        self._data = []
        return written

    def close(self) -> None:
        self._batches = None
        self._data = []
        if isinstance(self.loader, gristway.Loader):
            self.loader.close()


def _row(data: memoryview, label: int | None) -> Row:
    held = bytes(data)
    key = trial_data.key_in(held)
    if key is None:
        return "", "", False, False
    fault = ""
    if held != trial_data.content(key, TAG):
        fault = f"bytes are not those of {key}, but begin with {held[:40]!r}"
    elif label is not None and label != trial_data.label(key):
        fault = f"{key} has the label {label}"
    return key, fault, False, False


def answer(trainer: Trainer, told: dict[str, Any]) -> dict[str, Any]:
    match told["do"]:
        case "begin":
            trainer.begin(told["epoch"])
            return {"begun": True}
        case "next":
            rows = trainer.next()
            return {"over": True} if rows is None else {"batch": rows}
        case "state":
            return {"state": trainer.loader.state_dict()}
        case "fork":
            trainer.fork()
            return {"forked": True}
        case "join":
            return {"joined": trainer.join()}
        case "scribble":
            return {"scribbled": trainer.scribble()}
        case _:
            trainer.close()
            return {"closed": True}


def main() -> None:
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    settings = json.loads(sys.argv[1])
    global TAG
    TAG = settings["tag"]
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever prints must not be taken for an answer

    def reply(said: dict[str, Any]) -> None:
        replies.write(json.dumps(said) + "\n")

    def error(wrong: BaseException) -> dict[str, Any]:
        kind = wrong.kind if isinstance(wrong, gristway.Error) else type(wrong).__name__
        return {"error": kind, "message": str(wrong)}

    try:
        trainer = Trainer(settings)
    except Exception as wrong:
        reply(error(wrong))
        return
    reply({"ready": True})
    while True:
        interrupted: Exception | None = None
        line = None
        while line is None:
            try:
                line = sys.stdin.readline()
            except RuntimeError as wrong:  # torch's, of a worker that has died meanwhile
                interrupted = wrong
        if not line:
            return
        told = json.loads(line)
        try:
            if interrupted is not None and told["do"] != "close":
                raise interrupted
            said = answer(trainer, told)
        except Exception as wrong:
            said = error(wrong)
        reply(said)
        if told["do"] == "close":
            return


if __name__ == "__main__":
    main()
