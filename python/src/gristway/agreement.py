"""What the ranks of a job compare before the first batch, and how they learn that they differ.

Ranks that read with different seeds, from different snapshots or with different code get some samples
twice and others never, and nothing looks wrong. So each tells what it is about to do: on one machine in
a file of the runtime folder, and where torch.distributed is initialised, in its store. Both are found by
the job and by the loader's place among the loaders of its process, never by what is compared. Whoever
differs raises, and so do all others, also those that are reading already.

In the same places ranks tell how far they have read an epoch that they have left, and notice when they
are in different ones: see `gristway.epochs`.

The file goes with the last rank that is alive. What kills leave of it, the next start takes away. A
difference outlives the ranks that have found it, for those that were started with them and come later.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import mmap
import os
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from gristway.epochs import UNKNOWN, Reach, has_gone_on, parted
from gristway.errors import MachineError, WrongCallError
from gristway.group import Group
from gristway.world import World, machine

_log = logging.getLogger("gristway")

_SUFFIX = ".ranks"
_AGREED, _DIFFERS = b".", b"!"

# What a file begins with: if ranks differ, and how often they have told something of epochs.
_HEAD_BYTES = len('.{"changes": "00000000"')

# Epochs of which a rank's reach is remembered, so that the others may be that far behind.
_MOST_REACHES = 16

# What may differ from rank to rank: where things are, not what is done.
_OWN = ("path", "node", "listen", "meet", "job", "cache", "cache-folder", "ranks-here", "nodes")

# As the arguments are called that these come from.
_ARGUMENTS = {"batch": "batch_size", "cache-disk": "cache_disk", "tail": "drop_last"}

# Others may load a model or save one first, so they are given time; what is waited for is logged.
_TOLD_SECONDS = 5.0
_COME_SECONDS = 300.0
_EPOCH_END_SECONDS = 60.0

_made: Counter[str] = Counter()

Intent = dict[str, str]


@dataclass(frozen=True, order=True)
class Place:
    """A loader's place among those of its process: the same on all ranks that run one program.

    `again` counts how often the loader was opened anew, for a state."""

    kind: str
    number: int
    again: int = 0

    def next(self) -> Place:
        return replace(self, again=self.again + 1)

    def __str__(self) -> str:
        return f"{self.kind}-{self.number}-{self.again}"


def next_place(world: World, exact_path: str | None) -> Place:
    """The place of a loader that is made now.

    Those that are given a rank count apart, since other ranks may make none. So do, for each path,
    those who ask for exactly what they want: it makes no difference if one rank alone does."""
    kind = "found" if world.asked is None else "given"
    if exact_path is not None:
        kind = f"{kind} exact {exact_path}"
    _made[kind] += 1
    return Place(kind, _made[kind])


def intent(settings: str, world: World, code: str, state: str, samples: bytes) -> Intent:
    """What a rank is about to do, but for the snapshot, in words that can be compared."""
    values = dict(line.split("=", 1) for line in settings.splitlines())
    kept = {_ARGUMENTS.get(name, name): text for name, text in values.items() if name not in _OWN}
    if world.is_counted:
        kept["ranks on each machine"] = str(world.ranks_here)
    kept["path"] = values["path"]
    kept["code"] = code
    kept["state"] = _digest(state) if state else "none"
    kept["indices"] = _digest(samples.hex()) if samples else "all"
    return kept


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def difference(rank: int, own: Intent, other_rank: int, other: Intent) -> str | None:
    """In what two ranks differ, in one line; None if they do not."""
    first, second = sorted([(rank, own), (other_rank, other)], key=lambda each: each[0])
    # What one has not told yet, or does not know, is not compared. One snapshot may be in two places.
    names = [
        name
        for name in first[1]
        if name != "path" and name in second[1] and first[1][name] != second[1][name]
    ]
    if not names:
        return None
    if "snapshot" in names and first[1].get("path") != second[1].get("path"):
        names.insert(0, "path")

    def told(each: tuple[int, Intent]) -> str:
        values = ", ".join(f"{name}={each[1][name]}" for name in names)
        return f"rank {each[0]} has {values}"

    return (
        f"the ranks of this job do not read alike: {told(first)}; {told(second)}: make the same"
        " loaders in the same order on every rank, from one version of one dataset; for a loader of"
        " one rank alone, pass rank=0, world_size=1"
    )


# What ranks did not do that did not come, and what to do.
_MAKE, _LOAD = "make this loader", "load a state into this loader"
_LOAD_IT = "call load_state_dict on every rank, and as often"
_MAKE_IT = (
    "make it on every rank, or pass rank=0, world_size=1 for a loader of one rank alone, such as for"
    " validation"
)
_COUNT_THEM = (
    "make it on every rank; where ranks are on several machines, set LOCAL_WORLD_SIZE to the number of"
    " ranks on each machine"
)


def _did_not_come(ranks: list[int], deed: str, seconds: float, what_to_do: str) -> str:
    return (
        f"rank {_listed(ranks)} of this job did not {deed} within {seconds:.0f} s, and the"
        f" samples of an epoch are dealt to all ranks: {what_to_do}"
    )


def _listed(ranks: list[int]) -> str:
    return ", ".join(map(str, ranks[:8])) + (" and others" if len(ranks) > 8 else "")


def _twice(rank: int, first: str, second: str) -> str:
    return (
        f"processes {first} and {second} of this job are both rank {rank}: give each its own with"
        " rank=, world_size="
    )


class _Patience:
    """Waits for ranks in growing pauses, and says in the log for which."""

    def __init__(self, seconds: float, deed: str, what_to_do: str) -> None:
        self._begun = time.monotonic()
        self._seconds = seconds
        self._deed = deed
        self._what_to_do = what_to_do
        self._pause = 0.002
        self._has_told = False

    def wait(self, absent: Callable[[], list[int]]) -> None:
        """Waits a little; raises if it has waited too long."""
        waited = time.monotonic() - self._begun
        if waited > self._seconds:
            raise WrongCallError(_did_not_come(absent(), self._deed, waited, self._what_to_do))
        if waited > _TOLD_SECONDS and not self._has_told:
            self._has_told = True
            _log.warning(
                "waiting for rank %s of this job to %s too: %s",
                _listed(absent()),
                self._deed,
                self._what_to_do,
            )
        time.sleep(self._pause)
        self._pause = min(0.1, self._pause * 1.5)


class Agreement:
    """One loader's part in it. Picklable; copies in other processes look, and do not take part.

    Any thread may call. For `exact` readers, who decide about the order by themselves, only the
    snapshot and the code are compared, and nobody is waited for.
    """

    def __init__(
        self, folder: Path, world: World, place: Place, own: Intent, is_exact: bool
    ) -> None:
        if is_exact:
            own = {name: own[name] for name in ("code", "path")}
        self._world = world
        self._own = own
        self._is_exact = is_exact
        self._name = f"loader/{_digest(str(place))}"
        self._path = folder / f"{_digest(f'{world.job}/{self._name}')}{_SUFFIX}"
        self._has_state = place.again > 0  # it was opened anew, to load one
        self._process = os.getpid()
        self._mapped: mmap.mmap | None = None
        self._mapped_by = 0
        self._is_complete = is_exact  # nobody is waited for any more
        self._has_told = False
        self._leaving: weakref.finalize[..., Agreement] | None = None
        self._known = b""  # the file's head at the time when `_limits` was computed
        self._limits: dict[tuple[int, int], int] = {}  # how far epochs may be read
        self._passed_on: set[Reach] = set()  # to the group

    def __getstate__(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "_mapped": None,
            "_mapped_by": 0,
            "_leaving": None,
            "_known": b"",
            "_limits": {},
        }

    def enter(self, snapshot: str | None = None) -> None:
        """Tells the ranks of this machine; raises if one of them differs. To be called before the
        node is asked for, and again when it has told the snapshot."""
        rank, differs = self._world.rank, None
        if snapshot is not None:
            self._own = {**self._own, "snapshot": snapshot}
        with self._told_as_error(), _page(self._path, create=True) as page:
            assert page is not None
            page.forget_if_over(self._process)
            if page.differs is None:
                page.expected = self._world.ranks_here
            for each, entry in page.ranks.items():
                if page.differs is None and entry.is_alive():
                    if int(each) != rank:
                        page.note(difference(rank, self._own, int(each), entry.intent))
                    elif entry.process != self._process:
                        page.note(_twice(rank, str(entry.process), str(self._process)))
                        page.expected = 0  # another rank may never come
            differs = page.differs
            own = _Entry(self._process, _start_of(self._process), self._own)
            if differs is None:
                page.ranks[str(rank)] = own
            else:
                # It has come, and reads nothing.
                page.ranks.setdefault(str(rank), replace(own, has_left=True))
        if differs is not None:
            raise WrongCallError(differs)
        if self._leaving is None:
            self._leaving = weakref.finalize(self, _leave, self._path, rank, self._process)

    @contextlib.contextmanager
    def _told_as_error(self) -> Iterator[None]:
        """Says in one line which folder it is that cannot be used."""
        try:
            yield
        except OSError as failed:
            raise MachineError(
                f"cannot use the file in which ranks compare, in the folder {self._path.parent}:"
                f" {failed.strerror}: correct that, or set GRISTWAY_RUNTIME_DIR to another folder"
            ) from None

    def _patience(self, seconds: float, is_counted: bool) -> _Patience:
        if self._has_state:
            return _Patience(seconds, _LOAD, _LOAD_IT)
        return _Patience(seconds, _MAKE, _MAKE_IT if is_counted else _COUNT_THEM)

    def is_own(self) -> bool:
        """True in the process that takes part."""
        return self._process == os.getpid()

    def leave(self) -> None:
        """Takes no part any more; the file goes with the last."""
        if self._leaving is not None and self.is_own():
            self._leaving()

    def tell(self, group: Group) -> None:
        """Tells the ranks of the group. Does not wait."""
        if self._has_told or group.store is None:
            return
        self._has_told = True
        rank = self._world.rank
        own = json.dumps({"rank": rank, "intent": self._own})
        first = json.loads(group.said_first(f"{self._name}/first", own))
        differs = difference(rank, self._own, first["rank"], first["intent"])
        if self._is_exact:
            if differs is not None:
                self._raise(differs)
            return
        here = f"{machine()} {self._process}"
        known = group.said_first(f"{self._name}/rank/{rank}", here)
        if known != here and differs is None:
            differs = _twice(rank, known.split()[1], str(self._process))
        if differs is not None:
            group.say(f"{self._name}/differs", differs)
        group.count(f"{self._name}/come", 1)

    def await_all(self, group: Group) -> list[str]:
        """Waits until all ranks of the group have told, and raises if one differs. The machine of
        each rank."""
        names = [f"{self._name}/rank/{rank}" for rank in range(self._world.size)]
        patience = self._patience(_COME_SECONDS, True)
        while True:
            have_come = group.count(f"{self._name}/come") >= self._world.size
            differs = group.said(f"{self._name}/differs")
            if differs is not None:
                self._raise(differs)
            if have_come:
                self._is_complete = True
                return [(group.said(name) or "").split(" ")[0] for name in names]
            self.check()
            patience.wait(lambda: group.missing(names))

    def _raise(self, differs: str) -> None:
        """Raises, and has those who are on this machine do so too."""
        with contextlib.suppress(OSError), _page(self._path) as page:
            if page is not None:
                page.note(differs)
        raise WrongCallError(differs)

    def check(self) -> None:
        """Raises if a rank that differs has come; cheap enough for each batch."""
        if self._head()[:1] == _DIFFERS:
            known = None
            with contextlib.suppress(OSError), _page(self._path) as page:
                known = page.differs if page is not None else None
            raise WrongCallError(known or "the ranks of this job do not read alike")

    def _head(self) -> bytes:
        """What the file begins with; nothing if there is none."""
        if self._mapped_by != os.getpid():
            self._map()
        return b"" if self._mapped is None else self._mapped[:_HEAD_BYTES]

    def follow(self, now: Reach) -> None:
        """Raises if another rank of this machine has left the epoch that is read here; cheap enough
        for each batch."""
        head = self._head()
        if head != self._known:
            self.check()
            self._limits.clear()
            self._known = head
        limit = self._limits.get(now.key)
        if limit is None:
            limit = self._limits[now.key] = self._limit(now)
        if now.least > limit:
            self.tell_reach(now)

    def _limit(self, now: Reach) -> int:
        """How many batches of an epoch may be received before this rank has parted from another."""
        limit = UNKNOWN
        with contextlib.suppress(OSError), _page(self._path) as page:
            for rank, entry in page.ranks.items() if page is not None else ():
                if int(rank) == self._world.rank:
                    if has_gone_on(entry.reaches, now):
                        return UNKNOWN  # it was compared then
                    continue
                for reach in entry.reaches:
                    if reach.is_parted_from(replace(now, least=UNKNOWN)):
                        limit = min(limit, reach.most)
        return limit

    def tell_reach(self, reach: Reach) -> None:
        """Tells how far this rank has read an epoch; raises if another has parted from it."""
        rank, differs = str(self._world.rank), None
        with contextlib.suppress(OSError), _page(self._path) as page:
            own = page.ranks.get(rank) if page is not None else None
            if page is not None and own is not None and own.process == self._process:
                if own.keep(reach):
                    page.note_change()
                    for other, entry in page.ranks.items():
                        for each in entry.reaches if other != rank else ():
                            page.note(parted(int(rank), reach, int(other), each))
                differs = page.differs
        if differs is not None:
            raise WrongCallError(differs)

    def follow_in(self, group: Group, now: Reach) -> None:
        """Raises if a rank of the group has left the epoch that is read here. Asks the group's store."""
        self._check_in(group)
        if not has_gone_on(self._passed_on, now):
            self._compare_in(group, now, [group.said(self._epoch_name(now, True))])

    def pass_on(self, group: Group, reach: Reach | None = None) -> None:
        """Tells the group one reach; without one, every reach that this rank has written to its
        machine's file. Raises if another rank has parted from it."""
        reaches = [reach] if reach is not None else self._told_reaches()
        for each in reaches:
            if each not in self._passed_on and not has_gone_on(self._passed_on, each):
                self._passed_on.add(each)
                first = group.said_first(self._epoch_name(each, each.went_on), _as_text(self, each))
                other = group.said(self._epoch_name(each, not each.went_on))
                self._compare_in(group, each, [first, other])
        if reach is None:
            self._check_in(group)

    def _told_reaches(self) -> list[Reach]:
        with contextlib.suppress(OSError), _page(self._path) as page:
            own = page.ranks.get(str(self._world.rank)) if page is not None else None
            return list(own.reaches) if own is not None else []
        return []

    def _epoch_name(self, reach: Reach, went_on: bool) -> str:
        return f"{self._name}/epoch/{reach.epoch}/{reach.named}/{'left' if went_on else 'read'}"

    def _compare_in(self, group: Group, own: Reach, others: list[str | None]) -> None:
        for text in others:
            told = json.loads(text) if text is not None else None
            if told is not None and told["rank"] != self._world.rank:
                rank = self._world.rank
                differs = parted(rank, own, told["rank"], Reach(**told["reach"]))
                if differs is not None:
                    group.say(f"{self._name}/differs", differs)
                    self._raise(differs)

    def _check_in(self, group: Group) -> None:
        differs = group.said(f"{self._name}/differs")
        if differs is not None:
            self._raise(differs)

    def check_all_came(self) -> None:
        """Raises if ranks of this machine have not made this loader by the end of an epoch; they are
        given some time."""
        patience = self._patience(_EPOCH_END_SECONDS, self._world.is_counted)
        first = self._world.node * self._world.ranks_here
        while not self._is_complete:
            self.check()
            with self._told_as_error(), _page(self._path) as page:
                come = {int(rank) for rank in page.ranks} if page is not None else None
            # A file that was taken away says nothing.
            if come is None or len(come) >= self._world.ranks_here:
                self._is_complete = True
                return
            here = range(first, first + self._world.ranks_here)
            absent = [rank for rank in here if rank not in come]
            patience.wait(absent.copy)

    def _map(self) -> None:
        self._mapped_by = os.getpid()
        self._mapped = None
        with contextlib.suppress(OSError, ValueError), open(self._path, "rb") as file:
            self._mapped = mmap.mmap(file.fileno(), _HEAD_BYTES, prot=mmap.PROT_READ)


