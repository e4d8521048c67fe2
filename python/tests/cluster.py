"""Jobs of several nodes on this machine, which meet over loopback, as tests run them."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("cluster_program.py")


class Raised(Exception):
    """What a rank has raised, in its words."""


class Rank:
    """A training process that does as it is told; see cluster_program.py."""

    def __init__(
        self,
        path: Path,
        environment: dict[str, str],
        options: dict[str, Any],
        inside: list[str],
    ) -> None:
        words = [f"{name}={value}" for name, value in options.items()]
        self.process = subprocess.Popen(
            [*inside, sys.executable, PROGRAM, path, *words],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._said: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._said.put(line)
        self._said.put("")

    def tell(self, order: str) -> None:
        assert self.process.stdin
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{order}\n")
            self.process.stdin.flush()

    def answer(self, seconds: float = 60) -> Any:
        line = self._said.get(timeout=seconds)
        if line.startswith("raised ") or not line:
            raise Raised(line.strip())
        return json.loads(line)

    def end(self) -> None:
        assert self.process.stdin
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()


class Job:
    """The ranks of a job."""

    def __init__(self, ranks: list[Rank]) -> None:
        self.ranks = ranks

    def take(self, count: int) -> list[list[list[str]]]:
        """Some batches of every rank."""
        for rank in self.ranks:
            rank.tell(str(count))
        return [[rank.answer() for _ in range(count)] for rank in self.ranks]

    def epoch(self) -> list[list[list[str]]]:
        """What is left of the epoch, for every rank."""
        taken: list[list[list[str]]] = [[] for _ in self.ranks]
        while True:
            for rank in self.ranks:
                rank.tell("1")
            answers = [rank.answer() for rank in self.ranks]
            if "over" in answers:
                assert all(answer == "over" for answer in answers)
                return taken
            for batches, batch in zip(taken, answers):
                batches.append(batch)

    def ask(self, what: str) -> list[Any]:
        for rank in self.ranks:
            rank.tell(what)
        return [rank.answer() for rank in self.ranks]


def environment(
    rank: int, nodes: int, ranks_here: int, port: int, secret: str, name: str = "job"
) -> dict[str, str]:
    """What torchrun sets, and a secret."""
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(nodes * ranks_here),
        "LOCAL_WORLD_SIZE": str(ranks_here),
        "GROUP_RANK": str(rank // ranks_here),
        "GROUP_WORLD_SIZE": str(nodes),
        "TORCHELASTIC_RUN_ID": name,
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(port),
        "GRISTWAY_JOB_SECRET": secret,
    }


def slurm_environment(
    rank: int, nodes: int, ranks_here: int, port: int, secret: str
) -> dict[str, str]:
    """What srun sets, and a secret; the port is the one that follows from the job's number."""
    return {
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(rank % ranks_here),
        "SLURM_NODEID": str(rank // ranks_here),
        "SLURM_NNODES": str(nodes),
        "SLURM_NTASKS": str(nodes * ranks_here),
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NODELIST": "localhost",
        "SLURM_STEP_TASKS_PER_NODE": f"{ranks_here}(x{nodes})",
        "SLURM_JOB_ID": str(port),
        "GRISTWAY_JOB_SECRET": secret,
    }


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextlib.contextmanager
def job(
    path: Path | list[Path],
    nodes: int,
    ranks_here: int,
    own: dict[int, dict[str, Any]] | None = None,
    variables: dict[str, str] | None = None,
    inside: Callable[[int], list[str]] = lambda node: [],
    launched: Callable[[int, int, int, int, str], dict[str, str]] = environment,
    **options: Any,
) -> Iterator[Job]:
    """A job whose ranks all have these options, and single ranks their own; with one dataset, or one
    for each node. `inside` gives what a command begins with on a node's machine, `launched` what the
    launcher sets."""
    paths = path if isinstance(path, list) else [path] * nodes
    port, secret = free_port() - 1, secrets.token_hex(16)
    ranks = [
        Rank(
            paths[number // ranks_here],
            {**launched(number, nodes, ranks_here, port, secret), **(variables or {})},
            {**options, **(own or {}).get(number, {})},
            inside(number // ranks_here),
        )
        for number in range(nodes * ranks_here)
    ]
    try:
        yield Job(ranks)
    finally:
        for rank in ranks:
            rank.end()
        for rank in ranks:
            try:
                rank.process.wait(10)
            except subprocess.TimeoutExpired:
                rank.process.kill()
                rank.process.wait()
