"""Compares loaders that feed a PyTorch training process: `benchmarks/run torch FOLDER [ROUNDS]`.

FOLDER is on the storage to measure; the datasets are made there once and kept. Every arm runs in a
fresh process, arms are interleaved, and each result is a line of JSON in FOLDER/results, from which
`report.py` makes tables. Environments of the peers lie in the user's cache folder.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import large
import peers
import report
import storage

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GRISTWAY = ROOT / "gristway"

PEERS = ["files", "webdataset", "streaming", "litdata", "ffcv"]
OURS = ["ours-stream", "ours-map", "ours-loader"]
RESIDENT = "ours-resident"
MODES = ["warm", "nvme", "cloud", "hdd"]
HOPELESS = 20  # an arm this many times slower than the fastest is not measured again
SHARE = 10  # the memory for shuffling is this part of the dataset
OVERHEAD = 2 << 30  # what processes, queues and the page cache may take beside it when cold


@dataclass(frozen=True)
class Plan:
    """How long and how often an arm is measured."""

    rounds: int
    workers: tuple[int, ...]
    warm_up: float
    seconds: float
    first_epoch: float = 0  # the warm-up lasts to the end of that, but no longer than this


# Slow storage is steady, since its throttle decides: with one worker nothing is told there that two
# do not tell.
PLANS = {
    "warm": Plan(5, (1, 2), 2, 3),
    "nvme": Plan(5, (2,), 2, 4),
    "cloud": Plan(5, (2,), 3, 20, first_epoch=10),
    "hdd": Plan(5, (2,), 3, 20, first_epoch=20),
    "jpeg": Plan(5, (1, 2), 3, 12),
}

# About a quarter of the time, for a first look.
SHORT_PLANS = {
    "warm": Plan(3, (1, 2), 2, 2.5),
    "nvme": Plan(1, (2,), 2, 3),
    "cloud": Plan(1, (2,), 2, 6, first_epoch=10),
    "hdd": Plan(1, (2,), 2, 8, first_epoch=20),
    "jpeg": Plan(2, (1, 2), 3, 10),
}


@dataclass(frozen=True)
class Dataset:
    folder: Path
    count: int
    size: int
    kind: str = "files"

    def data(self, arm: str) -> Path:
        """Where an arm finds the samples."""
        return self.folder / format_of(arm)

    @property
    def memory(self) -> int:
        return self.count * self.size // SHARE


def format_of(arm: str) -> str:
    return "gristway" if arm == "read" or arm.startswith("ours") else arm


def python_of(arm: str) -> peers.Environment:
    return peers.environment(arm) if arm in peers.PINS else peers.Environment(sys.executable, "")


def make(dataset: Dataset, arms: list[str]) -> None:
    """The samples in every format that the arms read, unless they are there."""
    for kind in dict.fromkeys(["files", *map(format_of, arms)]):
        target = dataset.folder / kind
        if target.exists() or (kind in peers.PINS and python_of(kind).error):
            continue
        print(f"making {target}", file=sys.stderr)
        aside = dataset.folder / f"{kind}.part"
        remove(aside)
        dataset.folder.mkdir(parents=True, exist_ok=True)
        tree = dataset.folder / "files"
        if kind == "gristway":
            command = [str(GRISTWAY), "pack", str(tree), str(aside)]
        else:
            name = dataset.kind if kind == "files" else kind
            command = [python_of(kind).python, str(HERE / "formats.py"), name, str(tree)]
            command += [str(aside), str(dataset.count), str(dataset.size)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        aside.rename(target)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def make_cold() -> None:
    """An empty page cache, but for the programs themselves: a JVM that is read from a slow disk in
    small pieces would be most of what is measured."""
    storage.drop_caches()
    launcher = ROOT / "target" / "launcher"
    programs = [str(path) for path in (*launcher.glob("*.jar"), *launcher.glob("*.aot"))]
    storage.warm(os.path.join(os.environ["JAVA_HOME"], "lib"), *programs)


class Failed(Exception):
    """An arm gave no result; the text is the line that says why."""


def run_arm(
    arm: str, dataset: Dataset, mode: str, workers: int, plan: Plan, options: argparse.Namespace
) -> dict[str, Any]:
    environment = python_of(arm)
    if environment.error:
        raise Failed(f"not installed: {environment.error}")
    data = dataset.data(arm)
    cold = mode != "warm"
    if not cold:
        storage.warm(str(data))
    limit = OVERHEAD + dataset.memory if cold else 0
    groups = storage.Storage(mode if cold else "nvme", dataset.folder, limit)
    try:
        if arm == "read":
            result = run_read(dataset, mode, groups, options)
        else:
            job = {
                "arm": arm,
                "data": str(data),
                "samples": dataset.count,
                "batch": options.batch,
                "workers": workers,
                "memory": dataset.memory,
                "cold": cold,
                "policy": options.policy,
                "decode": dataset.kind == "jpeg-files",
                "warm_up": plan.warm_up,
                "first_epoch": plan.first_epoch,
                "seconds": plan.seconds,
                # 300, or a whole epoch where that is less.
                "batches": min(300, math.ceil(dataset.count / options.batch)),
                # Slow arms would take minutes for that many: then the time decides.
                "most": max(2 * plan.seconds, 6) if mode in ("warm", "nvme") else plan.seconds,
                "touch": options.touch,
                "check": options.check,
                "blkio": str(groups.groups["blkio"]),
                "cpuacct": str(groups.groups["cpuacct"]),
                "device": groups.device,
            }
            result = run_python(environment.python, job, cold, groups, 240 + 3 * plan.seconds)
    finally:
        left = groups.close()
    if left:
        result["left_running"] = left
    return {**result, "peak_memory": groups.peak_bytes}


def inside(groups: storage.Storage, *, throttled: bool) -> Callable[[], None]:
    """What a new process does first: joins the groups, before it takes anything."""

    def join() -> None:
        groups.count(os.getpid())
        if throttled:
            groups.throttle(os.getpid())

    return join


def run_python(
    python: str, job: dict[str, Any], cold: bool, groups: storage.Storage, limit: float
) -> dict[str, Any]:
    process = subprocess.Popen(
        [python, str(HERE / "arm.py"), json.dumps(job)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{HERE}:{ROOT / 'python' / 'src'}"},
        preexec_fn=inside(groups, throttled=False),
    )
    assert process.stdin and process.stdout and process.stderr
    errors = Lines(process.stderr)
    answers = Lines(process.stdout)
    try:
        if answers.next(120) != "ready":
            raise Failed(errors.reason())
        # Programs are loaded by now, and stay in memory as long as they run.
        if cold:
            make_cold()
        groups.throttle(process.pid)
        process.stdin.write("go\n")
        process.stdin.flush()
        line = answers.next(limit)
        if not line:
            raise Failed(
                errors.reason() if process.poll() is not None else f"no result in {limit:.0f} s"
            )
        result: dict[str, Any] = json.loads(line)
        groups.release()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            result["exit"] = "did not end in 10 s"
        return result
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


class Lines:
    """The lines that a process prints, taken up by a thread, so that no pipe is ever full."""

    def __init__(self, stream: IO[str]) -> None:
        self.kept: list[str] = []
        self._lines: queue.Queue[str] = queue.Queue()
        self._thread = threading.Thread(target=self._take, args=(stream,), daemon=True)
        self._thread.start()

    def _take(self, stream: IO[str]) -> None:
        for line in stream:
            self.kept.append(line.rstrip())
            self._lines.put(line.rstrip())
        self._lines.put("")

    def next(self, seconds: float) -> str:
        """The next line; empty if none comes in time, or ever."""
        try:
            return self._lines.get(timeout=seconds)
        except queue.Empty:
            return ""

    def reason(self) -> str:
        """The last line, which is where Python says what was wrong."""
        self._thread.join(5)
        lines = [line for line in self.kept if line.strip()]
        causes = [line for line in lines if "Error" in line and not line.startswith(" ")]
        return (causes or lines or ["ended without a word"])[-1][:300]


def run_read(
    dataset: Dataset, mode: str, groups: storage.Storage, options: argparse.Namespace
) -> dict[str, Any]:
    """Our own command, without Python: what the clients are measured against."""
    # The first epochs are left out: the JVM warms up, and a throttle lets the first second pass.
    warm_up, epochs = {"warm": (6, 6), "nvme": (6, 6), "cloud": (1, 2), "hdd": (1, 2)}[mode]
    command = [str(GRISTWAY), "read", str(dataset.data("read")), "--json"]
    command += ["--memory", f"{dataset.memory >> 20}MiB", "--batch-size", str(options.batch)]
    command += ["--policy", options.policy, "--epochs", str(warm_up + epochs)]
    if mode != "warm":
        make_cold()
    before = storage.usage(
        str(groups.groups["blkio"]), str(groups.groups["cpuacct"]), groups.device
    )
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        preexec_fn=inside(groups, throttled=True),
    )
    if done.returncode != 0:
        raise Failed((done.stderr.strip().splitlines() or ["failed without a word"])[-1])
    after = storage.usage(str(groups.groups["blkio"]), str(groups.groups["cpuacct"]), groups.device)
    every = json.loads(done.stdout)["epochs"]
    measured = every[warm_up:]
    seconds = sum(epoch["seconds"] for epoch in measured)
    # Processor time and disk requests are of the whole command: each epoch is given its part.
    part = len(measured) / len(every)
    return {
        "samples": sum(epoch["samples"] for epoch in measured),
        "bytes": sum(epoch["bytes"] for epoch in measured),
        "epochs": len(measured),
        "seconds": seconds,
        "stall": sum(epoch["stallSeconds"] for epoch in measured) / seconds,
        "cpu": (after.cpu_seconds - before.cpu_seconds) * part,
        "reads": int((after.reads - before.reads) * part),
        "read_bytes": int((after.read_bytes - before.read_bytes) * part),
    }


def worker_counts(arm: str, mode: str, plan: Plan) -> tuple[int, ...]:
    if arm == "read":
        return (0,)
    if arm == RESIDENT and mode != "warm":
        return ()  # after the first epoch it reads nothing, however slow the storage is
    # Ours alone needs no worker to read ahead, where there is nothing to transform.
    alone = arm in ("ours-loader", RESIDENT) and mode == "warm"
    return (0, *plan.workers) if alone else plan.workers


def compare(
    dataset: Dataset, mode: str, arms: list[str], plan: Plan, options: argparse.Namespace
) -> None:
    hopeless: set[tuple[str, int]] = set()
    rates: dict[tuple[str, int], float] = {}
    for round_number in range(plan.rounds):
        # From slow storage, minutes a round for a figure that nobody would look at twice.
        if mode in ("cloud", "hdd") and rates:
            best = max(rates.values())
            hopeless |= {key for key, value in rates.items() if HOPELESS * value < best}
        for arm in arms:
            for workers in worker_counts(arm, mode, plan):
                if (arm, workers) in hopeless:
                    continue
                begin = time.monotonic()
                line = {
                    "kind": "arm",
                    "benchmark": options.benchmark,
                    "arm": arm,
                    "policy": options.policy if format_of(arm) == "gristway" else "",
                    "mode": mode,
                    "size": dataset.size,
                    "count": dataset.count,
                    "workers": workers,
                    "round": round_number,
                }
                try:
                    line |= run_arm(arm, dataset, mode, workers, plan, options)
                    if not options.check:
                        rates[arm, workers] = report.rate(line)
                except Failed as failure:
                    line |= {"error": str(failure)}
                    hopeless.add((arm, workers))
                line["took"] = round(time.monotonic() - begin, 1)
                options.out.write(json.dumps(line) + "\n")
                options.out.flush()
                print(report.summary(line), file=sys.stderr, flush=True)


def whereabouts() -> dict[str, str]:
    """When, what and where is measured."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(ROOT), *words], stdout=subprocess.PIPE, text=True
        ).stdout.strip()

    memory = Path("/proc/meminfo").read_text().split()[1]
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": git("rev-parse", "HEAD") + (" and changes" if git("status", "-s") else ""),
        "machine": f"{os.cpu_count()} cores, {int(memory) >> 20} GiB, Linux {platform.release()}",
    }


