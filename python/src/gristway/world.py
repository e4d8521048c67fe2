"""Which of a job's training processes this one is. It is never guessed: torch.distributed says it, or
the variables of a launcher, or the caller. Where these contradict each other, nothing is read.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from gristway.arguments import whole_number
from gristway.errors import WrongCallError
from gristway.group import Group, find_group

_PASS = "pass rank= and world_size="


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
    is_jobs: bool = True  # these are the ranks of the job, and not ranks of the caller's own
    asked: tuple[int, int] | None = None  # rank and size, as the caller has given them

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

    def is_like(self, other: World) -> bool:
        """True if a loader reads the same in both."""
        mine = (self.rank, self.size, self.ranks_here, self.job)
        return mine == (other.rank, other.size, other.ranks_here, other.job)

    def found_again(self) -> World:
        """The world as it is to be found now."""
        return find_world(*(self.asked or (None, None)))

    def counted(self, hosts: list[str]) -> World:
        """The world with the ranks of this machine counted, from what each rank calls its own."""
        if self.is_counted:
            return self
        counts = Counter(hosts)
        here = counts[hosts[self.rank]]
        _check_even(len(set(counts.values())) == 1, f"they have {_listed(counts.values())}")
        machine = list(dict.fromkeys(hosts)).index(hosts[self.rank])
        return replace(self, ranks_here=here, launcher_node=machine, is_counted=True)


def find_world(rank: int | None, world_size: int | None) -> World:
    """The world as given; or as torch.distributed has it, if it is initialised; or as the variables of
    the launcher have it; or one process alone."""
    if (rank is None) != (world_size is None):
        raise WrongCallError("give both rank and world_size, or neither")
    if rank is None or world_size is None:
        return _found()
    world_size = whole_number("world_size", world_size, 1, (1 << 31) - 1)
    rank = whole_number("rank", rank, -(1 << 31), (1 << 31) - 1)
    if not 0 <= rank < world_size:
        raise WrongCallError(f"there is no rank {rank} in a world of {world_size}")
    try:
        found = _found()
    except WrongCallError:
        found = _alone()  # what is given needs no other source
    if world_size == found.size:
        return replace(found, rank=rank, asked=(rank, world_size))
    # Ranks of a world of the caller's own share nothing that we know of: each has its own node.
    job = f"{found.job}-process-{os.getpid()}"
    return World(rank, world_size, 1, job, is_jobs=False, asked=(rank, world_size))


def machine() -> str:
    """What processes have in common that can share a node, and no others."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}-{os.stat('/proc/self/ns/pid').st_ino}"


def _alone() -> World:
    return World(0, 1, 1, f"process-{os.getpid()}")


def _found() -> World:
    group = find_group()
    return (_launched() or _alone()) if group is None else _grouped(group)


def _grouped(group: Group) -> World:
    """torch.distributed's word counts. Variables that agree with it tell the job's name, and how many
    ranks are on this machine."""
    try:
        launched = _launched()
    except WrongCallError:
        launched = None
    if launched is not None and launched.size > group.size:
        raise WrongCallError(
            f"torch.distributed has {_ranks(group.size)}, and the launcher has started"
            f" {launched.size}: {_PASS}"
        )
    if launched is not None and launched.size == group.size:
        node = launched.launcher_node if launched.rank == group.rank else None
        return replace(launched, rank=group.rank, launcher_node=node)
    if group.size == 1:
        return _alone()
    if group.store is None:
        raise WrongCallError(
            f"torch.distributed has {_ranks(group.size)} and no store in which they could tell on"
            f" which machine they are: {_PASS}"
        )
    # All are taken to be here until they have told where they are, before the first batch.
    return World(group.rank, group.size, group.size, f"group-{group.job()}", is_counted=False)


def _launched() -> World | None:
    """What the variables of one launcher say: of the innermost, where one has started another."""
    return _torch() or _lightning() or _whole(_mpi() or _slurm())


