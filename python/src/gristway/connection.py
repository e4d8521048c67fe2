"""One connection to a node: requests and replies over its Unix socket.

The messages are described at the other end, in the node's class `Message`. A connection belongs to
the process that made it: in a child that is forked, it is closed at once, so that the node knows
when the parent is gone. Any thread may call; calls wait for each other, releases never do.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import socket
import struct
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from gristway.errors import HungNodeError, LostNodeError, MachineError, WrongCallError, failure

PROTOCOL = 3

_HELLO, _BATCH, _ASK, _RELEASE, _DESCRIBE, _STATE, _STATS, _BYE, _CLASSES = range(1, 10)
_WELCOME, _PIECES, _DESCRIPTION, _TEXT, _OVER, _FAILED, _NOTICE, _FULL = range(16, 24)

_HEAD = struct.Struct("<IB")
_PIECE = struct.Struct("<qiqqqii")
_CREDENTIALS = struct.Struct("iII")
_WELCOME_BODY = struct.Struct("<8q")

# A node says something every second to whoever waits for a batch. One that has not, and does not
# answer a question either, hangs. After 6 s in all, as the other nodes of its job say so too.
_SILENT_SECONDS = 4
_TIME = struct.Struct("ll")  # seconds and microseconds, as the kernel has them
_UNHEARD_SECONDS = 30.0  # then one that may take its time is spoken of
_LEAVE_SECONDS = 5.0
_ANSWER_SECONDS = 2

# How long to ask for a batch that the node has no room for before others are released: those that
# are on their way to a trainer, or are being transformed, are soon. Who keeps them on purpose is told.
_FULL_SECONDS = 120.0
_FULL_PAUSE_SECONDS = 0.01

_log = logging.getLogger("gristway")


@dataclass(frozen=True)
class Hello:
    """What a client wants; see the node's `Settings`."""

    settings: str
    state: str = ""
    samples: bytes = b""
    rank: int = 0
    batches: int = 0
    version: int = 0  # of the dataset; 0 for the newest
    snapshot: str = ""  # the id of that version's snapshot; empty for any


@dataclass(frozen=True)
class Welcome:
    """What the node says of itself, the dataset and the rank's run."""

    process: int
    samples: int
    data_bytes: int
    first_epoch: int
    first_step: int
    first_steps: int
    steps: int
    version: int
    snapshot: str


@dataclass(frozen=True)
class Piece:
    """Some places of a batch in the node's memory, until they are released."""

    process: int
    descriptor: int
    serial: int
    offset: int
    area_bytes: int
    first: int
    count: int
    release: Callable[[], None]


