"""Several nodes of one job, on loopback: what ranks get, and what becomes of them when one is lost."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import queue
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster import Job, Raised, Rank, environment, free_port, job, slurm_environment
from conftest import PackedFiles
from processes import assert_no_node, command, nodes

NODE_1_IS_LOST = "MachineError: node 1 at 127.0.0.1:"
THOROUGH = os.environ.get("GRISTWAY_THOROUGH", "") not in ("", "0")
READING: dict[str, Any] = {"batch_size": 4, "seed": 5, "memory": "64KiB", "extent": "8KiB"}
SAMPLES = 300


@pytest.fixture(scope="module")
def packed(dataset: Callable[..., PackedFiles]) -> PackedFiles:
    return dataset(samples=SAMPLES, size=(200, 3000))


def measured(what: str, outcome: str) -> None:
    """Prints what docs/cluster.md has in its table of failures."""
    print(f"measured: {what}: {outcome}")


def planned(
    plan: Callable[..., subprocess.CompletedProcess[str]], nodes: int, ranks: int, number: int = 0
) -> list[list[list[str]]]:
    """What `gristway plan --order` prints: the keys of an epoch, by rank and step."""
    printed = plan("--nodes", nodes, "--ranks", ranks, "--epoch", number).stdout
    order: list[list[list[str]]] = [[] for _ in range(ranks)]
    for line in printed.splitlines():
        epoch, step, rank, _, key = line.split("\t")
        if int(epoch) == number:
            batches = order[int(rank)]
            if int(step) == len(batches):
                batches.append([])
            batches[int(step)].append(key)
    return order


@pytest.mark.parametrize(
    ("policy", "exchange"),
    [
        ("redirect", 0),
        ("redirect", 0.5),
        pytest.param("redirect", 1, marks=pytest.mark.thorough),
        pytest.param("chunk-shuffle", 1, marks=pytest.mark.thorough),
    ],
)
def test_ranks_of_several_nodes_get_what_is_planned(
    packed: PackedFiles,
    runtime_dir: Path,
    gristway_command: Callable[..., subprocess.CompletedProcess[str]],
    policy: str,
    exchange: float,
) -> None:
    plan = functools.partial(
        gristway_command,
        *("plan", packed.path, "--order", "-", "--policy", policy, "--exchange", exchange),
        *("--seed", 5, "--batch-size", 4, "--memory", "64KiB", "--extent", "8KiB"),
    )
    with job(packed.path, 3, 2, policy=policy, exchange=exchange, **READING) as running:
        first, second = running.epoch(), running.epoch()
        counters = running.ask("counters")[0]
        assert len(nodes(runtime_dir)) == 3
    assert first == planned(plan, 3, 6)
    assert second == planned(plan, 3, 6, 1)
    for epoch in (first, second):
        assert len({len(batches) for batches in epoch}) == 1
        keys = [key for batches in epoch for batch in batches for key in batch]
        assert sorted(keys) == list(packed.keys)
    assert first != second
    assert (counters["received"] > 0) == (exchange > 0)
    assert_no_node(runtime_dir, 10)


def test_nodes_that_are_about_to_do_something_else_are_refused(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    with job(packed.path, 2, 1, own={1: {"seed": 6}}, exchange=1, **READING) as running:
        for rank in running.ranks:
            rank.tell("1")
        said = []
        for rank in running.ranks:
            with pytest.raises(Raised) as raised:
                rank.answer()
            said.append(str(raised.value))
    assert any("seed=6" in line and "seed=5" in line for line in said), said
    assert_no_node(runtime_dir, 10)


def test_nodes_with_different_secrets_are_told_so_within_seconds(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    port = free_port() - 1
    ranks = [
        Rank(packed.path, environment(number, 2, 1, port, secret), {"exchange": 1, **READING}, [])
        for number, secret in enumerate(["secret of node 0", "secret of node 1"])
    ]
    try:
        for rank in ranks:
            rank.tell("1")
        with pytest.raises(Raised, match="node 0 at .* has another secret than node 1") as raised:
            ranks[1].answer()
        assert "set the same GRISTWAY_JOB_SECRET on all machines" in str(raised.value)
        with pytest.raises(queue.Empty):
            ranks[0].answer(0)  # no stranger may end the job: it waits for its own node 1
    finally:
        for rank in ranks:
            rank.process.kill()
            rank.process.wait(20)
    assert_no_node(runtime_dir, 20)


def test_without_a_secret_nothing_is_exchanged(packed: PackedFiles, runtime_dir: Path) -> None:
    without = {"GRISTWAY_JOB_SECRET": ""}
    with job(packed.path, 2, 1, variables=without, exchange=1, **READING) as running:
        for rank in running.ranks:
            rank.tell("1")
            with pytest.raises(Raised, match="the same secret in GRISTWAY_JOB_SECRET"):
                rank.answer()
    with job(packed.path, 2, 1, variables=without, **READING) as running:
        assert len(running.take(3)) == 2  # each reads its own, and nobody knows of the other
        assert running.ask("warnings") == [[], []]
    with job(packed.path, 2, 1, variables=without, policy="clairvoyant", **READING) as running:
        running.take(3)
        # Once: those who do not meet are served by one process, where they are on one machine.
        [line] = [line for lines in running.ask("warnings") for line in lines]
        assert "cannot fetch from each other what 'clairvoyant' has them keep" in line


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(2, marks=pytest.mark.thorough),
        12,
        pytest.param(36, marks=pytest.mark.thorough),
    ],
)
def test_an_epoch_that_all_break_off_at_one_step_is_followed_by_a_whole_one(
    packed: PackedFiles, runtime_dir: Path, steps: int
) -> None:
    # One rank takes batches far ahead of its training, and waits for what the other would push.
    ahead = {1: {"num_workers": 2, "prefetch_factor": 10}}
    # 300 samples of 2 ranks in batches of 4: 38 steps.
    with job(packed.path, 2, 1, own=ahead, exchange=1, **READING) as running:
        for first in (0, 1, 0):
            running.take(steps)
            time.sleep(0.5)
            for rank in (first, 1 - first):
                running.ranks[rank].tell("break")
                running.ranks[rank].tell("1")
                time.sleep(0.5)
            begun = [rank.answer() for rank in running.ranks]
            epoch = running.epoch()
            keys = [key for batch in begun for key in batch]
            keys += [key for batches in epoch for batch in batches for key in batch]
            assert sorted(keys) == list(packed.keys)
    assert_no_node(runtime_dir, 10)


def test_nodes_meet_by_a_folder(packed: PackedFiles, tmp_path: Path, runtime_dir: Path) -> None:
    by_folder = {"GRISTWAY_NODES": f"{tmp_path}/meet"}
    with job(packed.path, 2, 1, variables=by_folder, exchange=1, **READING) as running:
        assert len(running.take(3)) == 2
    assert list((tmp_path / "meet").iterdir()) == []
    assert_no_node(runtime_dir, 10)


def test_tasks_of_srun_meet_on_the_first_host(packed: PackedFiles, runtime_dir: Path) -> None:
    with job(packed.path, 2, 2, exchange=1, launched=slurm_environment, **READING) as running:
        epoch = running.epoch()
        assert len(nodes(runtime_dir)) == 2
        counters = running.ask("counters")
    keys = [key for batches in epoch for batch in batches for key in batch]
    assert sorted(keys) == list(packed.keys)
    assert all(each["received"] > 0 for each in counters)


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_what_fits_the_jobs_caches_is_read_once_in_the_run(
    packed: PackedFiles, runtime_dir: Path, tmp_path: Path, where: str
) -> None:
    # Each node has room for two thirds of what is read: extents of 8 KiB begin and end within pages.
    room: dict[str, Any] = (
        {"cache": "704KiB"}
        if where == "memory"
        else {"cache_disk": "704KiB", "cache_folder": tmp_path}
    )
    with job(packed.path, 2, 1, exchange=1, homes="hashed", **room, **READING) as running:
        epochs = [running.epoch()]
        first = sum(each["storage-bytes"] for each in running.ask("counters"))
        epochs += [running.epoch() for _ in range(2)]
        counters = running.ask("counters")
    for epoch in epochs:
        keys = [key for batches in epoch for batch in batches for key in batch]
        assert sorted(keys) == list(packed.keys)
    size = sum(len(packed.data(key)) for key in packed.keys)
    assert sum(each["storage-bytes"] for each in counters) == first
    assert size <= first < 2.5 * size  # in pages
    assert sum(each["fetched-bytes"] for each in counters) > 1.5 * size
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "policy", ["clairvoyant", pytest.param("locality", marks=pytest.mark.thorough)]
)
def test_what_another_node_keeps_is_fetched_from_there(
    packed: PackedFiles, runtime_dir: Path, policy: str
) -> None:
    # A rank has room for a quarter of the dataset, and all six for all of it.
    reading = {**READING, "memory": "320KiB"}
    with job(packed.path, 3, 2, policy=policy, **reading) as running:
        epochs, read = [], []
        for _ in range(4):
            epochs.append(running.epoch())
            # Each node once: its ranks count together.
            read.append(sum(each["storage-reads"] for each in running.ask("counters")[::2]))
        counters = running.ask("counters")[::2]
    for epoch in epochs:
        keys = [key for batches in epoch for batch in batches for key in batch]
        assert sorted(keys) == list(packed.keys)
    # A rank that is ahead wants a few before another has kept them.
    assert read[0] >= SAMPLES
    assert read[3] == read[2], "all is kept since the first epoch"
    assert sum(each["fall-backs"] for each in counters) < SAMPLES / 2
    assert sum(each["fetched"] for each in counters) > 2 * SAMPLES


@pytest.mark.parametrize("ranks_here", [pytest.param(1, marks=pytest.mark.thorough), 2])
def test_nodes_read_what_is_placed_on_their_own_disks(
    packed: PackedFiles,
    ranks_here: int,
    runtime_dir: Path,
    tmp_path: Path,
    gristway_command: Callable[..., subprocess.CompletedProcess[str]],
    dataset: Callable[..., PackedFiles],
) -> None:
    chunks = dataset(samples=SAMPLES, size=(200, 3000))
    own = [tmp_path / "a.gw", tmp_path / "b.gw", tmp_path / "c.gw"]
    gristway_command("place", chunks.path, "--nodes", 3, *own)
    with job(own, 3, ranks_here, exchange=1, homes="placed", **READING) as running:
        first, second = running.epoch(), running.epoch()
    for epoch in (first, second):
        keys = [key for batches in epoch for batch in batches for key in batch]
        assert sorted(keys) == list(chunks.keys)
    plan = functools.partial(
        gristway_command,
        *("plan", chunks.path, "--order", "-", "--policy", "redirect", "--exchange", 1),
        *("--homes", "placed", "--seed", 5, "--batch-size", 4, "--memory", "64KiB"),
        *("--extent", "8KiB"),
    )
    assert first == planned(plan, 3, 3 * ranks_here)


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """Has a folder be a disk of its own, of a size such as 128k."""
    options = ["-t", "tmpfs", "-o", f"size={size}", "none"]
    made = subprocess.run(["mount", *options, folder], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"needs to mount a disk: {made.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.mark.parametrize("keeps", ["extents", pytest.param("samples", marks=pytest.mark.thorough)])
def test_a_full_disk_costs_reads_and_not_the_job(
    packed: PackedFiles, runtime_dir: Path, tmp_path: Path, keeps: str
) -> None:
    # Less than a node has to keep; they believe that there is more than enough.
    options: dict[str, Any] = {"cache_disk": "4MiB", "cache_folder": tmp_path, **READING}
    if keeps == "extents":
        options.update(exchange=1, homes="hashed")
    else:
        options.update(policy="clairvoyant")
    with small_disk(tmp_path, "128k"), job(packed.path, 2, 1, **options) as running:
        epochs = [running.epoch()]
        before = running.ask("counters")
        epochs.append(running.epoch())
        counters = running.ask("counters")
        warnings = running.ask("warnings")
    for epoch in epochs:
        keys = [key for batches in epoch for batch in batches for key in batch]
        assert sorted(keys) == list(packed.keys)
    stored, kept = (
        sum(each[name] - other[name] for each, other in zip(counters, before))
        for name in ("storage-bytes", "fetched-bytes")
    )
    assert stored > 0 and kept > 0
    if keeps == "samples":
        assert sum(each["fall-backs"] for each in counters) > SAMPLES / 2, counters
    for lines in warnings:
        full = [line for line in lines if f"nothing more is kept in {tmp_path}" in line]
        assert len(full) == 1 and "No space left on device" in full[0], lines
    share = stored / (stored + kept)
    measured(
        f"full cache disk, {keeps} kept",
        f"the job went on, {share:.0%} of an epoch from the storage",
    )


def _node_of(rank: int, runtime_dir: Path) -> int:
    """The process of a rank's node: its settings are not on its command line, its clients are."""
    for node in nodes(runtime_dir):
        status = Path("/proc", str(node), "status").read_text()
        parent = int(status.split("PPid:")[1].split()[0])
        if parent == rank:
            return node
    raise AssertionError(f"process {rank} has started no node")


