"""Datasets for torch.utils.data.DataLoader. The only module that imports torch."""

from __future__ import annotations

import operator
import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.utils.data import Dataset, IterableDataset, default_collate, get_worker_info

from gristway.batch import Batch, Sample
from gristway.collate import labels_array
from gristway.errors import WrongCallError
from gristway.ledger import Ledger
from gristway.shipment import Shipment
from gristway.source import Reading, Source
from gristway.workers import transform_one
from gristway.world import find_world

__all__ = ["MapDataset", "StreamDataset", "default_collate"]

_FIRST_REQUEST_SECONDS = 60.0

# Who asks for one sample at a time gets the next that is left, from batches of this size.
_ONE_BY_ONE = 32
_ANYWHERE = -1

# Batches of a worker that wait to be copied on their way to the trainer.
_MOST_SHIPPED = 2
_COPY_SECONDS = 30.0


class StreamDataset(IterableDataset[Any]):
    """Whole batches for a DataLoader with `batch_size=None`; each epoch every sample once.

        dataset = StreamDataset("imagenet.gw", batch_size=256, transform=decode)
        for images, labels in DataLoader(dataset, batch_size=None, num_workers=8):
            ...

    Each iteration of the DataLoader is the next epoch; `set_epoch` chooses another. With a
    `transform`, which gets a `gristway.Sample`, its results are collated as `default_collate` does, or by
    `collate_fn`, in the worker. Without one, a batch is `(list of bytes, labels)`.

    The order is the same for any number of workers and any way of starting them. `state_dict` and
    `load_state_dict` are for torchdata's StatefulDataLoader. For the other arguments see
    `gristway.Loader`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        batch_size: int = 256,
        *,
        transform: Callable[[Sample], Any] | None = None,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        seed: int = 0,
        memory: str | int = "2GiB",
        drop_last: bool = False,
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
        rank: int | None = None,
        world_size: int | None = None,
        node: str | None = None,
    ) -> None:
        if collate_fn is not None and transform is None:
            raise WrongCallError("collate_fn needs a transform: it gets what that returns")
        reading = Reading(
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
        )
        self._source = Source(reading, find_world(rank, world_size), node=node)
        self._transform = transform
        self._collate = collate_fn or default_collate
        self._ledger = Ledger(0)
        self._place: tuple[int, int] | None = None  # of this process: its next batch
        self._resumes = False

    def __len__(self) -> int:
        """Batches of this rank in an epoch."""
        return self._source.welcome().steps

    def set_epoch(self, epoch: int) -> None:
        """Has the next iteration be this epoch, also in workers that persist."""
        if epoch < 0:
            raise WrongCallError(f"there is no epoch {epoch}")
        self._ledger.set_epoch(epoch)

    def __iter__(self) -> Iterator[Any]:
        worker, workers, seed = _worker()
        if self._resumes and self._place is not None:
            epoch, step = self._place
            self._resumes = False
            self._ledger.begin(worker, seed, epoch)
        else:
            epoch, _ = self._ledger.begin(worker, seed)
            step = worker
        self._place = (epoch, step)
        # One that is worked on, and those that are on their way to the trainer.
        self._source.expect(1 + _MOST_SHIPPED)
        return self._batches(epoch, step, workers)

    def _batches(self, epoch: int, step: int, workers: int) -> Iterator[Any]:
        shipped: list[weakref.ref[Shipment]] = []
        while True:
            shipped = _await_copies(shipped)
            batch = self._source.batch(epoch, step, workers)
            if batch is None:
                return
            step += workers
            result = self._made(batch)
            del batch  # its memory is not kept while the trainer has the result
            # What is given out now counts as received when the next one is asked for.
            self._place = (epoch, step)
            if self._transform is None and isinstance(result[0], Shipment):
                shipped.append(weakref.ref(result[0]))
            yield result
            del result

    def _made(self, batch: Batch) -> Any:
        if self._transform is None:
            views = batch.data()
            in_worker = get_worker_info() is not None
            data = Shipment(views) if in_worker else [bytes(view) for view in views]
            return data, labels_array(batch.labels())
        return self._collate([transform_one(self._transform, s) for s in batch.samples()])

    def state_dict(self) -> dict[str, Any]:
        """Where this process is. For StatefulDataLoader, which asks each worker for its own."""
        if get_worker_info() is None and self._ledger.runs_in_workers:
            raise WrongCallError(
                "this dataset is read by the workers of a DataLoader, which does not tell how far they"
                " are: use torchdata's StatefulDataLoader, or gristway.Loader, and their state_dict"
            )
        if self._place is None:
            return {}
        return {
            "run": self._source.run(),
            "epoch": self._place[0],
            "step": self._place[1],
            "workers": _worker()[1],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where a state was taken, in the same world and with the same arguments."""
        if state:
            _check_state(state, self._source)
            self._place = (int(state["epoch"]), int(state["step"]))
            self._resumes = True


