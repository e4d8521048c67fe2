"""A trial: random jobs of training processes, with random faults, held against what is promised.

    scripts/trial                    runs until it is interrupted
    scripts/trial --minutes 60       runs for an hour
    scripts/trial --seed 17 --jobs 1 runs the job of that seed again

Each job has 1 to 4 ranks that read a dataset of their own in one of the ways that users have, and
meets up to three faults at moments that its seed decides. Ranks take their steps together, as
training does. What must hold: no sample has a wrong byte, key or label; each is given once per epoch;
whatever ends a rank is an error that is allowed for the job's faults; nobody hangs; nothing is left.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import processes
import trial_data

from gristway import java

TESTS = Path(__file__).resolve().parent
SAMPLES = 240
# Far longer than any answer takes on a busy machine, retries of errors of a disk included.
HANGS_SECONDS = 90.0
ENDS_SECONDS = 15.0

POLICIES = (
    *("redirect", "redirect-position", "chunk-shuffle", "sample-order", "unbounded"),
    *("clairvoyant", "clairvoyant-next-use", "locality"),
)
WAYS = ("loader", "views", "stream", "redirect", "exact")

# Faults after which training goes on exactly; after the others it may also end with an error.
HARMLESS = ("node-kill", "node-term", "node-stop", "append", "folder", "fork", "scribble", "break")
HARMFUL = ("replace", "overwrite", "cut-chunk", "flip-snapshot", "lose-chunk", "flip-chunk")
RESTARTS = ("rank-kill",)
FAULTS = HARMLESS + HARMFUL + RESTARTS + ("worker-kill",)


class Broken(Exception):
    """A promise that was not kept."""


@dataclass(frozen=True)
class Fault:
    """Something that happens while the ranks take a step."""

    name: str
    epoch: int
    step: int
    delay: float


@dataclass
class Job:
    """What a seed decides."""

    seed: int
    way: str
    ranks: int
    epochs: int
    options: dict[str, Any]
    faults: list[Fault]
    descriptors: int
    differs: bool  # each rank has a seed of its own, as scripts do that mean well
    draw: random.Random = field(repr=False)

    @staticmethod
    def of(seed: int) -> Job:
        draw = random.Random(seed)
        way = draw.choice(WAYS)
        options: dict[str, Any] = {
            "batch_size": draw.choice((1, 7, 16, 40)),
            "seed": draw.randrange(1000),
            # Extents of 256 KiB, two for each of four ranks, are the least that fits every draw.
            "memory": draw.choice(("2MiB", "3MiB", "300%", "8MiB")),
            "extent": draw.choice(("auto", "16KiB", "64KiB")),
            "policy": draw.choice(POLICIES),
            "num_workers": 0 if way == "views" else draw.choice((0, 0, 2)),
            "drop_last": draw.random() < 0.2,
        }
        if way in ("redirect", "exact"):
            options["policy"] = draw.choice(("redirect", "redirect-position", "unbounded"))
        if way == "loader" and options["num_workers"] and draw.random() < 0.3:
            options["workers"] = "threads"
        ranks = draw.randint(1, 4)
        if way in ("loader", "views") and ranks > 1 and draw.random() < 0.15:
            options |= {"exchange": 0.5, "policy": "redirect"}
        epochs = draw.randint(2, 3)
        count = draw.choice((0, 1, 1, 2, 3))
        faults = []
        for name in draw.sample(FAULTS, count):
            if name in ("fork", "scribble") and way != "views":
                name = "node-kill"
            if name == "worker-kill" and options["num_workers"] == 0:
                name = "node-stop"
            if name == "rank-kill" and any(each.name == "rank-kill" for each in faults):
                continue
            step = draw.randint(0, 6)
            faults.append(
                Fault(name, draw.randrange(epochs), step, draw.choice((0, draw.uniform(0, 0.2))))
            )
        descriptors = 256 if draw.random() < 0.15 else 0
        differs = ranks > 1 and way != "exact" and draw.random() < 0.1
        if differs:
            faults = []
        return Job(seed, way, ranks, epochs, options, faults, descriptors, differs, draw)

    @property
    def may_fail(self) -> bool:
        """True if an error is a right answer to what happens."""
        names = {fault.name for fault in self.faults}
        return bool(
            names & set(HARMFUL)
            # A node of ranks that push samples to each other is not started again.
            or ("exchange" in self.options and names & {"node-kill", "node-term"})
            # torch ends an iteration whose worker has died.
            or ("worker-kill" in names and self.way not in ("loader", "views"))
            or (len([each for each in self.faults if each.name == "node-kill"]) > 1)
        )

    def __str__(self) -> str:
        how = " ".join(f"{name}={value}" for name, value in self.options.items())
        faults = ", ".join(f"{each.name} at {each.epoch}/{each.step}" for each in self.faults)
        limit = f", {self.descriptors} descriptors" if self.descriptors else ""
        limit += ", seeds that differ" if self.differs else ""
        return f"seed {self.seed}: {self.way}, {self.ranks} ranks, {how}{limit}; {faults or 'no fault'}"


class Rank:
    """One training process."""

    def __init__(
        self, number: int, world: int, run: str, job: Job, place: Place, state: Any, tag: str
    ) -> None:
        self.number = number
        settings = {
            "path": str(place.dataset),
            "way": job.way,
            "options": {**job.options, "seed": job.options["seed"] + number * job.differs},
            "state": state,
            "tag": tag,
        }
        self.log = (place.folder / f"rank-{run}-{number}.log").open("w+b")

        def limit() -> None:
            if job.descriptors:
                resource.setrlimit(resource.RLIMIT_NOFILE, (job.descriptors, job.descriptors))

        self.process = subprocess.Popen(
            [sys.executable, str(TESTS / "trial_rank.py"), json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            preexec_fn=limit,
            env={
                **os.environ,
                "GRISTWAY_RUNTIME_DIR": str(place.runtime),
                "PYTHONPATH": os.pathsep.join(sys.path),
                "OMP_NUM_THREADS": "1",
                "RANK": str(number),
                "LOCAL_RANK": str(number),
                "WORLD_SIZE": str(world),
                "LOCAL_WORLD_SIZE": str(world),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": "29500",
                "TORCHELASTIC_RUN_ID": f"trial-{os.getpid()}-{job.seed}-{run}",
            },
        )
        self.said_last: dict[str, Any] = {}
        self._said: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._said.put(line)
        self._said.put("")

    def tell(self, do: str, **more: Any) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps({"do": do, **more}) + "\n")
            self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        try:
            line = self._said.get(timeout=HANGS_SECONDS)
        except queue.Empty:
            self.process.send_signal(signal.SIGUSR1)
            time.sleep(1)
            raise Broken(f"rank {self.number} hangs") from None
        if not line:
            self.process.wait()
            raise Broken(f"rank {self.number} has ended with {self.process.returncode}")
        self.said_last = json.loads(line)
        return self.said_last

    def ask(self, do: str, **more: Any) -> dict[str, Any]:
        self.tell(do, **more)
        return self.hear()

    def await_end(self) -> None:
        """Waits for a rank that was told to end; one that could not begin has ended before."""
        try:
            self.process.wait(HANGS_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGUSR1)
            time.sleep(1)
            raise Broken(f"rank {self.number} does not end") from None

    def workers(self) -> list[int]:
        found = []
        for task in Path("/proc", str(self.process.pid), "task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += [int(each) for each in task.read_text().split()]
        return [pid for pid in found if "NodeMain" not in " ".join(processes.command(pid))]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.log.close()


@dataclass
class Place:
    """The folders of a job: its dataset, which faults change, and where its nodes listen."""

    folder: Path
    dataset: Path
    runtime: Path
    other: Path  # the same keys and lengths with other bytes, packed


class Source:
    """The datasets that jobs get copies of; packed once."""

    def __init__(self, folder: Path) -> None:
        self.names = sorted(trial_data.keys(SAMPLES, seed=1))
        self.more = [f"class{n % trial_data.CLASSES}/more{n:03d}-500.bin" for n in range(20)]
        self._folder = folder
        for tag in ("A", "B"):
            trial_data.write(folder / f"files-{tag}", self.names, tag)
            _run("pack", "--chunk-size", "64KiB", folder / f"files-{tag}", folder / f"{tag}.gw")
            trial_data.write(folder / f"files-more-{tag}", self.more, tag)

    def place(self, folder: Path) -> Place:
        shutil.copytree(self._folder / "A.gw", folder / "data.gw")
        # The path of a socket has room for 106 bytes.
        runtime = Path(tempfile.mkdtemp(prefix="gw-", dir="/tmp"))
        return Place(folder, folder / "data.gw", runtime, self._folder / "B.gw")

    @property
    def files_b(self) -> Path:
        return self._folder / "files-B"

    def files_more(self, tag: str) -> Path:
        return self._folder / f"files-more-{tag}"


def _run(*arguments: object) -> None:
    done = subprocess.run(
        java.command_line([str(each) for each in arguments]),
        env=java.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise Broken(f"gristway {arguments[0]} ended with {done.returncode}: {done.stderr}")


class Course:
    """The course of one job."""

    def __init__(self, job: Job, source: Source, place: Place) -> None:
        self._job = job
        self._source = source
        self._place = place
        self._names = list(source.names)
        self._newest = list(source.names)  # what the newest version of the dataset has
        self._tag = "A"
        self._tags = {"A"}  # of what the dataset's folder may hold
        self._runs = 0
        self._ranks: list[Rank] = []
        self._given: Counter[str] = Counter()  # in this epoch, but for repeats
        self._places = 0  # in this epoch
        self._damaged = 0
        self._strikes: list[threading.Thread] = []
        self._missed = ""  # what went wrong with a fault itself
        self._stopped: list[int] = []

    def run(self) -> str:
        """Runs the job and returns how it ended; raises Broken if a promise was not kept."""
        try:
            outcome = self._train()
            for strike in self._strikes:
                strike.join()
            if self._missed:
                raise Broken(self._missed)
            self._check_end()
            return outcome
        finally:
            for strike in self._strikes:
                strike.join()
            for node in self._stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(node, signal.SIGCONT)
            for rank in self._ranks:
                rank.end()

    def _start(self, world: int, state: Any) -> str:
        self._runs += 1
        self._ranks = [
            Rank(number, world, str(self._runs), self._job, self._place, state, self._tag)
            for number in range(world)
        ]
        return self._failure([rank.hear() for rank in self._ranks])

    def _train(self) -> str:
        failed = self._start(self._job.ranks, None)
        if self._job.differs:
            return self._refuse()
        if failed:
            return self._failed(failed)
        epoch, step, state = 0, 0, None
        while epoch < self._job.epochs:
            if step == 0:
                self._given.clear()
                self._places = self._damaged = 0
            failed = self._all("begin", epoch=epoch)
            if failed:
                return self._failed(failed)
            is_over = False
            while not is_over:
                names = self._strike(epoch, step)
                if "break" in names:
                    break
                for rank in self._ranks:
                    rank.tell("next")
                if "rank-kill" in names:
                    epoch, step, failed = self._restart(epoch, step, state)
                    if failed:
                        return self._failed(failed)
                    break
                said = [rank.hear() for rank in self._ranks]
                failed = self._failure(said)
                if failed:
                    return self._failed(failed)
                is_over = self._note(said)
                step += 1
                if self._job.way in ("loader", "views") and not is_over:
                    states = [rank.ask("state") for rank in self._ranks[:1]]
                    failed = self._failure(states)
                    if failed:
                        raise Broken(f"no state could be taken: {failed}")
                    state = (states[0]["state"], epoch, step, self._given.copy(), self._places)
            else:
                self._check_epoch(epoch)
                epoch, step = epoch + 1, 0
                continue
            if "rank-kill" not in names:
                epoch, step = epoch + 1, 0  # broken off
        faults = [rank.ask("join").get("joined", "") for rank in self._ranks]
        if any(faults):
            raise Broken(next(filter(None, faults)))
        failed = self._all("close")
        if failed:
            raise Broken(f"closing failed: {failed}")
        return "exact"

    def _refuse(self) -> str:
        """Checks that ranks which do not read alike are all told so, those too that came first."""
        for rank in self._ranks:
            if rank.said_last.get("error") is None:
                rank.ask("begin", epoch=0)
            if rank.said_last.get("error") is None:
                rank.ask("next")
            if "do not read alike" not in rank.said_last.get("message", ""):
                raise Broken(f"rank {rank.number} reads with a seed of its own: {rank.said_last}")
        for rank in self._ranks:
            rank.tell("close")
        return "refused"

    def _all(self, do: str, **more: Any) -> str:
        for rank in self._ranks:
            rank.tell(do, **more)
        return self._failure([rank.hear() for rank in self._ranks])

    def _failure(self, said: list[dict[str, Any]]) -> str:
        errors = [each for each in said if "error" in each]
        for each in errors:
            kind, message = each["error"], each["message"]
            is_ours = kind in ("wrong-call", "damaged", "environment", "lost-node", "error")
            is_torchs = kind == "RuntimeError" and "DataLoader worker" in message
            if not is_ours and not is_torchs and "gristway.errors" not in message:
                raise Broken(f"an error of no known kind: {kind}: {message}")
        return f"{errors[0]['error']}: {errors[0]['message']}" if errors else ""

    def _failed(self, why: str) -> str:
        if not self._job.may_fail:
            raise Broken(f"an error that nothing explains: {why}")
        for rank in self._ranks:
            rank.tell("close")
        for rank in self._ranks:
            rank.await_end()
        lines = why.strip().splitlines()
        return f"error ({lines[-1][:160]})"

    def _note(self, said: list[dict[str, Any]]) -> bool:
        """Notes what the ranks have received; returns whether the epoch is over."""
        overs = [bool(each.get("over")) for each in said]
        if all(overs):
            return True
        # A DistributedSampler gives all ranks as many batches, as our own dealing does.
        if any(overs):
            raise Broken(f"some ranks have a batch more than others: {overs}")
        for rank, each in enumerate(said):
            for key, fault, is_repeat, is_damaged in each["batch"]:
                if fault:
                    raise Broken(f"rank {rank}: {fault}")
                self._places += 1
                if is_damaged:
                    self._damaged += 1
                elif key and not is_repeat:
                    self._given[key] += 1
        return False

    def _check_epoch(self, epoch: int) -> None:
        expected = set(self._names)
        if self._job.way == "views":
            expected = {key for key in expected if trial_data.content(key, "A")}
        wrong = set(self._given) - expected
        if wrong:
            raise Broken(f"epoch {epoch} has given what is not in the dataset: {sorted(wrong)[:3]}")
        twice = [key for key, count in self._given.items() if count > 1]
        if self._job.way == "exact":
            twice = []  # the sampler repeats some, to give all ranks as many
        if self._job.way == "views" and len(twice) <= self._job.ranks:
            twice = []  # without a transform nobody tells which ones fill a place
        if twice:
            raise Broken(f"epoch {epoch} has given {len(twice)} samples twice: {twice[:3]}")
        missing = len(expected) - len(self._given)
        dropped = 0
        if self._job.options["drop_last"] and self._job.way not in ("redirect", "exact"):
            dropped = self._job.options["batch_size"] * 4
        if "flip-chunk" in {fault.name for fault in self._job.faults}:
            dropped += max(1, self._damaged)
        if missing > dropped:
            lost = sorted(expected - set(self._given))
            raise Broken(f"epoch {epoch} has not given {missing} samples: {lost[:3]}")

    def _restart(self, epoch: int, step: int, state: Any) -> tuple[int, int, str]:
        """Kills all ranks and starts the job again, in another world where a state allows that."""
        for strike in self._strikes:  # a dataset that changes while ranks start is refused
            strike.join()
        for rank in self._ranks:
            rank.end()
        job = self._job
        self._tag = "B" if "B" in self._tags and "A" not in self._tags else "A"
        if state is None or state[1] != epoch:
            self._given.clear()
            self._places = self._damaged = 0
            # Without a state it begins with the newest version.
            self._names = self._newest.copy()
            return epoch, 0, self._start(job.ranks, None)
        if "exchange" not in job.options:
            job.ranks = job.draw.randint(1, 4)
        text, epoch, step, given, places = state
        self._given, self._places = given.copy(), places
        return epoch, step, self._start(job.ranks, text)

    def _strike(self, epoch: int, step: int) -> list[str]:
        """Makes the faults of a step happen; returns their names."""
        due = [fault for fault in self._job.faults if (fault.epoch, fault.step) == (epoch, step)]
        for fault in due:
            # So that it happens once, though the step may come again.
            self._job.faults[self._job.faults.index(fault)] = Fault(fault.name, -1, -1, 0)
            strike = self._strikes_of(fault.name)
            if strike is None:
                continue
            if fault.delay:

                def later(strike: Callable[[], None] = strike, delay: float = fault.delay) -> None:
                    time.sleep(delay)
                    try:
                        strike()
                    except Broken as broken:
                        self._missed = str(broken)

                thread = threading.Thread(target=later)
                thread.start()
                self._strikes.append(thread)
            else:
                strike()
        return [fault.name for fault in due]

    def _strikes_of(self, name: str) -> Callable[[], None] | None:
        place = self._place

        def signal_nodes(number: signal.Signals) -> None:
            for node in processes.nodes(place.runtime):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(node, number)

        def stop() -> None:
            nodes = processes.nodes(place.runtime)
            self._stopped += nodes
            signal_nodes(signal.SIGSTOP)
            time.sleep(1)
            signal_nodes(signal.SIGCONT)

        def kill_worker() -> None:
            for rank in self._ranks[:1]:
                for worker in rank.workers()[:1]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(worker, signal.SIGKILL)

        def replace() -> None:
            self._tags = {"B"}
            self._newest = list(self._source.names)
            _run("pack", "--force", "--chunk-size", "64KiB", self._source.files_b, place.dataset)

        def append() -> None:
            try:
                tag = "B" if self._tags == {"B"} else "A"
                _run("append", self._source.files_more(tag), place.dataset)
                self._newest += self._source.more
            except Broken:
                if not self._job.may_fail:  # else it may have met what another fault has left
                    raise

        def overwrite() -> None:
            self._tags |= {"B"}
            for path in sorted(place.other.iterdir()):
                target = place.dataset / path.name
                if path.is_file() and target.exists():
                    with target.open("r+b") as file:  # in place, as cp does
                        file.write(path.read_bytes())

        def chunk() -> Path:
            chunks = sorted(place.dataset.rglob("*.gwc"))
            return chunks[self._job.draw.randrange(len(chunks))]

        def cut() -> None:
            path = chunk()
            os.truncate(path, path.stat().st_size // 2)

        def flip(path: Path, at: int) -> None:
            with path.open("r+b") as file:
                file.seek(at)
                byte = file.read(1)
                file.seek(at)
                file.write(bytes([byte[0] ^ 0x10]))

        def flip_chunk() -> None:
            path = chunk()
            flip(path, self._job.draw.randrange(4096, path.stat().st_size))

        def flip_snapshot() -> None:
            (path, *_) = sorted(place.dataset.rglob("*.gws"))
            for _ in range(20):
                flip(path, self._job.draw.randrange(path.stat().st_size))

        def remove_folder() -> None:
            shutil.rmtree(place.runtime, ignore_errors=True)

        def fork() -> None:
            for rank in self._ranks:
                rank.ask("fork")

        def scribble() -> None:
            for rank in self._ranks:
                rank.ask("scribble")

        if name in ("fork", "scribble"):
            # Ranks do these themselves, between two batches.
            {"fork": fork, "scribble": scribble}[name]()
            return None
        strikes: dict[str, Callable[[], None]] = {
            "node-kill": lambda: signal_nodes(signal.SIGKILL),
            "node-term": lambda: signal_nodes(signal.SIGTERM),
            "node-stop": stop,
            "worker-kill": kill_worker,
            "append": append,
            "replace": replace,
            "overwrite": overwrite,
            "cut-chunk": cut,
            "lose-chunk": lambda: chunk().unlink(),
            "flip-chunk": flip_chunk,
            "flip-snapshot": flip_snapshot,
            "folder": remove_folder,
        }
        return strikes.get(name)

    def _check_end(self) -> None:
        """Checks that nothing is left: no process, and nothing but sockets in the runtime folder."""
        for rank in self._ranks:
            rank.await_end()
        setting = f"GRISTWAY_RUNTIME_DIR={self._place.runtime}".encode()
        deadline = time.monotonic() + ENDS_SECONDS
        while True:
            left = _processes_with(setting)
            if not left:
                break
            if time.monotonic() > deadline:
                raise Broken(f"left behind: {[' '.join(processes.command(pid)) for pid in left]}")
            time.sleep(0.05)
        if self._place.runtime.exists():
            files = [each.name for each in self._place.runtime.iterdir() if not each.is_socket()]
            if files:
                raise Broken(f"left in the runtime folder: {files}")


def _processes_with(setting: bytes) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError):
                if setting in Path("/proc", entry, "environ").read_bytes().split(b"\0"):
                    if processes.command(int(entry)):
                        found.append(int(entry))
    return found


def attempt(seed: int, source: Source, show: Callable[[str], None]) -> bool:
    """Runs the job of a seed, says how it went, and returns whether all promises were kept."""
    job = Job.of(seed)
    said = str(job)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gristway-trial-") as folder:
        place = source.place(Path(folder))
        try:
            outcome = Course(job, source, place).run()
        except Broken as broken:
            show(f"FAILED {said}\n  {broken}")
            for log in sorted(Path(folder).glob("rank-*.log")):
                text = log.read_text(errors="replace")[-3000:]
                if text.strip():
                    show(f"  --- {log.name}\n{text}")
            show(f"  again: scripts/trial --seed {seed} --jobs 1")
            return False
        finally:
            for left in _processes_with(f"GRISTWAY_RUNTIME_DIR={place.runtime}".encode()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(left, signal.SIGKILL)
            shutil.rmtree(place.runtime, ignore_errors=True)
    show(f"{said}: {outcome}, {time.monotonic() - began:.1f} s")
    return True


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/trial", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, help="for how long; until interrupted without it")
    parser.add_argument("--jobs", type=int, help="how many jobs at most")
    parser.add_argument("--seed", type=int, help="of the first job; the next ones count on")
    given = parser.parse_args()
    os.environ.setdefault("GRISTWAY_JAR", str(java.jar()))
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1 << 30)
    end = time.monotonic() + 60 * given.minutes if given.minutes else float("inf")
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="gristway-trial-") as folder:
        source = Source(Path(folder))
        with contextlib.suppress(KeyboardInterrupt):
            while time.monotonic() < end and passed + failed != given.jobs:
                if attempt(seed + passed + failed, source, lambda line: print(line, flush=True)):
                    passed += 1
                else:
                    failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
