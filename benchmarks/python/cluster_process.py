"""The processes of an arm of the cluster benchmark, and the control groups that they are in."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import run
import storage

HERE = Path(__file__).resolve().parent
PATIENCE = 120.0


class Process:
    """A process of an arm, which is told lines and answers in lines."""

    def __init__(
        self, command: list[str], groups: storage.Storage, variables: dict[str, str] | None = None
    ) -> None:
        self.groups = groups
        self._process = subprocess.Popen(
            command,
            env={**clean_environment(), **(variables or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=run.inside(groups, throttled=False),
        )
        assert self._process.stdout and self._process.stderr
        self._answers = run.Lines(self._process.stdout)
        self._errors = run.Lines(self._process.stderr)

    def tell(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        line = self._answers.next(PATIENCE)
        if not line:
            gone = self._process.poll() is not None
            raise run.Failed(self._errors.reason() if gone else f"no word in {PATIENCE:.0f} s")
        return line

    def throttle(self) -> None:
        self.groups.throttle(self._process.pid)

    def end(self) -> None:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            self.tell("end")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


def clean_environment() -> dict[str, str]:
    """Without what a launcher or a user may have set."""
    strange = ("GRISTWAY_", "SLURM_", "TORCHELASTIC_", "MASTER_")
    others = ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(strange) and name not in others
    }
    return {**kept, "PYTHONPATH": f"{HERE}:{run.ROOT / 'python' / 'src'}"}


@contextlib.contextmanager
def groups_of(
    profile: str, is_shared: bool, nodes: int, folder: Path
) -> Iterator[list[storage.Storage]]:
    """The control groups of the nodes: the same for all, or one for each."""
    made: list[storage.Storage] = []
    try:
        for node in range(1 if is_shared else nodes):
            made.append(storage.Storage(profile, folder, 0, f"-{node}"))
        yield [made[0] if is_shared else made[node] for node in range(nodes)]
    finally:
        for each in made:
            each.close()


@contextlib.contextmanager
def ended(processes: list[Process]) -> Iterator[None]:
    """Ends processes in any case; at once, if something has gone wrong."""
    try:
        yield
        for process in processes:
            process.groups.release()
        for process in processes:
            process.tell("end")
        for process in processes:
            process.end()
    finally:
        for process in processes:
            process.kill()


def java(*words: str) -> list[str]:
    """Our own program of Java benchmarks, as an arm."""
    path = os.environ["GRISTWAY_BENCHMARK_CLASSES"]
    program = [os.path.join(os.environ["JAVA_HOME"], "bin", "java"), "-Xmx1g", "-cp", path]
    return [*program, "--enable-native-access=ALL-UNNAMED", "org.gristway.benchmarks.Main", *words]
