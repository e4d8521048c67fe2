"""A rank of the benchmark of several nodes: `cluster_rank.py JOB`, where JOB is JSON.

It prints `ready`, waits for a line, makes a loader and goes through the epochs of its phases. After
each phase it prints `over` and waits for a line, which it is told when all ranks are as far; then it
waits until nothing moves any more. In the end it prints what it saw as a line of JSON, and leaves at
the next line. It runs in the network namespace of its machine.
"""

from __future__ import annotations

import itertools
import json
import mmap
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

import links
import storage

import gristway

_LOOK_SECONDS = 0.02
_TURN_SECONDS = 0.0005
_SETTLING_SECONDS = 0.2


@dataclass(frozen=True)
class Job:
    """What a rank does."""

    data: str
    options: dict[str, Any]  # of the loader
    phases: list[int]  # epochs; after each of them all ranks come to rest
    step_seconds: float  # that training takes for a step
    rank: int
    ranks: int
    progress: str  # a file of zeros, one for each rank
    pace: str  # "step": ranks take steps together; "last": each goes on until all are over; or ""
    watch: bool  # what others have pushed, over time
    blkio: str
    cpuacct: str
    device: str


class Progress:
    """How far each rank has come, in a file that all of them see."""

    def __init__(self, path: str, rank: int, ranks: int) -> None:
        with open(path, "r+b") as file:
            self._done = memoryview(mmap.mmap(file.fileno(), 8 * ranks)).cast("q")
        self._rank = rank

    def tell(self) -> int:
        """Tells that this rank is one further; how far that is."""
        self._done[self._rank] += 1
        return self._done[self._rank]

    def least(self) -> int:
        return min(self._done)

    def turn(self) -> None:
        """Tells it, and returns when all have come as far."""
        done = self.tell()
        while self.least() < done:
            time.sleep(_TURN_SECONDS)


class Watch:
    """Looks at what waits for its step, until it is told to end."""

    def __init__(self, loader: gristway.Loader) -> None:
        self.seen: list[tuple[float, int]] = []
        self._loader = loader
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            waiting = self._loader.stats()["node"]["waiting-bytes"]
            self.seen.append((time.monotonic(), waiting))

    def end(self) -> list[tuple[float, int]]:
        self._over.set()
        self._thread.join()
        return self.seen


def look(job: Job, loader: gristway.Loader) -> dict[str, Any]:
    """How things stand now."""
    used = storage.usage(job.blkio, job.cpuacct, job.device)
    busy, possible = storage.processors()
    return {
        "at": time.monotonic(),
        "cpu": used.cpu_seconds,
        "busy": busy,
        "possible": possible,
        "carried": links.carried(),
        "node": loader.stats()["node"],
    }


def settled(job: Job, loader: gristway.Loader) -> dict[str, Any]:
    """How things stand once nothing more is read ahead, pushed or on its way."""
    last = look(job, loader)
    while True:
        time.sleep(_SETTLING_SECONDS)
        now = look(job, loader)
        # A sign of life may have come; a sample is more.
        moves = now["carried"] - last["carried"] > 10_000
        if not moves and now["node"]["storage-bytes"] == last["node"]["storage-bytes"]:
            return now
        last = now


def run(job: Job) -> None:
    began = time.monotonic()
    carried = links.carried()
    with gristway.Loader(job.data, **job.options) as loader:
        watch = Watch(loader) if job.watch else None
        progress = Progress(job.progress, job.rank, job.ranks)
        looks = [look(job, loader)]
        numbers: list[list[int]] = []
        steps = []
        stalls = []
        rests = []
        for epochs in job.phases:
            for epoch in itertools.count():
                if epoch >= epochs and (job.pace != "last" or progress.least() >= epochs):
                    break
                seen: list[int] = []
                stall = 0.0
                asked = time.monotonic()
                for samples, _ in loader:
                    stall += time.monotonic() - asked
                    seen += [int.from_bytes(sample[:8], "little") for sample in samples]
                    steps.append((time.monotonic(), sum(map(len, samples))))
                    if job.step_seconds:
                        time.sleep(job.step_seconds)
                    if job.pace == "step":
                        progress.turn()
                    asked = time.monotonic()
                numbers.append(seen)
                stalls.append(stall)
                looks.append(look(job, loader))
                if job.pace == "last":
                    progress.tell()
            print("over", flush=True)
            sys.stdin.readline()
            rests.append(settled(job, loader))
        result = {
            "began": began,
            "carried": carried,
            "looks": looks,
            "rests": rests,
            "numbers": numbers,
            "steps": steps,
            "stalls": stalls,
            "waiting": watch.end() if watch else [],
        }
        print(json.dumps(result), flush=True)
        sys.stdin.readline()


def main() -> None:
    job = Job(**json.loads(sys.argv[1]))
    print("ready", flush=True)
    sys.stdin.readline()
    run(job)


if __name__ == "__main__":
    main()
