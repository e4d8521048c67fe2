"""The node of a loader: found, or started by the first process that needs it, and started again
when it dies.

Nodes listen in a folder that only their user may enter. Nothing but the empty file of a socket can
be left there by a kill, and the next start takes it away. A node ends with its last client.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import hashlib
import logging
import os
import stat
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TypeVar

from gristway import agreement, java
from gristway.connection import Connection, Hello, Welcome
from gristway.errors import HungNodeError, LostNodeError, MachineError, WrongCallError

_log = logging.getLogger("gristway")
_Result = TypeVar("_Result")

# A node that dies this often in this time will not do better the next time.
_DEATHS = 3
_MOST_COMPLAINT = 300
_QUICK_SECONDS = 60.0

_ENDING_SECONDS = 30.0
_BIND_SECONDS = 5.0
_READY_SECONDS = 120.0

_NAMED = "named-"

# What Java has room for in a socket's address.
_MOST_SOCKET_PATH = 106

_started: list[subprocess.Popen[bytes]] = []
_occurrences: Counter[str] = Counter()


@dataclass(frozen=True)
class Address:
    """Where a node is, for all processes that share it."""

    socket: str
    is_named: bool
    # It is one of several of its job, which go without it when it is gone: it is started once.
    is_joined: bool = False


def address(hello: Hello, job: str, name: str | None) -> Address:
    """The address of a loader's node: all ranks of a job that make the same loaders in the same
    order on one machine get the same ones."""
    if name is not None:
        if not name or "/" in name or name.startswith("."):
            raise WrongCallError(f"a node cannot have the name {name!r}")
        return Address(_socket_path(f"{_NAMED}{name}"), True)
    digest = hashlib.sha256()
    for part in (java.version(), job, hello.settings, hello.state):
        digest.update(part.encode("utf-8", "surrogateescape") + b"\0")
    digest.update(hello.samples)
    occurrence = _occurrences[digest.hexdigest()]
    _occurrences[digest.hexdigest()] += 1
    digest.update(str(occurrence).encode())
    return Address(_socket_path(digest.hexdigest()[:16]), False)


def _socket_path(name: str) -> str:
    path = str(_runtime_folder() / f"{name}.sock")
    if len(os.fsencode(path)) > _MOST_SOCKET_PATH:
        raise MachineError(
            f"the path of a socket may have {_MOST_SOCKET_PATH} bytes, and {path} has more: set"
            " GRISTWAY_RUNTIME_DIR to a shorter folder"
        )
    return path


def _runtime_folder() -> Path:
    given = os.environ.get("GRISTWAY_RUNTIME_DIR")
    users = os.environ.get("XDG_RUNTIME_DIR")
    if given:
        folder = Path(given).absolute()
    elif users and os.path.isdir(users) and os.access(users, os.W_OK):
        folder = Path(users) / "gristway"
    else:
        # As the node's class RuntimeFolder has it; a named node looks for it by itself.
        folder = Path(os.environ.get("TMPDIR") or "/tmp") / f"gristway-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, parents=bool(given), exist_ok=True)
        status = os.stat(folder, follow_symlinks=bool(given))
    except OSError as failed:
        raise MachineError(
            f"cannot make the folder {folder}: {failed.strerror}; set GRISTWAY_RUNTIME_DIR to one that"
            " you may write to"
        ) from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise MachineError(
            f"{folder} must be a folder of your own that nobody else may enter (chmod 700): remove"
            " it, or set GRISTWAY_RUNTIME_DIR to another"
        )
    return folder


class Client:
    """This process's connections to a node. A call that finds the node dead starts it again and is
    made once more: whatever is asked for is named, so the answer is the same.

    Copies in other processes, forked or pickled, connect by themselves. Any thread may call.
    """

    def __init__(self, where: Address, hello: Hello) -> None:
        self.where = where
        self._hello = hello
        self._may_start = True
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._feed: Connection | None = None
        self._side: Connection | None = None
        self._welcome: Welcome | None = None
        self._closed = False
        self._was_started = False
        self._is_worn_out = False  # starting it again makes no sense any more
        self._deaths: list[float] = []
        self._hung = ""  # what was said of it

    def __getstate__(self) -> dict[str, object]:
        return {"where": self.where, "hello": self._hello}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.where = state["where"]  # type: ignore[assignment]
        self._hello = state["hello"]  # type: ignore[assignment]
        self._may_start = not self.where.is_joined
        self._begin()

    def expect(self, batches: int) -> None:
        """Says how many batches this process may have at once; before it first calls."""
        self._hello = replace(self._hello, batches=batches)

    @property
    def hello(self) -> Hello:
        return self._hello

    def welcome(self) -> Welcome:
        """What the node has said; connects if that has not been done."""
        self.call(lambda connection: None)
        assert self._welcome is not None
        return self._welcome

    def call(self, request: Callable[[Connection], _Result]) -> _Result:
        """Makes a request for batches."""
        return self._retried(request, lambda: self._connected_feed())

    def ask(self, request: Callable[[Connection], _Result]) -> _Result:
        """Makes any other request; never waits for one for batches."""
        return self._retried(request, lambda: self._connected_side())

    def _retried(
        self, request: Callable[[Connection], _Result], connected: Callable[[], Connection]
    ) -> _Result:
        deadline = None
        while True:
            if self._hung:
                raise HungNodeError(self._hung)  # nobody waits for it twice
            try:
                return request(connected())
            except HungNodeError as hung:
                self._hung = str(hung)
                raise
            except LostNodeError:
                self._check_open()
                # One that dies or ends can be connected to until its socket is closed.
                deadline = deadline or time.monotonic() + _ENDING_SECONDS
                if not self._may_start:
                    self._refuse_start()
                if self.where.is_named or self._is_worn_out or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _refuse_start(self) -> None:
        raise LostNodeError(
            f"the node of this machine is gone{_last_words()}; the others of the job go without it:"
            " start the job again from its last state"
        )

    def _before_start(self) -> None:
        """Tells that the node must be started again; raises if that happens too often."""
        if not self._may_start:
            self._refuse_start()
        if not self._was_started:
            self._was_started = self._welcome is None
            if self._was_started:
                return
        now = time.monotonic()
        self._deaths = [then for then in self._deaths if now - then < _QUICK_SECONDS] + [now]
        if len(self._deaths) >= _DEATHS:
            self._is_worn_out = True
            raise LostNodeError(
                f"the node of this loader has died {len(self._deaths)} times in"
                f" {now - self._deaths[0]:.0f} s{_last_words()}"
            )
        _log.warning("the node is gone; it is started again")

    def _connected_feed(self) -> Connection:
        self._forget_parents()
        with self._lock:
            self._check_open()
            if self._feed is None or self._feed.is_broken:
                self._feed = self._connect(self._hello)
            return self._feed

    def _connected_side(self) -> Connection:
        self._forget_parents()
        with self._lock:
            self._check_open()
            if self._side is None or self._side.is_broken:
                self._side = self._connect(replace(self._hello, batches=0))
            return self._side

    def _check_open(self) -> None:
        if self._closed:
            raise WrongCallError("the loader is closed")

    def _forget_parents(self) -> None:
        if self._process != os.getpid():
            self._begin()

    def _connect(self, hello: Hello) -> Connection:
        try:
            connection = _find_or_start(self.where, self._before_start)
        except MachineError as gone:
            if self.where.is_named and self._welcome is not None:
                raise LostNodeError(str(gone)) from None  # it was there
            raise
        try:
            self._welcome = connection.hello(java.version(), hello)
            self._may_start = not self.where.is_joined
            # From now on this snapshot is meant, whatever becomes of the dataset.
            self._hello = replace(
                self._hello, version=self._welcome.version, snapshot=self._welcome.snapshot
            )
        except BaseException:
            connection.drop()
            raise
        return connection

    def close(self, patience: float = 0.0) -> None:
        """Leaves the node, which ends if nobody else uses it; it is waited for a little."""
        if self._process != os.getpid():
            return
        with self._lock:
            self._closed = True
            for connection in (self._side, self._feed):
                if connection is not None:
                    connection.close()
            self._feed = self._side = None
        _reap(patience)


def _find_or_start(where: Address, before_start: Callable[[], None]) -> Connection:
    with contextlib.suppress(OSError):
        return Connection(where.socket, where.is_joined)
    if where.is_named:
        name = Path(where.socket).stem.removeprefix(_NAMED)
        raise MachineError(f"no node has the name '{name}': start it with 'gristway serve {name}'")
    with _start_lock(Path(where.socket).parent):
        # Another process may have started it while this one waited.
        with contextlib.suppress(OSError):
            return Connection(where.socket, where.is_joined)
        before_start()
        _sweep(Path(where.socket).parent)
        try:
            _start(where.socket)
        except MachineError:
            # Another may have come first: one that a process has begun to start and was killed then.
            with contextlib.suppress(OSError):
                return Connection(where.socket, where.is_joined)
            raise
        try:
            return Connection(where.socket, where.is_joined)
        except OSError as gone:
            raise LostNodeError(f"the node was gone as soon as it was there: {gone}") from None


def _sweep(folder: Path) -> None:
    """Removes what is left of nodes and ranks that were killed."""
    agreement.sweep(folder)
    for path in folder.glob("*.sock"):
        try:
            Connection(os.fspath(path)).drop()
        except ConnectionRefusedError:
            # One that is about to listen refuses too; those without a name are started in turn.
            if not path.name.startswith(_NAMED) or _age(path) > _BIND_SECONDS:
                path.unlink(missing_ok=True)
        except (OSError, MachineError):
            pass  # not ours to judge


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


@contextlib.contextmanager
def _start_lock(folder: Path) -> Iterator[None]:
    """One start at a time. The lock is on the folder itself, so that no file is left."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        # Closing is not enough: a process that was forked meanwhile has it open too.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _start(socket_path: str) -> None:
    _reap(0.0)
    command = [*java.command(), "org.gristway.node.NodeMain", socket_path]
    log = os.fdopen(os.memfd_create("gristway-node-log"), "w+b")
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd="/",
            env=java.environment(),
            # Ctrl-C is for the trainer; the node ends when that has.
            start_new_session=True,
        )
    except OSError as failed:
        raise MachineError(f"cannot start {command[0]}: {failed.strerror}") from None
    assert process.stdout is not None
    # One that says nothing must not keep all others from starting theirs.
    late = threading.Timer(_READY_SECONDS, process.kill)
    late.daemon = True
    late.start()
    try:
        with process.stdout as said:
            ready = said.readline()
            if ready != b"ready\n":
                ready += said.read()
    finally:
        late.cancel()
    if ready != b"ready\n":
        process.wait()
        if process.returncode < 0:
            raise LostNodeError(
                f"the node was killed by signal {-process.returncode} as it started"
            )
        raise MachineError(
            f"the node could not be started{_complaint(log, said=ready)} (exit code"
            f" {process.returncode})"
        )
    process.log = log  # type: ignore[attr-defined]
    _started.append(process)


