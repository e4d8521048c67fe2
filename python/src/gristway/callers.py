"""Who reads a dataset: the DataLoader, and what stands between it and the dataset.

torch tells a dataset neither that an iteration begins nor what its sampler does. Both decide about what
is right: an index that is asked for again is the next epoch's or a mistake, and a sampler that leaves out
what an earlier run has had means later samples. So this module looks at who is calling. torch makes a
fetcher for each iteration, in the training process or in a worker, and the iterator that made it has the
sampler. In a worker that was forked, the stack still has the iterator; otherwise it is on the stack when
the dataset is pickled for the worker.

Nothing is changed on the stack, and whoever calls in another way is served as before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

_LIBRARIES = ("torch.utils.data", "torchdata.", "accelerate.data_loader")

# Samplers of samplers are not nested more deeply than this.
_DEEPEST = 8

_GETTERS = ("__getitem__", "__getitems__", "fetch")

# Between a dataset and its DataLoader are no more calls than this.
_FARTHEST = 30


@dataclass(frozen=True)
class Sampling:
    """What the sampler of a DataLoader does, as far as it can be seen."""

    batch_size: int | None = None
    skipped: int = 0  # batches of this rank that it leaves out at the beginning
    batches: int | None = None  # of this rank, without those
    epoch: int | None = None  # that it was told
    part: int | None = None  # the indices that it draws from, if they are listed
    picks: bool = False  # fewer on purpose, whichever they are


@dataclass(frozen=True)
class Call:
    """A request of a DataLoader."""

    fetcher: Any  # one for each iteration, in each process; None if there is none
    part: int | None  # the indices of the outermost Subset that asks, if one does


def _frames() -> Iterator[tuple[FrameType, Any]]:
    """Frames of libraries that load data, from the innermost; and whose method each runs."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if isinstance(name, str) and name.startswith(_LIBRARIES):
            yield frame, frame.f_locals.get("self")
        frame = frame.f_back


def find_call() -> Call:
    """Says who asks for samples by index."""
    subset = sys.modules["torch.utils.data"].Subset
    part = None
    frame = sys._getframe(1).f_back
    for _ in range(_FARTHEST):
        if frame is None:
            break
        # Before Python 3.13, a frame that was looked into keeps what it had: so no frame of a user's
        # function is, but those that get an item.
        caller = frame.f_locals.get("self") if frame.f_code.co_name in _GETTERS else None
        if isinstance(caller, subset):
            part = len(caller.indices)
        elif hasattr(type(caller), "fetch") and hasattr(caller, "auto_collation"):
            return Call(caller, part)
        frame = frame.f_back
    return Call(None, part)


def find_sampling() -> Sampling | None:
    """Says what the sampler does whose DataLoader is iterated over; None if none is in sight."""
    for _, caller in _frames():
        sampler = getattr(caller, "_index_sampler", None)
        if sampler is not None:
            return _sampling(sampler)
    return None


def find_ahead() -> int | None:
    """How many batches the DataLoader that starts this worker asks for before training receives them;
    None if none is in sight."""
    for _, caller in _frames():
        factor, workers = _number(caller, "_prefetch_factor"), _number(caller, "_num_workers")
        if factor is not None and workers is not None:
            return factor * workers
    return None


def _sampling(outermost: Any) -> Sampling:
    data = sys.modules["torch.utils.data"]
    batch_size: int | None = None
    epoch: int | None = None
    part: int | None = None
    skipped = 0
    picks = False
    sampler = outermost
    for _ in range(_DEEPEST):
        if sampler is None:
            break
        size = _number(sampler, "batch_size")
        if size and getattr(sampler, "split_batches", False):
            size //= _number(sampler, "num_processes") or 1
        batch_size = batch_size or size
        skipped += _number(sampler, "skip_batches") or 0
        epoch = _number(sampler, "epoch") if epoch is None else epoch
        if isinstance(sampler, data.SubsetRandomSampler):
            part = len(sampler.indices)
        if isinstance(sampler, data.RandomSampler):
            picks = getattr(sampler, "_num_samples", None) is not None
        sampler = next(
            (
                inner
                for inner in (getattr(sampler, name, None) for name in _INNER)
                if hasattr(inner, "__iter__") and not isinstance(inner, (list, tuple))
            ),
            None,
        )
    try:
        batches = len(outermost)
    except TypeError:
        batches = None
    return Sampling(batch_size, skipped, batches, epoch, part, picks)


_INNER = ("batch_sampler", "sampler", "_sampler")


def _number(of: Any, name: str) -> int | None:
    value = getattr(of, name, None)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def batches_again(dataset: Any) -> bool:
    """True if the DataLoader that iterates over this dataset makes batches of what it gives."""
    for _, caller in _frames():
        if hasattr(caller, "auto_collation"):
            return bool(caller.auto_collation) and _is_only_dealt(caller.dataset, dataset)
    return False


def _is_only_dealt(read: Any, dataset: Any) -> bool:
    """True if what is read is the dataset itself, or what accelerate has put around it."""
    return read is dataset or (_is_accelerates(read) and getattr(read, "dataset", None) is dataset)


def find_dealer() -> str | None:
    """Names what of accelerate deals batches to ranks, above whoever is calling; None if nothing."""
    for _, caller in _frames():
        name = type(caller).__name__
        if name in ("DataLoaderDispatcher", "IterableDatasetShard") and _is_accelerates(caller):
            return name
    return None


def find_skipped() -> int:
    """How many of the first batches accelerate reads, and leaves out."""
    for _, caller in _frames():
        if _is_accelerates(caller):
            skipped = _number(caller, "skip_batches")
            if skipped:
                return skipped
    return 0


def is_named_by_accelerate() -> bool:
    """True if accelerate names an epoch by itself, as it begins an iteration: it counts from 0 in each
    process."""
    return any(
        frame.f_code.co_name == "__iter__" and _is_accelerates(caller)
        for frame, caller in _frames()
    )


def is_in_trainer() -> bool:
    """True below transformers.Trainer, which names every epoch."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == "transformers.trainer":
            return True
        frame = frame.f_back
    return False


def _is_accelerates(value: Any) -> bool:
    return type(value).__module__.startswith("accelerate.")
