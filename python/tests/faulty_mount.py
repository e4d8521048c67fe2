"""A folder as another mount shows it, whose reads fail when a test wants them to.

A file system of user space (FUSE), so faults are real errors of real system calls. It is served by
a thread of the test, and needs root and /dev/fuse.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

_READ_ONLY, _NO_SUID, _NO_DEV, _DETACH = 1, 2, 4, 2
_REQUEST_BYTES = 1 << 20
_LOOKUP, _FORGET, _GETATTR, _OPEN, _READ, _STATFS = 1, 2, 3, 14, 15, 17
_RELEASE, _FLUSH, _INIT, _OPENDIR, _READDIR, _RELEASEDIR = 18, 25, 26, 27, 28, 29
_INTERRUPT, _BATCH_FORGET = 36, 42
_UNANSWERED = {_FORGET, _INTERRUPT, _BATCH_FORGET}
_ROOT = 1
# The kernel's FOPEN_DIRECT_IO. Without it the kernel reads the rest of a short answer through the page
# cache, and takes the next short answer for the end of the file.
_PAST_THE_CACHE = 1

# What a read gives: told the file's name, the offset and how many bytes are asked for, an error
# number as a negative number, or how many bytes are given at most.
Fault = Callable[[str, int, int], int]


def none(_name: str, _offset: int, size: int) -> int:
    return size


class FaultyMount:
    """The mounted folder; `fault` may be set at any time."""

    def __init__(self, folder: Path, point: Path) -> None:
        self.path = point
        self.fault: Fault = none
        self._folder = folder
        self._names = {_ROOT: ""}
        self._numbers = {"": _ROOT}
        self._device = os.open("/dev/fuse", os.O_RDWR)
        self._libc = ctypes.CDLL(None, use_errno=True)
        options = f"fd={self._device},rootmode=40000,user_id=0,group_id=0"
        flags = _READ_ONLY | _NO_SUID | _NO_DEV
        if self._libc.mount(b"faulty", os.fsencode(point), b"fuse", flags, options.encode()) != 0:
            os.close(self._device)
            raise OSError(ctypes.get_errno(), "cannot mount")
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.fault = none
        self._libc.umount2(os.fsencode(self.path), _DETACH)
        self._thread.join(10)
        os.close(self._device)

    def _serve(self) -> None:
        while True:
            try:
                request = os.read(self._device, _REQUEST_BYTES)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
                    continue
                return  # it is not mounted any more
            _, code, unique, node = struct.unpack_from("<IIQQ", request)
            if code in _UNANSWERED:
                continue
            try:
                reply, error_number = self._answer(code, node, request[40:]), 0
            except OSError as error:
                reply, error_number = b"", error.errno or errno.EIO
            header = struct.pack("<IiQ", 16 + len(reply), -error_number, unique)
            with contextlib.suppress(OSError):  # whoever has asked may be gone
                os.write(self._device, header + reply)

    def _answer(self, code: int, node: int, body: bytes) -> bytes:
        if code == _INIT:
            most = struct.unpack_from("<IIII", body)
            return struct.pack(
                "<IIIIHHIIHHI28x", 7, min(31, most[1]), 65536, 0, 8, 6, 4096, 1, 0, 0, 0
            )
        if code == _LOOKUP:
            name = os.path.join(self._names[node], os.fsdecode(body.split(b"\0")[0]))
            attributes = self._attributes(name)
            number = self._numbers.setdefault(name, len(self._numbers) + 1)
            self._names[number] = name
            return struct.pack("<QQQQII", number, 0, 0, 0, 0, 0) + attributes
        if code == _GETATTR:
            return struct.pack("<QII", 0, 0, 0) + self._attributes(self._names[node])
        if code in (_OPEN, _OPENDIR):
            (flags,) = struct.unpack_from("<I", body)
            return struct.pack("<QII", 0, _PAST_THE_CACHE if flags & os.O_DIRECT else 0, 0)
        if code in (_RELEASE, _RELEASEDIR, _FLUSH):
            return b""
        if code == _STATFS:
            return struct.pack("<QQQQQIIII24x", 0, 0, 0, 0, 0, 4096, 255, 4096, 0)
        if code == _READDIR:
            return self._entries(node, *struct.unpack_from("<8xQI", body))
        if code == _READ:
            return self._read(node, *struct.unpack_from("<8xQI", body))
        raise OSError(errno.ENOSYS, "not needed")

    def _attributes(self, name: str) -> bytes:
        found = os.stat(self._folder / name)
        is_folder = stat.S_ISDIR(found.st_mode)
        return struct.pack(
            "<QQQQQQIIIIIIIIII",
            *(found.st_ino, found.st_size, 0),
            *(int(found.st_mtime), int(found.st_mtime), int(found.st_mtime), 0, 0, 0),
            *(0o40755 if is_folder else 0o100644, 1, 0, 0, 0, 4096, 0),
        )

    def _entries(self, node: int, offset: int, size: int) -> bytes:
        names = sorted(os.listdir(self._folder / self._names[node]))
        entries = b""
        for number, name in enumerate(names[offset:], offset + 1):
            raw = os.fsencode(name)
            entry = struct.pack("<QQII", number + 1, number, len(raw), 0) + raw
            entry += bytes(-len(entry) % 8)
            if len(entries) + len(entry) > size:
                break
            entries += entry
        return entries

    def _read(self, node: int, offset: int, size: int) -> bytes:
        name = self._names[node]
        given = self.fault(name, offset, size)
        if given < 0:
            raise OSError(-given, os.strerror(-given))
        with open(self._folder / name, "rb") as file:
            return os.pread(file.fileno(), min(size, given), offset)


@contextlib.contextmanager
def mounted(folder: Path, point: Path) -> Iterator[FaultyMount]:
    """Mounts a folder elsewhere; skips the test where that is not possible."""
    point.mkdir()
    try:
        mount = FaultyMount(folder, point)
    except OSError as error:
        pytest.skip(f"no file systems of user space here: {error.strerror}")
    try:
        yield mount
    finally:
        mount.close()