def _complaint(log: IO[bytes], said: bytes = b"") -> str:
    with contextlib.suppress(OSError, ValueError):
        log.seek(0)
        lines = (said + log.read()).decode(errors="replace").split("\n")
        text = "; ".join(line.strip() for line in lines if line.strip())
        if text:
            return f": {text[-_MOST_COMPLAINT:]}"
    return ""


def _last_words() -> str:
    """What the node that this process has started last has complained about."""
    for process in reversed(_started):
        return _complaint(process.log)  # type: ignore[attr-defined]
    return ""


def _reap(patience: float) -> None:
    """Collects nodes that have ended, so that none stays behind as a zombie."""
    deadline = time.monotonic() + patience
    while True:
        ended = [process for process in list(_started) if process.poll() is not None]
        for process in ended:
            with contextlib.suppress(ValueError):  # another thread may have had it
                _started.remove(process)
                process.log.close()  # type: ignore[attr-defined]
        if ended or not _started or time.monotonic() > deadline:
            return
        time.sleep(0.005)


def _forget_started() -> None:
    """Lets go of nodes that are another process's to wait for, or end by themselves later."""
    for process in _started:
        process.log.close()  # type: ignore[attr-defined]
        process.returncode = process.returncode or 0  # or its object complains when it goes
    _started.clear()


atexit.register(_forget_started)
os.register_at_fork(after_in_child=_forget_started)
