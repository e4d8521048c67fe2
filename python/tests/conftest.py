"""What the tests share: the command line, packed datasets, and a watch over what tests leave."""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gristway import java
from gristway.errors import MachineError

pytest_plugins = ["tags", "limits"]

SOURCE = Path(__file__).resolve().parents[1] / "src"
# How long processes may take to end after the test that started them.
GRACE_SECONDS = 5
# Small enough for a test's dataset to have several.
CHUNKS = "--chunk-size=64KiB"


def pytest_configure(config: pytest.Config) -> None:
    # Processes that tests start use the same package, and the same jar without looking for it.
    paths = [str(SOURCE), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    # Processes that end within seconds spend more on the optimizing compiler than it saves. The long
    # run has what users have.
    if not config.pluginmanager.get_plugin("tags").is_thorough():
        os.environ.setdefault("GRISTWAY_JAVA_OPTS", "-XX:TieredStopAtLevel=1")
    if not config.option.collectonly:
        try:
            os.environ["GRISTWAY_JAR"] = str(java.jar())
        except MachineError as error:
            pytest.exit(str(error), returncode=3)


@pytest.fixture(scope="session")
def gristway_command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Returns a function that runs the command line: run("info", path, check=False).

    Its result has returncode, stdout and stderr. Unless `check` is False, a failure raises an
    error that shows what the command said.
    """

    def run(*arguments: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            java.command_line([str(each) for each in arguments]),
            env=java.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{arguments} ended with {done.returncode}:\n{done.stderr}")
        return done

    return run


@dataclass(frozen=True)
class PackedFiles:
    """A dataset, and what was packed into it.

    `path` is the dataset, `files` the folder that it was packed from; `keys` are the samples' keys,
    sorted. Tests share them: one that wants to change a dataset copies it first.
    """

    path: Path
    files: Path
    keys: tuple[str, ...]
    size: tuple[int, int]
    labels: int
    _by_content: dict[bytes, str] = field(default_factory=dict, repr=False, compare=False)

    def data(self, key: str) -> bytes:
        """Returns the bytes of a sample."""
        low, high = self.size
        length = low
        if high > low:
            number = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")
            length += number % (high - low + 1)
        return hashlib.shake_128(key.encode()).digest(length)

    def label(self, key: str) -> int:
        """Returns the label of a sample: its folder's number, -1 if it lies in none."""
        return int(key.split("/")[0].removeprefix("class")) if "/" in key else -1

    def key(self, data: object) -> str:
        """Returns whose bytes these are (anything with the buffer interface); fails if nobody's."""
        if not self._by_content:
            self._by_content.update({self.data(each): each for each in self.keys})
        return self._by_content[bytes(memoryview(data))]  # type: ignore[arg-type]


def _write_files(folder: Path, samples: int, size: tuple[int, int], labels: int) -> PackedFiles:
    names = [f"{number:07d}.bin" for number in range(samples)]
    if labels:
        names = [f"class{number % labels:04d}/{name}" for number, name in enumerate(names)]
    packed = PackedFiles(folder / "data.gw", folder / "files", tuple(sorted(names)), size, labels)
    packed.files.mkdir(parents=True)
    for number in range(labels):
        (packed.files / f"class{number:04d}").mkdir()
    for name in names:
        (packed.files / name).write_bytes(packed.data(name))
    return packed


@pytest.fixture(scope="session")
def dataset(
    tmp_path_factory: pytest.TempPathFactory,
    gristway_command: Callable[..., subprocess.CompletedProcess[str]],
) -> Callable[..., PackedFiles]:
    """Returns a function that gives a dataset of small files: dataset(samples=100, labels=10).

    `size` is that of every sample, or the smallest and the largest; bytes and sizes follow from a
    sample's key. With `labels` the samples lie in so many folders, in turn. Chunks are small, so that
    there are several, as in any dataset that somebody trains with. `pack` are more options for
    `gristway pack`. Calls with the same arguments give the same dataset.
    """
    made: dict[tuple[object, ...], PackedFiles] = {}

    def make(
        *,
        samples: int = 1000,
        size: int | tuple[int, int] = 100,
        labels: int = 0,
        pack: tuple[str, ...] = (),
    ) -> PackedFiles:
        sizes = size if isinstance(size, tuple) else (size, size)
        key = (samples, sizes, labels, pack)
        if key not in made:
            packed = _write_files(tmp_path_factory.mktemp("dataset"), samples, sizes, labels)
            gristway_command("pack", CHUNKS, *pack, packed.files, packed.path)
            made[key] = packed
        return made[key]

    return make


@pytest.fixture
def runtime_dir(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A runtime folder of the test's own, which `GRISTWAY_RUNTIME_DIR` names while it runs.

    Fails the test if afterwards the folder holds anything but socket files, or if a process that
    was started with it, or forked by the test, is alive after five seconds.
    """
    # The path of a Unix socket has at most 107 bytes, and pytest's folders have long names.
    folder = Path(tempfile.mkdtemp(prefix="gw-", dir="/tmp"))
    monkeypatch.setenv("GRISTWAY_RUNTIME_DIR", str(folder))
    _stop_forkserver()
    before = descendants(os.getpid())
    yield folder
    _stop_forkserver()
    alive = _await_end(folder, before)
    for pid in alive:
        _kill(pid)
    left = [
        str(each.relative_to(folder))
        for each in folder.rglob("*")
        if not stat.S_ISSOCK(each.lstat().st_mode)
    ]
    shutil.rmtree(folder)
    assert not alive, f"still running after the test, killed now: {list(alive.values())}"
    assert not left, f"left in the runtime folder: {left}"


def _stop_forkserver() -> None:
    """A fork server lives on with the environment of the test that started it, so each gets one."""
    multiprocessing.forkserver._forkserver._stop()  # type: ignore[attr-defined]


def _await_end(folder: Path, before: set[int]) -> dict[int, str]:
    """Returns the test's processes (id, command) that do not end within five seconds."""
    # Python starts this one when it is first needed, for the whole session.
    tracker = multiprocessing.resource_tracker._resource_tracker._pid  # type: ignore[attr-defined]
    deadline = time.monotonic() + GRACE_SECONDS
    seen: set[int] = set()
    while True:
        ours = _processes_with(f"GRISTWAY_RUNTIME_DIR={folder}")
        ours |= descendants(os.getpid()) - before
        ours -= {os.getpid(), tracker}
        alive = {pid: _command(pid) for pid in ours}
        # A process that has ended and is not waited for has no command.
        alive = {pid: words for pid, words in alive.items() if words}
        # One that has ended during this look may have started another, which it came too early for.
        if (not alive and ours <= seen) or time.monotonic() > deadline:
            return alive
        seen |= ours
        time.sleep(0.02)


def _processes_with(setting: str) -> set[int]:
    """Returns the processes that were started with this environment variable."""
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                environment = Path("/proc", entry, "environ").read_bytes()
            except OSError:
                continue  # It has ended, or is another user's.
            if setting.encode() in environment.split(b"\0"):
                found.add(int(entry))
    return found


def descendants(pid: int) -> set[int]:
    found = set()
    for task in Path("/proc", str(pid), "task").glob("*/children"):
        try:
            children = {int(each) for each in task.read_text().split()}
        except OSError:
            continue
        for child in children:
            found |= {child} | descendants(child)
    return found


def _command(pid: int) -> str:
    try:
        return Path("/proc", str(pid), "cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