def all_raise(running: Job, seconds: float) -> list[str]:
    """What all ranks raise, which they do within some seconds."""
    deadline = time.monotonic() + seconds
    said = []
    for rank in running.ranks:
        rank.tell("1000000")
    for rank in running.ranks:
        try:
            while True:
                rank.answer(max(0.1, deadline - time.monotonic()))
        except Raised as raised:
            said.append(str(raised))
    return said


@pytest.mark.parametrize(
    ("strike", "exchange"),
    [
        (signal.SIGKILL, 0),
        (signal.SIGKILL, 1),
        pytest.param(signal.SIGSTOP, 0, marks=pytest.mark.thorough),
        (signal.SIGSTOP, 1),
    ],
)
def test_a_node_that_is_lost_is_named_at_every_rank(
    packed: PackedFiles, runtime_dir: Path, strike: signal.Signals, exchange: float
) -> None:
    with job(packed.path, 3, 1, exchange=exchange, **READING) as running:
        running.take(2)
        victim = _node_of(running.ranks[1].process.pid, runtime_dir)
        os.kill(victim, strike)
        begin = time.monotonic()
        try:
            own = all_are_told(running, 1, begin, strike.name, exchange)
        finally:
            if command(victim):
                os.kill(victim, signal.SIGCONT)
        if strike == signal.SIGKILL:
            assert "LostNodeError: the node of this machine is gone" in own
        else:
            assert "HungNodeError: the node of this machine hangs" in own
    assert_no_node(runtime_dir, 15)


