"""Slower storage than there is, and what an arm takes of the machine.

Control groups (version 1) limit what the processes in them read from the disk and the memory that
they and their part of the page cache may take, and count their processor time, memory and reads:
all of an arm's processes together, workers and a Gristway node included. Needs root.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
KINDS = ("blkio", "memory", "cpuacct")

# Of Linux; the same on every machine.
PROCESS_MADVISE = 440
MADV_PAGEOUT = 21


@dataclass(frozen=True)
class Profile:
    """What a kind of storage can do, a second; 0: whatever the disk can."""

    read_bytes: int
    reads: int


PROFILES = {
    "nvme": Profile(0, 0),
    "cloud": Profile(500_000_000, 3_000),
    "hdd": Profile(180_000_000, 200),
}


def lacking() -> str:
    """What this machine lacks for a measurement, in one line; empty if nothing."""
    if os.geteuid() != 0:
        return "control groups and the page cache need root"
    missing = [kind for kind in KINDS if not (ROOT / kind / "cgroup.procs").exists()]
    return f"no control groups of version 1 here: {', '.join(missing)}" if missing else ""


def drop_caches() -> None:
    """Empties the page cache, but for what running programs have mapped."""
    subprocess.run(["sync"], check=True)
    Path("/proc/sys/vm/drop_caches").write_text("3")


def warm(*paths: str) -> None:
    """Reads every file below the paths, so that they come from memory."""
    command = 'find "$@" -type f -print0 | xargs -0r cat > /dev/null'
    subprocess.run(["sh", "-c", command, "sh", *paths], check=True)


def device_of(folder: Path) -> str:
    """The disk that a folder is on, as control groups call it."""
    command = f"lsblk -no MAJ:MIN $(df --output=source '{folder}' | tail -1)"
    return subprocess.run(
        ["sh", "-c", command], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.split()[0]


class Storage:
    """The groups of one arm. Close it once its processes have ended; that ends stragglers."""

    def __init__(self, profile: str, folder: Path, memory_bytes: int, part: str = "") -> None:
        name = f"gristway-benchmark-{os.getpid()}{part}"
        self.device = device_of(folder)
        self.groups = {kind: ROOT / kind / name for kind in KINDS}
        for group in self.groups.values():
            group.mkdir(exist_ok=True)
        self._limit(PROFILES[profile])
        self._set("memory", "memory.limit_in_bytes", str(memory_bytes or -1))
        self.peak_bytes = 0
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._watch_memory, daemon=True)
        self._watch.start()

    def _set(self, kind: str, file: str, value: str) -> None:
        (self.groups[kind] / file).write_text(value)

    def _limit(self, profile: Profile) -> None:
        self._set("blkio", "blkio.throttle.read_bps_device", f"{self.device} {profile.read_bytes}")
        self._set("blkio", "blkio.throttle.read_iops_device", f"{self.device} {profile.reads}")

    def release(self) -> None:
        """Ends the throttle. A process that ends runs code of its libraries for the first time,
        which may have to be read: from slow storage, that takes longer than the measurement."""
        self._limit(PROFILES["nvme"])

    def count(self, process: int) -> None:
        """Counts, and bounds the memory of, a process and all that it starts from now on."""
        for kind in ("memory", "cpuacct"):
            self._set(kind, "cgroup.procs", str(process))

    def throttle(self, process: int) -> None:
        """Throttles a process and all that it starts from now on."""
        self._set("blkio", "cgroup.procs", str(process))

    def _watch_memory(self) -> None:
        # What is not a copy of a file: anonymous memory, and memory shared between processes,
        # each page once.
        while not self._over.wait(0.1):
            stat = (self.groups["memory"] / "memory.stat").read_text().split()
            values = dict(zip(stat[::2], map(int, stat[1::2]), strict=True))
            self.peak_bytes = max(self.peak_bytes, values["rss"] + values["shmem"])

    def processes(self) -> list[int]:
        return [int(i) for i in (self.groups["memory"] / "cgroup.procs").read_text().split()]

    def close(self) -> list[str]:
        """Ends what is left of the arm and removes the groups; returns the names of what was."""
        left = []
        # A node or a worker that has nobody left to serve takes a moment to see that.
        deadline = time.monotonic() + 5
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.05)
        for process in self.processes():
            try:
                left.append(Path(f"/proc/{process}/comm").read_text().strip())
                os.kill(process, signal.SIGKILL)
            except (ProcessLookupError, FileNotFoundError):
                pass  # it has just ended
        self._over.set()
        self._watch.join()
        for group in self.groups.values():
            for attempt in range(250):
                try:
                    group.rmdir()
                    break
                except OSError:
                    if attempt == 249:
                        raise
                    time.sleep(0.02)  # processes that have just ended are counted for a moment
        return left


@dataclass(frozen=True)
class Usage:
    """What the processes of an arm have taken so far."""

    cpu_seconds: float
    reads: int
    read_bytes: int


def usage(blkio: str, cpuacct: str, device: str) -> Usage:
    """Read by the arm itself, so that it is of the very window that is timed."""

    def reads(file: str) -> int:
        for line in Path(blkio, file).read_text().splitlines():
            words = line.split()
            if words[:2] == [device, "Read"]:
                return int(words[2])
        return 0

    return Usage(
        int(Path(cpuacct, "cpuacct.usage").read_text()) / 1e9,
        reads("blkio.throttle.io_serviced"),
        reads("blkio.throttle.io_service_bytes"),
    )


def processors() -> tuple[float, float]:
    """Seconds that all processors of the machine have worked, and those that they could have."""
    user, nice, system, idle, wait, *others = map(
        int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    )
    busy = user + nice + system + sum(others)
    return busy / 100, (busy + idle + wait) / 100


def page_out(folder: str, group: str) -> None:
    """Has the processes of a group give up the pages of files below a folder that they have mapped
    (LitData's workers do): mapped pages stay in the page cache when that is dropped."""
    system = ctypes.CDLL(None, use_errno=True)
    for process in Path(group, "cgroup.procs").read_text().split():
        ranges = []
        for line in Path("/proc", process, "maps").read_text().splitlines():
            words = line.split(maxsplit=5)
            if len(words) == 6 and words[5].startswith(folder):
                begin, end = (int(word, 16) for word in words[0].split("-"))
                ranges.append((begin, end - begin))
        if ranges:
            descriptor = os.pidfd_open(int(process))
            for begin, length in ranges:
                vector = (ctypes.c_size_t * 2)(begin, length)
                # Python has no name for it.
                if system.syscall(PROCESS_MADVISE, descriptor, vector, 1, MADV_PAGEOUT, 0) < 0:
                    raise OSError(ctypes.get_errno(), f"pages of process {process} stay mapped")
            os.close(descriptor)