def _torch() -> World | None:
    """What torch.distributed reads: set by torchrun, accelerate, deepspeed and Ray, or by hand."""
    if "RANK" not in os.environ:
        return None
    if "WORLD_SIZE" not in os.environ:
        raise WrongCallError(
            f"RANK is {os.environ['RANK']!r} and WORLD_SIZE is not set: set both, or {_PASS}"
        )
    size = _number("WORLD_SIZE")
    # The second is DeepSpeed's.
    counts = [name for name in ("LOCAL_WORLD_SIZE", "LOCAL_SIZE") if name in os.environ]
    here = _number(counts[0]) if counts else size
    machines = _number("GROUP_WORLD_SIZE", max(1, size // max(1, here)))
    _check_even(here * machines == size, f"{here} of {size} ranks are here")
    rank = _number("RANK")
    _check_fits("RANK", rank, "WORLD_SIZE", size)
    if "LOCAL_RANK" in os.environ:
        local = _number("LOCAL_RANK")
        _check_fits("LOCAL_RANK", local, counts[0] if counts else "WORLD_SIZE", here)
        if local > rank:
            raise WrongCallError(
                f"LOCAL_RANK is {local} and RANK is {rank}, which cannot be less: set both"
                f" alike, or {_PASS}"
            )
    job = _joined(
        *("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT")
    )
    node = os.environ.get("GROUP_RANK")
    return World(
        *(rank, size, here, f"torchrun-{job}", int(node) if node else None),
        is_counted=size == 1 or bool(counts),
    )


def _lightning() -> World | None:
    """Lightning's own launcher says which process of a machine this is, and which machine of the job;
    how many processes a machine has, it does not say."""
    if not all(name in os.environ for name in ("NODE_RANK", "LOCAL_RANK", "WORLD_SIZE")):
        return None
    size = _number("WORLD_SIZE")
    outer = _mpi() or _slurm()
    if outer is not None and outer.size == size:
        return None  # that one has started each process by itself, and knows more
    node, local = _number("NODE_RANK"), _number("LOCAL_RANK")
    here = _number("LOCAL_WORLD_SIZE", size)
    if node > 0 and "LOCAL_WORLD_SIZE" not in os.environ:
        raise WrongCallError(
            f"NODE_RANK is {node} and LOCAL_RANK {local}, which with no LOCAL_WORLD_SIZE do not tell"
            " the rank: make the loader when torch.distributed is initialised, as in Lightning's"
            f" train_dataloader, or {_PASS}"
        )
    _check_even(here > 0 and size % here == 0, f"{here} of {size} ranks are here")
    _check_fits("LOCAL_RANK", local, "LOCAL_WORLD_SIZE" if here < size else "WORLD_SIZE", here)
    rank = node * here + local
    if rank >= size:
        raise WrongCallError(
            f"NODE_RANK is {node} and LOCAL_RANK {local}, and WORLD_SIZE is {size}: {_PASS}"
        )
    job = _joined("MASTER_ADDR", "MASTER_PORT")
    return World(rank, size, here, f"lightning-{job}", None, "LOCAL_WORLD_SIZE" in os.environ)


def _whole(found: World | None) -> World | None:
    """Refuses a WORLD_SIZE that no source of ranks goes with."""
    if "WORLD_SIZE" not in os.environ:
        return found
    size = _number("WORLD_SIZE")
    if found is not None and found.size > 1 and found.size != size:
        raise WrongCallError(
            f"WORLD_SIZE is {size}, and the launcher has started {_ranks(found.size)}: unset it,"
            f" or {_PASS}"
        )
    if size > 1 and (found is None or found.size != size):
        raise WrongCallError(
            f"WORLD_SIZE is {size} and nothing says which rank this process is: set RANK, or {_PASS}"
        )
    return found


def _mpi() -> World | None:
    """mpirun. Inside a Slurm job, what Slurm has set is of mpirun's daemon, not of the rank."""
    if "OMPI_COMM_WORLD_RANK" in os.environ and "OMPI_COMM_WORLD_SIZE" in os.environ:
        names = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE")
        job = os.environ.get("PMIX_NAMESPACE") or os.environ.get("OMPI_MCA_ess_base_jobid")
        job = job or _starter(names[0])
    elif "PMI_RANK" in os.environ and "PMI_SIZE" in os.environ:  # MPICH, Intel, Cray
        names = ("PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS")
        if os.environ.get("SLURM_PROCID") == os.environ["PMI_RANK"] and names[2] not in os.environ:
            return None  # srun itself speaks this protocol
        job = _starter(names[0])
    else:
        return None
    rank, size = _number(names[0]), _number(names[1])
    here = _number(names[2], size)
    _check_fits(names[0], rank, names[1], size)
    _check_even(here > 0 and size % here == 0, f"{here} of {size} ranks are here")
    is_counted = size == 1 or names[2] in os.environ
    return World(rank, size, here, f"mpi-{job}", None, is_counted)


def _starter(variable: str) -> str:
    """The process that has started the ranks of this machine: the nearest above that has no such
    variable itself. There may be shells in between."""
    process = os.getppid()
    while process > 1:
        try:
            environment = Path(f"/proc/{process}/environ").read_bytes()
            stat = Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2]
        except OSError:
            break
        if not any(each.startswith(f"{variable}=".encode()) for each in environment.split(b"\0")):
            return f"{process}-{stat.split()[19]}"
        process = int(stat.split()[1])
    return str(process)


def _slurm() -> World | None:
    if "SLURM_PROCID" not in os.environ or "SLURM_NTASKS" not in os.environ:
        return None
    size = _number("SLURM_NTASKS")
    if size > 1 and "SLURM_STEP_ID" not in os.environ:
        return None  # the batch script itself, not a task of srun
    # What the step has: a job may have more tasks than one of its steps.
    size = _number("SLURM_STEP_NUM_TASKS", size)
    rank = _number("SLURM_PROCID")
    _check_fits("SLURM_PROCID", rank, "SLURM_NTASKS", size)
    tasks = os.environ.get("SLURM_STEP_TASKS_PER_NODE", os.environ.get("SLURM_TASKS_PER_NODE", ""))
    # Such as "8", "8(x4)", or "8(x2),4" where they differ.
    counts = {part.split("(")[0] for part in tasks.split(",") if part}
    _check_even(len(counts) < 2, f"SLURM_STEP_TASKS_PER_NODE is {tasks}")
    here = int(counts.pop()) if counts else size
    _check_even(here > 0 and size % here == 0, f"{here} of {size} ranks are here")
    job = _joined("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT")
    node = os.environ.get("SLURM_NODEID")
    return World(rank, size, here, f"slurm-{job}", int(node) if node else None)


def _check_fits(name: str, value: int, limit_name: str, limit: int) -> None:
    if not 0 <= value < limit:
        raise WrongCallError(
            f"{name} is {value} and {limit_name} is {limit}: set what your launcher has, or {_PASS}"
        )


def _check_even(is_even: bool, found: str) -> None:
    """The memory of a rank decides about the order, so it must be the same on every machine."""
    if not is_even:
        raise WrongCallError(
            f"every machine must have the same number of ranks, and {found}: start as many on each"
        )


def _joined(*names: str) -> str:
    return "-".join(os.environ.get(name, "") for name in names)


def _ranks(count: int) -> str:
    return "1 rank" if count == 1 else f"{count} ranks"


def _listed(counts: object) -> str:
    return ", ".join(map(str, sorted(counts)))  # type: ignore[call-overload]


def _number(name: str, otherwise: int | None = None) -> int:
    text = os.environ.get(name)
    if text is None and otherwise is not None:
        return otherwise
    try:
        return int(text or "")
    except ValueError:
        raise WrongCallError(f"the environment variable {name} is {text!r}, not a number") from None
