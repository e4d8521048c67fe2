"""Transforms the samples of a batch: in the trainer, in threads, or in processes.

Each batch is cut into as many stretches as there are workers, so that a batch is ready sooner the
more processors are put to it. What the workers return is joined in the batch's order, so the result
does not depend on who was how fast.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from gristway.batch import Batch
from gristway.collate import Collate, default_collate
from gristway.errors import Error

Transform = Callable[[Any], Any]


class Transformer(Protocol):
    """Turns batches of samples into batches for training, a few at a time."""

    def submit(self, batch: Batch) -> Callable[[], Any]:
        """Begins with a batch; what is returned waits for the result."""

    def close(self) -> None:
        """Ends at once, with whatever is under way."""


def transform_one(transform: Transform, sample: Any) -> Any:
    """Transforms a sample; what goes wrong says which one it was."""
    try:
        return transform(sample)
    except Exception as wrong:
        note(wrong, key_of(sample))
        raise


def note(wrong: BaseException, key: str) -> None:
    """Adds a sample's key to an exception that its transform has raised."""
    text = f"gristway: in the transform of sample {key!r}"
    if hasattr(wrong, "add_note"):
        wrong.add_note(text)
    else:  # Python 3.10 prints causes, and knows no notes
        wrong.__cause__ = Error(text)


class InTrainer:
    """Transforms in the training process itself."""

    def __init__(self, transform: Transform, collate_fn: Collate | None) -> None:
        self._transform = transform
        self._collate = collate_fn or default_collate

    def submit(self, batch: Batch) -> Callable[[], Any]:
        def result() -> Any:
            return self._collate([transform_one(self._transform, s) for s in batch.samples()])

        return result

    def close(self) -> None:
        pass


class InThreads:
    """Transforms in threads: right where the transform leaves the interpreter, as decoders do.

    The threads do not keep a program from ending, whatever they are at.
    """

    def __init__(self, transform: Transform, collate_fn: Collate | None, workers: int) -> None:
        self._transform = transform
        self._collate = collate_fn or default_collate
        self._workers = workers
        self._tasks: queue.SimpleQueue[tuple[list[Any], Future[list[Any]]] | None]
        self._tasks = queue.SimpleQueue()
        self._closed = False
        for number in range(workers):
            threading.Thread(
                target=self._run, name=f"gristway-transform-{number}", daemon=True
            ).start()

    def submit(self, batch: Batch) -> Callable[[], Any]:
        samples = list(batch.samples())
        futures: list[Future[list[Any]]] = []
        for start, end in stretches(len(samples), self._workers):
            future: Future[list[Any]] = Future()
            futures.append(future)
            self._tasks.put((samples[start:end], future))

        def result() -> Any:
            return self._collate([done for future in futures for done in future.result()])

        return result

    def _run(self) -> None:
        while True:
            task = self._tasks.get()
            if task is None:
                return
            self._do(*task)
            del task  # its batch is not kept while there is nothing to do

    def _do(self, samples: list[Any], future: Future[list[Any]]) -> None:
        done = []
        try:
            for sample in samples:
                if self._closed:
                    future.cancel()
                    return
                done.append(transform_one(self._transform, sample))
            future.set_result(done)
        except BaseException as wrong:
            future.set_exception(wrong)

    def close(self) -> None:
        self._closed = True
        for _ in range(self._workers):
            self._tasks.put(None)


def stretches(count: int, parts: int) -> list[tuple[int, int]]:
    """Cuts so many samples into stretches of about the same length, of one sample at least."""
    cuts = [count * part // parts for part in range(parts + 1)]
    return [(start, end) for start, end in zip(cuts, cuts[1:]) if start < end]


def key_of(sample: Any) -> str:
    """A sample's key, or its number if the node that knows it is gone."""
    try:
        key: str = sample.key
        return key
    except Error:
        return f"number {sample.id}"
