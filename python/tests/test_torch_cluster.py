"""The examples for several machines, as a user runs them: on loopback, and in network namespaces."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cluster import free_port
from conftest import descendants
from namespaces import NETWORK, machines
from pictures import PICTURES, Pictures, pictures
from processes import nodes
from test_torch_examples import EXAMPLES

__all__ = ["pictures"]


ROOT = EXAMPLES.parents[1]
TORCHRUN = ROOT / "examples" / "torchrun" / "train.sh"
SBATCH = ROOT / "examples" / "slurm" / "train.sbatch"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the scripts call, of this Python, and an `srun` that knows one machine."""
    folder = tmp_path_factory.mktemp("programs")
    fake_srun = Path(__file__).with_name("fake_srun.py")
    for name, what in (
        ("python", ""),
        ("torchrun", " -m torch.distributed.run"),
        ("srun", f" {fake_srun}"),
    ):
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable}{what} "$@"\n')
        program.chmod(0o755)
    return folder


@dataclass(frozen=True)
class Place:
    """Where two machines are: their addresses, what their user sets there, and what a command begins
    with that is run on one of them."""

    addresses: tuple[str, str] = ("127.0.0.1", "127.0.0.1")
    variables: Mapping[str, str] = field(default_factory=dict)
    inside: Callable[[int], list[str]] = lambda node: []


@pytest.fixture(params=["namespaces", "loopback"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if request.param == "loopback":
        yield Place()
        return
    with machines(2) as two:
        # Gloo otherwise takes the address that the machine's name stands for.
        variables = {"GRISTWAY_LISTEN": NETWORK, "GLOO_SOCKET_IFNAME": "eth0"}
        yield Place((two.address(0), two.address(1)), variables, two.inside)


def _start(
    programs: Path,
    script: Path,
    variables: Mapping[str, object],
    *arguments: object,
    inside: Sequence[str] = (),
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*inside, str(script), *map(str, arguments)],
        cwd=ROOT,
        env={
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(sys.path),
            "OMP_NUM_THREADS": "1",
            "GRISTWAY_LISTEN": "127.0.0.1",
            **{name: str(value) for name, value in variables.items()},
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _torchrun(
    programs: Path, place: Place, nodes: int, node: int, port: int, *arguments: object
) -> subprocess.Popen[str]:
    variables = {"RANKS": 2, "MASTER_PORT": port, **place.variables}
    words = (nodes, node, place.addresses[0], *arguments)
    return _start(programs, TORCHRUN, variables, *words, inside=place.inside(node))


def _noted(folder: Path, last: int | None = None) -> Counter[tuple[int, int]]:
    """How often each sample was trained with in each epoch, up to a step."""
    counted: Counter[tuple[int, int]] = Counter()
    for file in folder.iterdir():
        for line in file.read_text().splitlines():
            epoch, step, *numbers = map(int, line.split())
            if last is None or step <= last:
                counted.update((epoch, number) for number in numbers)
    return counted


@pytest.mark.thorough
def test_a_machine_is_killed_and_named_and_the_job_goes_on_with_the_one_that_is_left(
    pictures: Pictures,
    runtime_dir: Path,
    tmp_path: Path,
    programs: Path,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GRISTWAY_JOB_SECRET", secrets.token_hex(16))
    checkpoint, before, after = tmp_path / "state.pt", tmp_path / "before", tmp_path / "after"
    before.mkdir()
    after.mkdir()
    port = free_port() - 1
    running = [
        _torchrun(programs, place, 2, node, port, pictures.path, checkpoint, before)
        for node in range(2)
    ]
    try:
        assert running[0].stdout is not None
        for line in running[0].stdout:
            if line.startswith("step 5:"):
                assert len(nodes(runtime_dir)) == 2
            if line.startswith("step 10:"):
                break
        # The machine, as far as it is one; at once, so that there is much left of the epoch.
        for pid in [running[1].pid, *descendants(running[1].pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        said, _ = running[0].communicate(timeout=90)
        assert running[0].returncode != 0
        assert f"MachineError: node 1 at {place.addresses[1]}:" in said, said
    finally:
        for each in running:
            for pid in descendants(each.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            each.kill()
            each.communicate()

    import torch

    done = torch.load(checkpoint)["step"]
    port = free_port() - 1
    alone = _torchrun(programs, place, 1, 0, port, pictures.path, checkpoint, after)
    said, _ = alone.communicate(timeout=120)
    assert alone.returncode == 0, said
    assert said.splitlines()[-1] == "done"
    assert re.search(rf"step {done + 5}:", said), said
    trained = _noted(before, done) + _noted(after)
    assert trained == Counter((epoch, number) for epoch in range(2) for number in range(PICTURES))


def test_the_script_for_slurm_trains_with_every_sample_once(
    pictures: Pictures, runtime_dir: Path, tmp_path: Path, programs: Path
) -> None:
    noted = tmp_path / "noted"
    noted.mkdir()
    # As sbatch sets them for the script itself.
    variables = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": free_port() - 1,
        "SLURM_JOB_ID": 4711,
        "SLURM_NNODES": 2,
        "SLURM_NTASKS": 2,
        "SLURM_PROCID": 0,
        "SLURM_TASKS_PER_NODE": "1(x2)",
    }
    running = _start(programs, SBATCH, variables, pictures.path, tmp_path / "state.pt", noted)
    said, _ = running.communicate(timeout=110)
    assert running.returncode == 0, said
    assert said.splitlines()[-1] == "done"
    assert {file.name for file in noted.iterdir()} == {"0-of-2", "1-of-2"}
    everything = Counter((epoch, number) for epoch in range(2) for number in range(PICTURES))
    assert _noted(noted) == everything


@pytest.mark.parametrize("script", [TORCHRUN, SBATCH], ids=["torchrun", "slurm"])
def test_a_script_is_one_that_a_shell_understands(script: Path) -> None:
    subprocess.run(["bash", "-n", script], check=True)
    assert os.access(script, os.X_OK)


def test_without_a_secret_nothing_is_started(programs: Path) -> None:
    without = {"GRISTWAY_JOB_SECRET": ""}
    running = _start(programs, TORCHRUN, without, 2, 0, "127.0.0.1", "DATASET", "CHECKPOINT")
    said, _ = running.communicate(timeout=30)
    assert running.returncode != 0
    assert "GRISTWAY_JOB_SECRET: is not set: make a secret with" in said
