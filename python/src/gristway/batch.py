"""Batches where the node has built them: views of shared memory, without copies.

A view keeps its memory: a batch's stretch is given back to the node when the last memoryview, array
or tensor over it is gone, and not before.
"""

from __future__ import annotations

import ctypes
import mmap
import operator
import os
import struct
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gristway.connection import Piece
from gristway.errors import LostNodeError, MachineError

# As the node's class BatchLayout has it: a header, then a record for each place, of five numbers of
# eight bytes (offset, length, sample, planned, request) and two of four (label, flags).
_HEADER_BYTES = 64
_RECORD_BYTES = 48
_LONGS = _RECORD_BYTES // 8
_INTS = _RECORD_BYTES // 4
_RESIDENT_STRETCH = struct.Struct("<qq")
_RESIDENT_AT = 32
_REPEAT = 1
_DAMAGED = 2
_PARTS = 4
_RESIDENT = 8

_MOST_MAPPED = 64


class Area(NamedTuple):
    """A stretch of the node's memory: enough for any process of the user to map it."""

    process: int
    descriptor: int
    node: int
    serial: int
    offset: int
    size: int


class Mapping:
    """A mapped area. Other processes can map it from here too, also when the node is gone."""

    def __init__(self, area: Area) -> None:
        try:
            self._descriptor = os.open(f"/proc/{area.process}/fd/{area.descriptor}", os.O_RDWR)
        except FileNotFoundError:
            raise LostNodeError("the node is gone") from None
        except OSError as failed:
            raise MachineError(
                f"cannot open the memory of the node, process {area.process}: {failed.strerror}; it"
                " must run as the same user, where this process can see it"
            ) from None
        weakref.finalize(self, os.close, self._descriptor).atexit = False
        try:
            self.memory = mmap.mmap(
                self._descriptor,
                area.size,
                # All at once: page by page, the first use of each would cost a fault.
                flags=mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0),
                prot=mmap.PROT_READ | mmap.PROT_WRITE,
                offset=area.offset,
            )
        except (OSError, ValueError) as failed:
            raise MachineError(f"cannot map {area.size} bytes of the node: {failed}") from None
        self.here = area._replace(process=os.getpid(), descriptor=self._descriptor)
        self._views: memoryview | None = None

    def views(self) -> memoryview:
        """What is there, for views that need not be given back: they hold this mapping."""
        if self._views is None:
            self._views = memoryview(self.memory).toreadonly()
        return self._views


class Mappings:
    """The stretches of nodes' memory that this process has mapped lately: they come again."""

    def __init__(self) -> None:
        self._mapped: OrderedDict[Area, Mapping] = OrderedDict()
        self._serial = -1

    def get(self, area: Area) -> Mapping:
        """The mapping of an area; raises LostNodeError if the node is gone."""
        # The descriptor only says how to get there.
        key = area._replace(process=0, descriptor=0)
        known = self._mapped.get(key)
        if known is None:
            if area.serial != self._serial:
                # Another file: nothing of the one before comes again, and it may be large.
                self._mapped.clear()
                self._serial = area.serial
            known = self._mapped[key] = Mapping(area)
            while len(self._mapped) > _MOST_MAPPED:
                self._mapped.popitem(last=False)  # batches keep theirs
        self._mapped.move_to_end(key)
        return known


