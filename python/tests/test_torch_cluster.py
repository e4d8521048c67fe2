"""The example for several machines under torchrun, as a user runs it: two nodes on loopback."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from cluster import free_port
from conftest import descendants
from pictures import PICTURES, Pictures, pictures
from processes import nodes
from test_torch_examples import EXAMPLES

__all__ = ["pictures"]


def _torchrun(
    nodes: int, node: int, port: int, secret: str, *arguments: object
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"),
            *("--nnodes", str(nodes), "--node-rank", str(node)),
            *("--master-addr", "127.0.0.1", "--master-port", str(port)),
            *(str(EXAMPLES / "ddp.py"), *map(str, arguments)),
        ],
        env={
            **os.environ,
            "GRISTWAY_JOB_SECRET": secret,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "OMP_NUM_THREADS": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _noted(folder: Path, last: int | None = None) -> Counter[tuple[int, int]]:
    """How often each sample was trained with in each epoch, up to a step."""
    counted: Counter[tuple[int, int]] = Counter()
    for file in folder.iterdir():
        for line in file.read_text().splitlines():
            epoch, step, *numbers = map(int, line.split())
            if last is None or step <= last:
                counted.update((epoch, number) for number in numbers)
    return counted


def test_a_node_is_killed_and_the_job_goes_on_with_the_one_that_is_left(
    pictures: Pictures, runtime_dir: Path, tmp_path: Path
) -> None:
    checkpoint, before, after = tmp_path / "state.pt", tmp_path / "before", tmp_path / "after"
    before.mkdir()
    after.mkdir()
    port, secret = free_port() - 1, secrets.token_hex(16)
    running = [
        _torchrun(2, node, port, secret, pictures.path, checkpoint, before) for node in range(2)
    ]
    try:
        assert running[0].stdout is not None
        for line in running[0].stdout:
            if line.startswith("step 10:"):
                break
        assert len(nodes(runtime_dir)) == 2
        for pid in [
            running[1].pid,
            *descendants(running[1].pid),
        ]:  # the machine, as far as it is one
            os.kill(pid, signal.SIGKILL)
        said, _ = running[0].communicate(timeout=90)
        assert running[0].returncode != 0
        # Whatever a rank waits for, the other's gradients or its samples, says so first.
        assert "node 1 at 127.0.0.1:" in said or "gloo" in said, said
    finally:
        for each in running:
            for pid in descendants(each.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            each.kill()
            each.communicate()

    import torch

    done = torch.load(checkpoint)["step"]
    alone = _torchrun(1, 0, free_port() - 1, secret, pictures.path, checkpoint, after)
    said, _ = alone.communicate(timeout=120)
    assert alone.returncode == 0, said
    assert said.splitlines()[-1] == "done"
    assert re.search(rf"step {done + 5}:", said), said
    trained = _noted(before, done) + _noted(after)
    assert trained == Counter((epoch, number) for epoch in range(2) for number in range(PICTURES))
