"""Bytes on their way from a worker process to its trainer, through shared memory.

Pipes carry bytes a few times more slowly than memory is copied. So a worker puts them into memory of
its own that the trainer maps, and only says where. That memory has no name and goes with the worker; it
is used again as soon as it has been read.

A `Shipment` is a batch's data in a DataLoader's worker, which takes this way when multiprocessing
pickles it; what the trainer gets is a plain list of bytes.
"""

from __future__ import annotations

import mmap
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple, overload

_HEADER_BYTES = 64
_MOST_MAPPED = 64
_GIVEN_UP = 2


class Ticket(NamedTuple):
    """Where some bytes are: pieces of these lengths, one behind the other."""

    sender: bytes  # tells a process from others that had its number before
    process: int
    descriptor: int
    serial: int  # tells a slot from others of its process
    size: int
    lengths: list[int]


class _Slot:
    """A stretch of shared memory for one shipment at a time. Its first byte is 1 when it is free, and
    2 when it is given up."""

    def __init__(self, serial: int, size: int) -> None:
        self.serial = serial
        self.size = size
        self.descriptor = os.memfd_create("gristway-shipment")
        os.ftruncate(self.descriptor, size)
        self.memory = mmap.mmap(self.descriptor, size)
        self.memory[0] = 1

    def is_free(self) -> bool:
        return self.memory[0] == 1

    def close(self) -> None:
        self.memory[0] = _GIVEN_UP
        self.memory.close()
        os.close(self.descriptor)


class _Outbox:
    """The slots of this process. There are as many as were ever unread at once."""

    def __init__(self) -> None:
        self._sender = os.urandom(16)
        self._slots: list[_Slot] = []
        self._made = 0
        self._lock = threading.Lock()

    def send(self, pieces: Sequence[memoryview]) -> Ticket:
        lengths = [piece.nbytes for piece in pieces]
        with self._lock:
            slot = self._slot(_HEADER_BYTES + sum(lengths))
            slot.memory[0] = 0
        at = _HEADER_BYTES
        for piece, length in zip(pieces, lengths):
            slot.memory[at : at + length] = piece
            at += length
        return Ticket(self._sender, os.getpid(), slot.descriptor, slot.serial, slot.size, lengths)

    def _slot(self, size: int) -> _Slot:
        for slot in list(self._slots):
            if slot.is_free():
                if slot.size >= size:
                    return slot
                self._slots.remove(slot)
                slot.close()
        pages = (size + size // 8) // mmap.PAGESIZE + 1
        self._made += 1
        slot = _Slot(self._made, pages * mmap.PAGESIZE)
        self._slots.append(slot)
        return slot


_outbox: _Outbox | None = None
_mapped: OrderedDict[tuple[bytes, int], tuple[int, mmap.mmap]] = OrderedDict()  # and whose
_mapped_lock = threading.Lock()


def _forget_parents() -> None:
    global _outbox, _mapped_lock
    _outbox = None
    _mapped.clear()
    _mapped_lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_parents)


def send(pieces: Sequence[memoryview]) -> Ticket:
    """Puts bytes where another process of this user can fetch them, once, while this one lives."""
    global _outbox
    if _outbox is None:
        _outbox = _Outbox()
    return _outbox.send(pieces)


def fetch(ticket: Ticket, kind: type[Any] = bytes) -> list[Any]:
    """Copies of the pieces that were sent, as bytes or another kind."""
    memory = _mapping(ticket)
    view = memoryview(memory)
    fetched = []
    at = _HEADER_BYTES
    for length in ticket.lengths:
        fetched.append(kind(view[at : at + length]))
        at += length
    memory[0] = 1
    return fetched


def _mapping(ticket: Ticket) -> mmap.mmap:
    key = (ticket.sender, ticket.serial)
    with _mapped_lock:
        known = _mapped.get(key)
        if known is not None:
            _mapped.move_to_end(key)
            return known[1]
        _forget_gone()
        opened = os.open(f"/proc/{ticket.process}/fd/{ticket.descriptor}", os.O_RDWR)
        try:
            mapped = mmap.mmap(opened, ticket.size)
        finally:
            os.close(opened)
        _mapped[key] = (ticket.process, mapped)
        while len(_mapped) > _MOST_MAPPED:
            _mapped.popitem(last=False)
        return mapped


def forget_gone() -> None:
    """Lets go of the memory of processes that have ended, and of what the others have given up."""
    with _mapped_lock:
        _forget_gone()


def _forget_gone() -> None:
    for key, (process, mapped) in list(_mapped.items()):
        if mapped[0] == _GIVEN_UP or not os.path.exists(f"/proc/{process}"):
            del _mapped[key]


class Shipment:
    """A list of bytes, made from views as far as it is looked at. No `Sequence` by type: torch takes
    those apart before it sends them."""

    def __init__(self, views: list[memoryview]) -> None:
        self._views = views

    def __len__(self) -> int:
        return len(self._views)

    @overload
    def __getitem__(self, index: int) -> bytes: ...

    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...

    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [bytes(view) for view in self._views[index]]
        return bytes(self._views[index])

    def __iter__(self) -> Iterator[bytes]:
        return (bytes(view) for view in self._views)

    def __eq__(self, other: object) -> bool:
        return list(self) == (list(other) if isinstance(other, Shipment) else other)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


def _reduce(shipment: Shipment) -> tuple[Any, ...]:
    return fetch, (send(shipment._views),)


ForkingPickler.register(Shipment, _reduce)
