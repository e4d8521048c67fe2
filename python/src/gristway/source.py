"""The batches of one rank, as a node gives them."""

from __future__ import annotations

import logging
import os
import re
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from gristway import java
from gristway.agreement import Agreement, Place, intent, next_place
from gristway.arguments import is_number, share, whole_number
from gristway.batch import Batch, Mappings, area_of
from gristway.connection import Hello, Piece, Welcome
from gristway.epochs import Reach
from gristway.errors import Error, LostNodeError, MachineError, WrongCallError
from gristway.group import Group, find_group, in_worker_of_dataloader, starts_workers
from gristway.meeting import NO_MEETING, Meeting, find_meeting
from gristway.node import Client, address
from gristway.state import States
from gristway.world import World

_log = logging.getLogger("gristway")

_SIZE = re.compile(r"(\d{1,18})\s*(b|kib|mib|gib)?", re.IGNORECASE)
_PERCENT = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s*%")
_MOST_LOST = 3
_MOST_BATCH = 1 << 24
_LONGEST_TIMEOUT = 86_400
_SHIFTS = {"b": 0, "kib": 10, "mib": 20, "gib": 30}


@dataclass(frozen=True)
class Reading:
    """How a dataset is read. What decides about the order is all here, with the world."""

    path: str
    mode: str
    policy: str
    memory: str | int
    batch_size: int
    seed: int
    extent: str | int
    tail: str
    strict: bool
    max_damage: float = 0.001
    storage_timeout: float = 30.0
    exchange: float = 0.0
    window: int = 2
    homes: str = "afresh"
    cache: str | int = 0
    cache_disk: str | int = 0
    cache_folder: str = ""
    handover: str | int = "auto"

    def settings(self, world: World, meeting: Meeting) -> str:
        """As a node takes them."""
        for named in (self.path, self.cache_folder):
            if any(character in named for character in "\n\r\0") or not _is_unicode(named):
                raise WrongCallError(
                    f"the path {named!r} has a line break in it, or bytes that are no UTF-8: rename it"
                )
        path = os.path.realpath(self.path)
        timeout = self.storage_timeout
        if not is_number(timeout) or not 0 <= timeout <= _LONGEST_TIMEOUT:
            raise WrongCallError(
                f"storage_timeout must be 0 to {_LONGEST_TIMEOUT} seconds, not"
                f" {self.storage_timeout!r}"
            )
        values = {
            "path": path,
            "mode": self.mode,
            "policy": self.policy,
            "memory": _memory(self.memory),
            "batch": whole_number("batch_size", self.batch_size, 1, _MOST_BATCH),
            "seed": whole_number("seed", self.seed, -(1 << 63), (1 << 63) - 1),
            "extent": 0 if self.extent == "auto" else _size(self.extent, "extent"),
            "tail": self.tail,
            "strict": "true" if self.strict else "false",
            "max-damage": share("max_damage", self.max_damage, " (0.001 is one in a thousand)"),
            "storage-timeout": float(timeout),
            "ranks": world.size,
            "ranks-here": world.ranks_here,
            "nodes": world.nodes,
            "node": world.node if meeting.point else 0,
            "exchange": share("exchange", self.exchange),
            "window": whole_number("window", self.window, 0, (1 << 31) - 1),
            "meet": meeting.point,
            "listen": meeting.listen,
            "job": meeting.group,
            "homes": self.homes,
            "cache": _size(self.cache, "cache") if self.cache else 0,
            "cache-disk": _size(self.cache_disk, "cache_disk") if self.cache_disk else 0,
            "handover": 0 if self.handover == "auto" else _size(self.handover, "handover"),
            "cache-folder": os.path.abspath(self.cache_folder) if self.cache_folder else "",
        }
        return "".join(f"{name}={value}\n" for name, value in values.items())


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _memory(memory: str | int) -> str:
    percent = _PERCENT.fullmatch(memory) if isinstance(memory, str) else None
    return f"{percent.group(1)}%" if percent else str(_size(memory, "memory"))


def _size(value: str | int, name: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match.group(1)) == 0:
        raise WrongCallError(
            f"{name}={value!r} is not a size: write it in KiB, MiB or GiB, as in '64MiB', or in bytes"
        )
    return int(match.group(1)) << _SHIFTS[(match.group(2) or "b").lower()]