def _as_text(agreement: Agreement, reach: Reach) -> str:
    return json.dumps({"rank": agreement._world.rank, "reach": asdict(reach)})


@dataclass
class _Entry:
    process: int
    started: str
    intent: Intent
    has_left: bool = False
    reaches: list[Reach] = field(default_factory=list)

    def keep(self, reach: Reach) -> bool:
        """Remembers a reach; False if it says nothing new."""
        known = next((each for each in self.reaches if each.key == reach.key), None)
        if has_gone_on(self.reaches, reach) or (known is not None and known.least >= reach.least):
            return False
        self.reaches = [each for each in self.reaches if each != known] + [reach]
        del self.reaches[:-_MOST_REACHES]
        return True

    def is_alive(self) -> bool:
        return not self.has_left and _start_of(self.process) == self.started


@dataclass
class _Page:
    changes: str = f"{0:08x}"  # how often something was told of epochs; the first, for the head
    differs: str | None = None
    differs_since: float = 0.0  # in seconds since the machine was started, as processes have it
    expected: int = 0  # so many ranks are to come
    ranks: dict[str, _Entry] = field(default_factory=dict)

    def note(self, differs: str | None) -> None:
        """Notes a difference, unless there is one already."""
        if self.differs is None and differs is not None:
            self.differs = differs
            self.differs_since = _now()

    def note_change(self) -> None:
        """Changes the head, so that the other ranks read the whole file again."""
        self.changes = f"{int(self.changes, 16) + 1 & 0xFFFFFFFF:08x}"

    def is_over(self) -> bool:
        """Tells whether all ranks that have come are gone."""
        return not any(entry.is_alive() for entry in self.ranks.values())

    def is_done(self) -> bool:
        """Tells whether nobody needs this page any more: it is over, and no rank is still to be told
        of a difference."""
        is_told = len(self.ranks) >= self.expected or _now() - self.differs_since > _COME_SECONDS
        return self.is_over() and (self.differs is None or is_told)

    def forget_if_over(self, process: int) -> None:
        """Begins anew for a process, if this page is of an earlier start of the job. A process that is
        older than the difference belongs to the same start of the job, and must still see it."""
        if self.is_over() and (self.differs is None or _seconds_of(process) > self.differs_since):
            self.differs = None
            self.ranks = {}


