"""Datasets for torch.utils.data.DataLoader. The only module that imports torch."""

from __future__ import annotations

import copy
import logging
import operator
import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import Dataset, IterableDataset, default_collate, get_worker_info

from gristway.batch import Batch, Sample
from gristway.callers import (
    Call,
    Sampling,
    batches_again,
    find_ahead,
    find_call,
    find_dealer,
    find_sampling,
    find_skipped,
    is_in_trainer,
    is_named_by_accelerate,
)
from gristway.classes import compare_classes as compare
from gristway.collate import default_collate as collated
from gristway.collate import labels_array
from gristway.connection import Hello
from gristway.epochs import UNKNOWN, Reach
from gristway.errors import WrongCallError
from gristway.ledger import Begun, Ledger
from gristway.loader import Loader
from gristway.shipment import Shipment
from gristway.source import Reading, Source, version_number
from gristway.workers import transform_one
from gristway.world import World, find_world

__all__ = ["MapDataset", "StreamDataset", "default_collate"]

_log = logging.getLogger("gristway")

_FIRST_REQUEST_SECONDS = 60.0

# Who asks for one sample at a time gets the next that is left, from batches of this size.
_ONE_BY_ONE = 32
_ANYWHERE = -1

# Batches of an iteration without a DataLoader: the first request is one, and its end the other.
_BY_HAND = 2

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
        version: int | None = None,
        handover: str | int = "auto",
        rank: int | None = None,
        world_size: int | None = None,
        node: str | None = None,
        compare_classes: bool = True,
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
            handover=handover,
        )
        self._source = Source(
            reading,
            find_world(rank, world_size),
            node=node,
            version=version_number(version),
            is_shared=True,
        )
        self._source.welcome()  # so that copies in workers expect this very snapshot
        if compare_classes:
            compare(self._source, reading.path)
        self._transform = transform
        self._collate = collate_fn or collated
        self._ledger = Ledger(0)
        self._place: tuple[int, int] | None = None  # of this process: its next batch
        self._resumes = False
        self._dealer: str | None = None  # that was there when this was sent to a worker
        self._ahead: int | None = None  # as it was then
        self._skipped = 0
        self._in_trainer = False

    def __getstate__(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "_dealer": find_dealer(),
            "_ahead": find_ahead(),
            "_skipped": find_skipped(),
            "_in_trainer": is_in_trainer(),
        }

    def __len__(self) -> int:
        """Batches of this rank in an epoch."""
        return self._source.welcome().steps

    def set_epoch(self, epoch: int) -> None:
        """Has the next iteration be this epoch, also in workers that persist."""
        if epoch < 0:
            raise WrongCallError(f"there is no epoch {epoch}")
        self._ledger.set_epoch(epoch, is_told=not is_named_by_accelerate())

    def __iter__(self) -> Iterator[Any]:
        self._check_reader()
        # One that is worked on, and those that are on their way to the trainer. Before anything asks
        # the node: it is told when it is first spoken to.
        self._source.expect(1 + _MOST_SHIPPED)
        self._source.settle()
        worker, workers, seed = _worker()
        named, step = None, worker
        if self._resumes and self._place is not None:
            named, step = self._place
            self._resumes = False
        ahead = _ahead(self._ahead)
        skipped = find_skipped() or self._skipped
        begun = self._ledger.begin(
            worker, seed, named, total=len(self), ahead=ahead, skipped=skipped
        )
        _warn_of_skipping(skipped, begun, self._in_trainer)
        self._source.tell_reach(begun.left)
        self._place = (begun.epoch, step)
        return self._batches(begun, step, ahead)

    def _check_reader(self) -> None:
        """Raises if whoever iterates would make something else of the batches."""
        if batches_again(self):
            raise WrongCallError(
                "a StreamDataset gives whole batches, and this DataLoader makes batches of them: give"
                " the batch size to the StreamDataset and batch_size=None to the DataLoader (in"
                " transformers.Trainer, use a MapDataset, or return a gristway.Loader from"
                " get_train_dataloader)"
            )
        dealer = find_dealer() or self._dealer
        if dealer is not None and self._source.world.size > 1:
            raise WrongCallError(
                f"accelerate's {dealer} deals the batches of a StreamDataset to the ranks, and these are"
                f" rank {self._source.world.rank}'s own already, so that samples would be left out: do"
                " not pass this DataLoader to prepare(), or use a gristway.Loader or a MapDataset"
            )

    def _batches(self, begun: Begun, step: int, ahead: int) -> Iterator[Any]:
        shipped: list[weakref.ref[Shipment]] = []
        worker, workers, _ = _worker()
        epoch, number, named, *_ = begun
        total = len(self)
        while True:
            shipped = _await_copies(shipped)
            batch = self._source.batch(epoch, step, workers)
            if batch is None:
                return
            self._ledger.note_asked(number, worker, step + 1)
            now = Reach.of(epoch, step + 1, ahead, named)
            self._source.follow(now)
            if step + 1 == total:
                self._source.tell_reach(now)
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
            plain = [each for each in views if isinstance(each, memoryview)]
            if get_worker_info() is None or len(plain) < len(views):
                return [_copied(each) for each in views], labels_array(batch.labels())
            return Shipment(plain), labels_array(batch.labels())
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


