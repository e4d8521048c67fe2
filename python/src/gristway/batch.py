"""Batches where the node has built them: views of shared memory, without copies.

A view keeps its memory: a batch's stretch is given back to the node when the last memoryview, array
or tensor over it is gone, and not before. What is written through one of them, which torch allows,
stays in this process and ends with the batch: mappings are private, and the kernel copies the pages
that are written.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
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

# Mappings that are kept for batches to come: of how many stretches, and of each.
_MOST_STRETCHES = 64
_MOST_SPARE = 4

# Epochs that are shown at once from a resident stretch, without mapping it anew for each batch.
_MOST_SHOWN = 2

# As the kernel has them; Python does not name them all.
_NORESERVE = 0x4000
_POPULATE_READ = 22
_POPULATE_WRITE = 23
_PAGE = mmap.PAGESIZE
_ENTRY = 8  # bytes of a page in a process's pagemap
_OF_FILE = 1 << 61  # the bits above say that a page is swapped out, or present
_LOOK_PAGES = 4096  # that are looked at in one go, where the kernel cannot look for us

# The same as a question to the kernel, which knows it since 6.7: is there a page in a stretch that is
# present or swapped out, and not of the file? One is enough.
_SCAN = 0xC0606610
_SCAN_ARGUMENT = struct.Struct("=12Q")
_SCAN_OF_FILE = 1 << 2
_SCAN_THERE = 1 << 3 | 1 << 4
_scan_found = (ctypes.c_uint64 * 3)()  # where and what; nobody reads it

# Records and data of a batch are one span, unless so much of others' data is between them.
_GAP_BYTES = 1 << 16


Key = tuple[int, int, int, int]


class Area(NamedTuple):
    """A stretch of the node's memory: enough for any process of the user to map it."""

    process: int
    descriptor: int
    node: int
    serial: int
    offset: int
    size: int
    epoch: int  # of the batch that is there

    @property
    def key(self) -> Key:
        """Which stretch it is; the process and the descriptor only say how to get there."""
        return self.node, self.serial, self.offset, self.size


class Mapping:
    """A mapped stretch, for one batch at a time, or those of an epoch. It shows what the node writes
    there, but for pages that this process has written to, until it is cleaned.

    Other processes can map the stretch from here too, also when the node is gone.
    """

    def __init__(self, area: Area) -> None:
        try:
            self._descriptor = os.open(f"/proc/{area.process}/fd/{area.descriptor}", os.O_RDONLY)
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
                # Writable, or torch's writes in place would end the process.
                flags=mmap.MAP_PRIVATE | _NORESERVE,
                prot=mmap.PROT_READ | mmap.PROT_WRITE,
                offset=area.offset,
            )
        except (OSError, ValueError) as failed:
            raise MachineError(f"cannot map {area.size} bytes of the node: {failed}") from None
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.key = area.key
        self.here = area._replace(process=os.getpid(), descriptor=self._descriptor)
        self.spans: list[tuple[int, int]] = []  # that the batch shows
        self._is_populated = False
        self._is_copied = False

    def populate(self) -> None:
        """Maps the pages of the spans all at once: page by page, the first use of each would cost a
        fault."""
        if not self._is_populated:
            self._is_populated = True
            with contextlib.suppress(OSError):  # a kernel that does not know how
                self._advise(_POPULATE_READ)

    def copy(self) -> None:
        """Gives this process, and those that are forked from it, copies of the spans' pages."""
        if self._is_copied:
            return
        self._is_copied = True
        try:
            self._advise(_POPULATE_WRITE)
        except OSError:  # a kernel that does not know how
            for start, end in self._pages():
                for page in range(start, end, _PAGE):
                    self.memory[page] = self.memory[page]

    def clean(self) -> bool:
        """Undoes what was written to the spans; False if that cannot be done."""
        try:
            if self._is_copied or self._is_written():
                self._advise(mmap.MADV_DONTNEED)
                self._is_copied = self._is_populated = False
            return True
        except OSError:
            return False  # such as for pages that are locked

    def _pages(self) -> Iterator[tuple[int, int]]:
        for start, end in self.spans:
            if start < end:
                yield start // _PAGE * _PAGE, min(-(-end // _PAGE) * _PAGE, len(self.memory))

    def _advise(self, advice: int) -> None:
        for start, end in self._pages():
            self.memory.madvise(advice, start, end - start)

    def _is_written(self) -> bool:
        """True if a page of the spans may be this process's own, and no longer the file's."""
        for start, end in self._pages():
            if _is_own(self._address + start, self._address + end):
                return True
        return False


