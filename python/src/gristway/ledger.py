"""What the processes of one rank must agree on: which epoch an iteration of a DataLoader is, and which
samples of it are given.

A DataLoader tells a dataset in its workers nothing of epochs, and may make the workers anew for each. So
the training process keeps a stretch of memory that all of them see. It has no name, and goes with that
process.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import pickle
import struct
import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from gristway.epochs import Reach
from gristway.errors import LostNodeError, WrongCallError

# Two places for a page: it is written to the one that is not in use, and then that one is. The head
# counts how often a page was written, whose last bit is the place in use, and has the bytes of each.
_HEAD = struct.Struct("<qqq")
_HALF = 1 << 20

# Iterations that may be under way at once, and stretches of an epoch that may be free apart.
_MOST_ITERATIONS = 8
_MOST_STRETCHES = 1024

# Behind the pages, for each iteration and worker: the iteration's number, and the batches that were
# asked for up to the worker's latest. Each worker writes its own, without the lock.
_ASKED = struct.Struct("<qq")
_ASKED_WORKERS = 256
_ASKED_AT = _HEAD.size + 2 * _HALF
_BYTES = _ASKED_AT + _MOST_ITERATIONS * _ASKED_WORKERS * _ASKED.size

# Workers of one iteration are started within this time, or see each other.
_ALONG_SECONDS = 0.2


@dataclass
class _Iteration:
    number: int
    seed: int | None  # torch draws one for the workers of each
    made_at: float
    epoch: int
    total: int | None  # batches to its end; None if nobody knows
    ahead: int  # batches that may be asked for and not received
    named: int  # epochs that were named before, or with it
    batch_size: int = 0  # that its first request has had, or 0
    begun: dict[int, int] = field(default_factory=dict)  # processes, by the workers' numbers
    free: list[tuple[int, int]] | None = None  # positions that are not given; all if it is None
    repeated: int = 0  # samples that were given beyond the share, to fill a last batch

    def has_free(self, count: int, share: int) -> bool:
        free = [(0, share)] if self.free is None else self.free
        return sum(min(end, share) - min(start, share) for start, end in free) >= count

    def may_have(self, started: float) -> bool:
        """True if a process that was started then may be one of its workers: if others are there
        still, or if it was started along with them."""
        return started < self.made_at + _ALONG_SECONDS or any(
            os.path.exists(f"/proc/{process}") for process in self.begun.values()
        )


@dataclass
class _Page:
    generation: int = 0  # how often an epoch was set
    next_epoch: int = 0
    is_chosen: bool = False  # the next epoch was set
    is_told: bool = False  # by the program, not by a library that counts by itself
    named: int = 0  # epochs that were set, advised or gone on with
    runs_in_workers: bool = False
    made: int = 0
    hand: int = 0  # the latest iteration that no DataLoader makes
    hand_generation: int = 0  # as it was then
    iterations: list[_Iteration] = field(default_factory=list)

    def iteration(self, number: int) -> _Iteration | None:
        return next((known for known in self.iterations if known.number == number), None)


class Begun(NamedTuple):
    """An iteration that begins. `left` is how far the previous iteration was read; set only for the
    first worker of an iteration, and only if nobody named its epoch."""

    epoch: int
    number: int
    named: int
    left: Reach | None
    is_told: bool  # the program has said which epoch it is


class Ledger:
    """Epochs and iterations. Picklable; any process of the rank may call."""

    def __init__(self, epoch: int) -> None:
        self._process = os.getpid()
        self._descriptor = os.memfd_create("gristway-ledger")
        weakref.finalize(self, _close, self._descriptor, self._process)
        os.ftruncate(self._descriptor, _BYTES)
        self._file = _identity(self._descriptor)
        self._begin()
        with self._page() as page:
            page.next_epoch = epoch

    def _begin(self) -> None:
        self._opened_by = 0
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, object]:
        return {"process": self._process, "descriptor": self._descriptor, "file": self._file}

    def __setstate__(self, state: dict[str, object]) -> None:
        self._process = state["process"]  # type: ignore[assignment]
        self._descriptor = state["descriptor"]  # type: ignore[assignment]
        self._file = state["file"]  # type: ignore[assignment]
        self._begin()
        if self._process == os.getpid():
            # A copy beside the original lives by itself.
            try:
                self._descriptor = os.dup(self._descriptor)
            except OSError:
                raise LostNodeError("the dataset that this is a copy of is gone") from None
            weakref.finalize(self, _close, self._descriptor, self._process)

    def _open(self) -> None:
        # Each process has a descriptor of its own: it is what the lock belongs to.
        try:
            own = os.open(f"/proc/{self._process}/fd/{self._descriptor}", os.O_RDWR)
        except OSError:
            raise LostNodeError("the process that has made this dataset is gone") from None
        weakref.finalize(self, _close, own, os.getpid())
        if _identity(own) != self._file:
            raise LostNodeError("the dataset that this is a copy of is gone")
        self._lock = threading.Lock()
        self._own = own
        self._mapped = mmap.mmap(own, _BYTES)
        self._opened_by = os.getpid()

    @contextlib.contextmanager
    def _page(self) -> Iterator[_Page]:
        """What is written, for this process and thread alone; changes are kept."""
        if self._opened_by != os.getpid():
            self._open()
        with self._lock:
            fcntl.flock(self._own, fcntl.LOCK_EX)
            try:
                page, count = self._written()
                yield page
                written = pickle.dumps(page)
                if len(written) > _HALF:
                    raise MemoryError("too many iterations of a DataLoader are under way")
                other = 1 - count % 2
                start = _HEAD.size + other * _HALF
                self._mapped[start : start + len(written)] = written
                # A process that is killed in between leaves what was there before.
                self._set_head(1 + other, len(written))
                self._set_head(0, count + 1)
            finally:
                fcntl.flock(self._own, fcntl.LOCK_UN)

    def _set_head(self, place: int, value: int) -> None:
        # In one piece: others may be reading it.
        self._mapped[8 * place : 8 * place + 8] = value.to_bytes(8, "little")

    def _written(self) -> tuple[_Page, int]:
        """What is written, and how often something was."""
        while True:
            count, *lengths = _HEAD.unpack(self._mapped[: _HEAD.size])
            start = _HEAD.size + count % 2 * _HALF
            text = self._mapped[start : start + lengths[count % 2]]
            # The place that is in use is not written to before the count has changed.
            if _HEAD.unpack(self._mapped[: _HEAD.size])[0] == count:
                return pickle.loads(text) if text else _Page(), count

    def _look(self) -> _Page:
        """What is written, without a lock: also for a signal handler that interrupts a change."""
        if self._opened_by != os.getpid():
            self._open()
        return self._written()[0]

    def set_epoch(self, epoch: int, is_told: bool = True) -> None:
        """Has the next iteration be this epoch."""
        with self._page() as page:
            page.generation += 1
            page.is_told = is_told or (page.is_told and page.next_epoch == epoch)
            page.next_epoch = epoch
            page.is_chosen = True

    @property
    def generation(self) -> int:
        """Changes when an epoch is set."""
        return self._look().generation

    @property
    def runs_in_workers(self) -> bool:
        return self._look().runs_in_workers

    def begin(
        self,
        worker: int,
        seed: int | None,
        epoch: int | None = None,
        given: int = 0,
        advised: int | None = None,
        fits: tuple[int, int] = (0, 0),
        total: int | None = None,
        ahead: int = 0,
        skipped: int = 0,
        ended: int | None = None,
    ) -> Begun:
        """Tells that a worker begins an iteration, which has `total` batches, of which `ahead` may be
        asked for before training receives them.

        Workers of one iteration have the same seed and begin it once each. An epoch that is named is
        one that is gone on with, and the first `given` positions of it were given before. One that is
        advised is taken if no other was set. `fits` is what the worker asks for first, and the share
        that this is of: where less is free, it is no worker of that iteration. Where the first batches
        are `skipped`, an epoch that was counted is refused, unless it is the first.

        Who asks by hand, without a DataLoader, gives the iteration that has `ended`, or 0. All threads
        and processes that do so share one iteration, until it ends or an epoch is set.
        """
        with self._page() as page:
            page.runs_in_workers = seed is not None
            joined = left = None
            is_told = epoch is not None or page.is_told
            if seed is not None:
                # The oldest: a worker may be late for an iteration that others have left already.
                started = _started()
                for known in sorted(page.iterations, key=lambda each: each.number):
                    if known.seed == seed and worker not in known.begun:
                        if known.may_have(started) and known.has_free(*fits):
                            joined = known if epoch is None or known.epoch == epoch else None
                            break
            elif ended is not None and epoch is None and page.hand != ended:
                if page.hand_generation == page.generation:
                    joined = page.iteration(page.hand)
            if joined is None:
                if epoch is None and not page.is_chosen:
                    epoch = advised
                if epoch is None and not page.is_chosen:
                    if skipped and page.next_epoch > 0:
                        raise WrongCallError(
                            "batches are to be left out, and nobody has said of which epoch: call"
                            " set_epoch of the dataset before, or use torchdata's StatefulDataLoader"
                        )
                    left = self._left(page.iteration(page.made))
                else:
                    page.named += 1
                page.made += 1
                joined = _Iteration(
                    page.made,
                    seed,
                    time.clock_gettime(time.CLOCK_BOOTTIME),
                    page.next_epoch if epoch is None else epoch,
                    total,
                    ahead,
                    page.named,
                )
                if ended is not None and seed is None:
                    page.hand, page.hand_generation = joined.number, page.generation
                page.is_chosen = page.is_told = False
                page.next_epoch = joined.epoch + 1
                page.iterations = [*page.iterations[1 - _MOST_ITERATIONS :], joined]
            joined.begun[worker] = os.getpid()
            if given:
                free = joined.free or [(0, 1 << 62)]
                joined.free = _without(free, 0, given)
            return Begun(joined.epoch, joined.number, joined.named, left, is_told)

    def _left(self, before: _Iteration | None) -> Reach | None:
        """How far the latest iteration was read, if its end is known."""
        if before is None or before.total is None:
            return None
        asked = 0
        for worker in range(_ASKED_WORKERS):
            number, batches = _ASKED.unpack_from(self._mapped, _asked_at(before.number, worker))
            if number == before.number:
                asked = max(asked, batches)
        went_on = asked < before.total
        return Reach.of(before.epoch, asked, before.ahead, before.named, went_on)

    def note_asked(self, iteration: int, worker: int, batches: int) -> None:
        """Notes that a worker has asked for a batch, and how many were asked for up to that one."""
        if self._opened_by != os.getpid():
            self._open()
        place = _asked_at(iteration, worker)
        # A worker of an older iteration leaves a newer one's alone.
        if _ASKED.unpack_from(self._mapped, place) < (iteration, batches):
            _ASKED.pack_into(self._mapped, place, iteration, batches)

    def coming(self, worker: int, seed: int | None, advised: int | None) -> int:
        """The epoch of the iteration that a worker would begin now."""
        page = self._look()
        for known in sorted(page.iterations, key=lambda each: each.number):
            if known.seed == seed is not None and worker not in known.begun:
                return known.epoch
        return page.next_epoch if advised is None or page.is_chosen else advised

    def batch_size(self, iteration: int, first: int | None) -> int:
        """The batch size of an iteration: that of its first request, which tells it; 0 before."""
        with self._page() as page:
            known = page.iteration(iteration)
            if known is None:
                return first or 0
            if first is not None and known.batch_size == 0:
                known.batch_size = first
            return known.batch_size

    def allot(
        self, iteration: int, share: int, preferred: int, count: int, most_repeats: int = 0
    ) -> tuple[list[tuple[int, int]], int] | None:
        """Positions of an iteration for so many samples, as stretches: those that are preferred, if
        nobody has them, or else the lowest that are free. And how many samples have none, which are
        repeats: so many that an iteration has no more than `most_repeats`. None if that is not enough.
        """
        with self._page() as page:
            known = page.iteration(iteration)
            if known is None:
                return None
            free = [(0, share)] if known.free is None else known.free
            free = [(start, min(end, share)) for start, end in free if start < share]
            end = preferred + count
            if most_repeats and preferred < share < end:
                end = share  # the last batch, which is filled
            stretches = [(preferred, end)]
            fits = any(start <= preferred and end <= last for start, last in free)
            if not fits or len(free) >= _MOST_STRETCHES:
                stretches = _lowest(free, count)
            repeats = count - sum(end - start for start, end in stretches)
            if known.repeated + repeats > most_repeats:
                return None
            known.repeated += repeats
            for start, end in stretches:
                free = _without(free, start, end)
            known.free = free
            # Those that are used are kept.
            page.iterations.remove(known)
            page.iterations.append(known)
            return stretches, repeats

    def give_back(self, iteration: int, stretches: list[tuple[int, int]]) -> None:
        """Takes back positions that were allotted for a request that was refused."""
        with self._page() as page:
            known = page.iteration(iteration)
            if known is not None and known.free is not None:
                known.free = _joined(sorted(known.free + stretches))


def _asked_at(iteration: int, worker: int) -> int:
    row = iteration % _MOST_ITERATIONS * _ASKED_WORKERS
    return _ASKED_AT + (row + worker % _ASKED_WORKERS) * _ASKED.size


def _started() -> float:
    """When this process was started, in seconds since the machine was."""
    with open("/proc/self/stat", encoding="ascii", errors="replace") as stat:
        ticks = stat.read().rpartition(")")[2].split()[19]
    return int(ticks) / os.sysconf("SC_CLK_TCK")


def _joined(free: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in free:
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _lowest(free: list[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    """The lowest positions that are free: so many, or all."""
    stretches = []
    for start, end in free:
        if count == 0:
            break
        taken = min(count, end - start)
        stretches.append((start, start + taken))
        count -= taken
    return stretches


def _without(free: list[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    left = []
    for low, high in free:
        if low < min(high, start):
            left.append((low, min(high, start)))
        if max(low, end) < high:
            left.append((max(low, end), high))
    return left


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _close(descriptor: int, process: int) -> None:
    if os.getpid() == process:
        os.close(descriptor)
