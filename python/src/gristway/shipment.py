"""A batch's data on its way out of a DataLoader's worker, through shared memory.

A DataLoader sends what its workers make through a pipe, a few times more slowly than memory is
copied. A `Shipment` is a batch's data in the worker; when multiprocessing pickles it, the bytes go into
memory of the worker's that the trainer maps, and what the trainer gets is a plain list of bytes. That
memory has no name and goes with the worker; it is used again as soon as it has been read.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from multiprocessing.reduction import ForkingPickler
from typing import Any, overload

_HEADER_BYTES = 64
_MOST_MAPPED = 64


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


class _Slot:
    """A stretch of shared memory for one list at a time."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.descriptor = os.memfd_create("gristway-shipment")
        os.ftruncate(self.descriptor, size)
        self.memory = mmap.mmap(self.descriptor, size)
        self.memory[0] = 1

    def is_free(self) -> bool:
        return self.memory[0] == 1

    def close(self) -> None:
        self.memory.close()
        os.close(self.descriptor)


_slots: list[_Slot] = []
_identity = b""
_mapped: dict[tuple[bytes, int], mmap.mmap] = {}


def _forget() -> None:
    global _identity
    _slots.clear()
    _mapped.clear()
    _identity = b""


os.register_at_fork(after_in_child=_forget)


def _slot(size: int) -> _Slot:
    """Memory for a list: some that was read and is large enough, or else new."""
    global _identity
    if not _identity:
        _identity = os.urandom(16)  # process ids come again
    for slot in list(_slots):
        if slot.is_free():
            if slot.size >= size:
                return slot
            _slots.remove(slot)
            slot.close()
    slot = _Slot(size + size // 8 & -mmap.PAGESIZE | mmap.PAGESIZE - 1)
    _slots.append(slot)
    return slot


def _reduce(shipment: Shipment) -> tuple[Any, ...]:
    views = shipment._views
    lengths = [len(view) for view in views]
    slot = _slot(_HEADER_BYTES + sum(lengths))
    memory = slot.memory
    at = _HEADER_BYTES
    for view, length in zip(views, lengths):
        memory[at : at + length] = view
        at += length
    memory[0] = 0
    return _receive, (_identity, os.getpid(), slot.descriptor, slot.size, lengths)


def _receive(
    identity: bytes, process: int, descriptor: int, size: int, lengths: list[int]
) -> list[bytes]:
    memory = _mapped.get((identity, descriptor))
    if memory is None or len(memory) != size:
        while len(_mapped) >= _MOST_MAPPED:
            _mapped.pop(next(iter(_mapped)))
        opened = os.open(f"/proc/{process}/fd/{descriptor}", os.O_RDWR)
        try:
            memory = mmap.mmap(opened, size)
        finally:
            os.close(opened)
        _mapped[(identity, descriptor)] = memory
    view = memoryview(memory)
    received = []
    at = _HEADER_BYTES
    for length in lengths:
        received.append(bytes(view[at : at + length]))
        at += length
    memory[0] = 1
    return received


ForkingPickler.register(Shipment, _reduce)