def describe(options: argparse.Namespace) -> dict[str, Any]:
    """What was measured, where, and how: the first line of the results."""
    import numpy
    import PIL
    import torch

    return {
        "kind": "run",
        "benchmark": options.benchmark,
        **whereabouts(),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": numpy.__version__,
            "pillow": PIL.__version__,
            **{peer: pin.split("==")[1] for peer, pin in peers.PINS.items()},
        },
        "policy": options.policy,
        "batch": options.batch,
        "touch": options.touch,
        "megabytes": options.megabytes,
        "seconds": options.seconds,
        "rounds": options.rounds,
    }


def plan_of(mode: str, options: argparse.Namespace) -> Plan:
    plans = SHORT_PLANS if options.short else PLANS
    plan = plans["jpeg" if options.benchmark == "torch-jpeg" else mode]
    if options.rounds:
        plan = replace(plan, rounds=options.rounds)
    if options.workers:
        plan = replace(plan, workers=tuple(options.workers))
    if options.seconds:
        plan = replace(plan, seconds=options.seconds, warm_up=min(plan.warm_up, options.seconds))
    return plan


def options_of(arguments: list[str]) -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return [name for name in text.split(",") if name]

    def numbers(text: str) -> list[int]:
        return [int(name) for name in names(text)]

    parser = argparse.ArgumentParser(prog="benchmarks/run", description=__doc__)
    parser.add_argument("benchmark", choices=["torch", "torch-jpeg", "torch-large"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("rounds", type=int, nargs="?", help="of every arm; as planned if left out")
    parser.add_argument("--arms", type=names, help="only these, for example files,ours-stream")
    parser.add_argument("--modes", type=names, default=MODES, help=f"of {','.join(MODES)}")
    parser.add_argument("--sizes", type=numbers, default=[10_000, 110_000], help="of a sample")
    parser.add_argument("--workers", type=numbers, help="1,2 when warm, 2 when cold")
    parser.add_argument("--seconds", type=float, help="the window; as planned if left out")
    parser.add_argument("--short", action="store_true", help="fewer rounds, shorter windows")
    parser.add_argument("--megabytes", type=int, default=2_000, help="of a dataset")
    parser.add_argument("--samples", type=int, default=large.SAMPLES, help="of torch-large")
    parser.add_argument("--policy", default="redirect", help="of our arms")
    parser.add_argument("--touch", choices=["first", "all"], default="first", help="bytes")
    parser.add_argument("--check", action="store_true", help="each sample once an epoch? no times")
    options = parser.parse_args(arguments)
    unknown = set(options.modes) - set(MODES)
    if unknown:
        parser.error(f"no mode is called {', '.join(unknown)}")
    options.batch = 64 if options.benchmark == "torch-jpeg" else 256
    return options


def begin(options: argparse.Namespace) -> Path:
    """Makes ready to measure; the file for the results."""
    # An arm's processes and groups go even when this process is told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if lacks := storage.lacking():
        sys.exit(f"benchmarks/run: {lacks}")
    options.folder = options.folder.resolve()
    results = Path(options.folder) / "results"
    results.mkdir(parents=True, exist_ok=True)
    return results / time.strftime(f"{options.benchmark}-%Y%m%d-%H%M%S.jsonl", time.gmtime())


def main() -> None:
    options = options_of(sys.argv[1:])
    path = begin(options)
    with open(path, "w") as options.out:
        options.out.write(json.dumps(describe(options)) + "\n")
        if options.benchmark == "torch-large":
            large.run(options)
        else:
            jpeg = options.benchmark == "torch-jpeg"
            # FFCV decodes in compiled code of its own: Pillow cannot run in its workers.
            default = (
                [*PEERS[:-1], *OURS, "ours-threads"] if jpeg else [*PEERS, *OURS, RESIDENT, "read"]
            )
            arms = options.arms or default
            for size in [110_000] if jpeg else options.sizes:
                # Room for all formats of one size: about six times the dataset.
                count = (
                    min(10_000, options.megabytes * 10)
                    if jpeg
                    else options.megabytes * 10**6 // size
                )
                name = f"{'jpeg' if jpeg else 'raw'}-{count}x{size}"
                kind = "jpeg-files" if jpeg else "files"
                dataset = Dataset(options.folder / name, count, size, kind)
                make(dataset, arms)
                for mode in ["warm"] if jpeg else options.modes:
                    compare(dataset, mode, arms, plan_of(mode, options), options)
    print(report.tables([path]))
    print(f"results: {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
