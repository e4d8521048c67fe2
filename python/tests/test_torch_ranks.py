"""Several ranks: under torchrun, with all of the classes, and under Slurm."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import PackedFiles
from processes import assert_no_node, nodes
from ranks_program import BATCH, EPOCHS
from reading import order_of_read

Datasets = Callable[..., PackedFiles]
Run = Callable[..., "subprocess.CompletedProcess[str]"]

# Four ranks take their time to import torch where processors are few and busy.
pytestmark = pytest.mark.limit(240)

TESTS = Path(__file__).resolve().parent
RANKS = 4
SIZE = 205  # not a multiple of the ranks: some must be padded


@pytest.fixture(scope="module")
def packed(dataset: Datasets) -> PackedFiles:
    return dataset(samples=SIZE, size=(200, 2000), labels=4)


@contextlib.contextmanager
def runtime_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="gw-", dir="/tmp"))
    try:
        yield folder
        assert_no_node(folder)
        assert not [each for each in folder.iterdir() if not each.is_socket()]
    finally:
        shutil.rmtree(folder)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def job(packed: PackedFiles, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of four ranks has received, in two epochs of a job of torchrun."""
    results = tmp_path_factory.mktemp("job")
    with runtime_folder() as folder:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "torch.distributed.run"),
                *("--nproc-per-node", str(RANKS), "--master-addr", "127.0.0.1"),
                *("--master-port", str(free_port())),
                *(str(TESTS / "ranks_program.py"), str(packed.path), str(folder), str(results)),
            ],
            env={
                **os.environ,
                "GRISTWAY_RUNTIME_DIR": str(folder),
                "PYTHONPATH": os.pathsep.join(sys.path),
                "OMP_NUM_THREADS": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=200,
        )
        assert done.returncode == 0, done.stdout
    return [json.loads((results / f"{rank}-of-{RANKS}.json").read_text()) for rank in range(RANKS)]


@pytest.mark.parametrize("kind", ["loader", "stream", "redirect"])
def test_every_sample_is_given_once_an_epoch(job: list[dict[str, Any]], kind: str) -> None:
    orders = []
    for epoch in range(EPOCHS):
        given = Counter(
            number
            for rank in job
            for batch in rank[kind][epoch]
            for number, is_repeat in batch
            if not is_repeat
        )
        assert given == Counter(range(SIZE))
        orders.append([rank[kind][epoch] for rank in job])
    assert orders[0] != orders[1]


@pytest.mark.parametrize("kind", ["loader", "stream", "redirect", "exact"])
def test_ranks_have_as_many_batches(job: list[dict[str, Any]], kind: str) -> None:
    shapes = {tuple(len(batch) for batch in epoch)[:-1] for rank in job for epoch in rank[kind]}
    assert shapes == {(BATCH,) * (math.ceil(SIZE / (RANKS * BATCH)) - 1)}
    assert {rank["length"] for rank in job} == {math.ceil(SIZE / (RANKS * BATCH))}


def test_a_stream_is_the_loaders_order_in_any_workers(job: list[dict[str, Any]]) -> None:
    for rank in job:
        assert rank["stream"] == rank["loader"]


def test_the_order_is_that_of_read(
    job: list[dict[str, Any]], packed: PackedFiles, gristway_command: Run
) -> None:
    expected = order_of_read(
        gristway_command,
        packed.path,
        *("--ranks", RANKS, "--batch-size", BATCH, "--seed", 4, "--epochs", EPOCHS),
        *("--memory", "256KiB", "--extent", "4KiB"),
    )
    # Samples have keys there and numbers here: the same renaming must do for all.
    names: dict[str, int] = {}
    for rank, got in enumerate(job):
        for epoch in range(EPOCHS):
            numbers = [number for batch in got["loader"][epoch] for number, _ in batch]
            assert len(numbers) == len(expected[epoch, rank])
            for key, number in zip(expected[epoch, rank], numbers):
                assert names.setdefault(key, number) == number
    assert len(names) == len(set(names.values())) == SIZE


def test_all_ranks_share_one_node(job: list[dict[str, Any]]) -> None:
    assert [rank["nodes"] for rank in job] == [[1, 1, 1, 1]] * RANKS


def test_states_are_the_same_on_all_ranks(job: list[dict[str, Any]]) -> None:
    assert all(rank["state"] == job[0]["state"] for rank in job)


def test_exact_gives_what_the_distributed_sampler_draws(job: list[dict[str, Any]]) -> None:
    asked = []
    for rank in job:
        given = [[number for batch in epoch for number, _ in batch] for epoch in rank["exact"]]
        assert given[-1] == rank["exact asked"][0]
        asked += given[-1]
    assert len(asked) == math.ceil(SIZE / RANKS) * RANKS  # with its padding
    assert set(asked) == set(range(SIZE))


def test_redirection_repeats_as_many_as_the_sampler_pads(job: list[dict[str, Any]]) -> None:
    for epoch in range(EPOCHS):
        repeats = [
            number
            for rank in job
            for batch in rank["redirect"][epoch]
            for number, is_repeat in batch
            if is_repeat
        ]
        assert len(repeats) == -SIZE % RANKS


def test_a_rank_can_read_alone(job: list[dict[str, Any]]) -> None:
    assert "alone" not in job[0]
    assert sorted(number for batch in job[1]["alone"] for number, _ in batch) == list(range(SIZE))


SLURM_TASK = """
import sys
import gristway

def key(sample):
    return sample.key

loader = gristway.Loader(sys.argv[1], 10, transform=key, memory="256KiB", extent="4KiB")
keys = [key for batch in loader for key in batch]
print(len(loader), flush=True)
sys.stdin.readline()
print(*keys)
"""


def test_tasks_of_slurm_share_an_epoch_and_a_node(packed: PackedFiles, runtime_dir: Path) -> None:
    tasks = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(SLURM_TASK), str(packed.path)],
            env={
                **os.environ,
                "SLURM_JOB_ID": "17",
                "SLURM_STEP_ID": "0",
                "SLURM_NTASKS": "2",
                "SLURM_PROCID": str(rank),
                "SLURM_TASKS_PER_NODE": "2",
                "SLURM_STEP_TASKS_PER_NODE": "2",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        for task in tasks:
            assert task.stdout is not None
            assert task.stdout.readline() == "11\n"
        assert len(nodes(runtime_dir)) == 1
        keys = [key for task in tasks for key in task.communicate("\n")[0].split()]
    finally:
        for task in tasks:
            task.kill()
            task.wait()
    assert sorted(keys) == sorted(packed.keys)
