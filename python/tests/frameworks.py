"""Runs the examples for training frameworks on two ranks, in two runs, and looks at what was given."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from conftest import PackedFiles

# Each takes a framework twenty seconds; the one with the most of its own code in between is in every
# build. The first is StreamDataset's, which transformers.Trainer has no way for.
WAYS = [
    pytest.param("stream", marks=pytest.mark.thorough),
    pytest.param("loader", marks=pytest.mark.thorough),
    "map",
]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
SECONDS = 240


def run(*words: object, refused: str = "") -> None:
    """Runs a program of Python; one that is refused says why."""
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (done.returncode != 0) == bool(refused), done.stderr[-4000:]
    assert refused in done.stderr


def stopped_and_gone_on(
    packed: PackedFiles, folder: Path, how: tuple[str, ...], example: str, kind: str
) -> None:
    """Stops an example in its second epoch, goes on, and fails unless both epochs gave every sample
    exactly once."""
    size = len(packed.keys)
    steps = size // 20  # of each rank in an epoch, in batches of 10
    folder.mkdir()
    words = (*how, EXAMPLES / example, packed.path, kind, folder)
    run(*words, steps + 3)
    notes = [(folder / f"rank-{rank}").read_text().splitlines() for rank in range(2)]
    assert [len(lines) for lines in notes] == [steps + 3] * 2
    run(*words)
    notes = [(folder / f"rank-{rank}").read_text().splitlines() for rank in range(2)]
    assert [len(lines) for lines in notes] == [2 * steps] * 2
    for epoch in range(2):
        lines = [line for rank in notes for line in rank[epoch * steps : (epoch + 1) * steps]]
        given = Counter(int(number) for line in lines for number in line.split(": ")[1].split())
        assert given == Counter(range(size)), f"{kind}, epoch {epoch}"
        assert {line.split(": ")[0] for line in lines} == {f"epoch {epoch}"}
