"""Measures a job of several nodes: `benchmarks/run cluster FOLDER [ROUNDS [ARMS]]`, as root.

Four nodes of one rank each, every one in a network namespace with a link of 1 Gbit/s each way. FOLDER
is on the storage to measure; datasets are made there once and kept. Each result is a line of JSON in
FOLDER/results, of which `cluster_report.py` makes tables and pictures. ARMS are some of:

a  nodes that send each other nothing, against as many readers of a quarter of the dataset each
b  all samples mixed over all nodes, pushed ahead of need
c  the same plan, pushed and asked for, at some latencies
d  what waits at the receiver for its step, by how many steps ahead is pushed
e  `locality` and `clairvoyant`, with the dataset in the job's memory
f  the job's cache, against one in which each sample is fetched from its owner when it is wanted
g  b, for trainers that take longer for a step than its data does

Every epoch of every run is checked: a sample that is missing, or comes twice, ends the benchmark.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import secrets
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cluster_report
import formats
import links
import run
import storage
from cluster_process import Process, ended, groups_of, java
from cluster_results import Wrong, check, summed
from namespaces import NETWORK

HERE = Path(__file__).resolve().parent

NODES = 4
RATE = "1gbit"
SIZE = 110_000
BATCH = 64
# With batches of 64, two cores take so long for a step of all nodes that no latency shows.
ASKING = [(4, 0), (16, 0), (16, 10)]  # batch size, milliseconds that a trainer takes for a step
LATENCIES = "0.2,1,5"
WINDOWS = (1, 2, 4)
OWNERS_THREADS = 4
OWNERS_PORT = 4100
EXTENT = "1MiB"  # what is chosen for any memory from 128 MiB on
# The job's memory where the dataset is inside it, of the dataset: policies that keep samples take up
# to a quarter for those on their way.
ROOM = 1.6
PACE = 1.25  # what a step of a trainer takes that is not the fastest, of what the data takes
ARMS = "abcdefg"
PACED = [(64, 2), (16, 2), (16, 4)]  # batch size, window


@dataclass(frozen=True)
class Place:
    """Where the data is: on storage that all nodes share, or on a disk of each."""

    profile: str
    is_shared: bool
    epochs: int  # to measure: enough for some seconds

    @property
    def name(self) -> str:
        if self.profile == "nvme":
            return "nvme"
        return f"{self.profile}, {'shared' if self.is_shared else 'each'}"

    def groups(self, folder: Path) -> contextlib.AbstractContextManager[list[storage.Storage]]:
        """The control group of each node."""
        return groups_of(self.profile, self.is_shared, NODES, folder)


CLOUD = Place("cloud", True, 2)
NVME = Place("nvme", False, 12)
PLACES = [CLOUD, Place("hdd", True, 1), Place("cloud", False, 4), Place("hdd", False, 2), NVME]


class Data:
    """The dataset, and its quarters."""

    def __init__(self, folder: Path, count: int) -> None:
        self.count = count
        self.bytes = count * SIZE
        self.all = folder / f"cluster-{count}.gw"
        self.parts = [folder / f"cluster-{count}-{part}.gw" for part in range(NODES)]

    def make(self) -> None:
        if all(path.exists() for path in (self.all, *self.parts)):
            return
        print(f"making {self.all}", file=sys.stderr)
        tree = self.all.with_suffix(".tree")
        shutil.rmtree(tree, ignore_errors=True)
        formats.files(tree / "all", self.count, SIZE)
        for number, path in enumerate(sorted((tree / "all").glob("*/*"))):
            link = tree / str(number % NODES) / path.parent.name / path.name
            link.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, link)
        for target, source in zip(
            (self.all, *self.parts), ("all", *map(str, range(NODES))), strict=True
        ):
            shutil.rmtree(target, ignore_errors=True)
            subprocess.run(
                [run.GRISTWAY, "pack", tree / source, target], check=True, stdout=subprocess.DEVNULL
            )
        shutil.rmtree(tree)


class Benchmark:
    def __init__(self, options: argparse.Namespace, machines: links.LinkedMachines) -> None:
        self.options = options
        self.machines = machines
        self.data = Data(options.folder, options.samples)
        self.small = self.data.bytes // 4 // NODES  # of a node, a quarter of the dataset in all
        self.large = math.ceil(ROOM * self.data.bytes / NODES)
        self.bounds: dict[
            str, float
        ] = {}  # bytes a second that readers of this round got, by place

    def write(self, line: dict[str, Any]) -> None:
        self.options.out.write(json.dumps(line) + "\n")
        self.options.out.flush()

    def measured(self, arm: str, name: str, place: str, line: dict[str, Any], took: float) -> None:
        line = {"kind": "arm", "arm": arm, "name": name, "place": place, **line}
        line["round"] = self.round
        line["took"] = round(took, 1)
        self.write(line)
        print(cluster_report.summary(line), file=sys.stderr, flush=True)

    # ---- one run of four ranks

    def ranks(
        self,
        arm: str,
        name: str,
        place: Place,
        options: dict[str, Any],
        *,
        epochs: int = 0,
        is_apart: bool = False,
        step_seconds: float = 0.0,
        watch: bool = False,
        counts_reads: bool = False,
        in_step: bool = False,
    ) -> dict[str, Any]:
        """Runs a job of four ranks, or four that know nothing of each other, each with its part of
        the dataset; what came of it."""
        began = time.monotonic()
        epochs = epochs or place.epochs
        # Between two rests with all frames full, an epoch is read: no more and no less.
        phases = [1 + epochs, 1] if counts_reads else [1 + epochs]
        # Ranks that do not wait for each other begin and end apart: whoever is over first goes on, so
        # that the others do not have its part of the storage.
        is_free = not in_step and not counts_reads and not options.get("exchange")
        pace = "step" if in_step else "last" if is_free else ""
        progress = self.options.folder / "progress"
        progress.write_bytes(bytes(8 * NODES))
        secret, job = secrets.token_hex(16), secrets.token_hex(4)
        with place.groups(self.options.folder) as groups:
            processes: list[Process] = []
            with ended(processes):
                for node in range(NODES):
                    work = {
                        "data": str(self.data.parts[node] if is_apart else self.data.all),
                        "options": {
                            "batch_size": BATCH,
                            "extent": EXTENT,
                            "seed": self.round,
                            **options,
                        },
                        "phases": phases,
                        "step_seconds": step_seconds,
                        "rank": node,
                        "ranks": NODES,
                        "progress": str(progress),
                        "pace": pace,
                        "watch": watch,
                        "blkio": str(groups[node].groups["blkio"]),
                        "cpuacct": str(groups[node].groups["cpuacct"]),
                        "device": groups[node].device,
                    }
                    command = [sys.executable, str(HERE / "cluster_rank.py"), json.dumps(work)]
                    variables = {} if is_apart else self._launched(node, job, secret)
                    processes.append(
                        Process([*self.machines.inside(node), *command], groups[node], variables)
                    )
                for process in processes:
                    process.answer()
                run.make_cold()
                for process in processes:
                    process.throttle()
                for process in processes:
                    process.tell("go")
                for _ in phases:
                    for process in processes:
                        process.answer()
                    for process in processes:
                        process.tell("all are over")
                results = [json.loads(process.answer()) for process in processes]
        checked = sum(phases)
        check([result["numbers"][:checked] for result in results], self.data.count)
        line = summed(results, self.data.bytes, epochs, is_free, place.is_shared)
        if counts_reads:
            line["storage"] = sum(
                result["rests"][1]["node"]["storage-bytes"]
                - result["rests"][0]["node"]["storage-bytes"]
                for result in results
            )
        if watch:
            line["waiting"] = [result["waiting"] for result in results]
        self.measured(arm, name, place.name, line, time.monotonic() - began)
        return line

    def _launched(self, node: int, job: str, secret: str) -> dict[str, str]:
        """As torchrun has it."""
        return {
            "RANK": str(node),
            "WORLD_SIZE": str(NODES),
            "LOCAL_WORLD_SIZE": "1",
            "GROUP_RANK": str(node),
            "GROUP_WORLD_SIZE": str(NODES),
            "TORCHELASTIC_RUN_ID": job,
            "MASTER_ADDR": self.machines.address(0),
            "MASTER_PORT": "29500",
            "GRISTWAY_JOB_SECRET": secret,
            "GRISTWAY_LISTEN": NETWORK,
        }

    # ---- arms

    def apart_and_together(self) -> None:
        """Arms a and b: each place, with its bound measured beside it."""
        small = {"memory": self.small}
        for place in PLACES:
            apart = self.ranks("a", "readers", place, small, is_apart=True)
            self.bounds[place.name] = apart["rate"]
            if "a" in self.options.arms:
                # How much an epoch reads does not depend on the storage.
                self.ranks("a", "job", place, small, counts_reads=place == NVME)
            if "b" in self.options.arms:
                self.ranks(
                    "b", "pushed", place, {**small, "exchange": 1}, epochs=min(3, place.epochs)
                )
        # With room for the whole dataset the order is a full shuffle; the storage is read all the same.
        large = {"memory": self.large}
        self.ranks("a", "readers, all in memory", CLOUD, large, is_apart=True)
        if "a" in self.options.arms:
            self.ranks("a", "job, all in memory", CLOUD, large)
        if "b" in self.options.arms:
            self.ranks("b", "pushed, all in memory", CLOUD, {**large, "exchange": 1})

    def paced(self) -> None:
        """Arm g: trainers take their steps together, as those that add up gradients do."""
        for place in (CLOUD, NVME):
            if place.name not in self.bounds:
                apart = self.ranks("g", "readers", place, {"memory": self.small}, is_apart=True)
                self.bounds[place.name] = apart["rate"]
            bound = min(self.bounds[place.name], self.link_bound())
            for batch, window in PACED:
                options = {"memory": self.small, "exchange": 1}
                self.ranks(
                    "g",
                    f"batches of {batch}, window {window}",
                    place,
                    {**options, "batch_size": batch, "window": window},
                    epochs=2,
                    step_seconds=PACE * NODES * batch * SIZE / bound,
                    in_step=True,
                )

    def link_bound(self) -> float:
        """Bytes a second that all ranks together can be given, as far as links go."""
        return NODES * self.goodput / (1 - 1 / NODES)

    def asking(self) -> None:
        began = time.monotonic()
        place = Place("nvme", True, 1)
        with place.groups(self.options.folder) as groups:
            settings = ",".join(f"{batch}x{step}" for batch, step in ASKING)
            words = [str(self.data.parts[0]), str(self.data.count), str(self.small)]
            process = Process(
                java("asking-arm", *words, LATENCIES, settings, str(self.round)), groups[0]
            )
            with ended([process]):
                for _ in range(2 * len(ASKING) * len(LATENCIES.split(","))):
                    fields = (field.split("=") for field in process.answer().split())
                    line = {name: float(value) for name, value in fields}
                    self.measured("c", "asking" if line["asks"] else "pushing", "nvme", line, 0)
        print(f"c took {time.monotonic() - began:.0f} s", file=sys.stderr)

    def windows(self) -> None:
        for window in WINDOWS:
            options = {"memory": self.small, "exchange": 1, "window": window}
            self.ranks("d", f"window {window}", CLOUD, options, watch=True)

    def kept(self) -> None:
        everywhere = "clairvoyant, room for all on each node"
        for name, policy, memory in (
            ("locality", "locality", self.large),
            ("clairvoyant", "clairvoyant", self.large),
            (everywhere, "clairvoyant", NODES * self.large),
        ):
            # A rank that is ahead would ask for what another has not kept yet.
            options = {"memory": memory, "policy": policy}
            self.ranks("e", name, CLOUD, options, epochs=3, in_step=True)

    def owners(self) -> None:
        options = {"memory": self.small, "exchange": 1, "homes": "hashed", "cache": self.large}
        self.ranks("f", "the job's cache", NVME, options, epochs=3)
        began = time.monotonic()
        epochs = 4
        with NVME.groups(self.options.folder) as groups:
            hosts = ",".join(map(self.machines.address, range(NODES)))
            processes: list[Process] = []
            with ended(processes):
                for node in range(NODES):
                    words = [str(self.data.all), hosts, str(OWNERS_PORT), str(node)]
                    words += [str(OWNERS_THREADS), str(BATCH), str(epochs)]
                    command = [*self.machines.inside(node), *java("owners-arm", *words)]
                    processes.append(Process(command, groups[node]))
                for process in processes:
                    process.answer()
                used = processor_time(groups)
                busy, possible = storage.processors()
                for process in processes:
                    process.tell("go")
                results = [json.loads(process.answer()) for process in processes]
                busy_then, possible_then = storage.processors()
                used_then = processor_time(groups)
        check([[e["numbers"] for e in result["epochs"]] for result in results], self.data.count)
        first = min(result["epochs"][0]["end"] for result in results)
        last = max(result["epochs"][-1]["end"] for result in results)
        line = {
            "seconds": last - first,
            "rate": (epochs - 1) * self.data.bytes / (last - first),
            "busy": (busy_then - busy) / (possible_then - possible),
            "cpu_per_epoch": (used_then - used) / epochs,
        }
        self.measured("f", "owners", "nvme", line, time.monotonic() - began)

    def run(self) -> None:
        self.data.make()
        every = [(a, b) for a in range(NODES) for b in range(NODES) if a != b]
        self.goodput = links.goodput(self.machines, [(0, 1)], 2)
        alone = {"kind": "link", "goodput": self.goodput}
        # Whether this machine can keep all links busy at once, with nothing else to do.
        at_once = links.goodput(self.machines, every, 3) / NODES
        self.write({**alone, "at_once": at_once, "bound": self.link_bound()})
        for number in range(self.options.rounds):
            self.round = number
            self.bounds.clear()
            if set("ab") & set(self.options.arms):
                self.apart_and_together()
            for arm, work in (
                ("c", self.asking),
                ("d", self.windows),
                ("e", self.kept),
                ("f", self.owners),
                ("g", self.paced),
            ):
                if arm in self.options.arms:
                    work()


def processor_time(groups: list[storage.Storage]) -> float:
    return sum(
        storage.usage(
            str(each.groups["blkio"]), str(each.groups["cpuacct"]), each.device
        ).cpu_seconds
        for each in groups
    )


def options_of(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks/run", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("benchmark", choices=["cluster"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("rounds", type=int, nargs="?", default=5)
    parser.add_argument("arms", nargs="?", default=ARMS, help="such as a,b")
    parser.add_argument("--samples", type=int, default=9_000, help="of 110 KB; fewer to try it out")
    options = parser.parse_args(arguments)
    options.arms = options.arms.replace(",", "")
    unknown = set(options.arms) - set(ARMS)
    if unknown:
        parser.error(f"no arm is called {', '.join(sorted(unknown))}")
    return options


def main() -> None:
    options = options_of(sys.argv[1:])
    path = run.begin(options)
    machines = links.LinkedMachines(NODES, RATE)
    began = time.monotonic()
    with open(path, "w") as options.out:
        benchmark = Benchmark(options, machines)
        benchmark.write(described(options))
        try:
            machines.make()
            benchmark.run()
        except (Wrong, run.Failed) as failure:
            sys.exit(f"benchmarks/run: {failure}")
        except KeyboardInterrupt:
            sys.exit(130)
        finally:
            machines.remove()
            (options.folder / "progress").unlink(missing_ok=True)
    print(cluster_report.report_of(path))
    print(f"took {time.monotonic() - began:.0f} s; results: {path}", file=sys.stderr)


def described(options: argparse.Namespace) -> dict[str, Any]:
    """What was measured, where, and how: the first line of the results."""
    asked = {"rounds": options.rounds, "arms": options.arms, "samples": options.samples}
    return {"kind": "run", "benchmark": "cluster", **run.whereabouts(), **asked}


if __name__ == "__main__":
    main()
