"""Ranks that torch.distributed alone knows of: started by torch.multiprocessing.spawn."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PackedFiles
from processes import assert_no_node

# Each of several processes imports torch.
pytestmark = pytest.mark.limit(240)

TESTS = Path(__file__).resolve().parent
SIZE = 200


def run(cases: str, packed: PackedFiles, results: Path) -> list[dict[str, Any]]:
    """What each of two ranks has got."""
    folder = Path(tempfile.mkdtemp(prefix="gw-", dir="/tmp"))
    plain = {name: value for name, value in os.environ.items() if name != "RANK"}
    try:
        done = subprocess.run(
            [sys.executable, TESTS / "worlds_program.py", cases, packed.path, folder, results],
            env={
                **plain,
                "GRISTWAY_RUNTIME_DIR": str(folder),
                "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]),
                "GRISTWAY_COMMAND": str(TESTS.parents[1] / "gristway"),
                "OMP_NUM_THREADS": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=220,
        )
        assert done.returncode == 0, done.stdout
        assert_no_node(folder)
        # A difference outlives ranks for others of their machine: where it only seems one, for none.
        # A process that multiprocessing has forked ends as if it were killed.
        assert cases in ("machines", "forked") or not list(folder.glob("**/*.ranks"))
    finally:
        shutil.rmtree(folder)
    return [json.loads((results / f"{rank}.json").read_text()) for rank in range(2)]


@pytest.fixture(scope="module")
def once(
    dataset: Callable[..., PackedFiles], tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    packed = dataset(samples=SIZE, size=(200, 2000))
    return run("once", packed, tmp_path_factory.mktemp("once"))


def test_ranks_of_a_spawned_job_get_each_sample_once_made_before_the_group_or_later(
    once: list[dict[str, Any]],
) -> None:
    for kind in once[0]["once"]:
        given = [rank["once"][kind] for rank in once]
        assert sorted(given[0] + given[1]) == list(range(SIZE)), kind
        assert len(given[0]) == len(given[1]) == SIZE // 2, kind


def test_a_loader_that_was_made_before_the_group_tells_its_length_as_a_rank_when_it_is_one(
    once: list[dict[str, Any]],
) -> None:
    assert [rank["lengths"] for rank in once] == [[[20, 20], [10, 10]]] * 2


def test_ranks_of_a_spawned_job_share_a_node_and_one_alone_has_its_own(
    once: list[dict[str, Any]],
) -> None:
    assert once[0]["socket"] == once[1]["socket"]
    assert [rank["alone"] for rank in once] == [SIZE, SIZE]


def test_a_dataset_that_was_made_before_the_ranks_were_spawned_is_refused(
    once: list[dict[str, Any]],
) -> None:
    for rank in once:
        assert "made by the process that has started the ranks: make it in each" in rank["passed"]


@pytest.mark.parametrize("kind", ["Loader", "Stream", "Map"])
def test_a_rank_that_peeks_alone_is_named_on_every_rank_also_by_workers(
    once: list[dict[str, Any]], kind: str
) -> None:
    for rank in once:
        said = rank["parted"][kind]
        assert "the ranks of this job are in different epochs: rank 0 left epoch 0 after" in said


@pytest.fixture(scope="module")
def forked(
    dataset: Callable[..., PackedFiles], tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    packed = dataset(samples=SIZE, size=(200, 2000))
    return run("forked", packed, tmp_path_factory.mktemp("forked"))


def test_a_dataset_that_was_made_before_the_ranks_were_forked_is_refused(
    forked: list[dict[str, Any]],
) -> None:
    for rank in forked:
        for said in rank["refused"]:
            assert "made by the process that has started the ranks: make it in each" in said


def test_forked_ranks_get_each_sample_once_from_loaders_that_share_no_epochs(
    forked: list[dict[str, Any]],
) -> None:
    for kind in forked[0]["once"]:
        given = [rank["once"][kind] for rank in forked]
        assert sorted(given[0] + given[1]) == list(range(SIZE)), kind


def test_a_forked_rank_that_peeks_alone_into_an_older_loader_is_named_on_every_rank(
    forked: list[dict[str, Any]],
) -> None:
    for rank in forked:
        said = rank["parted"]
        assert "the ranks of this job are in different epochs: rank 0 left epoch 0 after" in said


@pytest.fixture(scope="module")
def machines(
    dataset: Callable[..., PackedFiles], tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    results = tmp_path_factory.mktemp("machines")
    packed = dataset(samples=SIZE, size=(200, 1999))
    return run("machines", packed, results)


@pytest.mark.parametrize(
    ("case", "named"),
    [
        ("seed", "rank 0 has seed=7; rank 1 has seed=8"),
        ("seed, made early", " has seed="),
        ("given", "rank 0 has seed=7; rank 1 has seed=8"),
        ("stream", "rank 0 has batch_size=3; rank 1 has batch_size=4"),
        ("append", "rank 0 has snapshot="),
    ],
)
def test_ranks_of_several_machines_that_differ_are_refused_by_name_on_every_rank(
    machines: list[dict[str, Any]], case: str, named: str
) -> None:
    for rank in machines:
        assert "the ranks of this job do not read alike" in rank[case]
        assert named in rank[case]


def test_ranks_of_several_machines_that_are_alike_read(machines: list[dict[str, Any]]) -> None:
    assert [rank["alike"] for rank in machines] == ["nothing"] * 2
    assert [rank["exact"] for rank in machines] == ["nothing"] * 2


@pytest.mark.parametrize("kind", ["Loader 0", "Stream 0", "Stream 1", "Map 0"])
def test_a_rank_that_peeks_alone_is_named_on_every_rank_of_several_machines(
    machines: list[dict[str, Any]], kind: str
) -> None:
    for rank in machines:
        said = rank[kind]
        assert "the ranks of this job are in different epochs: rank 0 left epoch 0 after" in said


def test_a_loader_that_one_rank_alone_makes_is_refused_before_its_first_batch(
    machines: list[dict[str, Any]],
) -> None:
    refusal = machines[0]["only rank 0"]
    assert refusal.startswith("WrongCallError: rank 1 of this job did not make this loader within")
    assert "rank=0, world_size=1" in refusal