def _is_own(start: int, end: int) -> bool:
    """True if a page from one address to another may be this process's own."""
    global _kernel_looks
    if _kernel_looks:
        argument = bytearray(_SCAN_ARGUMENT.size)
        _SCAN_ARGUMENT.pack_into(
            argument,
            0,
            *(len(argument), 0, start, end, 0, ctypes.addressof(_scan_found), 1, 1),
            *(_SCAN_OF_FILE, _SCAN_OF_FILE, _SCAN_THERE, _SCAN_THERE),
        )
        try:
            return bool(fcntl.ioctl(_pagemap(), _SCAN, argument))
        except OSError:
            _kernel_looks = False
    return any(
        _is_any_own(first, min(_LOOK_PAGES, -(-(end - first) // _PAGE)))
        for first in range(start, end, _LOOK_PAGES * _PAGE)
    )


def _is_any_own(start: int, count: int) -> bool:
    entries = os.pread(_pagemap(), count * _ENTRY, start // _PAGE * _ENTRY)
    if len(entries) < count * _ENTRY:
        return True
    # All at once: page by page, Python would take longer than the kernel.
    bits = int.from_bytes(entries, "little")
    of_file = int.from_bytes(_OF_FILE.to_bytes(_ENTRY, "little") * count, "little")
    return (bits >> 1 | bits >> 2) & ~bits & of_file != 0


_kernel_looks = True
_pagemap_descriptor: int | None = None


def _pagemap() -> int:
    """What tells of each page of this process whether it is its own."""
    global _pagemap_descriptor
    if _pagemap_descriptor is None:
        _pagemap_descriptor = os.open("/proc/self/pagemap", os.O_RDONLY)
    return _pagemap_descriptor


# The areas of batches that this process uses: nodes build in them again when they are given back.
_lent: set[Mapping] = set()


def _copy_lent() -> None:
    """A child has the parent's views, and the parent knows nothing of how long."""
    for mapping in list(_lent):
        mapping.copy()


def _forget_pagemap() -> None:
    """It is the parent's."""
    global _pagemap_descriptor
    if _pagemap_descriptor is not None:
        os.close(_pagemap_descriptor)
        _pagemap_descriptor = None


os.register_at_fork(before=_copy_lent, after_in_child=_forget_pagemap)


class Mappings:
    """The stretches of nodes' memory that this process has mapped lately: they come again. A batch
    has its mappings for itself. Any thread may call, also the collector in the midst of a call."""

    def __init__(self) -> None:
        self._spare: OrderedDict[Key, list[Mapping]] = OrderedDict()
        self._shown: OrderedDict[tuple[Key, int], memoryview] = OrderedDict()
        self._serial = -1
        self._closed = False

    def lend(self, area: Area) -> Mapping:
        """A mapping of an area that shows what is there; raises LostNodeError if the node is gone."""
        if area.serial != self._serial:
            # Another file: nothing of the one before comes again, and it may be large.
            self._serial = area.serial  # first: what was shown comes back at once
            self._shown = OrderedDict()
            self._spare = OrderedDict()
        try:
            return self._spare[area.key].pop()
        except (KeyError, IndexError):
            return Mapping(area)

    def show(self, stretch: Area) -> memoryview:
        """What is in a resident stretch. The batches of an epoch share a mapping: each sample is shown
        once in it, so none sees what was written for another."""
        key = stretch.key, stretch.epoch
        known = self._shown.get(key)
        if known is None:
            with contextlib.suppress(KeyError):
                while len(self._shown) >= _MOST_SHOWN:
                    self._shown.popitem(last=False)
            mapping = self.lend(stretch)
            mapping.spans = [(0, stretch.size)]
            owner = (ctypes.c_char * stretch.size).from_buffer(mapping.memory)
            weakref.finalize(owner, self.give_back, mapping).atexit = False
            known = self._shown[key] = memoryview(owner).cast("B").toreadonly()
        return known

    def give_back(self, mapping: Mapping) -> None:
        """Ends a batch's use of a mapping, and what was written there."""
        if self._closed or mapping.here.serial != self._serial or not mapping.clean():
            return
        kept = self._spare
        spare = kept.setdefault(mapping.key, [])
        if len(spare) < _MOST_SPARE:
            spare.append(mapping)
        try:
            kept.move_to_end(mapping.key)
            while len(kept) > _MOST_STRETCHES:
                kept.popitem(last=False)
        except KeyError:
            pass  # the collector was faster

    def close(self) -> None:
        """Lets go of all that no batch uses; what is given back later goes too."""
        self._closed = True
        self._spare = OrderedDict()
        self._shown = OrderedDict()


class Batch:
    """The samples of one rank and step, or of one request.

    `release` is called once, when no view of the batch's own memory is left. Samples that stay in the
    node's memory are shown there.
    """

    __slots__ = (
        "first",
        "_epoch",
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
        mapping = self._mapping = mappings.lend(area)
        self.first = first
        self._epoch = area.epoch
        # Views of views hold this object, whatever becomes of the views in between.
        owner = (ctypes.c_char * area.size).from_buffer(mapping.memory)
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
        end = at + count * _RECORD_BYTES
        mapping.spans = [(at, end)]
        if count and self._flags[0] & _RESIDENT:  # then all of a batch are
            offset, size = _RESIDENT_STRETCH.unpack_from(own, _RESIDENT_AT)
            stretch = mapping.here._replace(offset=offset, size=size, epoch=area.epoch)
            self._data = mappings.show(stretch)
        elif count:
            data = min(self._starts), max(self._ends())
            is_near = end <= data[0] <= end + _GAP_BYTES
            mapping.spans = [(at, data[1])] if is_near else [(at, end), data]
            mapping.populate()
        _lent.add(mapping)
        weakref.finalize(owner, _give_back, mappings, mapping, release).atexit = False
        self._describe = describe
        self._described: list[tuple[str, list[tuple[str, int]]]] | None = None

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def area(self) -> Area:
        """Where it is, for another process to map while this one has it."""
        return self._mapping.here._replace(epoch=self._epoch)

    def size(self) -> tuple[int, int]:
        """How many samples it has, and how many bytes they have."""
        return len(self._starts), sum(self._lengths)

    def data(self) -> list[memoryview | dict[str, memoryview]]:
        """The bytes of every sample; by the names of its parts, if it has several."""
        if any(flags & (_PARTS | _REPEAT | _DAMAGED) for flags in set(self._flags)):
            return [sample.whole for sample in self.samples()]
        return list(map(self._data.__getitem__, map(slice, self._starts, self._ends())))

    def labels(self) -> memoryview:
        """The label of every sample, of four bytes each."""
        return self._ints[10::_INTS]

    def ids(self) -> list[int]:
        ids: list[int] = self._longs[2::_LONGS].tolist()
        return ids

    def samples(self) -> Iterator[Sample]:
        return (Sample(self, place) for place in range(len(self._starts)))

    def _ends(self) -> Iterator[int]:
        return map(operator.add, self._starts, self._lengths)

    def _whole(self, place: int) -> memoryview:
        start = self._starts[place]
        whole = self._data[start : start + self._lengths[place]]
        if self._flags[place] & (_REPEAT | _DAMAGED):
            # The same bytes are shown in another place too, and what is written is to be seen once.
            return memoryview(bytearray(whole)).toreadonly()
        return whole

    def _description(self, place: int) -> tuple[str, list[tuple[str, int]]]:
        if self._described is None:
            # All at once: whoever wants one key wants the others too.
            self._described = self._describe(self.ids())
        return self._described[place]


def _give_back(mappings: Mappings, mapping: Mapping, release: Callable[[], None] | None) -> None:
    """Ends the use of a batch's area: first here, as the node may build there at once."""
    _lent.discard(mapping)
    mappings.give_back(mapping)
    if release is not None:
        release()


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
    def whole(self) -> memoryview | dict[str, memoryview]:
        """Its only part, or all of them by name: what there is to train with without a transform."""
        several = self._batch._flags[self._place] & _PARTS
        return self.parts if several else self.data

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


def area_of(piece: Piece, epoch: int) -> Area:
    """Where a piece of an epoch is."""
    return Area(
        piece.process,
        piece.descriptor,
        piece.process,
        piece.serial,
        piece.offset,
        piece.area_bytes,
        epoch,
    )
