"""Fixtures of tests of kills. A test file has them with `pytest_plugins = ["nothing_left"]`, and uses all
of `pytestmark = pytest.mark.usefixtures("no_shared_memory_left", "the_end_of_a_worker_is_no_news")`.

Each test's tear-down adds that no process of it is alive, and that the runtime folder holds nothing
but sockets.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import PackedFiles
from kills import SAMPLES, Undisturbed
from processes import (
    eventually,
)


@pytest.fixture(scope="module")
def packed(dataset: Callable[..., PackedFiles]) -> PackedFiles:
    return dataset(samples=SAMPLES, size=(500, 1500))


@pytest.fixture
def no_shared_memory_left() -> Iterator[None]:
    before = _shared_memory()
    yield
    # What others on this machine use there, at the same time, is theirs.
    eventually(
        lambda: not any(_is_left(name) for name in _shared_memory() - before),
        "/dev/shm is as it was",
    )


@pytest.fixture
def the_end_of_a_worker_is_no_news(
    no_shared_memory_left: None, runtime_dir: Path
) -> Iterator[None]:
    """Once a worker of a DataLoader has died, torch raises whenever a child ends: also while what a
    failed test has left is killed."""
    if _torch_handler:
        signal.signal(signal.SIGCHLD, _torch_handler.pop())
    yield
    _torch_handler.append(signal.signal(signal.SIGCHLD, signal.SIG_DFL))


_torch_handler: list[Any] = []


def _shared_memory() -> set[str]:
    """What Gristway, torch and Python name in /dev/shm."""
    ours = ("gristway", "torch_", "sem.", "psm_", "pymp-")
    return {name for name in os.listdir("/dev/shm") if name.startswith(ours)}


def _is_left(name: str) -> bool:
    """True if no process uses it. What torch makes for a tensor has a name for a moment, before it
    has a size; a worker that is killed just then leaves the name, which is none of ours."""
    with contextlib.suppress(OSError):
        if name.startswith("torch_") and os.stat(f"/dev/shm/{name}").st_size == 0:
            return False
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            if f"/dev/shm/{name}\n" in maps.read_text():
                return False
    return os.path.exists(f"/dev/shm/{name}")


@pytest.fixture
def warnings(tmp_path: Path) -> Iterator[Callable[[str], int]]:
    """Returns a function that counts the warnings with a text in them, of this process and of all
    that it has forked."""
    file = tmp_path / "warnings"
    handler = logging.FileHandler(file)
    logger = logging.getLogger("gristway")
    logger.addHandler(handler)
    yield lambda text: sum(text in line for line in file.read_text().splitlines())
    logger.removeHandler(handler)
    handler.close()


@pytest.fixture(scope="module")
def undisturbed(packed: PackedFiles) -> Undisturbed:
    return Undisturbed(packed)