def _copied(data: memoryview | dict[str, memoryview]) -> bytes | dict[str, bytes]:
    if isinstance(data, dict):
        return {name: bytes(part) for name, part in data.items()}
    return bytes(data)


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
        version: int | None = None,
        handover: str | int = "auto",
        rank: int | None = None,
        world_size: int | None = None,
        node: str | None = None,
        compare_classes: bool = True,
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
            handover=handover,
        )
        self._reading = reading
        self._node = node
        self._transform = transform
        self._redirect = redirect
        # Which samples may be given, and which index is which: all, each its own, if there are none.
        self._set = None if indices is None else _numbers(indices)
        self._places: torch.Tensor | None = None
        self._open(find_world(rank, world_size), Hello("", version=version_number(version)))
        if compare_classes:
            compare(self._source, reading.path)

    def _open(self, world: World, of: Hello) -> None:
        """Begins to read the snapshot that is named, or the newest."""
        samples = b"" if self._set is None else _bits(self._set)
        self._source = Source(
            self._reading,
            world,
            node=self._node,
            samples=samples,
            version=of.version,
            snapshot=of.snapshot,
            is_shared=self._redirect,
        )
        welcome = self._source.welcome()
        self._size = welcome.samples
        # Samples that may be given.
        self._count = self._size if self._set is None else self._set.numel()
        self._ledger = Ledger(0)
        self._iterations: weakref.WeakKeyDictionary[Any, _Requests] = weakref.WeakKeyDictionary()
        self._hand: tuple[tuple[int, int | None], _Requests] | None = None
        self._latest: _Requests | None = None
        self._loaded: _Requests | None = None
        self._begun_in = 0  # the process that has begun an iteration
        self._sampling: Sampling | None = None  # when this was sent to a worker
        self._ahead: int | None = None  # as it was then
        self._dealer: str | None = None
        self._in_trainer = False

    def __getstate__(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "_iterations": None,  # this process's own
            "_hand": None,
            "_begun_in": 0,
            "_sampling": find_sampling(),
            "_ahead": find_ahead(),
            "_dealer": find_dealer(),
            "_in_trainer": is_in_trainer(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._iterations = weakref.WeakKeyDictionary()

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
        self._ledger.set_epoch(epoch, is_told=not is_named_by_accelerate())

    def split(self, *shares: float, seed: int = 0) -> list[MapDataset]:
        """Splits the dataset into parts that have no sample in common.

            training, validation = dataset.split(0.9, 0.1, seed=1)

        Shares are parts of one (0.9, 0.1) or numbers of samples (45_000, 5_000), and are all of the
        dataset. The same seed splits the same version of a dataset in the same way. The indices of a
        part run from 0, so that `DataLoader(part, shuffle=True)` and any sampler work; with
        `redirect=True` each part has a node, and `memory`, of its own. This dataset is not needed any
        more.
        """
        base = self._places if self._places is not None else self._set
        total = base.numel() if base is not None else self._size
        sizes = _sizes(shares, total)
        order = torch.argsort(_hashes(torch.arange(total), seed), stable=True)
        parts = []
        for places in torch.split(order, sizes):
            places = torch.sort(places).values
            parts.append(self._part(places if base is None else base[places]))
        return parts

    def _part(self, places: torch.Tensor) -> MapDataset:
        part = copy.copy(self)
        part._ledger = Ledger(0)
        part._latest = part._loaded = None
        part._places = places
        if self._redirect:
            welcome = self._source.welcome()
            part._set = places
            part._open(
                self._source.world, Hello("", version=welcome.version, snapshot=welcome.snapshot)
            )
        part._size = places.numel()
        return part

    def __getitem__(self, index: int) -> Any:
        return self._items([index], False)[0]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return self._items(indices, True)

    def _items(self, indices: list[int], as_batch: bool) -> list[Any]:
        wanted = [self._checked(index) for index in indices]
        if not wanted:
            return []
        self._source.settle()
        if self._places is not None:
            wanted = self._places[wanted].tolist()
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
            return _copied(sample.whole), sample.label
        return transform_one(self._transform, sample)

    def _redirected(self, wanted: list[int], as_batch: bool) -> list[Batch]:
        call = find_call()
        worker, workers, seed = _worker()
        if call.fetcher is None:
            now, allotted = self._by_hand(call, len(wanted), as_batch)
        else:
            known = self._iterations.get(call.fetcher)
            now = known or self._begin(call, len(wanted), as_batch)
            self._iterations[call.fetcher] = now
            # What fills last batches is less than one on each rank.
            most = now.batch_size - 1 if self._source.world.size > 1 else 0
            allotted = self._allotted(now, len(wanted), as_batch, worker, workers, most)
            if allotted is None and now.is_loaded:
                # The state was one of the end of an epoch.
                now = self._begin(call, len(wanted), as_batch)
                self._iterations[call.fetcher] = now
                allotted = self._allotted(now, len(wanted), as_batch, worker, workers, most)
        self._latest = now
        if allotted is None:
            raise WrongCallError(
                f"{now.asked + len(wanted)} samples are asked for, and rank {self._source.world.rank} has"
                f" {self._share()} in an epoch: do several ranks each draw everything, or does the sampler"
                " draw from another split than indices= names?"
            )
        stretches, repeats = allotted
        again = []
        while repeats > 0:  # a last batch is filled with what came first
            again.append((0, min(repeats, self._share())))
            repeats -= again[-1][1]
        batches: list[Batch] = []
        try:
            for start, end in stretches + again:
                first = sum(len(batch) for batch in batches)
                batches += self._source.ask(
                    now.epoch,
                    now.number,
                    start,
                    now.batch_size,
                    workers,
                    wanted[first : first + end - start],
                )
        except BaseException:
            self._ledger.give_back(now.number, stretches)
            raise
        self._follow(now)
        now.requests += 1
        now.asked += len(wanted)
        now.is_loaded = False
        return batches

    def _follow(self, now: _Requests) -> None:
        """Raises if another rank has left the epoch of an answer."""
        if now.total is None or now.requests % now.requests_a_batch:
            return
        worker, workers, _ = _worker()
        batches = now.skipped + now.requests // now.requests_a_batch * workers + worker + 1
        self._ledger.note_asked(now.number, worker, batches)
        reach = Reach.of(now.epoch, batches, now.ahead, now.named)
        self._source.follow(reach)
        if batches == now.total:
            self._source.tell_reach(reach)

    def _by_hand(
        self, call: Call, count: int, as_batch: bool
    ) -> tuple[_Requests, tuple[list[tuple[int, int]], int] | None]:
        """A request that no DataLoader makes. Nobody tells when an epoch of these begins, but
        `set_epoch`; or this one has not so many samples left."""
        worker, workers, seed = _worker()
        kind = (self._ledger.generation, seed)
        hand = self._hand
        now = hand[1] if hand is not None and hand[0] == kind else None
        if now is None:
            now = self._begun_by_hand(kind, call, count, as_batch, 0)
        while True:
            allotted = self._allotted(now, count, as_batch, worker, workers, 0)
            if allotted is not None or count > self._share():
                return now, allotted
            self._ledger.note_asked(now.number, worker, _BY_HAND)  # it is at its end
            now = self._begun_by_hand(kind, call, count, as_batch, now.number)

    def _begun_by_hand(
        self,
        kind: tuple[int, int | None],
        call: Call,
        count: int,
        as_batch: bool,
        ended: int,
    ) -> _Requests:
        """The iteration after one that has ended, or the first: one for all threads and processes."""
        now = self._begin(call, count, as_batch, ended)
        hand = self._hand
        if hand is not None and hand[0] == kind and hand[1].number == now.number:
            return hand[1]  # another thread was faster
        self._hand = (kind, now)
        return now

    def _begin(self, call: Call, count: int, as_batch: bool, ended: int | None = None) -> _Requests:
        worker, workers, seed = _worker()
        is_first = self._begun_in != os.getpid()
        self._begun_in = os.getpid()
        sampling = (call.fetcher and (find_sampling() or self._sampling)) or Sampling()
        self._check_dealer()
        self._check_part(call, sampling)
        size = (sampling.batch_size or 0) if as_batch else 0
        ahead = _ahead(self._ahead)
        total = None if sampling.batches is None else sampling.skipped + sampling.batches
        requests_a_batch = 1
        if call.fetcher is None:
            # What is asked for by hand counts as one batch, so that looks need not be alike.
            total, requests_a_batch = _BY_HAND, UNKNOWN
        elif not as_batch and call.fetcher.auto_collation:
            total = total if sampling.batch_size else None
            requests_a_batch = sampling.batch_size or 1
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            loaded.batch_size = loaded.batch_size or size
            # What the other workers have not given yet lies less than a round before this.
            number = loaded.skipped + loaded.requests * workers + worker
            given = max(0, number - workers + 1) * loaded.batch_size
            given = loaded.asked if workers == 1 else given
            begun = self._ledger.begin(
                worker, seed, loaded.epoch, given, total=total, ahead=ahead, ended=ended
            )
            loaded.number, loaded.named = begun.number, begun.named
            loaded.total, loaded.ahead, loaded.requests_a_batch = total, ahead, requests_a_batch
            self._ledger.batch_size(loaded.number, loaded.batch_size)
            return loaded
        given = sampling.skipped * (sampling.batch_size or count)
        begun = self._ledger.begin(
            worker,
            seed,
            total=total,
            ahead=ahead,
            given=given,
            # What a worker that persists was told of the sampler was true for its first epoch.
            advised=sampling.epoch if seed is None or is_first else None,
            fits=(min(count, self._share()), self._share()),
            skipped=sampling.skipped,
            ended=ended,
        )
        _warn_of_skipping(sampling.skipped, begun, self._in_trainer)
        self._source.tell_reach(begun.left)
        return _Requests(
            begun.epoch,
            begun.number,
            sampling.skipped,
            0,
            given,
            size,
            total=total,
            ahead=ahead,
            named=begun.named,
            requests_a_batch=requests_a_batch,
        )

    def _check_dealer(self) -> None:
        """Raises if one rank asks for the samples of all: it has only its own share to give."""
        dealer = find_dealer() or self._dealer
        if dealer == "DataLoaderDispatcher" and self._source.world.size > 1:
            raise WrongCallError(
                f"accelerate's {dealer} has one rank read for all of them, and with redirect=True each"
                " rank gives its own share: use dispatch_batches=False, or a MapDataset without redirect"
            )

    def _check_part(self, call: Call, sampling: Sampling) -> None:
        """Raises if a part of the samples is drawn from all of them: others would answer."""
        part = sampling.part if call.part is None else call.part
        if part is None or part == self._count:
            size = sampling.batch_size
            if size is None and call.fetcher is not None and not call.fetcher.auto_collation:
                size = 1
            if not size or sampling.batches is None or sampling.picks or call.fetcher is None:
                return
            drawn = (sampling.batches + sampling.skipped) * size
            if drawn > self._share() - size * self._source.world.size:
                return
            whose, part, count = "the sampler", drawn, self._share()
        else:
            whose = "a SubsetRandomSampler" if call.part is None else "a Subset"
            count = self._count
        raise WrongCallError(
            f"{whose} draws {part} of {count} samples; with redirect=True any of the {count} answers,"
            " also one of another split: use dataset.split(...), or give MapDataset the split's own"
            " indices=; to go on in mid-epoch, use skip_first_batches or StatefulDataLoader"
        )

    def _allotted(
        self, now: _Requests, count: int, as_batch: bool, worker: int, workers: int, most: int
    ) -> tuple[list[tuple[int, int]], int] | None:
        """Where in this rank's order the answer to a request is; and how many samples of it are
        repeats.

        A DataLoader hands its batches to its workers in turn, so a worker knows the number of each of
        its requests in the epoch; with the batch size, that makes the order the same for any number of
        workers. Where requests follow another pattern, each gets the lowest that is left.
        """
        if not as_batch:
            now.batch_size = now.batch_size or _ONE_BY_ONE
            return self._ledger.allot(now.number, self._share(), _ANYWHERE, count)
        first = count if worker == 0 and now.requests == 0 else None
        deadline = time.monotonic() + _FIRST_REQUEST_SECONDS
        while now.batch_size == 0:
            now.batch_size = self._ledger.batch_size(now.number, first)
            if now.batch_size == 0:
                if time.monotonic() > deadline:
                    first = count
                time.sleep(0.001)
        # Who asks alone gets one after the other, whatever the sizes.
        number = now.skipped + now.requests * workers + worker
        preferred = now.asked if workers == 1 else number * now.batch_size
        return self._ledger.allot(now.number, self._share(), preferred, count, most)

    def state_dict(self) -> dict[str, Any]:
        """Where this process is. For StatefulDataLoader, which asks each worker for its own."""
        if not self._redirect:
            return {}
        if get_worker_info() is None and self._ledger.runs_in_workers:
            raise WrongCallError(
                "this dataset is read by the workers of a DataLoader, which does not tell how far they"
                " are: use torchdata's StatefulDataLoader and its state_dict"
            )
        worker, workers, seed = _worker()
        now = self._loaded or self._latest
        if now is None:
            sampling = find_sampling() or self._sampling or Sampling()
            now = _Requests(self._ledger.coming(worker, seed, sampling.epoch), 0, sampling.skipped)
        return {
            "run": self._source.run(),
            "epoch": now.epoch,
            "skipped": now.skipped,
            "requests": now.requests,
            "asked": now.asked,
            "batch_size": now.batch_size,
            "workers": workers,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where a state was taken, in the same world and with the same arguments."""
        if not state:
            return
        _check_state(state, self._source)
        self._loaded = _Requests(
            int(state["epoch"]),
            0,
            int(state["skipped"]),
            int(state["requests"]),
            int(state["asked"]),
            int(state["batch_size"]),
            is_loaded=True,
        )
        self._hand = None


@dataclass
class _Requests:
    """What this process has asked for in an iteration."""

    epoch: int
    number: int  # of the iteration
    skipped: int = 0  # batches of all workers that the sampler has left out
    requests: int = 0
    asked: int = 0  # samples, with those that were left out
    batch_size: int = 0
    is_loaded: bool = False  # it goes on, and nothing was asked for yet
    total: int | None = None  # batches to its end, if that is known
    ahead: int = 0  # batches that are asked for before training receives them
    named: int = 0  # epochs that were named before, or with this one
    requests_a_batch: int = 1


class LoaderDataset(IterableDataset[Any]):
    """The batches of a `gristway.Loader`, for what wants to put a DataLoader around them."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        if find_skipped():
            self._loader._refuse_skipping()
        return iter(self._loader)


def _worker() -> tuple[int, int, int | None]:
    """Which worker of how many this process is, and what their iteration has in common."""
    info = get_worker_info()
    return (0, 1, None) if info is None else (info.id, info.num_workers, info.seed - info.id)


_has_warned = False


def _warn_of_skipping(skipped: int, begun: Begun, in_trainer: bool) -> None:
    """Says once that batches are left out of the first epoch, if nobody has said that it is the one."""
    global _has_warned
    if skipped and begun.epoch == 0 and not begun.is_told and not _has_warned:
        if not in_trainer and not is_in_trainer():
            _has_warned = True
            _log.warning(
                "%d batches are left out of epoch 0, since no epoch was named: if training is in a"
                " later one, call set_epoch(epoch) of the dataset, or of the DataLoader that"
                " accelerate has prepared, before skip_first_batches",
                skipped,
            )


def _ahead(known: int | None) -> int:
    """How many batches are asked for before training receives them: by workers, as a DataLoader in
    sight has it, or as one had it that has sent the dataset here."""
    if get_worker_info() is None:
        return 0
    found = find_ahead() or known
    return UNKNOWN if found is None else found


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


def _sizes(shares: tuple[float, ...], total: int) -> list[int]:
    """How many samples each part of a split has."""
    if all(isinstance(share, int) and not isinstance(share, bool) for share in shares):
        sizes = [int(share) for share in shares]
    else:
        if not all(0 < share < 1 for share in shares) or abs(sum(shares) - 1) > 1e-6:
            raise WrongCallError(
                f"the shares {', '.join(map(str, shares))} are not parts that sum up to 1, as in"
                " split(0.9, 0.1)"
            )
        ends = [round(total * sum(shares[: i + 1])) for i in range(len(shares))]
        sizes = [end - start for start, end in zip([0, *ends], ends)]
    if len(sizes) < 2 or min(sizes) < 1 or sum(sizes) != total:
        raise WrongCallError(
            f"a split of {total} samples into {', '.join(map(str, sizes)) or 'nothing'}: it needs at"
            f" least two parts of at least one sample, and {total} in all"
        )
    return sizes


def _hashes(numbers: torch.Tensor, seed: int) -> torch.Tensor:
    """A number for each that looks random: SplitMix64, which no version of a library changes."""
    mixed = numbers * -7046029254386353131 + (seed * 2654435769 + 1) % (1 << 62)
    for shift, factor in ((30, -4658895280553007687), (27, -7723592293110705685)):
        mixed = (mixed ^ (mixed >> shift & (1 << 64 - shift) - 1)) * factor
    return mixed ^ (mixed >> 31 & (1 << 33) - 1)


def _numbers(indices: Iterable[int]) -> torch.Tensor:
    numbers = torch.as_tensor(list(indices) if not isinstance(indices, torch.Tensor) else indices)
    if numbers.numel() == 0:
        raise WrongCallError("indices must name at least one sample")
    numbers = numbers.to(torch.int64)
    if int(numbers.min()) < 0:
        raise WrongCallError(f"indices cannot have {int(numbers.min())} among them")
    if torch.bincount(numbers).max() > 1:
        raise WrongCallError("indices name a sample twice")
    return numbers


def _bits(numbers: torch.Tensor) -> bytes:
    flags = torch.zeros((int(numbers.max()) // 8 + 1) * 8, dtype=torch.uint8)
    flags[numbers] = 1
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