# The pages that this process has, or waits for; and who leaves when it has none any more. The garbage
# collector may run a finalizer while a page is locked: it would wait for its own process, for ever.
_in_use: set[object] = set()
_put_off: list[tuple[Path, int, int]] = []


@contextlib.contextmanager
def _page(path: Path, create: bool = False, waits: bool = True) -> Iterator[_Page | None]:
    """What the ranks of this machine have told, for this process alone; changes are kept. None if
    there is no such file. One that nobody needs any more is removed. Raises a BlockingIOError if
    another has it, unless it waits."""
    token = object()
    _in_use.add(token)
    try:
        with _locked_page(path, create, waits) as page:
            yield page
    finally:
        _in_use.discard(token)
        _leave_put_off()


@contextlib.contextmanager
def _locked_page(path: Path, create: bool, waits: bool) -> Iterator[_Page | None]:
    try:
        descriptor = _locked(path, create, waits)
    except FileNotFoundError:
        if create:
            raise
        yield None
        return
    try:
        text = os.pread(descriptor, os.fstat(descriptor).st_size, 0)[1:]
        try:
            read = json.loads(text)
            ranks = {rank: _entry(**entry) for rank, entry in read["ranks"].items()}
            page = _Page(**{**read, "ranks": ranks})
        except (ValueError, KeyError, TypeError):
            page = _Page()  # new, or left by one that was killed as it wrote
        yield page
        if page.is_done():
            path.unlink(missing_ok=True)
        written = json.dumps(asdict(page)).encode()
        if written != text:
            # Never shorter than its head, which others have mapped.
            os.pwrite(descriptor, (_AGREED if page.differs is None else _DIFFERS) + written, 0)
            os.ftruncate(descriptor, 1 + len(written))
    finally:
        os.close(descriptor)


