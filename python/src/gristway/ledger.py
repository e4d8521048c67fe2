"""What the processes of one rank must agree on: which epoch an iteration of a DataLoader is.

A DataLoader tells a dataset in its workers nothing of epochs, and may make the workers anew for each.
So the training process keeps a page of memory that all of them see. It has no name, and goes with
that process.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import struct
import weakref
from collections.abc import Iterator
from dataclasses import dataclass

_PAGE = 4096
_NUMBERS = struct.Struct("<7q")
_BEGUN_AT = 1024  # a byte for each worker that has begun the latest iteration
_MOST_WORKERS = _PAGE - _BEGUN_AT


@dataclass
class _Numbers:
    generation: int  # how often an epoch was set
    next_epoch: int
    iterations: int
    seed: int  # of the latest iteration: torch draws one for each
    epoch: int  # of the latest iteration
    batch_size: int  # that its first request has had, or 0
    by_workers: int  # 1 if it runs in workers


class Ledger:
    """Epochs and iterations. Picklable; any process of the rank may call."""

    def __init__(self, epoch: int) -> None:
        self._process = os.getpid()
        self._descriptor = os.memfd_create("gristway-ledger")
        os.ftruncate(self._descriptor, _PAGE)
        weakref.finalize(self, _close, self._descriptor, self._process)
        self._mapped: mmap.mmap | None = None
        self._opened_by = 0
        with self._numbers() as numbers:
            numbers.next_epoch = epoch

    def __getstate__(self) -> dict[str, int]:
        return {"process": self._process, "descriptor": self._descriptor}

    def __setstate__(self, state: dict[str, int]) -> None:
        self._process = state["process"]
        self._descriptor = state["descriptor"]
        self._mapped = None
        self._opened_by = 0

    @contextlib.contextmanager
    def _numbers(self) -> Iterator[_Numbers]:
        """The numbers, for this process alone; changes are kept."""
        if self._opened_by != os.getpid():
            # Each process has a descriptor of its own: it is what the lock belongs to.
            self._own = os.open(f"/proc/{self._process}/fd/{self._descriptor}", os.O_RDWR)
            weakref.finalize(self, _close, self._own, os.getpid())
            self._mapped = mmap.mmap(self._own, _PAGE)
            self._opened_by = os.getpid()
        assert self._mapped is not None
        fcntl.flock(self._own, fcntl.LOCK_EX)
        try:
            numbers = _Numbers(*_NUMBERS.unpack_from(self._mapped))
            yield numbers
            _NUMBERS.pack_into(self._mapped, 0, *vars(numbers).values())
        finally:
            fcntl.flock(self._own, fcntl.LOCK_UN)

    def set_epoch(self, epoch: int) -> None:
        """Has the next iteration be this epoch."""
        with self._numbers() as numbers:
            numbers.generation += 1
            numbers.next_epoch = epoch

    @property
    def generation(self) -> int:
        """Changes when an epoch is set."""
        with self._numbers() as numbers:
            return numbers.generation

    @property
    def runs_in_workers(self) -> bool:
        with self._numbers() as numbers:
            return bool(numbers.by_workers)

    def begin(
        self, worker: int, workers: int, seed: int | None, epoch: int | None
    ) -> tuple[int, int]:
        """Tells that a worker begins an iteration; the epoch that it is, and its number.

        Workers of one iteration have the same seed and begin it once each. An epoch that is given is
        one that is gone on with.
        """
        worker %= _MOST_WORKERS
        with self._numbers() as numbers:
            mapped = self._mapped
            assert mapped is not None
            known = 0 if seed is None else seed & ((1 << 63) - 1)
            is_new = (
                seed is None
                or numbers.iterations == 0
                or known != numbers.seed
                or mapped[_BEGUN_AT + worker] != 0
                or (epoch is not None and epoch != numbers.epoch)
            )
            if is_new:
                mapped[_BEGUN_AT:] = bytes(_MOST_WORKERS)
                numbers.iterations += 1
                numbers.seed = known
                numbers.epoch = numbers.next_epoch if epoch is None else epoch
                numbers.next_epoch = numbers.epoch + 1
                numbers.batch_size = 0
            mapped[_BEGUN_AT + worker] = 1
            numbers.by_workers = 0 if seed is None else 1
            return numbers.epoch, numbers.iterations

    def batch_size(self, first: int | None) -> int:
        """The batch size of the latest iteration: that of its first request, which tells it."""
        with self._numbers() as numbers:
            if first is not None:
                numbers.batch_size = first
            return numbers.batch_size


def _close(descriptor: int, process: int) -> None:
    if os.getpid() == process:
        os.close(descriptor)