def _await_copies(shipped: list[weakref.ref[Shipment]]) -> list[weakref.ref[Shipment]]:
    """Waits until few enough batches are yet to be copied on their way to the trainer: a DataLoader
    may ask for more ahead than the node has memory for. Who keeps them on purpose is told by the
    node."""
    deadline = time.monotonic() + _COPY_SECONDS
    while True:
        left = [each for each in shipped if each() is not None]
        if len(left) <= _MOST_SHIPPED or time.monotonic() > deadline:
            return left
        time.sleep(0.001)


class MapDataset(Dataset[Any]):
    """Samples by index, for a DataLoader with a sampler of its own.

        dataset = MapDataset("imagenet.gw", transform=decode, redirect=True)
        loader = DataLoader(dataset, batch_size=256, sampler=DistributedSampler(dataset), num_workers=8)

    By default an index gets exactly its sample, at the price of a small read each. With
    `redirect=True` you state that the sampler draws each of `indices` (all, if not given) once per
    epoch; then an index only says *that* a sample is wanted, and any of those that was not given yet in
    this epoch answers it, at the speed of sequential reads. Label and key are the given sample's own.
    Call `set_epoch` before each epoch, as for DistributedSampler.

    An item is `transform(sample)`, or `(bytes, label)` without a transform. An index always counts over
    the whole dataset, so that Subset and samplers work as usual.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        transform: Callable[[Sample], Any] | None = None,
        redirect: bool = False,
        indices: Iterable[int] | None = None,
        seed: int = 0,
        memory: str | int = "2GiB",
        policy: str = "redirect",
        extent: str | int = "auto",
        strict: bool = False,
        max_damage: float = 0.001,
        storage_timeout: float = 30.0,
        rank: int | None = None,
        world_size: int | None = None,
        node: str | None = None,
    ) -> None:
        if indices is not None and not redirect:
            raise WrongCallError(
                "indices are for redirect=True; without it each index gets its sample: use Subset"
            )
        reading = Reading(
            path=os.fspath(path),
            mode="redirect" if redirect else "exact",
            policy=policy,
            memory=memory,
            batch_size=1,
            seed=seed,
            extent=extent,
            tail="short",
            strict=strict,
            max_damage=max_damage,
            storage_timeout=storage_timeout,
        )
        samples = b"" if indices is None else _bits(indices)
        self._source = Source(reading, find_world(rank, world_size), node=node, samples=samples)
        self._transform = transform
        self._redirect = redirect
        welcome = self._source.welcome()
        self._size = welcome.samples
        self._ledger = Ledger(0)
        self._seen: tuple[int, int | None] | None = None  # the iteration that this process is in
        self._epoch = 0
        self._iteration = 0
        self._requests = 0  # of this process in this iteration
        self._asked = 0  # samples of this process in this iteration
        self._batch_size = 0
        self._resumes = False

    def __len__(self) -> int:
        """Samples of the dataset."""
        return self._size

    def _share(self) -> int:
        """Samples of this rank in an epoch."""
        return self._source.welcome().steps

    def set_epoch(self, epoch: int) -> None:
        """Has the following requests be of this epoch: all samples are there to be given again."""
        if epoch < 0:
            raise WrongCallError(f"there is no epoch {epoch}")
        self._ledger.set_epoch(epoch)

    def __getitem__(self, index: int) -> Any:
        return self._items([index], False)[0]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return self._items(indices, True)

    def _items(self, indices: list[int], as_batch: bool) -> list[Any]:
        wanted = [self._checked(index) for index in indices]
        if not wanted:
            return []
        self._source.settle()
        self._source.expect(1)
        if not self._redirect:
            batches = self._source.ask(0, 0, 0, len(wanted), 1, wanted)
        else:
            batches = self._redirected(wanted, as_batch)
        return [self._item(sample) for batch in batches for sample in batch.samples()]

    def _checked(self, index: int) -> int:
        number = operator.index(index)
        if number < 0:
            number += self._size
        if not 0 <= number < self._size:
            raise IndexError(f"index {index} is outside a dataset of {self._size} samples")
        return number

    def _item(self, sample: Sample) -> Any:
        if self._transform is None:
            return bytes(sample.data), sample.label
        return transform_one(self._transform, sample)

    def _redirected(self, wanted: list[int], as_batch: bool) -> list[Batch]:
        worker, workers, seed = _worker()
        iteration = (self._ledger.generation, seed)
        if iteration != self._seen:
            self._begin(iteration, worker, workers, seed)
        stretches = self._allotted(len(wanted), as_batch, worker, workers)
        if stretches is None and self._requests > 0:
            # This epoch has not so many left, so this is the next one's first request.
            self._begin(iteration, worker, workers, seed)
            stretches = self._allotted(len(wanted), as_batch, worker, workers)
        if stretches is None:
            raise WrongCallError(
                f"{len(wanted)} samples are asked for at once, and rank {self._source.world.rank} has"
                f" {self._share()} in an epoch"
            )
        batches: list[Batch] = []
        try:
            for start, end in stretches:
                first = sum(len(batch) for batch in batches)
                batches += self._source.ask(
                    self._epoch,
                    self._iteration,
                    start,
                    self._batch_size,
                    workers,
                    wanted[first : first + end - start],
                )
        except BaseException:
            self._ledger.give_back(self._iteration, stretches)
            raise
        self._requests += 1
        self._asked += len(wanted)
        return batches

    def _begin(
        self, iteration: tuple[int, int | None], worker: int, workers: int, seed: int | None
    ) -> None:
        self._seen = iteration
        if self._resumes:
            self._resumes = False
            # What the other workers have not given yet lies less than a round before this.
            given = max(0, self._requests * workers + worker - workers + 1) * self._batch_size
            given = self._asked if workers == 1 else given
            _, self._iteration = self._ledger.begin(worker, seed, self._epoch, given)
            self._ledger.batch_size(self._iteration, self._batch_size)
            return
        self._epoch, self._iteration = self._ledger.begin(worker, seed)
        self._requests = 0
        self._asked = 0
        self._batch_size = 0

    def _allotted(
        self, count: int, as_batch: bool, worker: int, workers: int
    ) -> list[tuple[int, int]] | None:
        """Where in this rank's order the answer to a request is.

        A DataLoader hands its batches to its workers in turn, so a worker knows the number of each of
        its requests in the epoch; with the batch size, that makes the order the same for any number of
        workers. Where requests follow another pattern, each gets the lowest that is left.
        """
        if not as_batch:
            self._batch_size = self._batch_size or _ONE_BY_ONE
            return self._ledger.allot(self._iteration, self._share(), _ANYWHERE, count)
        first = count if worker == 0 and self._requests == 0 else None
        deadline = time.monotonic() + _FIRST_REQUEST_SECONDS
        while self._batch_size == 0:
            self._batch_size = self._ledger.batch_size(self._iteration, first)
            if self._batch_size == 0:
                if time.monotonic() > deadline:
                    first = count
                time.sleep(0.001)
        # Who asks alone gets one after the other, whatever the sizes.
        number = self._requests * workers + worker
        preferred = self._asked if workers == 1 else number * self._batch_size
        return self._ledger.allot(self._iteration, self._share(), preferred, count)

    def state_dict(self) -> dict[str, Any]:
        """Where this process is. For StatefulDataLoader, which asks each worker for its own."""
        if not self._redirect:
            return {}
        if get_worker_info() is None and self._ledger.runs_in_workers:
            raise WrongCallError(
                "this dataset is read by the workers of a DataLoader, which does not tell how far they"
                " are: use torchdata's StatefulDataLoader and its state_dict"
            )
        return {
            "run": self._source.run(),
            "epoch": self._epoch,
            "requests": self._requests,
            "asked": self._asked,
            "batch_size": self._batch_size,
            "workers": _worker()[1],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where a state was taken, in the same world and with the same arguments."""
        if not state:
            return
        _check_state(state, self._source)
        self._epoch = int(state["epoch"])
        self._requests = int(state["requests"])
        self._asked = int(state["asked"])
        self._batch_size = int(state["batch_size"])
        self._seen = None
        self._resumes = True


