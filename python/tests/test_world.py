"""Which rank of which world a process is, by what its launcher has set."""

from __future__ import annotations

import os

import pytest

from gristway import WrongCallError
from gristway.world import World, find_world

VARIABLES = (
    *("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"),
    *("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "GROUP_WORLD_SIZE"),
    *("SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID", "SLURM_JOB_ID", "SLURM_RESTART_COUNT"),
    *("SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE", "SLURM_NNODES", "SLURM_LOCALID"),
)


class Environment:
    """The variables that launchers set, and no others of theirs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def set(self, **values: object) -> None:
        for name in VARIABLES:
            self._monkeypatch.delenv(name, raising=False)
        for name, value in values.items():
            self._monkeypatch.setenv(name, str(value))


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Environment:
    found = Environment(monkeypatch)
    found.set()
    return found


TORCHRUN = {
    "RANK": 5,
    "WORLD_SIZE": 8,
    "LOCAL_RANK": 1,
    "LOCAL_WORLD_SIZE": 4,
    "MASTER_ADDR": "host1",
    "MASTER_PORT": 29500,
    "TORCHELASTIC_RUN_ID": "abc",
    "TORCHELASTIC_RESTART_COUNT": 0,
}
SLURM = {
    "SLURM_PROCID": 5,
    "SLURM_NTASKS": 8,
    "SLURM_JOB_ID": 77,
    "SLURM_STEP_ID": 0,
    "SLURM_TASKS_PER_NODE": "4(x2)",
    "SLURM_STEP_TASKS_PER_NODE": "4(x2)",
}


def places(world: World) -> tuple[int, int, int]:
    return world.rank, world.size, world.ranks_here


def test_a_process_alone_is_a_world_of_its_own(environment: Environment) -> None:
    world = find_world(None, None)
    assert places(world) == (0, 1, 1)
    assert str(os.getpid()) in world.job


def test_torchrun(environment: Environment) -> None:
    environment.set(**TORCHRUN)
    assert places(find_world(None, None)) == (5, 8, 4)


def test_torchrun_without_its_own_extras(environment: Environment) -> None:
    """As those have it who set the variables of torch.distributed by hand."""
    environment.set(RANK=1, WORLD_SIZE=2, MASTER_ADDR="127.0.0.1", MASTER_PORT=1234)
    assert places(find_world(None, None)) == (1, 2, 2)


@pytest.mark.parametrize(
    "name", ["TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT"]
)
def test_ranks_of_a_job_have_its_name_and_no_other_job_has(
    environment: Environment, name: str
) -> None:
    environment.set(**TORCHRUN)
    job = find_world(None, None).job
    environment.set(**{**TORCHRUN, "RANK": 6, "LOCAL_RANK": 2})
    assert find_world(None, None).job == job
    environment.set(**{**TORCHRUN, name: "7"})
    assert find_world(None, None).job != job


def test_slurm(environment: Environment) -> None:
    environment.set(**SLURM)
    world = find_world(None, None)
    assert places(world) == (5, 8, 4)
    for name in ("SLURM_JOB_ID", "SLURM_STEP_ID"):
        environment.set(**{**SLURM, name: "9"})
        assert find_world(None, None).job != world.job
    environment.set(**{**SLURM, "SLURM_PROCID": 0})
    assert find_world(None, None).job == world.job


def test_slurm_on_one_machine(environment: Environment) -> None:
    environment.set(**{**SLURM, "SLURM_TASKS_PER_NODE": "8", "SLURM_STEP_TASKS_PER_NODE": "8"})
    assert places(find_world(None, None)) == (5, 8, 8)


def test_a_batch_script_of_slurm_is_no_rank(environment: Environment) -> None:
    """sbatch sets SLURM_PROCID=0 and SLURM_NTASKS for the script itself, which is one process."""
    environment.set(SLURM_PROCID=0, SLURM_NTASKS=8, SLURM_JOB_ID=77, SLURM_TASKS_PER_NODE=8)
    assert places(find_world(None, None)) == (0, 1, 1)


def test_torchrun_under_slurm_is_torchrun(environment: Environment) -> None:
    environment.set(**SLURM, **TORCHRUN)
    world = find_world(None, None)
    assert places(world) == (5, 8, 4)
    environment.set(**TORCHRUN)
    assert find_world(None, None).job == world.job


def test_a_world_by_hand_of_the_same_size_is_the_jobs(environment: Environment) -> None:
    environment.set(**TORCHRUN)
    found = find_world(None, None)
    given = find_world(6, 8)
    assert places(given) == (6, 8, 4)
    assert given.job == found.job


@pytest.mark.parametrize("variables", [{}, TORCHRUN, SLURM], ids=["none", "torchrun", "slurm"])
def test_another_world_by_hand_shares_nothing(
    environment: Environment, variables: dict[str, object]
) -> None:
    environment.set(**variables)
    given = find_world(2, 3)
    assert places(given) == (2, 3, 1)
    assert given.job != find_world(None, None).job
    assert str(os.getpid()) in given.job


def test_a_rank_may_stay_alone(environment: Environment) -> None:
    """Such as one that evaluates by itself."""
    environment.set(**TORCHRUN)
    alone = find_world(0, 1)
    assert places(alone) == (0, 1, 1)
    assert alone.job != find_world(None, None).job


@pytest.mark.parametrize(
    ("rank", "world_size"), [(1, None), (None, 2), (2, 2), (-1, 2), (0, 0), (0, -1)]
)
def test_impossible_worlds_are_refused(
    environment: Environment, rank: int | None, world_size: int | None
) -> None:
    with pytest.raises(WrongCallError):
        find_world(rank, world_size)


@pytest.mark.parametrize(
    "variables",
    [
        {"RANK": "x", "WORLD_SIZE": 2},
        {"RANK": 0, "WORLD_SIZE": ""},
        {"RANK": 0, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": "many"},
        {"SLURM_PROCID": "?", "SLURM_NTASKS": 1},
    ],
    ids=str,
)
def test_a_variable_that_is_no_number_is_named(
    environment: Environment, variables: dict[str, object]
) -> None:
    environment.set(**variables)
    with pytest.raises(WrongCallError, match="RANK|WORLD_SIZE|SLURM_PROCID"):
        find_world(None, None)
