"""`kill -9` of a rank, or of the node of several: the others go on, and the last one out leaves nothing."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import PackedFiles
from kills import BATCH, BATCHES, MOMENTS, READING, SAMPLES, THOROUGH
from processes import (
    SOON_SECONDS,
    assert_no_node,
    command,
    eventually,
    fake_java,
    kill,
    memory_files,
    nodes,
    the_node,
)

import gristway
from gristway import java

pytest_plugins = ["nothing_left"]

pytestmark = pytest.mark.usefixtures("no_shared_memory_left", "the_end_of_a_worker_is_no_news")

PROGRAM = Path(__file__).with_name("kills_program.py")


class Trainer:
    """A training process that does as it is told; see kills_program.py."""

    def __init__(self, packed: PackedFiles, job: dict[str, str], **options: object) -> None:
        given = {"batch_size": BATCH, **READING, **options}
        words = [f"{name}={value}" for name, value in given.items()]
        self.process = subprocess.Popen(
            [sys.executable, PROGRAM, packed.path, *words],
            env={**os.environ, **job},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begun(self) -> Trainer:
        """Waits until it has begun an epoch."""
        assert self._line() == "begun"
        return self

    def _line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def take(self, count: int) -> list[list[int]]:
        """Some batches."""
        assert self.process.stdin
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return [json.loads(self._line()) for _ in range(count)]

    def rest(self) -> list[list[int]]:
        """What is left of the epoch; then it ends."""
        said, _ = self.process.communicate()
        *batches, over = said.splitlines()
        assert over == "over" and self.process.returncode == 0
        return [json.loads(batch) for batch in batches]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def _job(rank: int, of: int, name: str = "job") -> dict[str, str]:
    """What torchrun sets."""
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(of),
        "LOCAL_WORLD_SIZE": str(of),
        "TORCHELASTIC_RUN_ID": name,
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": "29500",
    }


def _told(folder: Path) -> set[str]:
    """The ranks that have told the others what they are about to read."""
    try:
        return {
            rank
            for path in folder.glob("*.ranks")
            for rank in json.loads(path.read_text()[1:])["ranks"]
        }
    except (OSError, ValueError):
        return set()  # one is being written


@pytest.fixture(scope="module")
def ranks_undisturbed(packed: PackedFiles) -> list[list[list[int]]]:
    """What each of two ranks receives in an epoch when nobody dies."""
    trainers = [Trainer(packed, _job(rank, 2)) for rank in range(2)]
    orders = [trainer.begun().rest() for trainer in trainers]
    assert sorted(number for order in orders for batch in order for number in batch) == list(
        range(SAMPLES)
    )
    return orders


@pytest.mark.parametrize("moment", MOMENTS)
def test_when_a_rank_is_killed_the_other_goes_on_and_the_node_ends_with_the_last(
    moment: str,
    packed: PackedFiles,
    ranks_undisturbed: list[list[list[int]]],
    runtime_dir: Path,
) -> None:
    survivor, victim = (Trainer(packed, _job(rank, 2)) for rank in range(2))
    survivor.begun()
    victim.begun()
    node = the_node(runtime_dir)
    received = survivor.take(7)
    assert victim.take(MOMENTS[moment] // 2) == ranks_undisturbed[1][: MOMENTS[moment] // 2]
    victim.kill()
    received += survivor.take(7)
    assert the_node(runtime_dir) == node
    assert received + survivor.rest() == ranks_undisturbed[0]
    assert_no_node(runtime_dir)
    assert not list(runtime_dir.iterdir())


def test_a_rank_that_is_killed_and_started_again_gets_what_it_had_from_the_same_node(
    packed: PackedFiles, ranks_undisturbed: list[list[list[int]]], runtime_dir: Path
) -> None:
    other, victim = (Trainer(packed, _job(rank, 2)).begun() for rank in range(2))
    node = the_node(runtime_dir)
    victim.take(12)
    victim.kill()
    again = Trainer(packed, _job(1, 2)).begun()
    assert the_node(runtime_dir) == node
    assert again.rest() == ranks_undisturbed[1]
    assert other.rest() == ranks_undisturbed[0]
    assert_no_node(runtime_dir)


def test_the_memory_of_a_rank_that_is_killed_is_given_back(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    survivor = Trainer(packed, _job(0, 2)).begun()
    survivor.take(3)
    node = the_node(runtime_dir)
    alone = memory_files(node)
    victim = Trainer(packed, _job(1, 2)).begun()
    victim.take(3)
    assert len(memory_files(node)) > len(alone)
    victim.kill()
    eventually(lambda: memory_files(node) == alone, "the node has what the survivor needs")
    assert len(survivor.rest()) == BATCHES // 2 - 3


@pytest.mark.parametrize(
    ("options", "moment"),
    [
        (options, moment)
        for options in (
            {"num_workers": 0},
            {"num_workers": 2},
            {"num_workers": 2, "multiprocessing_context": "spawn"},
            {"num_workers": 2, "multiprocessing_context": "forkserver"},
            {"num_workers": 2, "module": "torch"},
        )
        for moment in MOMENTS
        if THOROUGH or moment == ("epoch end" if "module" in options else "mid-epoch")
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else value,
)
def test_when_the_only_rank_is_killed_its_workers_and_the_node_end_by_themselves(
    options: dict[str, object], moment: str, packed: PackedFiles, runtime_dir: Path
) -> None:
    trainer = Trainer(packed, {}, **options).begun()
    trainer.take(MOMENTS[moment])
    node = the_node(runtime_dir)
    before = _processes_of(runtime_dir)
    assert {node, trainer.process.pid} < before or options["num_workers"] == 0
    trainer.kill()
    # Workers of a DataLoader look every five seconds whether it lives.
    patience = SOON_SECONDS * (2 if "module" in options else 1)
    eventually(lambda: not _processes_of(runtime_dir), "all have ended", patience)
    assert not list(runtime_dir.iterdir())


def _processes_of(folder: Path) -> set[int]:
    """The processes, other than this one, that were started with a runtime folder and are alive."""
    found = set()
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdigit() and command(int(entry)):
                environment = Path("/proc", entry, "environ").read_bytes()
                if f"GRISTWAY_RUNTIME_DIR={folder}".encode() in environment.split(b"\0"):
                    found.add(int(entry))
    return found


def test_when_the_node_of_two_ranks_is_killed_both_go_on_with_one_new_node(
    packed: PackedFiles, ranks_undisturbed: list[list[list[int]]], runtime_dir: Path
) -> None:
    trainers = [Trainer(packed, _job(rank, 2)) for rank in range(2)]
    received = [trainer.begun().take(9) for trainer in trainers]
    killed = the_node(runtime_dir)
    kill(killed)
    for trainer in trainers:
        assert trainer.process.stdin
        trainer.process.stdin.write("9\n")  # both at once
        trainer.process.stdin.flush()
    for trainer, batches in zip(trainers, received):
        batches += [json.loads(trainer._line()) for _ in range(9)]
    assert the_node(runtime_dir) != killed
    assert [had + trainer.rest() for trainer, had in zip(trainers, received)] == ranks_undisturbed
    assert_no_node(runtime_dir)


@pytest.fixture
def slow_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has Java take a second longer to start."""
    home = fake_java(
        tmp_path / "slow-java", f'#!/bin/sh\nsleep 1\nexec "{java.find_java()}" "$@"\n'
    )
    monkeypatch.setenv("GRISTWAY_JAVA_HOME", str(home))