class Connection:
    """A connection to the node at a socket. Raises OSError while connecting if none is there, and
    LostNodeError later when it has gone; errors that the node tells are raised as they are.

    One that is watched raises HungNodeError if the node hangs; otherwise it is waited for.
    """

    def __init__(self, path: str, is_watched: bool = False) -> None:
        self._path = path
        self._is_watched = is_watched
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(None)  # whatever the program's default for sockets is
            self._socket.connect(path)
            # The kernel ends a wait that takes so long: to ask it before each is a call more.
            seconds = 1.0 if is_watched else _UNHEARD_SECONDS
            self._socket.setsockopt(
                socket.SOL_SOCKET,
                socket.SO_RCVTIMEO,
                _TIME.pack(int(seconds), int(seconds % 1 * 1e6)),
            )
            self._peer = _own_peer(self._socket, path)
        except BaseException:
            self._socket.close()
            raise
        self._lock = threading.Lock()
        self._released: deque[int] = deque()
        self._broken = False
        self._is_leaving = False
        self._process = 0
        self._received = bytearray()
        self._owed: tuple[int, bytes] | None = None  # the request whose reply has not been read
        _connections.add(self)

    def hello(self, version: str, hello: Hello) -> Welcome:
        text = version.encode()
        body = struct.pack("<iI", PROTOCOL, len(text)) + text
        body += struct.pack("<iii", hello.rank, hello.batches, hello.version)
        for part in (hello.snapshot, hello.settings, hello.state):
            encoded = part.encode()
            body += struct.pack("<I", len(encoded)) + encoded
        reply = self._call(_HELLO, body + hello.samples, _WELCOME) or b""
        snapshot = reply[_WELCOME_BODY.size :].decode()
        welcome = Welcome(*(*_WELCOME_BODY.unpack_from(reply), snapshot))
        self._process = welcome.process
        return welcome

    def batch(
        self, rank: int, epoch: int, step: int, workers: int, then: int | None = None
    ) -> Piece | None:
        """The batch of a step; None if the epoch has no such step.

        `then` is the step that will be asked for next, if that is known: it is sent ahead, so that
        its answer is there when it is wanted. For those whom no other client waits for.
        """
        body = struct.pack("<iqqi", rank, epoch, step, workers)
        ahead = None if then is None else struct.pack("<iqqi", rank, epoch, then, workers)
        reply = self._call(_BATCH, body, _PIECES, ahead)
        return None if reply is None else self._pieces(reply)[0]

    def ask(
        self,
        rank: int,
        epoch: int,
        iteration: int,
        start: int,
        batch_size: int,
        workers: int,
        indices: list[int],
    ) -> list[Piece] | None:
        """As many samples as indices; None if the epoch has not so many left."""
        head = struct.pack(
            "<iqqqiiI", rank, epoch, iteration, start, batch_size, workers, len(indices)
        )
        try:
            numbers = struct.pack(f"<{len(indices)}q", *indices)
        except struct.error:
            raise WrongCallError("an index is not a number that a dataset could have") from None
        reply = self._call(_ASK, head + numbers, _PIECES)
        return None if reply is None else self._pieces(reply)

    def _release(self, token: int) -> None:
        """Gives a piece's memory back; at once, or with the next call if one is under way.

        The collector may call this at any moment, in any thread, so it neither waits nor raises: a
        node that is gone has given it back.
        """
        self._released.append(token)
        if self._lock.acquire(blocking=False):
            try:
                if not self._broken:
                    self._socket.sendall(self._releases())
            except OSError:
                pass  # the next call tells
            finally:
                self._lock.release()

    def _releases(self) -> bytes:
        messages = bytearray()
        while self._released:
            messages += _HEAD.pack(9, _RELEASE) + struct.pack("<q", self._released.popleft())
        return bytes(messages)

    def describe(self, samples: list[int]) -> list[tuple[str, list[tuple[str, int]]]]:
        """Of each sample, its key, and its parts' names and ends."""
        body = struct.pack(f"<I{len(samples)}q", len(samples), *samples)
        reply = self._call(_DESCRIBE, body, _DESCRIPTION) or b""
        described = []
        at = 0
        for _ in samples:
            key, at = _text(reply, at)
            (count,) = struct.unpack_from("<i", reply, at)
            at += 4
            parts = []
            for _ in range(count):
                name, at = _text(reply, at)
                (end,) = struct.unpack_from("<q", reply, at)
                at += 8
                parts.append((name, end))
            described.append((key, parts))
        return described

    def state(self, rank: int, epoch: int, step: int) -> str:
        return (self._call(_STATE, struct.pack("<iqq", rank, epoch, step), _TEXT) or b"").decode()

    def stats(self) -> dict[str, int]:
        lines = (self._call(_STATS, b"", _TEXT) or b"").decode().splitlines()
        return {name: int(value) for name, _, value in (line.partition("=") for line in lines)}

    def classes(self) -> dict[str, int]:
        """The numbers of classes that have names."""
        reply = self._call(_CLASSES, b"", _TEXT) or b""
        words = reply.decode("utf-8", "surrogateescape").split("\0")
        return dict(zip(words[1::2], map(int, words[0:-1:2])))

    @property
    def is_broken(self) -> bool:
        return self._broken

    def close(self) -> None:
        """Leaves the node. What is still in use here stays as it is for as long as it is used."""
        is_free = self._lock.acquire(blocking=False)
        if not is_free and not self._broken:
            # Another thread waits for an answer. It is to give up, but the node must be told.
            self._is_leaving = True
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RD)
            is_free = self._lock.acquire(timeout=_LEAVE_SECONDS)
        if is_free:
            try:
                if not self._broken:
                    self._socket.sendall(self._releases() + _HEAD.pack(1, _BYE))
            except OSError:
                pass  # it is gone already
            finally:
                self._lock.release()
        self.drop()

    def drop(self) -> None:
        """Ends the connection without a word."""
        self._broken = True
        self._socket.close()

    def _pieces(self, reply: bytes) -> list[Piece]:
        return [
            Piece(
                self._process,
                descriptor,
                serial,
                offset,
                size,
                first,
                count,
                functools.partial(self._release, token),
            )
            for token, descriptor, serial, offset, size, first, count in _PIECE.iter_unpack(
                reply[4:]
            )
        ]

    def _call(
        self, kind: int, body: bytes, expected: int, ahead: bytes | None = None
    ) -> bytes | None:
        with self._lock:
            return self._call_alone(kind, body, expected, ahead)

    def _call_alone(
        self, kind: int, body: bytes, expected: int, ahead: bytes | None
    ) -> bytes | None:
        if self._broken:
            raise LostNodeError("the connection to the node was broken off")
        if self._owed not in (None, (kind, body)):
            self._give_back_owed()
        was_ahead = self._owed is not None
        if not was_ahead:
            self._ask(kind, body)
        reply, content = self._reply()
        if reply == _FAILED and was_ahead:
            # What was wrong when this was sent, such as too little memory, may be right by now.
            self._ask(kind, body)
            reply, content = self._reply()
        deadline = time.monotonic() + _FULL_SECONDS
        while reply == _FULL:
            if time.monotonic() > deadline:
                raise WrongCallError(content.decode())
            time.sleep(_FULL_PAUSE_SECONDS)
            self._ask(kind, body)  # and tells what was released
            reply, content = self._reply()
        if reply == expected:
            if ahead is not None:
                with contextlib.suppress(LostNodeError):  # the next call tells
                    self._ask(kind, ahead)
            return content
        if reply == _OVER:
            return None
        if reply == _FAILED:
            raise failure(content[0], content[1:].decode())
        self.drop()
        raise LostNodeError(f"the node answers with a message of kind {reply}")

    def _ask(self, kind: int, body: bytes) -> None:
        self._send(kind, body)
        self._owed = (kind, body)

    def _reply(self) -> tuple[int, bytes]:
        """The reply that is owed. Interrupted, it is still owed."""
        while True:
            reply, content = self._receive()
            if reply != _NOTICE:
                self._owed = None
                return reply, content
            if content:  # without, it has only looked whether this process still waits
                _log.warning("%s", content.decode())

    def _give_back_owed(self) -> None:
        """Reads the reply to a request that was interrupted, or sent ahead to no end."""
        reply, content = self._reply()
        if reply == _PIECES:
            for piece in self._pieces(content):
                piece.release()

    def _send(self, kind: int, body: bytes) -> None:
        try:
            self._socket.sendall(self._releases() + _HEAD.pack(len(body) + 1, kind) + body)
        except OSError as lost:
            self.drop()
            raise LostNodeError(f"the node is gone: {lost.strerror or lost}") from None
        except BaseException:
            self.drop()  # half a message may be under way
            raise

    def _receive(self) -> tuple[int, bytes]:
        """The next message. An interrupt loses nothing: what has come stays for the next call."""
        self._fill(_HEAD.size)
        length, kind = _HEAD.unpack_from(self._received)
        end = _HEAD.size + length - 1
        self._fill(end)
        content = bytes(self._received[_HEAD.size : end])
        del self._received[:end]
        return kind, content

    def _fill(self, count: int) -> None:
        # Seconds are counted one by one: if this process is stopped too, it is only one of them.
        silent = 0
        while len(self._received) < count:
            try:
                part = self._socket.recv(1 << 16)
            except BlockingIOError:
                silent += 1
                if not self._is_watched:
                    self._tell_of_silence()
                elif silent >= _SILENT_SECONDS:
                    self._check_answers()
                    silent = 0
                continue
            except OSError as lost:
                self.drop()
                raise LostNodeError(f"the node is gone: {lost.strerror or lost}") from None
            if not part:
                if not self._is_leaving:
                    self.drop()
                raise LostNodeError("the node is gone: it has closed the connection")
            self._received += part

    def _tell_of_silence(self) -> None:
        _log.warning(
            "the node, process %d, has not answered for %.0f s; it is waited for: see whether it is"
            " stopped, or waits for its storage",
            self._peer,
            _UNHEARD_SECONDS,
        )

    def _check_answers(self) -> None:
        """Raises if the node hangs."""
        if not self._answers():
            self.drop()
            raise HungNodeError(
                "the node of this machine hangs: nothing was heard of it for"
                f" {_SILENT_SECONDS + _ANSWER_SECONDS} s; the others of the job go without it:"
                " start the job again from its last state"
            )

    def _answers(self) -> bool:
        """Whether the node says anything to somebody who has not been waiting."""
        for _ in range(_ANSWER_SECONDS * 10):
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
                    asking.settimeout(_ANSWER_SECONDS)
                    asking.connect(self._path)
                    asking.sendall(_HEAD.pack(1, _STATS))
                    asking.recv(1)
                    return True
            except BlockingIOError:
                time.sleep(0.1)  # so many are waiting to be let in that there is no room for one
            except TimeoutError:
                return False
            except OSError:
                return True  # it is ending, which the connection tells
        return False


def _own_peer(connected: socket.socket, path: str) -> int:
    """The process at the other end. The folder keeps other users out; should its mode have been
    changed, this does."""
    credentials = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _ = _CREDENTIALS.unpack(credentials)
    if user != os.getuid():
        raise MachineError(
            f"another user listens at {path}: remove it, or set GRISTWAY_RUNTIME_DIR"
        )
    return int(process)


def _text(body: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from("<I", body, at)
    return body[at + 4 : at + 4 + length].decode("utf-8", "surrogateescape"), at + 4 + length


_connections: weakref.WeakSet[Connection] = weakref.WeakSet()


def _close_inherited() -> None:
    for connection in list(_connections):
        connection.drop()


os.register_at_fork(after_in_child=_close_inherited)