def all_are_told(running: Job, lost: int, begin: float, strike: str, exchange: float) -> str:
    """All ranks raise in time what says which node is lost; what that of the node itself does."""
    said = all_raise(running, 10)
    seconds = time.monotonic() - begin
    assert seconds < 10
    own = said.pop(lost)
    for line in said:
        assert NODE_1_IS_LOST in line and "is lost" in line, line
    for line in (own, *said):
        assert "start the job again from its last state" in line
    measured(f"{strike}, exchange {exchange}", f"told at all ranks after {seconds:.1f} s")
    return own


@pytest.mark.thorough
def test_a_node_that_was_stopped_for_20_seconds_ends_when_it_wakes(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    with job(packed.path, 3, 1, exchange=1, **READING) as running:
        running.take(2)
        victim = _node_of(running.ranks[1].process.pid, runtime_dir)
        begin = time.monotonic()
        os.kill(victim, signal.SIGSTOP)
        try:
            own = all_are_told(running, 1, begin, "SIGSTOP for 20 s", 1)
            assert "HungNodeError: the node of this machine hangs" in own
            time.sleep(max(0, begin + 20 - time.monotonic()))
        finally:
            os.kill(victim, signal.SIGCONT)
    assert_no_node(runtime_dir, 15)


def test_a_node_that_hangs_for_a_while_slows_the_job_only(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    with job(packed.path, 2, 1, exchange=1, **READING) as running:
        taken = running.take(2)
        victim = _node_of(running.ranks[1].process.pid, runtime_dir)
        os.kill(victim, signal.SIGSTOP)
        time.sleep(3)
        os.kill(victim, signal.SIGCONT)
        rest = running.epoch()
    keys = [key for part in (taken, rest) for rank in part for batch in rank for key in batch]
    assert sorted(keys) == list(packed.keys)


@pytest.mark.parametrize(
    "again",
    [
        pytest.param((1, 1), marks=pytest.mark.thorough),
        (3, 1),
        pytest.param((2, 2), marks=pytest.mark.thorough),
    ],
)
def test_a_job_that_was_killed_goes_on_in_another_world(
    packed: PackedFiles, runtime_dir: Path, tmp_path: Path, again: tuple[int, int]
) -> None:
    with job(packed.path, 2, 1, exchange=1, **READING) as running:
        before = running.take(7)
        state = tmp_path / "state"
        state.write_text(json.dumps(running.ask("state")[0]))
        running.take(3)  # is lost with the job
        for node in nodes(runtime_dir):
            os.kill(node, signal.SIGKILL)
    begin = time.monotonic()
    with job(packed.path, *again, exchange=1, state=state, **READING) as resumed:
        first = resumed.take(1)
        measured(
            f"all nodes of 2 are killed, started again as {again[0]} with {again[1]} rank(s)",
            f"the first batch is there after {time.monotonic() - begin:.1f} s",
        )
        after = [[*one, *rest] for one, rest in zip(first, resumed.epoch())]
    keys = [key for part in (before, after) for rank in part for batch in rank for key in batch]
    assert sorted(keys) == list(packed.keys)
    assert_no_node(runtime_dir, 15)
