"""Small limits of a machine, which hold for all ranks of a job together."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PackedFiles
from processes import Apart, assert_no_node

import gristway
from gristway import java

RANKS = 4
CHUNKS = 700


def together(ranks: int, work: Callable[[int], Any]) -> list[Any]:
    """What each rank of a job returns, as torchrun starts them on one machine."""

    def run(rank: int) -> Any:
        os.environ.update(
            RANK=str(rank),
            WORLD_SIZE=str(ranks),
            LOCAL_RANK=str(rank),
            LOCAL_WORLD_SIZE=str(ranks),
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT="29500",
        )
        return work(rank)

    started = [Apart(lambda rank=rank: run(rank)) for rank in range(ranks)]  # type: ignore[misc]
    try:
        return [each.result() for each in started]
    finally:
        for each in started:
            each.kill()


# ---- descriptors --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many_chunks(dataset: Callable[..., PackedFiles]) -> PackedFiles:
    packed = dataset(samples=CHUNKS, size=(33_000, 36_000))
    assert len(list(packed.path.glob("chunk-*"))) == CHUNKS
    return packed


@pytest.mark.parametrize("limit", [256, 1024])
def test_four_ranks_read_many_chunks_with_few_descriptors(
    many_chunks: PackedFiles, runtime_dir: Path, limit: int
) -> None:
    epochs = 5

    def work(rank: int) -> list[list[str]]:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        settings: dict[str, Any] = {"memory": "16MiB", "extent": "64KiB"}
        with gristway.Loader(
            many_chunks.path, 25, transform=lambda sample: sample.key, collate_fn=list, **settings
        ) as loader:
            return [[key for batch in loader for key in batch] for _ in range(epochs)]

    received = together(RANKS, work)
    for epoch in range(epochs):
        keys = [key for each in received for key in each[epoch]]
        assert sorted(keys) == list(many_chunks.keys)
    assert_no_node(runtime_dir)


def test_the_command_line_reads_many_chunks_with_few_descriptors(many_chunks: PackedFiles) -> None:
    done = subprocess.run(
        java.command_line(["read", str(many_chunks.path), "--ranks", "4", "--epochs", "2"]),
        env=java.environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
