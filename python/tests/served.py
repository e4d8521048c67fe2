"""A node that serves the tests of a whole file, which so need not wait for Java to start.

A test file has it with `pytest_plugins = ["served"]`, and a dataset that suits most tests.
"""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import PackedFiles

from gristway import java

NAME = "tests"
# How long the node may take to let go of what a loader had.
GRACE_SECONDS = 5
_PR_SET_PDEATHSIG = 1


class Served:
    """A named node. Loaders with other settings can use it one after the other."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="gw-", dir="/tmp"))
        self._process = subprocess.Popen(
            java.command_line(["serve", NAME]),
            env={**java.environment(), "GRISTWAY_RUNTIME_DIR": str(self._folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            preexec_fn=_end_with_parent,
        )
        assert self._process.stdout is not None
        with self._process.stdout as said:
            assert b"ready" in said.readline()
        (self.socket,) = self._folder.glob("*.sock")
        self._files = self._open_files()

    @property
    def name(self) -> str:
        """What loaders call it."""
        return NAME

    @property
    def pid(self) -> int:
        return self._process.pid

    def _open_files(self) -> int:
        """How many files the node has open: sockets, memory and data."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def idle(self) -> str:
        """Waits until the node has let go of whatever earlier loaders had; its name."""
        if self._open_files() > self._files:
            gc.collect()
        deadline = time.monotonic() + GRACE_SECONDS
        while self._open_files() > self._files:
            assert time.monotonic() < deadline, (
                f"a node that nobody uses has {self._open_files() - self._files} files open"
            )
            time.sleep(0.002)
        return NAME

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder)


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@pytest.fixture(scope="module")
def serving() -> Iterator[list[Served]]:
    """The node, once a test has wanted it."""
    running: list[Served] = []
    yield running
    for each in running:
        each.end()


@pytest.fixture
def served(serving: list[Served]) -> Served:
    """The node, which runs already when the test's own runtime folder is made."""
    if not serving:
        serving.append(Served())
    return serving[0]


@pytest.fixture
def node(serving: list[Served], served: Served, runtime_dir: Path) -> Iterator[Served]:
    """A node, under its name in the test's own runtime folder.

    Fails the test if it leaves the node with anything open.
    """
    link = runtime_dir / served.socket.name
    link.symlink_to(served.socket)
    try:
        yield served
        # A test that has failed leaves its loaders where debuggers look.
        sys.last_type = sys.last_value = sys.last_traceback = None
        served.idle()
    except BaseException:
        # The next test gets a fresh one.
        served.end()
        serving.clear()
        raise
    finally:
        link.unlink()


@pytest.fixture
def small(dataset: Callable[..., PackedFiles]) -> PackedFiles:
    """103 samples of 4 classes: with batches of 10, the last one has 3."""
    return dataset(samples=103, size=(200, 2000), labels=4)
