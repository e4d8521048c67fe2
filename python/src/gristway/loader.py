"""Batches for training, straight from a node."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing.context import BaseContext
from types import TracebackType
from typing import Any

from gristway import worker_processes
from gristway import workers as pools
from gristway.agreement import Place
from gristway.arguments import context_of, whole_number
from gristway.batch import Sample
from gristway.classes import compare_classes as compare
from gristway.collate import Collate, labels_array, uses_torch
from gristway.epochs import Reach
from gristway.errors import WrongCallError
from gristway.source import Reading, Source, version_number
from gristway.world import find_world

_log = logging.getLogger("gristway")

# A trainer that waits more than this share of its time is told so, once.
_STALL_SHARE = 0.1
_STALL_AFTER_SECONDS = 10.0

_NODE_ENDS_SECONDS = 0.5

_PREFETCH = 2
_MOST = 1 << 16  # workers, or batches ahead


class Loader:
    """Feeds training from a dataset: each epoch delivers every sample once, in a random order that
    the seed decides.

        loader = gristway.Loader("imagenet.gw", batch_size=256, transform=decode, num_workers=8)
        for epoch in range(90):
            for images, labels in loader:
                ...

    Iterating is one epoch; the next iteration is the next epoch, also after a `break`. With a
    `transform`, which gets a `Sample`, its results are collated as torch's `default_collate` does (or
    by `collate_fn`). Without one, a batch is `(list of memoryviews, labels)`; the views are of shared
    memory, which stays theirs for as long as they live.

    The order depends on the dataset, `seed`, the epoch, `batch_size`, `memory`, `extent`, `policy`,
    `exchange`, `window`, `homes`, the number of ranks and `drop_last`; not on `num_workers`, the machine
    or timing.

    Args:
        path: the dataset's folder.
        batch_size: samples that this rank gets at a step.
        seed: of the order.
        memory: for reading ahead, on this machine, shared by its ranks: a size such as "4GiB", or a
            percentage of the dataset such as "10%".
        transform: makes of a `Sample` what is trained with; must be picklable for worker processes
            that are not forked.
        collate_fn: makes a batch of a list of transformed samples, in the training process.
        num_workers: that transform; each batch is shared by all of them. 0: the training process.
        workers: "processes", or "threads" for transforms that leave the interpreter.
        multiprocessing_context: "fork", "spawn" or "forkserver", or a context of multiprocessing;
            Python's default without it.
        drop_last: leave out what does not fill a batch on every rank.
        pin_memory: batches are copied to page-locked memory (torch).
        prefetch_factor: batches that are transformed ahead, when there are workers.
        persistent_workers: keep worker processes from one epoch to the next.
        policy: how to read; see the documentation's page on policies.
        extent: how much is read at once; "auto" suits the memory.
        strict: raise at the first damaged sample, in place of going on without it.
        max_damage: the share of an epoch's samples that may be damaged before an error ends the run;
            one sample may be, unless it is 0.
        storage_timeout: seconds for which reads are tried again that the disk or the mount fails.
        exchange: the share of samples that ranks push to each other, 0 to 1; for storage of which
            each machine reads a part of its own. See the documentation's page on clusters.
        window: how many steps ahead they are pushed.
        homes: "afresh" deals extents to ranks anew each epoch; "hashed" has each read by the same
            rank in all of them, "placed" on the node that has its chunk. The last two need
            `exchange=1`.
        cache, cache_disk: memory, and bytes of a disk of this machine, beside `memory`, in which
            what was read is kept for later epochs; `cache_folder` is on that disk.
        version: of the dataset, from 1; the newest when not given. A state brings its own.
        handover: the most memory that batches on their way take, on this machine, shared by its
            ranks; "auto" is as much as `memory`, but at least 64 MiB, and at most half of what is
            left free.
        rank, world_size: taken from torchrun's or Slurm's variables when not given.
        node: the name of a node that `gristway serve` runs; a loader starts its own without it.
        compare_classes: raise if a class has another number in another dataset that is open.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        batch_size: int = 256,
        *,
        seed: int = 0,
        memory: str | int = "2GiB",
        transform: Callable[[Sample], Any] | None = None,
        collate_fn: Collate | None = None,
        num_workers: int = 0,
        workers: str = "processes",
        multiprocessing_context: str | BaseContext | None = None,
        drop_last: bool = False,
        pin_memory: bool = False,
        prefetch_factor: int | None = _PREFETCH,
        persistent_workers: bool = True,
        policy: str = "redirect",
        extent: str | int = "auto",
        strict: bool = False,
        max_damage: float = 0.001,
        storage_timeout: float = 30.0,
        exchange: float = 0.0,
        window: int = 2,
        homes: str = "afresh",
        cache: str | int = 0,
        cache_disk: str | int = 0,
        cache_folder: str | os.PathLike[str] = "",
        version: int | None = None,
        handover: str | int = "auto",
        rank: int | None = None,
        world_size: int | None = None,
        node: str | None = None,
        compare_classes: bool = True,
    ) -> None:
        num_workers = whole_number("num_workers", num_workers, 0, _MOST)
        if prefetch_factor is None:
            prefetch_factor = _PREFETCH  # as a DataLoader has it
        prefetch_factor = whole_number("prefetch_factor", prefetch_factor, 1, _MOST)
        context_of(multiprocessing_context)  # so that a wrong one is refused now
        if workers not in ("processes", "threads"):
            raise WrongCallError(f"workers must be 'processes' or 'threads', not {workers!r}")
        if collate_fn is not None and transform is None:
            raise WrongCallError("collate_fn needs a transform: it gets what that returns")
        if pin_memory and not uses_torch():
            raise WrongCallError("pin_memory needs torch: import it first")
        self._reading = Reading(
            path=os.fspath(path),
            mode="stream",
            policy=policy,
            memory=memory,
            batch_size=batch_size,
            seed=seed,
            extent=extent,
            tail="drop" if drop_last else "short",
            strict=strict,
            max_damage=max_damage,
            storage_timeout=storage_timeout,
            exchange=exchange,
            window=window,
            homes=homes,
            cache=cache,
            cache_disk=cache_disk,
            cache_folder=os.fspath(cache_folder),
            handover=handover,
        )
        self._version = version_number(version)
        self._world = find_world(rank, world_size)
        self._node = node
        self._transform = transform
        self._collate = collate_fn
        self._num_workers = num_workers if transform is not None else 0
        self._workers = workers
        self._context = multiprocessing_context
        self._pin_memory = pin_memory
        self._prefetch = prefetch_factor
        self._persistent = persistent_workers
        self._pool: pools.Transformer | None = None
        self._pool_owner = os.getpid()
        self._pools = 0
        self._pool_finalizer: weakref.finalize[..., Loader] | None = None
        self._iterator: weakref.ref[_Epoch] | None = None
        self._stall = Stall()
        self._closed = False
        self._place: Place | None = None
        self._is_chosen = False  # the epoch of the next iteration was set
        self._named = 0  # how often it was, for iterations that have begun
        self._compares = compare_classes
        self._open("", self._version)

    def _open(self, state: str, version: int = 0, snapshot: str = "") -> None:
        """Begins where a state was taken, with the version of the dataset that it is about; without
        a state, with the given one or the newest."""
        self._state = state
        self._source = Source(
            self._reading,
            self._world,
            node=self._node,
            state=state,
            batches=self._prefetch + 2,
            version=_version_of(state) or version,
            snapshot=snapshot,
            place=self._place,
        )
        self._place = self._source.place.next()
        self._has_begun = False  # an iteration, from here on
        self._is_at_end = False  # the latest one
        self._source.welcome()  # what cannot be read is compared with nothing later
        if self._compares:
            compare(self._source, self._reading.path)
        self._finalizer = weakref.finalize(self, Source.close, self._source)
        self._begin()

    def _begin(self) -> None:
        """Takes from the node where the run begins."""
        state, welcome = self._state, self._source.welcome()
        self._world = self._source.world
        self._steps = welcome.steps
        # Where training is: the next batch that it has not received.
        self._epoch = welcome.first_epoch
        self._step = welcome.first_step
        # Where the next iteration begins.
        self._next = (self._epoch, self._step)
        # The epoch of a state that was taken at its end.
        epochs = [int(line[6:]) for line in state.splitlines() if line.startswith("epoch ")]
        self._over = epochs[0] if epochs and epochs[0] < self._epoch else None

    def __len__(self) -> int:
        """Batches of this rank in an epoch."""
        return self._steps

    @property
    def dataset_size(self) -> int:
        """Samples of the dataset."""
        return self._source.welcome().samples

    @property
    def epoch(self) -> int:
        """The epoch that the next iteration is of."""
        return self._next[0]

    def set_epoch(self, epoch: int) -> None:
        """Has the next iteration be this epoch: from its beginning, or, if it is the epoch of a state
        that was loaded, the rest of it."""
        if epoch < 0:
            raise WrongCallError(f"there is no epoch {epoch}")
        self._is_chosen = True
        if epoch == self._over:
            self._next = (epoch, self._steps)  # its rest is empty
        elif epoch != self._next[0]:
            self._next = (epoch, 0)

    # What frameworks read off a DataLoader: this is like one that leaves whole batches as they are.
    batch_size = None
    drop_last = False
    sampler = None
    batch_sampler = None
    num_workers = 0
    prefetch_factor = None

    @staticmethod
    def collate_fn(batch: Any) -> Any:
        """Leaves a batch as it is."""
        return batch

    @property
    def dataset(self) -> Any:
        """The batches as a dataset of torch, for `accelerate.skip_first_batches`."""
        if not uses_torch():
            raise AttributeError("a Loader has a dataset where torch is used")
        from gristway import torch

        return torch.LoaderDataset(self)

    def _refuse_skipping(self) -> None:
        """Raises if batches cannot be left out of the next iteration, since nobody knows of which."""
        if self._next[1] > 0:
            raise WrongCallError(
                "the loader goes on where its state was taken, so no more batches are to be left out:"
                " use load_state_dict or skip_first_batches, not both"
            )
        if not self._is_chosen:
            raise WrongCallError(
                "batches are to be left out, and nobody has said of which epoch: call set_epoch of the"
                " loader before, or use its state_dict and load_state_dict"
            )

    def __iter__(self) -> Iterator[Any]:
        if self._closed:
            raise WrongCallError("the loader is closed")
        left = self._reach() if self._has_begun and not self._is_chosen else None
        if self._source.settle():
            wanted, is_chosen = self._next[0], self._is_chosen
            self._begin()
            self.set_epoch(wanted)
            self._is_chosen = is_chosen
        self._tell_reach(left)
        running = self._iterator and self._iterator()
        if running:
            running.end(
                "this iteration of the loader was ended, since a newer one has begun: a Loader has one at"
                " a time; to look at a batch inside a loop, or for two loops at once, make another Loader"
            )
        self._named += self._is_chosen
        self._is_chosen = False
        self._has_begun, self._is_at_end = True, False
        epoch, step = self._next
        self._epoch, self._step = epoch, step
        self._over = None
        self._next = (epoch + 1, 0)
        iterator = _Epoch(self, epoch, step)
        self._iterator = weakref.ref(iterator)
        return iterator

    def _transformer(self) -> pools.Transformer | None:
        if self._transform is None:
            return None
        if self._pool_owner != os.getpid():
            self._pool = None  # that of a parent, whose threads are not here
            self._pool_finalizer = None
            self._pool_owner = os.getpid()
        if self._pool is None:
            if self._num_workers == 0:
                self._pool = pools.InTrainer(self._transform, self._collate)
            elif self._workers == "threads":
                self._pool = pools.InThreads(self._transform, self._collate, self._num_workers)
                self._pool_finalizer = weakref.finalize(self, self._pool.close)
            else:
                self._pools += 1
                self._pool = worker_processes.InProcesses(
                    self._transform,
                    self._collate,
                    self._num_workers,
                    self._context,
                    self._source,
                    f"{self._reading.seed}-{self._world.rank}-{self._pools}",
                )
                self._pool_finalizer = weakref.finalize(self, self._pool.close)
        return self._pool

    def _end_epoch(self) -> None:
        if not self._persistent:
            self._end_workers()

    def _end_workers(self) -> None:
        pool, self._pool = self._pool, None
        if self._pool_finalizer is not None:
            self._pool_finalizer.detach()
            self._pool_finalizer = None
        if pool is not None:
            pool.close()

    def _received(self, epoch: int, step: int) -> None:
        self._epoch, self._step = epoch, step + 1

    def _reach(self) -> Reach:
        """How far training is in the epoch of the latest iteration, which the next one leaves."""
        went_on = self._step < self._steps and not self._is_at_end
        return Reach.of(self._epoch, self._step, 0, self._named, went_on)

    def _tell_reach(self, reach: Reach | None) -> None:
        if self._source.is_ranks_own():
            self._source.tell_reach(reach)

    def _follow(self, epoch: int, step: int) -> None:
        """Raises if another rank has left this epoch; tells the others of its last batch."""
        if self._source.is_ranks_own():
            now = Reach.of(epoch, step + 1, 0, self._named)
            self._source.follow(now)
            if step + 1 == self._steps:
                self._source.tell_reach(now)

    def state_dict(self) -> dict[str, Any]:
        """Where training is: what it has received, not what was read ahead. The same on every rank;
        it can be loaded with any number of workers, and into another number of ranks."""
        return {"gristway": self._source.state(self._epoch, self._step)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where a state was taken: the next iteration is the rest of that epoch."""
        text = state.get("gristway") if isinstance(state, dict) else None
        if not isinstance(text, str) or not text:
            raise WrongCallError("this is not a state that Loader.state_dict has given")
        if self._version not in (0, _version_of(text)):
            raise WrongCallError(
                f"the state is of version {_version_of(text)} of the dataset, and this loader of version"
                f" {self._version}: make it without version="
            )
        running = self._iterator and self._iterator()
        if running:
            running.end("this iteration of the loader was ended, since a state was loaded")
        self._end_workers()
        self._finalizer.detach()
        before = (self._state, self._epoch, self._step, self._next, self._over)
        welcome = self._source.welcome()
        self._source.close(_NODE_ENDS_SECONDS)
        try:
            self._open(text)
        except BaseException:
            # The loader goes on as if this had not been asked for.
            self._open(before[0], welcome.version, welcome.snapshot)
            _, self._epoch, self._step, self._next, self._over = before
            raise

    def stats(self) -> dict[str, Any]:
        """What has been counted: batches, samples and bytes received; `stall_seconds` in which
        training waited for data, `seconds` in all since the first batch, and their ratio,
        `stall_share`; under `node`, its counters for all ranks of this machine."""
        return {**self._stall.numbers(), "node": self._source.counters()}

    def close(self) -> None:
        """Ends workers and leaves the node. Views of batches stay valid."""
        self._closed = True
        running = self._iterator and self._iterator()
        if running:
            running.end("the loader is closed")
        self._end_workers()
        if self._finalizer.detach():
            self._source.close(_NODE_ENDS_SECONDS)

    def __getstate__(self) -> Any:
        raise WrongCallError(
            "a Loader cannot be copied, or sent to another process: make it in each process"
        )

    def __enter__(self) -> Loader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _version_of(state: str) -> int:
    """The version of the dataset that a state is about; 0 if it does not say."""
    match = re.search(r"^dataset \S+/(\d{1,9})$", state, re.MULTILINE)
    return int(match.group(1)) if match else 0


class Stall:
    """How long training waits for data: the one number that matters."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._waited = 0.0
        self._batches = 0
        self._samples = 0
        self._bytes = 0
        self._warned = False

    def count(self, waited: float, samples: int, data_bytes: int) -> None:
        now = time.monotonic()
        if self._began is None:
            self._began = now  # the first batch is waited for by everyone
        else:
            self._waited += waited
        self._batches += 1
        self._samples += samples
        self._bytes += data_bytes
        total = now - self._began
        if not self._warned and total > _STALL_AFTER_SECONDS:
            if self._waited > _STALL_SHARE * total:
                self._warned = True
                _log.warning(
                    "training waits for data %.0f %% of the time: see loader.stats(); more"
                    " num_workers help if transforms are slow, 'gristway read' tells what the"
                    " storage gives",
                    100 * self._waited / total,
                )

    def numbers(self) -> dict[str, float]:
        total = 0.0 if self._began is None else time.monotonic() - self._began
        return {
            "batches": self._batches,
            "samples": self._samples,
            "bytes": self._bytes,
            "seconds": total,
            "stall_seconds": self._waited,
            "stall_share": self._waited / total if total else 0.0,
        }


class _Epoch(Iterator[Any]):
    """One iteration of a loader."""

    def __init__(self, loader: Loader, epoch: int, step: int) -> None:
        self._loader: Loader | None = loader
        self._ended = ""  # why, if training is not to take it for the end of the epoch
        self._owner = os.getpid()
        self._number = epoch
        self._step = step
        self._ahead: _Ahead | None = None
        self._pool = loader._transformer()
        if self._pool is not None and loader._num_workers > 0:
            self._ahead = _Ahead(loader._source, self._pool, epoch, step, loader._prefetch)

    def __next__(self) -> Any:
        loader = self._loader
        if loader is None:
            raise self._end()
        start = time.monotonic()
        try:
            batch, result = self._next(loader)
            if batch is not None:
                loader._follow(self._number, self._step)
        except StopIteration as wrong:
            self.close()
            raise RuntimeError("the transform has raised StopIteration") from wrong
        except BaseException:
            self.close()
            raise
        if batch is None:
            self.close()
            loader._is_at_end = not self._ended
            raise self._end()
        loader._received(self._number, self._step)
        self._step += 1
        loader._stall.count(time.monotonic() - start, *batch)
        return result

    def _next(self, loader: Loader) -> tuple[tuple[int, int] | None, Any]:
        if self._ahead is not None:
            size, result = self._ahead.next()
        else:
            batch = loader._source.batch(self._number, self._step, then=self._step + 1)
            if batch is None:
                return None, None
            size = batch.size()
            if self._pool is None:
                result = (batch.data(), labels_array(batch.labels()))
            else:
                result = self._pool.submit(batch)()
        if loader._pin_memory and size is not None:
            from gristway import torch

            result = torch.pin_memory(result)
        return size, result

    def _end(self) -> Exception:
        return WrongCallError(self._ended) if self._ended else StopIteration()

    def end(self, why: str) -> None:
        """Ends it before its time: whoever goes on with it is told why."""
        if self._loader is not None:
            self._ended = why
        self.close()

    def close(self) -> None:
        if self._owner != os.getpid():
            return  # a forked copy: what it would end is the parent's
        loader, self._loader = self._loader, None
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None
        if loader is not None:
            loader._end_epoch()

    def __del__(self) -> None:
        self.close()


class _Ahead:
    """Takes batches from the node and has them transformed, a few ahead of training."""

    def __init__(
        self, source: Source, pool: pools.Transformer, epoch: int, step: int, depth: int
    ) -> None:
        self._source = source
        self._pool = pool
        self._epoch = epoch
        self._step = step
        self._depth = depth
        self._condition = threading.Condition()
        self._ready: deque[tuple[tuple[int, int] | None, Callable[[], Any]]] = deque()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="gristway-ahead", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        more = True
        while more:
            with self._condition:
                while len(self._ready) >= self._depth and not self._closed:
                    self._condition.wait()
                if self._closed:
                    return
            entry = self._take()
            more = entry[0] is not None
            with self._condition:
                if self._closed:
                    return
                self._ready.append(entry)
                self._condition.notify_all()
            del entry

    def _take(self) -> tuple[tuple[int, int] | None, Callable[[], Any]]:
        try:
            batch = self._source.batch(self._epoch, self._step)
            self._step += 1
            if batch is None:
                return None, lambda: None
            return batch.size(), self._pool.submit(batch)
        except BaseException as wrong:
            return None, _raising(wrong)

    def next(self) -> tuple[tuple[int, int] | None, Any]:
        with self._condition:
            while not self._ready and not self._closed:
                self._condition.wait()
            if not self._ready:
                return None, None  # another thread has ended the iteration
            size, result = self._ready.popleft()
            self._condition.notify_all()
        return size, result()

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._ready.clear()
            self._condition.notify_all()


def _raising(wrong: BaseException) -> Callable[[], Any]:
    def result() -> Any:
        raise wrong

    return result