def _entry(reaches: list[dict[str, Any]], **entry: Any) -> _Entry:
    return _Entry(**entry, reaches=[Reach(**reach) for reach in reaches])


def _locked(path: Path, create: bool, waits: bool) -> int:
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_CREAT if create else 0)
    while True:
        descriptor = os.open(path, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink > 0:
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # the last who had it has removed it meanwhile


def _leave(path: Path, rank: int, process: int) -> None:
    """Takes a rank out of a page, now or as soon as this process has no other page."""
    _put_off.append((path, rank, process))
    _leave_put_off()


def _leave_put_off() -> None:
    while _put_off and not _in_use:
        try:
            path, rank, process = _put_off.pop()
        except IndexError:
            return  # another thread has taken it
        if process == os.getpid():
            _leave_now(path, rank, process)


def _leave_now(path: Path, rank: int, process: int) -> None:
    with contextlib.suppress(OSError), _page(path) as page:
        entry = page.ranks.get(str(rank)) if page is not None else None
        if entry is not None and entry.process == process:
            entry.has_left = True


def sweep(folder: Path) -> None:
    """Removes what jobs have left that were killed. What somebody has is in use, and stays."""
    for path in folder.glob(f"*{_SUFFIX}"):
        with contextlib.suppress(OSError), _page(path, waits=False):
            pass


os.register_at_fork(after_in_child=_in_use.clear)


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _seconds_of(process: int) -> float:
    """When a process was started, in seconds since the machine was."""
    return int(_start_of(process) or 0) / os.sysconf("SC_CLK_TCK")


def _start_of(process: int) -> str:
    """When a process was started; empty if it is no more."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if text[0] in "ZX" else text[19]