class Batch:
    """The samples of one rank and step, or of one request.

    `release` is called once, when no view of the batch's own memory is left. Samples that stay in the
    node's memory are shown there.
    """

    __slots__ = (
        "first",
        "_mapping",
        "_data",
        "_longs",
        "_ints",
        "_starts",
        "_lengths",
        "_flags",
        "_describe",
        "_described",
    )

    def __init__(
        self,
        mappings: Mappings,
        area: Area,
        first: int,
        count: int,
        describe: Callable[[list[int]], list[tuple[str, list[tuple[str, int]]]]],
        release: Callable[[], None] | None,
    ) -> None:
        self._mapping = mappings.get(area)
        self.first = first
        # Views of views hold this object, whatever becomes of the views in between.
        owner = (ctypes.c_char * area.size).from_buffer(self._mapping.memory)
        if release is not None:
            weakref.finalize(owner, release).atexit = False
        own = memoryview(owner).cast("B").toreadonly()
        at = _HEADER_BYTES + first * _RECORD_BYTES
        records = own[at : at + count * _RECORD_BYTES]
        # Column by column: a tuple for each record would cost as much as all the rest.
        self._longs = records.cast("q")
        self._ints = records.cast("i")
        self._starts: list[int] = self._longs[0::_LONGS].tolist()
        self._lengths: list[int] = self._longs[1::_LONGS].tolist()
        self._flags: list[int] = self._ints[11::_INTS].tolist()
        self._data = own
        if count and self._flags[0] & _RESIDENT:  # then all of a batch are
            offset, size = _RESIDENT_STRETCH.unpack_from(own, _RESIDENT_AT)
            stretch = self._mapping.here._replace(offset=offset, size=size)
            self._data = mappings.get(stretch).views()
        self._describe = describe
        self._described: list[tuple[str, list[tuple[str, int]]]] | None = None

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def area(self) -> Area:
        """Where it is, for another process to map while this one has it."""
        return self._mapping.here

    def size(self) -> tuple[int, int]:
        """How many samples it has, and how many bytes they have."""
        return len(self._starts), sum(self._lengths)

    def data(self) -> list[memoryview]:
        """The bytes of every sample's first or only part."""
        if any(flags & _PARTS for flags in set(self._flags)):
            return [sample.data for sample in self.samples()]
        ends = map(operator.add, self._starts, self._lengths)
        return list(map(self._data.__getitem__, map(slice, self._starts, ends)))

    def labels(self) -> memoryview:
        """The label of every sample, of four bytes each."""
        return self._ints[10::_INTS]

    def ids(self) -> list[int]:
        ids: list[int] = self._longs[2::_LONGS].tolist()
        return ids

    def samples(self) -> Iterator[Sample]:
        return (Sample(self, place) for place in range(len(self._starts)))

    def _whole(self, place: int) -> memoryview:
        start = self._starts[place]
        return self._data[start : start + self._lengths[place]]

    def _description(self, place: int) -> tuple[str, list[tuple[str, int]]]:
        if self._described is None:
            # All at once: whoever wants one key wants the others too.
            self._described = self._describe(self.ids())
        return self._described[place]


class Sample:
    """One training example.

    `data` is the bytes of its first or only part, `label` its class number or -1, `key` its path in
    the dataset, and `parts` the bytes of all its parts by name.
    """

    __slots__ = ("_batch", "_place")

    def __init__(self, batch: Batch, place: int) -> None:
        self._batch = batch
        self._place = place

    @property
    def data(self) -> memoryview:
        whole = self._batch._whole(self._place)
        if not self._batch._flags[self._place] & _PARTS:
            return whole
        return whole[: self._batch._description(self._place)[1][0][1]]

    @property
    def label(self) -> int:
        return int(self._batch._ints[10 + self._place * _INTS])

    @property
    def key(self) -> str:
        return self._batch._description(self._place)[0]

    @property
    def id(self) -> int:
        """Its number in the dataset."""
        return int(self._batch._longs[2 + self._place * _LONGS])

    @property
    def parts(self) -> dict[str, memoryview]:
        whole = self._batch._whole(self._place)
        found = {}
        start = 0
        for name, end in self._batch._description(self._place)[1]:
            found[name] = whole[start:end]
            start = end
        return found

    @property
    def is_repeat(self) -> bool:
        """True if it is delivered elsewhere in this epoch too, and only fills this place."""
        return bool(self._batch._flags[self._place] & _REPEAT)

    @property
    def is_damaged(self) -> bool:
        """True if it fills the place of a sample that is damaged."""
        return bool(self._batch._flags[self._place] & _DAMAGED)

    def __repr__(self) -> str:
        return f"Sample(id={self.id}, label={self.label}, {len(self.data)} bytes)"


def area_of(piece: Piece) -> Area:
    """Where a piece is."""
    return Area(
        piece.process,
        piece.descriptor,
        piece.process,
        piece.serial,
        piece.offset,
        piece.area_bytes,
    )