def test_a_node_that_is_killed_while_it_starts_is_started_again(
    packed: PackedFiles, runtime_dir: Path, slow_java: None
) -> None:
    trainer = Trainer(packed, {})
    kill(eventually(lambda: nodes(runtime_dir), "a node is starting")[0])
    assert len(trainer.begun().rest()) == BATCHES
    assert_no_node(runtime_dir)


def test_a_node_that_is_just_ending_is_not_mistaken_for_a_loss(
    packed: PackedFiles, runtime_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # For half a second it closes every connection, as one does whose last client has just gone.
    home = fake_java(
        tmp_path / "java",
        f"""#!{sys.executable}
import os, socket, sys, time
if os.path.exists({str(tmp_path / "ended")!r}):
    os.execv({str(java.find_java())!r}, sys.argv)
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[-1])
server.listen()
print("ready", flush=True)
end = time.monotonic() + 0.5
server.settimeout(0.5)
while time.monotonic() < end:
    try:
        server.accept()[0].close()
    except TimeoutError:
        pass
open({str(tmp_path / "ended")!r}, "w").close()
""",
    )
    monkeypatch.setenv("GRISTWAY_JAVA_HOME", str(home))
    with gristway.Loader(packed.path, BATCH, **READING) as loader:
        assert sum(1 for _ in loader) == BATCHES


def test_a_node_whose_rank_was_killed_while_it_started_does_not_stay(
    packed: PackedFiles, runtime_dir: Path, slow_java: None
) -> None:
    trainer = Trainer(packed, {})
    eventually(lambda: nodes(runtime_dir), "a node is starting")
    trainer.kill()
    time.sleep(1)
    assert_no_node(runtime_dir)


def test_when_a_rank_is_killed_while_it_starts_the_node_the_other_gets_one_all_the_same(
    packed: PackedFiles,
    ranks_undisturbed: list[list[list[int]]],
    runtime_dir: Path,
    slow_java: None,
) -> None:
    victim = Trainer(packed, _job(0, 2))
    eventually(lambda: nodes(runtime_dir), "a node is starting")
    survivor = Trainer(packed, _job(1, 2))
    eventually(lambda: _told(runtime_dir) == {"0", "1"}, "it waits for that node", 20)
    victim.kill()
    assert survivor.begun().rest() == ranks_undisturbed[1]
    assert_no_node(runtime_dir)


def test_a_process_that_is_forked_while_a_node_starts_keeps_nobody_from_starting_another(
    packed: PackedFiles, runtime_dir: Path, slow_java: None
) -> None:
    opened: list[gristway.Loader] = []
    opener = threading.Thread(
        target=lambda: opened.append(gristway.Loader(packed.path, BATCH, **READING))
    )
    opener.start()
    eventually(lambda: nodes(runtime_dir), "a node is starting")
    time.sleep(0.3)  # before that, subprocess itself would wait for whatever is forked
    sleeper = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    sleeper.start()
    opener.join()
    begin = time.monotonic()
    with gristway.Loader(packed.path, 2 * BATCH, **READING) as other:
        assert len(other) == BATCHES // 2
    assert time.monotonic() - begin < 20
    opened[0].close()
    sleeper.kill()
    sleeper.join()
