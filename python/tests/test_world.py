"""Which rank of which world a process is, by what its launcher has set."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from gristway import WrongCallError
from gristway.world import World, find_world

VARIABLES = (
    *("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"),
    *("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "GROUP_WORLD_SIZE", "GROUP_RANK"),
    *("NODE_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE", "PMIX_NAMESPACE", "PMIX_RANK"),
    *("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    *("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_MCA_ess_base_jobid"),
    *("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    *("SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID", "SLURM_JOB_ID", "SLURM_RESTART_COUNT"),
    *("SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE", "SLURM_NNODES", "SLURM_LOCALID"),
    *("SLURM_STEP_NUM_TASKS", "SLURM_NODEID"),
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


MASTER = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 29500}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": 5,
    "OMPI_COMM_WORLD_SIZE": 8,
    "OMPI_COMM_WORLD_LOCAL_RANK": 1,
    "OMPI_COMM_WORLD_LOCAL_SIZE": 4,
    "PMIX_NAMESPACE": "prterun-host1-4683@1",
    "PMIX_RANK": 5,
}
MPICH = {"PMI_RANK": 5, "PMI_SIZE": 8, "MPI_LOCALRANKID": 1, "MPI_LOCALNRANKS": 4}
DAEMON = {**SLURM, "SLURM_PROCID": 1, "SLURM_NTASKS": 2, "SLURM_STEP_TASKS_PER_NODE": "1(x2)"}
WORKERS = {"RANK": 5, "WORLD_SIZE": 8, "LOCAL_RANK": 1, **MASTER}

# What each launcher sets for rank 5 of 8 on two machines, as its processes show it or its source.
LAUNCHERS: dict[str, dict[str, object]] = {
    "torchrun": TORCHRUN,
    "accelerate launch": {**TORCHRUN, "ACCELERATE_MIXED_PRECISION": "no"},
    "deepspeed": {**WORKERS, "LOCAL_SIZE": 4, "CROSS_RANK": 1, "CROSS_SIZE": 2},
    "Ray Train": {**WORKERS, "LOCAL_WORLD_SIZE": 4, "NODE_RANK": 1},
    "Lightning, with the processes of a machine": {
        **{"NODE_RANK": 1, "LOCAL_RANK": 1, "WORLD_SIZE": 8, "LOCAL_WORLD_SIZE": 4},
        **MASTER,
    },
    "srun": SLURM,
    "srun, and a script that exports WORLD_SIZE": {**SLURM, "WORLD_SIZE": 8, **MASTER},
    "srun, and a script that exports LOCAL_RANK too": {
        **{**SLURM, "WORLD_SIZE": 8, "LOCAL_RANK": 1, "NODE_RANK": 1},
        **MASTER,
    },
    "srun --mpi=pmi2": {**SLURM, "PMI_RANK": 5, "PMI_SIZE": 8},
    "mpirun of Open MPI": OPEN_MPI,
    "mpirun of Open MPI in a Slurm job": {**DAEMON, **OPEN_MPI},
    "mpirun of MPICH or Intel": MPICH,
    "mpirun of MPICH in a Slurm job": {**DAEMON, **MPICH},
    "torchrun in a Slurm job": {**DAEMON, **TORCHRUN},
    "torchrun on each host of an mpirun": {
        **{**OPEN_MPI, "OMPI_COMM_WORLD_RANK": 1, "OMPI_COMM_WORLD_SIZE": 2},
        **TORCHRUN,
    },
}


def places(world: World) -> tuple[int, int, int]:
    return world.rank, world.size, world.ranks_here


def test_a_process_alone_is_a_world_of_its_own(environment: Environment) -> None:
    world = find_world(None, None)
    assert places(world) == (0, 1, 1)
    assert str(os.getpid()) in world.job


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_ranks_are_right_under_every_launcher(environment: Environment, launcher: str) -> None:
    environment.set(**LAUNCHERS[launcher])
    world = find_world(None, None)
    assert places(world) == (5, 8, 4)
    assert world.is_counted


def test_processes_of_lightnings_own_launcher_are_ranks(environment: Environment) -> None:
    for local in range(4):
        environment.set(NODE_RANK=0, LOCAL_RANK=local, WORLD_SIZE=4, **MASTER)
        assert places(find_world(None, None)) == (local, 4, 4)


@pytest.mark.parametrize(
    "name", ["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"], ids=["Open MPI 5", "Open MPI 4"]
)
def test_jobs_of_mpirun_have_names(environment: Environment, name: str) -> None:
    plain = {key: value for key, value in OPEN_MPI.items() if key != "PMIX_NAMESPACE"}
    environment.set(**{**plain, name: "one"})
    job = find_world(None, None).job
    environment.set(**{**plain, name: "one", "OMPI_COMM_WORLD_RANK": 4})
    assert find_world(None, None).job == job
    environment.set(**{**plain, name: "two"})
    assert find_world(None, None).job != job


def test_ranks_that_one_process_has_started_are_of_one_job(environment: Environment) -> None:
    """MPICH gives a job no name, so it is known by who has started its ranks, through shells too."""
    program = "from gristway.world import find_world; print(find_world(None, None).job)"
    environment.set(**MPICH)
    variables = {name: str(value) for name, value in MPICH.items()}
    starter = textwrap.dedent(f"""
        import os, subprocess, sys
        rank = [sys.executable, "-c", {program!r}]
        for shell in ([], ["sh", "-c", '"$@"; :', "sh"]):
            subprocess.run(shell + rank, env={{**os.environ, **{variables!r}}})
    """)
    plain = {name: value for name, value in os.environ.items() if name not in MPICH}
    jobs = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", starter],
            env=plain,
            text=True,
            stdout=subprocess.PIPE,
            check=True,
        )
        direct, by_shell = done.stdout.split()
        assert direct == by_shell
        jobs.append(direct)
    assert jobs[0] != jobs[1]


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"WORLD_SIZE": 2}, "WORLD_SIZE is 2 and nothing says which rank"),
        ({"WORLD_SIZE": 2, "LOCAL_RANK": 1}, "WORLD_SIZE is 2 and nothing says which rank"),
        ({"WORLD_SIZE": 4, **SLURM}, "WORLD_SIZE is 4, and the launcher has started 8 ranks"),
        ({"WORLD_SIZE": 1, **OPEN_MPI}, "WORLD_SIZE is 1, and the launcher has started 8 ranks"),
        ({"RANK": 1}, "WORLD_SIZE is not set"),
        ({"RANK": 2, "WORLD_SIZE": 2}, "RANK is 2 and WORLD_SIZE is 2"),
        ({"RANK": -1, "WORLD_SIZE": 2}, "RANK is -1"),
        ({**TORCHRUN, "LOCAL_RANK": 4}, "LOCAL_RANK is 4 and LOCAL_WORLD_SIZE is 4"),
        ({**TORCHRUN, "RANK": 0}, "LOCAL_RANK is 1 and RANK is 0"),
        ({"NODE_RANK": 1, "LOCAL_RANK": 0, "WORLD_SIZE": 8}, "do not tell the rank"),
        ({"NODE_RANK": 0, "LOCAL_RANK": 8, "WORLD_SIZE": 8}, "LOCAL_RANK is 8"),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_RANK": 8}, "OMPI_COMM_WORLD_RANK is 8"),
        ({**SLURM, "SLURM_PROCID": 8}, "SLURM_PROCID is 8"),
    ],
    ids=str,
)
def test_variables_that_contradict_each_other_or_lack_something_are_refused(
    environment: Environment, variables: dict[str, object], named: str
) -> None:
    environment.set(**variables)
    with pytest.raises(WrongCallError) as raised:
        find_world(None, None)
    assert named in str(raised.value)
    assert "rank=" in str(raised.value) and "world_size=" in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1
    # As it says.
    assert places(find_world(1, 3)) == (1, 3, 1)


@pytest.mark.parametrize(
    "variables",
    [
        {**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": 3},
        {**MPICH, "MPI_LOCALNRANKS": 3},
        {**SLURM, "SLURM_STEP_TASKS_PER_NODE": "5,3"},
        {**TORCHRUN, "LOCAL_WORLD_SIZE": 3},
    ],
    ids=["Open MPI", "MPICH", "Slurm", "torchrun"],
)
def test_machines_with_unequal_numbers_of_ranks_are_refused(
    environment: Environment, variables: dict[str, object]
) -> None:
    environment.set(**variables)
    with pytest.raises(WrongCallError, match="the same number of ranks"):
        find_world(None, None)


def test_ranks_are_counted_by_their_machines(environment: Environment) -> None:
    environment.set(NODE_RANK=0, LOCAL_RANK=1, WORLD_SIZE=4, **MASTER)
    world = find_world(None, None)
    assert not world.is_counted
    counted = world.counted(["a", "a", "b", "b"])
    assert places(counted) == (1, 4, 2)
    assert (counted.node, counted.launcher_node) == (0, 0)
    mixed = world.counted(["a", "b", "a", "b"])
    assert (mixed.node, mixed.launcher_node) == (0, 1)  # which check_order refuses
    with pytest.raises(WrongCallError, match="the same number of ranks"):
        world.counted(["a", "a", "a", "b"])


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
