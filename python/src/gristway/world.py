"""Which of a job's training processes this one is, from what its launcher has set."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from gristway.errors import WrongCallError


@dataclass(frozen=True)
class World:
    """A job's ranks. `job` names the job, and differs between jobs and between their restarts.

    `launcher_node` is the number that the launcher gives the machine, where it does."""

    rank: int
    size: int
    ranks_here: int
    job: str
    launcher_node: int | None = None
    is_counted: bool = True  # how many ranks are here was said, and not assumed

    @property
    def nodes(self) -> int:
        return self.size // self.ranks_here

    @property
    def node(self) -> int:
        return self.rank // self.ranks_here

    def check_order(self) -> None:
        """Nodes that push samples to each other know by a rank's number where it is."""
        if self.launcher_node not in (None, self.node):
            raise WrongCallError(
                f"rank {self.rank} is on node {self.launcher_node}, and with {self.ranks_here} ranks a"
                f" node it belongs on node {self.node}: start ranks in blocks (srun"
                " --distribution=block)"
            )


def find_world(rank: int | None, world_size: int | None) -> World:
    """The world as given, or as torchrun or Slurm have it, or one process alone."""
    if (rank is None) != (world_size is None):
        raise WrongCallError("give both rank and world_size, or neither")
    found = _torchrun() or _slurm() or World(0, 1, 1, f"process-{os.getpid()}")
    if rank is None or world_size is None:
        return found
    if not 0 <= rank < world_size:
        raise WrongCallError(f"there is no rank {rank} in a world of {world_size}")
    if world_size == found.size:
        return replace(found, rank=rank)
    # Ranks of a world of the caller's own share nothing that we know of: each has its own node.
    return World(rank, world_size, 1, f"{found.job}-process-{os.getpid()}")


def _torchrun() -> World | None:
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return None
    size = _number("WORLD_SIZE")
    here = _number("LOCAL_WORLD_SIZE", size)
    machines = _number("GROUP_WORLD_SIZE", max(1, size // max(1, here)))
    _check_even(here * machines == size, f"{here} of {size} ranks are here")
    job = "-".join(
        os.environ.get(name, "")
        for name in (
            "TORCHELASTIC_RUN_ID",
            "TORCHELASTIC_RESTART_COUNT",
            "MASTER_ADDR",
            "MASTER_PORT",
        )
    )
    node = os.environ.get("GROUP_RANK")
    is_counted = size == 1 or "LOCAL_WORLD_SIZE" in os.environ
    return World(
        _number("RANK"), size, here, f"torchrun-{job}", int(node) if node else None, is_counted
    )


def _slurm() -> World | None:
    if "SLURM_PROCID" not in os.environ or "SLURM_NTASKS" not in os.environ:
        return None
    size = _number("SLURM_NTASKS")
    if size > 1 and "SLURM_STEP_ID" not in os.environ:
        return None  # the batch script itself, not a task of srun
    tasks = os.environ.get("SLURM_STEP_TASKS_PER_NODE", os.environ.get("SLURM_TASKS_PER_NODE", ""))
    # Such as "8", "8(x4)", or "8(x2),4" where they differ.
    counts = {part.split("(")[0] for part in tasks.split(",") if part}
    _check_even(len(counts) < 2, f"SLURM_STEP_TASKS_PER_NODE is {tasks}")
    here = int(counts.pop()) if counts else size
    job = "-".join(
        os.environ.get(name, "")
        for name in ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT")
    )
    node = os.environ.get("SLURM_NODEID")
    return World(_number("SLURM_PROCID"), size, here, f"slurm-{job}", int(node) if node else None)


def _check_even(is_even: bool, found: str) -> None:
    """The memory of a rank decides about the order, so it must be the same on every machine."""
    if not is_even:
        raise WrongCallError(
            f"every machine must have the same number of ranks, and {found}: start as many on each"
        )


def _number(name: str, otherwise: int | None = None) -> int:
    text = os.environ.get(name)
    if text is None and otherwise is not None:
        return otherwise
    try:
        return int(text or "")
    except ValueError:
        raise WrongCallError(f"the environment variable {name} is {text!r}, not a number") from None
