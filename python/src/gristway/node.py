"""The node of a loader: found, or started by the first process that needs it, and started again
when it dies.

Nodes listen in a folder that only their user may enter. Nothing but the empty file of a socket can
be left there by a kill, and the next start takes it away. A node ends with its last client.
"""

from __future__ import annotations

import _thread
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
    for part in (java.version(), job, hello.settings, hello.state, str(hello.version)):
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
        folder = _temporary_folder()
    return _made(folder, bool(given))


def _temporary_folder() -> Path:
    # As the node's class RuntimeFolder has it; a named node looks for it by itself.
    return Path(os.environ.get("TMPDIR") or "/tmp") / f"gristway-{os.getuid()}"


def _made(folder: Path, is_given: bool) -> Path:
    """The folder, which is there then and nobody else's."""
    try:
        folder.mkdir(mode=0o700, parents=is_given, exist_ok=True)
        status = os.stat(folder, follow_symlinks=is_given)
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


def _restored(folder: Path) -> Path:
    """A folder that may have vanished under the run, made again; or, if that is not to be had, the one
    for temporaries, where its node looks for clients then too."""
    try:
        return _made(folder, bool(os.environ.get("GRISTWAY_RUNTIME_DIR")))
    except MachineError:
        if folder == _temporary_folder() or folder.exists():
            raise
        return _made(_temporary_folder(), False)


class Client:
    """This process's connections to a node. A call that finds the node dead starts it again and is
    made once more: whatever is asked for is named, so the answer is the same.

    Copies in other processes, forked or pickled, connect by themselves. Any thread may call.
    """

    def __init__(self, where: Address, hello: Hello) -> None:
        self.where = where
        self._hello = hello
        self._may_start = True
        self._node = 0  # the process that has answered last, also in copies
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
        return {"where": self.where, "hello": self._hello, "node": self._node}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.where = state["where"]  # type: ignore[assignment]
        self._hello = state["hello"]  # type: ignore[assignment]
        self._node = state["node"]  # type: ignore[assignment]
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
            connection = _find_or_start(self.where, self._before_start, self._node)
        except MachineError as gone:
            if self.where.is_named and self._welcome is not None:
                raise LostNodeError(str(gone)) from None  # it was there
            raise
        try:
            self._welcome = connection.hello(java.version(), hello)
            self._node = self._welcome.process
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
        if _started:
            _reap_later()


def _connected(where: Address) -> Connection:
    """Connects to the node at an address; raises OSError if none is there."""
    try:
        return Connection(where.socket, where.is_joined)
    except OSError:
        # It may listen there since its folder was removed and could not be made again.
        other = _temporary_folder() / Path(where.socket).name
        if not other.exists():
            raise
        return Connection(str(other), where.is_joined)


def _find_or_start(where: Address, before_start: Callable[[], None], known: int) -> Connection:
    """Connects to the node at an address. If none is there it is started, unless it has a name, or
    `known`, the process that was there before, lives: its socket's file was removed then, and it
    makes another."""
    deadline = time.monotonic() + _BIND_SECONDS
    while True:
        with contextlib.suppress(OSError):
            return _connected(where)
        if not _lives(known) or time.monotonic() > deadline:
            break
        time.sleep(0.02)
    if where.is_named:
        name = Path(where.socket).stem.removeprefix(_NAMED)
        raise MachineError(f"no node has the name '{name}': start it with 'gristway serve {name}'")
    folder = _restored(Path(where.socket).parent)
    with _start_lock(folder):
        # Another process may have started it while this one waited.
        with contextlib.suppress(OSError):
            return _connected(where)
        before_start()
        _sweep(folder)
        try:
            _start(str(folder / Path(where.socket).name))
        except MachineError:
            # Another may have come first: one that a process has begun to start and was killed then.
            with contextlib.suppress(OSError):
                return _connected(where)
            raise
        try:
            return _connected(where)
        except OSError as gone:
            raise LostNodeError(f"the node was gone as soon as it was there: {gone}") from None


def _lives(process: int) -> bool:
    """True if a process is there and has not ended."""
    try:
        return process > 0 and Path(f"/proc/{process}/cmdline").read_bytes() != b""
    except OSError:
        return False


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
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as failed:
        raise MachineError(
            f"cannot open the folder {folder}: {failed.strerror}; set GRISTWAY_RUNTIME_DIR to one that"
            " stays"
        ) from None
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
        with _on_all_processors():
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


@contextlib.contextmanager
def _on_all_processors() -> Iterator[None]:
    """Lifts this thread's binding to processors, which what it starts inherits: launchers bind each
    rank to its own, and the node reads for all of them. The kernel leaves out what the machine, or the
    job, does not have."""
    before = os.sched_getaffinity(0)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, range(os.sysconf("SC_NPROCESSORS_CONF")))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, before)


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


def _reap_later() -> None:
    """Waits for nodes that are about to end, in a thread of its own that ends with them."""
    for process in list(_started):
        if getattr(process, "is_awaited", False):
            continue
        process.is_awaited = True  # type: ignore[attr-defined]
        # Without `threading`: the collector may call this while that module's locks are held.
        with contextlib.suppress(RuntimeError):  # the interpreter ends, and the nodes with it
            _thread.start_new_thread(_await_end, (process,))


def _await_end(process: subprocess.Popen[bytes]) -> None:
    process.wait()
    _reap(0.0)


def _forget_started() -> None:
    """Lets go of nodes that are another process's to wait for, or end by themselves later."""
    for process in _started:
        process.log.close()  # type: ignore[attr-defined]
        process.returncode = process.returncode or 0  # or its object complains when it goes
    _started.clear()


atexit.register(_forget_started)
os.register_at_fork(after_in_child=_forget_started)