def version_number(version: int | None) -> int:
    """The version of a dataset that a user means; 0 for the newest."""
    if version is None:
        return 0
    if isinstance(version, bool) or not isinstance(version, int) or not 0 <= version < 1 << 31:
        raise WrongCallError(
            f"version={version!r} is no version of a dataset: they are counted from 1, and 'gristway"
            " info' tells which there are"
        )
    return version


class Source:
    """Gives batches by their number, or by indices. Picklable; copies connect by themselves.

    Before the first batch it looks again which rank it is, since loaders are often made before
    torch.distributed is initialised, and compares with the other ranks what it is about to read. Any
    thread may call.
    """

    is_closed = False

    def __init__(
        self,
        reading: Reading,
        world: World,
        *,
        node: str | None,
        state: str = "",
        samples: bytes = b"",
        batches: int = 0,
        version: int = 0,
        snapshot: str = "",
        place: Place | None = None,
        is_shared: bool = False,
    ) -> None:
        self._reading = reading
        self._is_shared = is_shared  # forks of this process count their epochs together with it
        self._node = node
        self.place = place or self._next_place(world)
        hello = Hello("", state, samples, batches=batches, version=version, snapshot=snapshot)
        self._agreement: Agreement | None = None
        self._begin()
        self._open(world, hello)
        self._join()
        self.welcome()  # the node is this process's from now on, whoever reads
        _sources.add(self)

    def _begin(self) -> None:
        self._mappings: Mappings | None = None
        self._run: str | None = None
        self._settled_by = 0  # the process that has looked again
        self._told_by = 0
        self._has_changed = False
        self._refused: Error | None = None
        self._asked_epoch: int | None = None  # by index
        self._is_copy = False
        self._made_by = os.getpid()
        self._asks_group = self._reading.mode != "exact"
        self._lock = threading.RLock()

    def _open(self, world: World, hello: Hello) -> None:
        reading = self._reading
        # Who asks by index decides about the order, so nodes have nothing to agree on.
        meeting = find_meeting(world) if reading.mode == "stream" else NO_MEETING
        hello = replace(hello, settings=reading.settings(world, meeting), rank=world.rank)
        self.world = world
        mixes = float(reading.exchange) > 0 and world.size > 1
        if mixes and not world.is_counted:
            raise WrongCallError(
                "ranks that push samples to each other must know who is where: set LOCAL_WORLD_SIZE to"
                " the number of ranks on each machine, as torchrun does"
            )
        where = replace(
            address(hello, world.job, self._node), is_joined=bool(meeting.point) or mixes
        )
        self._client = Client(where, hello)
        self._states: States | None = None
        self._closing = weakref.finalize(self, Client.close, self._client)

    def _join(self) -> None:
        """Tells the other ranks what is about to be read, if there are any; raises if they differ."""
        if self.world.size == 1 or not self.world.is_jobs:
            return
        hello = self._client.hello
        own = intent(hello.settings, self.world, java.version(), hello.state, hello.samples)
        folder = Path(self._client.where.socket).parent
        is_exact = self._reading.mode == "exact"
        self._agreement = Agreement(folder, self.world, self.place, own, is_exact)
        if not self._client.where.is_joined:
            self._agreement.enter()  # nodes that meet compare by themselves, and wait for each other
        self._agreement.enter(self.welcome().snapshot)
        group = find_group()
        if group is not None:
            self._agreement.tell(group)

    def settle(self) -> bool:
        """Looks again which rank this is, and waits until the other ranks of torch.distributed's group
        have made this loader too. True if the world is another than it was. Does nothing in workers
        of a DataLoader, which read for the rank that has started them."""
        if self._settled_by == os.getpid():
            return False
        if self._refused is not None:
            raise self._refused
        with self._lock:
            if self._settled_by == os.getpid():
                return False
            group = None if in_worker_of_dataloader() else find_group()
            has_changed = group is not None and group.is_own and self._settle_in(group)
            self._settled_by = os.getpid()
            return has_changed

    def _settle_in(self, group: Group) -> bool:
        # All that this process has made are told of first: other ranks may begin with another one.
        _tell_of_all(group)
        before = self.world
        self._tell_in(group)
        if self._refused is not None:
            raise self._refused
        if self._agreement is not None and group.store is not None:
            if self._reading.mode != "exact":
                self._change(self.world.counted(self._agreement.await_all(group)))
        return self._has_changed or not self.world.is_like(before)

    def _tell_in(self, group: Group) -> None:
        """Takes the rank that the group has, and tells its other ranks; does not wait for them."""
        if self._told_by == os.getpid():
            return
        self._told_by = os.getpid()
        try:
            self._has_changed = self._change(self.world.found_again())
            if self._agreement is not None:
                self._agreement.tell(group)
        except Error as refused:
            self._refused = refused  # for whoever reads from this one

    def _change(self, world: World) -> bool:
        """Goes over to another world, and to the node that serves it, if it is another."""
        if world.is_like(self.world):
            return False
        is_forked = self._is_shared and self._made_by != os.getpid() and world.size > 1
        if self._is_copy or is_forked:
            # It shares its epochs with copies in other ranks, and its place with others made here.
            raise WrongCallError(
                "this dataset was made by the process that has started the ranks: make it in each rank"
            )
        _log.info("this loader is of rank %d of %d now", world.rank, world.size)
        welcome, hello = self.welcome(), self._client.hello
        self.close()
        self._closing.detach()
        self._agreement = self._mappings = self._run = None
        _sources.add(self)
        self._open(world, replace(hello, version=welcome.version, snapshot=welcome.snapshot))
        self._join()
        self.welcome()
        return True

    def _next_place(self, world: World) -> Place:
        is_exact = self._reading.mode == "exact"
        return next_place(world, os.path.realpath(self._reading.path) if is_exact else None)

    def __getstate__(self) -> dict[str, object]:
        if starts_workers():
            self._before_workers()
        kept = {"_reading", "_node", "place", "world", "_client", "_agreement", "_states"}
        kept.add("_is_shared")
        return {name: value for name, value in self.__dict__.items() if name in kept}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._begin()
        self._is_copy = True
        _sources.add(self)
        self._closing = weakref.finalize(self, Client.close, self._client)

    def expect(self, batches: int) -> None:
        """Says how many batches this process may have at once; before it first asks."""
        self._client.expect(batches)

    def welcome(self) -> Welcome:
        """What the node has said. From the first time on, states need no node, and what else is asked
        has its connection: the folder of the node's socket may vanish later."""
        welcome = self._client.welcome()
        if self._states is None and self._reading.mode != "exact":
            first = welcome.first_epoch
            text = self._client.ask(lambda connection: connection.state(self.world.rank, first, 0))
            self._states = States(text, first)
        return welcome

    def batch(
        self, epoch: int, step: int, workers: int = 1, then: int | None = None
    ) -> Batch | None:
        """The rank's batch of a step; None if the epoch has no such step. `then` is what follows, for
        the only client of its rank."""
        self._check()
        lost = 0
        while True:
            piece = self._client.call(
                lambda connection: connection.batch(self.world.rank, epoch, step, workers, then)
            )
            if piece is None:
                if self._agreement is not None:
                    self._agreement.check_all_came()
                return None
            try:
                return self._opened(piece, epoch)
            except LostNodeError:
                lost = self._lost(lost)

    def ask(
        self,
        epoch: int,
        iteration: int,
        start: int,
        batch_size: int,
        workers: int,
        indices: list[int],
    ) -> list[Batch]:
        """As many samples as indices, in one batch or more."""
        self._check()
        if epoch != self._asked_epoch:
            if self._asked_epoch is not None and self._agreement is not None:
                self._agreement.check_all_came()
            self._asked_epoch = epoch
        lost = 0
        while True:
            pieces = self._client.call(
                lambda connection: connection.ask(
                    self.world.rank, epoch, iteration, start, batch_size, workers, indices
                )
            )
            if pieces is None:
                raise WrongCallError(f"epoch {epoch} has no position {start}")
            try:
                return [self._opened(piece, epoch) for piece in pieces]
            except LostNodeError:
                lost = self._lost(lost)

    def _check(self) -> None:
        self.settle()
        if self._agreement is not None:
            self._agreement.check()

    def is_ranks_own(self) -> bool:
        """True if this process is a rank that compares with others, and not a fork of one."""
        return self._agreement is not None and self._agreement.is_own()

    def follow(self, now: Reach) -> None:
        """Raises if another rank has left the epoch that is read here; before each batch is given."""
        agreement = self._agreement
        if agreement is None:
            return
        agreement.follow(now)
        if now.most & (now.most - 1) == 0:  # now and then only, since it asks the group's store
            self._in_group(lambda group: agreement.follow_in(group, now))

    def tell_reach(self, reach: Reach | None) -> None:
        """Tells the other ranks how far an epoch was read that is left, or at its end; raises if one
        of them has read more of it, or less."""
        agreement = self._agreement
        if agreement is not None and reach is not None:
            agreement.tell_reach(reach)
            self._in_group(lambda group: agreement.pass_on(group, reach))

    def _before_workers(self) -> None:
        """Prepares for workers of a DataLoader, who cannot ask the group: looks again which rank this
        is, and passes on what the workers of earlier epochs have told the ranks of this machine."""
        self.settle()
        agreement = self._agreement
        if agreement is not None and not in_worker_of_dataloader():
            self._in_group(agreement.pass_on)

    def _in_group(self, ask: Callable[[Group], None]) -> None:
        group = find_group()
        if group is None or group.store is None or not self._asks_group:
            return
        try:
            ask(group)
        except Error:
            raise
        except RuntimeError as gone:
            # The store goes with the rank that has it, which may have trained to its end.
            self._asks_group = False
            _log.debug("ranks do not compare their epochs any more: %s", gone)

    def _lost(self, before: int) -> int:
        """A node may die between its answer and our look; asking again starts it. One that answers
        and cannot be found is somewhere else."""
        if before >= _MOST_LOST:
            raise MachineError(
                "the node answers, and its memory is not in /proc: it must run where this process can"
                " see it, with the same process ids"
            )
        return before + 1

    def _opened(self, piece: Piece, epoch: int) -> Batch:
        if self._mappings is None:
            self._mappings = Mappings()
        try:
            return Batch(
                self._mappings,
                area_of(piece, epoch),
                piece.first,
                piece.count,
                self.describe,
                piece.release,
            )
        except Error:
            piece.release()
            raise

    def describe(self, samples: list[int]) -> list[tuple[str, list[tuple[str, int]]]]:
        return self._client.ask(lambda connection: connection.describe(samples))

    def state(self, epoch: int, step: int) -> str:
        """The state of the run when so many steps of an epoch were received. Asks no node, if one
        was ever there: it can be taken when the node is gone."""
        if self._states is None:
            self.welcome()
        if self._states is None:
            raise WrongCallError("what is asked for by index, exactly, has no state")
        return self._states.at(epoch, step)

    def run(self) -> str:
        """What the order of this run depends on, in one line."""
        if self._run is None:
            lines = self.state(0, 0).splitlines()
            self._run = "; ".join(line for line in lines[1:-1] if not line.startswith("epoch "))
        return self._run

    def classes(self) -> dict[str, int]:
        """The numbers of the dataset's classes that have names."""
        return self._client.ask(lambda connection: connection.classes())

    def counters(self) -> dict[str, int]:
        """What the node has counted for all ranks of this machine."""
        return self._client.ask(lambda connection: connection.stats())

    def close(self, patience: float = 0.0) -> None:
        """Leaves the node, and lets go of all its memory but what views show."""
        _sources.discard(self)
        if self._agreement is not None:
            self._agreement.leave()
        self.is_closed = True
        self._client.close(patience)
        if self._mappings is not None:
            self._mappings.close()


_sources: weakref.WeakSet[Source] = weakref.WeakSet()


def _tell_of_all(group: Group) -> None:
    for source in sorted(_sources, key=lambda each: each.place):
        if source._settled_by != os.getpid():
            source._tell_in(group)


def _before_fork() -> None:
    """Makes datasets look again before the workers of a DataLoader are forked, who cannot."""
    if not starts_workers():
        return
    for source in sorted(_sources, key=lambda each: each.place):
        try:
            source._before_workers()
        except Error as refused:
            source._refused = refused  # for whoever reads from this one, here or there


os.register_at_fork(before=_before_fork)
