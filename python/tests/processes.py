"""Processes and their memory, as the kernel shows them: what tests that kill look at."""

from __future__ import annotations

import contextlib
import ipaddress
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

_Result = TypeVar("_Result")

# How soon what belongs to the dead must be gone.
SOON_SECONDS = 5.0


def command(pid: int) -> list[str]:
    """How a process was started; nothing if it has ended, whether it is waited for or not."""
    try:
        return Path("/proc", str(pid), "cmdline").read_text(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def nodes(folder: Path) -> list[int]:
    """The nodes that live and listen in a runtime folder, or are about to."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            words = command(int(entry))
            if words[-2:-1] == ["org.gristway.node.NodeMain"] and words[-1].startswith(
                f"{folder}/"
            ):
                found.append(int(entry))
    return found


def the_node(folder: Path) -> int:
    """The only node of a runtime folder."""
    (node,) = nodes(folder)
    return node


def kill(pid: int) -> None:
    """Ends a process as `kill -9` does, and returns when nothing of it runs."""
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not command(pid), f"process {pid} ends")


def eventually(happens: Callable[[], _Result], what: str, seconds: float = SOON_SECONDS) -> _Result:
    """Waits until a call returns something true, and returns that; fails if it does not."""
    deadline = time.monotonic() + seconds
    while True:
        result = happens()
        if result:
            return result
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.01)


def assert_no_node(folder: Path, seconds: float = SOON_SECONDS) -> None:
    """All nodes of a runtime folder end by themselves, soon."""
    eventually(lambda: not nodes(folder), "the node ends with its last client", seconds)


def handover_bytes(node: int) -> int:
    """How much memory a node has mapped for batches on their way to trainers."""
    total = 0
    for line in Path("/proc", str(node), "maps").read_text().splitlines():
        if "memfd:gristway-handover" in line:
            low, high = line.split()[0].split("-")
            total += int(high, 16) - int(low, 16)
    return total


def memory_files(pid: int) -> list[str]:
    """The memory files of Gristway that a process has open."""
    found = []
    for entry in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{entry}")
        except OSError:
            continue
        if target.startswith("/memfd:gristway"):
            found.append(target)
    return found


@dataclass(frozen=True)
class Socket:
    """Where a socket is bound. One for UDP listens unless it is connected to somebody, such as
    whoever knows the names of machines."""

    protocol: str
    address: str
    port: int
    listens: bool


def sockets(pid: int) -> list[Socket]:
    """The sockets of a process for TCP and UDP."""
    own = set()
    for entry in Path("/proc", str(pid), "fd").iterdir():
        with contextlib.suppress(OSError):
            own.add(os.readlink(entry))
    found = []
    for protocol, table in (("tcp", "tcp"), ("tcp", "tcp6"), ("udp", "udp"), ("udp", "udp6")):
        for line in Path("/proc", str(pid), "net", table).read_text().splitlines()[1:]:
            words = line.split()
            if f"socket:[{words[9]}]" in own:
                address, port = words[1].split(":")
                listens = words[3] == ("07" if protocol == "udp" else "0A")
                found.append(Socket(protocol, _address(address), int(port, 16), listens))
    return found


def _address(shown: str) -> str:
    """An address as people write it: the kernel shows words, each with its bytes reversed."""
    words = [bytes.fromhex(shown[at : at + 8])[::-1] for at in range(0, len(shown), 8)]
    address = ipaddress.ip_address(b"".join(words))
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


class Apart:
    """Something that is done in a process of its own, which may be another user's."""

    def __init__(self, work: Callable[[], Any], user: int | None = None) -> None:
        self._mine, theirs = multiprocessing.Pipe()

        def run() -> None:
            self._mine.close()
            try:
                if user is not None:
                    os.setgroups([])
                    os.setgid(user)
                    os.setuid(user)
                theirs.send((True, work()))
            except BaseException:
                theirs.send((False, traceback.format_exc()))

        self._process = multiprocessing.get_context("fork").Process(target=run)
        self._process.start()
        theirs.close()

    def result(self) -> Any:
        """Waits for what it returns; what it raises fails the test."""
        try:
            done, result = self._mine.recv()
        finally:
            self.kill()
        assert done, result
        return result

    def kill(self) -> None:
        """Ends it, if it has not ended."""
        self._process.kill()
        self._process.join()
        self._mine.close()


def apart(work: Callable[[], Any], user: int | None = None) -> Any:
    """Does something in a process of its own, which may be another user's, and returns what it
    returns; what it raises fails the test."""
    return Apart(work, user).result()


def fake_java(home: Path, script: str) -> Path:
    """Makes a folder that passes for a JDK 25, whose `java` is a script; the folder."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    (home / "release").write_text('JAVA_VERSION="25"\n')
    program.write_text(script)
    program.chmod(0o755)
    return home


@contextlib.contextmanager
def memory_limit(size: int) -> Iterator[Path]:
    """A control group for processes that may have so much memory: write their ids into this file."""
    v1 = Path("/sys/fs/cgroup/memory")
    is_v1 = (v1 / "memory.limit_in_bytes").exists()
    group = (v1 if is_v1 else Path("/sys/fs/cgroup")) / f"gristway-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("no control groups for memory here")
    try:
        (group / ("memory.limit_in_bytes" if is_v1 else "memory.max")).write_text(str(size))
        yield group / "cgroup.procs"
    finally:
        # Processes that have just ended are counted for a moment.
        eventually(lambda: _removed(group), "the control group is removed")


def _removed(group: Path) -> bool:
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()