def _worker() -> tuple[int, int, int | None]:
    """Which worker of how many this process is, and what their iteration has in common."""
    info = get_worker_info()
    return (0, 1, None) if info is None else (info.id, info.num_workers, info.seed - info.id)


def _check_state(state: dict[str, Any], source: Source) -> None:
    workers = _worker()[1]
    if state.get("workers") != workers:
        raise WrongCallError(
            f"the state is of {state.get('workers')} workers and this is one of {workers}: keep"
            " num_workers, or use gristway.Loader, whose state fits any number"
        )
    if state.get("run") != source.run():
        raise WrongCallError(
            "the state is of another run: its dataset, seed, batch size, memory or ranks differ from"
            f" this one's ({state.get('run')} and {source.run()})"
        )


def _bits(indices: Iterable[int]) -> bytes:
    numbers = torch.as_tensor(list(indices) if not isinstance(indices, torch.Tensor) else indices)
    if numbers.numel() == 0:
        raise WrongCallError("indices must name at least one sample")
    numbers = numbers.to(torch.int64)
    low, high = int(numbers.min()), int(numbers.max())
    if low < 0:
        raise WrongCallError(f"indices cannot have {low} among them")
    flags = torch.zeros((high // 8 + 1) * 8, dtype=torch.uint8)
    flags[numbers] = 1
    if int(flags.sum()) != numbers.numel():
        raise WrongCallError("indices name a sample twice")
    weights = torch.tensor([1 << bit for bit in range(8)], dtype=torch.uint8)
    return bytes((flags.view(-1, 8) * weights).sum(dim=1, dtype=torch.uint8).numpy().tobytes())


def labels_tensor(labels: list[int]) -> torch.Tensor:
    return torch.tensor(labels, dtype=torch.int64)


def from_array(values: Any) -> torch.Tensor:
    return torch.from_numpy(values)


def as_arrays(values: list[Any]) -> list[Any] | None:
    """Tensors as arrays over the same memory; None if they are not all alike, or not plain."""
    first = values[0]
    if not isinstance(first, torch.Tensor):
        return None
    for value in values:
        if (
            not isinstance(value, torch.Tensor)
            or value.shape != first.shape
            or value.dtype != first.dtype
            or value.device.type != "cpu"
            or value.layout != torch.strided
            or value.requires_grad
            or value.dtype == torch.bfloat16
        ):
            return None
    try:
        return [value.numpy() for value in values]
    except (TypeError, RuntimeError):
        return None  # some kinds of tensor have no array


def pin_memory(batch: Any) -> Any:
    """A batch with its tensors in page-locked memory; as it is where there is no accelerator."""
    if not torch.cuda.is_available():
        return batch
    return _pinned(batch)


def _pinned(value: Any) -> Any:
    from torch.utils.data._utils.pin_memory import pin_memory as pinned

    if isinstance(value, memoryview):
        return value  # torch would take it for a sequence, and apart
    if type(value) in (list, tuple):
        return type(value)(_pinned(each) for each in value)
    if type(value) is dict:
        return {key: _pinned(each) for key, each in value.items()}
    return pinned(value)  # type: ignore[no-untyped-call]
