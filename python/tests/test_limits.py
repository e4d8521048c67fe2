"""Small limits of a machine, which hold for all ranks of a job together."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import resource
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PackedFiles
from processes import Apart, assert_no_node, handover_bytes, memory_limit, the_node

import gristway
from gristway import connection, java

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")

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


# ---- memory -------------------------------------------------------------------------------------


@needs_root
def test_ranks_that_do_not_fit_together_are_all_refused_and_none_is_killed(
    dataset: Callable[..., PackedFiles], runtime_dir: Path
) -> None:
    """Each of them alone would fit: one that was admitted by itself would be killed later."""
    ranks = 6
    large = dataset(samples=1000, size=(41_000, 43_000))

    def work(rank: int) -> str:
        group.write_text(str(os.getpid()))
        try:
            # 64 MiB for each, in extents that are as large as the chunks.
            with gristway.Loader(large.path, 50, policy="unbounded", extent="64KiB") as loader:
                for _ in loader:
                    pass
        except gristway.MachineError as refused:
            return str(refused)
        return "all was read"

    with memory_limit(400 << 20) as group:
        said = together(ranks, work)
        killed = [line for line in _events(group.parent) if line.startswith("oom_kill ")]
    for each in said:
        assert "are for all ranks of this machine" in each and "\n" not in each, said
    assert killed in ([], ["oom_kill 0"])
    assert_no_node(runtime_dir)


def _events(group: Path) -> list[str]:
    for name in ("memory.oom_control", "memory.events"):
        if (group / name).exists():
            return (group / name).read_text().splitlines()
    return []


# ---- the handover -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large_samples(dataset: Callable[..., PackedFiles]) -> PackedFiles:
    return dataset(samples=40, size=1_000_000)


def _shape(sample: gristway.Sample) -> tuple[int, int]:
    return int(sample.key.split(".")[0]), len(sample.data)


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_on_their_way_never_take_more_than_they_may(
    large_samples: PackedFiles, runtime_dir: Path, workers: int
) -> None:
    most = 21 << 20
    settings: dict[str, Any] = {"memory": "2MiB", "extent": "256KiB", "handover": most}
    with gristway.Loader(
        large_samples.path,
        10,
        transform=_shape,
        collate_fn=list,
        num_workers=workers,
        **settings,
    ) as loader:
        for _ in range(2):
            numbers = []
            for batch in loader:
                numbers += [number for number, _ in batch]
                counted = loader.stats()["node"]
                assert counted["handover-limit-bytes"] == most
                assert 0 < counted["handover-bytes"] <= most
                assert handover_bytes(the_node(runtime_dir)) <= most
            assert sorted(numbers) == list(range(40))


def test_without_a_word_batches_take_little_where_memory_is_little(
    large_samples: PackedFiles, runtime_dir: Path
) -> None:
    with gristway.Loader(large_samples.path, 10, memory="2MiB", extent="256KiB") as loader:
        assert sum(len(data) for data, _ in loader) == 40
        counted = loader.stats()["node"]
        assert counted["handover-bytes"] <= counted["handover-limit-bytes"] <= 64 << 20


def test_a_batch_that_cannot_fit_is_refused_with_what_would_do(
    large_samples: PackedFiles, runtime_dir: Path
) -> None:
    settings: dict[str, Any] = {"memory": "2MiB", "extent": "256KiB"}
    with gristway.Loader(large_samples.path, 10, handover="16MiB", **settings) as loader:
        with pytest.raises(gristway.WrongCallError) as caught:
            next(iter(loader))
    message = str(caught.value)
    assert "\n" not in message
    needed = re.search(r"at least (\d+) bytes", message)
    assert needed, message
    with gristway.Loader(
        large_samples.path, 10, handover=int(needed.group(1)), **settings
    ) as loader:
        assert sum(len(data) for data, _ in loader) == 40


def test_views_that_fill_the_room_are_refused_with_a_remedy(
    large_samples: PackedFiles, runtime_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_FULL_SECONDS", 2.0)
    with gristway.Loader(
        large_samples.path, 10, memory="2MiB", extent="256KiB", handover="24MiB"
    ) as loader:
        kept = []
        with pytest.raises(gristway.WrongCallError, match="let go of views.*handover="):
            for data, _ in loader:
                kept.append(data)
        assert len(kept) == 2


# ---- system calls -------------------------------------------------------------------------------


def _forbid_memory_files() -> None:
    """Makes memfd_create answer ENOSYS in this process and its children, as some containers do."""
    number = {"x86_64": 319, "aarch64": 279}[os.uname().machine]
    rules = (
        struct.pack("<HBBI", 0x20, 0, 0, 0),  # load the number of the call
        struct.pack("<HBBI", 0x15, 0, 1, number),  # if it is this one
        struct.pack("<HBBI", 0x06, 0, 0, 0x00050000 | errno.ENOSYS),  # then fail
        struct.pack("<HBBI", 0x06, 0, 0, 0x7FFF0000),  # else allow
    )
    code = ctypes.create_string_buffer(b"".join(rules), 8 * len(rules))
    program = struct.pack("<HxxxxxxQ", len(rules), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, program, 0, 0) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def test_a_container_without_memory_files_is_told_what_to_allow(
    large_samples: PackedFiles,
) -> None:
    done = subprocess.run(
        java.command_line(["read", str(large_samples.path), "--batch-size", "2"]),
        env=java.environment(),
        preexec_fn=_forbid_memory_files,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3
    assert "memfd_create" in done.stderr and "seccomp" in done.stderr
    assert "file system" not in done.stderr and done.stderr.count("\n") == 1
