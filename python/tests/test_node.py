"""Nodes with a name: `gristway serve NAME`."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import PackedFiles
from processes import apart, eventually, handover_bytes, memory_files

import gristway
from gristway import java

PROGRAM = Path(__file__).with_name("kills_program.py")


@pytest.fixture(scope="module")
def packed(dataset: Callable[..., PackedFiles]) -> PackedFiles:
    return dataset(samples=200, size=(500, 1500))


class Serving:
    """A node that `gristway serve` runs."""

    def __init__(self, name: str) -> None:
        self.process = subprocess.Popen(
            java.command_line(["serve", name]),
            env=java.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        self.said = self.process.stdout.readline()

    @property
    def pid(self) -> int:
        return self.process.pid

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """Its exit code, and what else it has said."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=10)
        return self.process.returncode, out, err


@pytest.fixture
def serve(runtime_dir: Path) -> Iterator[Callable[[str], Serving]]:
    """Returns a function that runs a named node, until the test is over."""
    started: list[Serving] = []

    def start(name: str) -> Serving:
        started.append(Serving(name))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.communicate()


def _loader(packed: PackedFiles, node: str | None, **options: object) -> gristway.Loader:
    given = {"batch_size": 8, "seed": 1, "memory": "1MiB", "node": node, **options}
    return gristway.Loader(packed.path, **given)  # type: ignore[arg-type]


def _keys(packed: PackedFiles, loader: gristway.Loader) -> list[str]:
    return [packed.key(view) for data, _ in loader for view in data]


def test_a_named_node_says_one_line_and_reads_as_any_other(
    packed: PackedFiles, serve: Callable[[str], Serving], runtime_dir: Path
) -> None:
    with _loader(packed, None) as own:
        expected = _keys(packed, own)
    node = serve("training")
    assert node.said == "node 'training' is ready\n"
    with _loader(packed, "training") as loader:
        assert _keys(packed, loader) == expected
    code, out, err = node.end()
    assert (out, err) == ("", "")
    assert code == 128 + signal.SIGTERM
    assert not list(runtime_dir.iterdir())


def test_one_job_after_the_other_may_use_it_each_with_settings_of_its_own(
    packed: PackedFiles, serve: Callable[[str], Serving]
) -> None:
    node = serve("a")
    for seed in (1, 2, 3):
        with _loader(packed, "a", seed=seed, batch_size=8 * seed) as loader:
            assert sorted(_keys(packed, loader)) == list(packed.keys)
    eventually(lambda: not memory_files(node.pid), "all memory is given back")
    assert handover_bytes(node.pid) == 0
    assert node.process.poll() is None


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"seed": 2}, "seed=1, not 2"),
        ({"batch_size": 9}, "batch=8, not 9"),
        ({"memory": "2MiB"}, "memory=1048576, not 2097152"),
    ],
)
def test_while_a_job_uses_it_one_with_other_settings_is_refused(
    other: dict[str, object], named: str, packed: PackedFiles, serve: Callable[[str], Serving]
) -> None:
    serve("busy")
    with _loader(packed, "busy") as loader:
        batches = iter(loader)
        next(batches)
        with pytest.raises(gristway.WrongCallError) as raised:
            _loader(packed, "busy", **other)
        assert named in str(raised.value)
        # The one that is there does not notice.
        assert sum(1 for _ in batches) == 24
    eventually(lambda: _opens(packed, **other), "the other may, when it is free")


def _opens(packed: PackedFiles, **options: object) -> bool:
    try:
        _loader(packed, "busy", **options).close()
    except gristway.WrongCallError:
        return False
    return True


def test_ranks_of_one_job_share_it(packed: PackedFiles, serve: Callable[[str], Serving]) -> None:
    node = serve("both")
    job = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_PORT": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, PROGRAM, packed.path, "batch_size=8", "node=both"],
            env={**os.environ, **job, "RANK": str(rank)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    received: list[int] = []
    for rank in ranks:
        said, _ = rank.communicate()
        first, *batches, over = said.splitlines()
        assert (first, over) == ("begun", "over")
        received += [int(number) for batch in batches for number in batch.strip("[]").split(",")]
    assert sorted(received) == list(range(len(packed.keys)))
    assert node.process.poll() is None


def test_a_name_that_nobody_has_is_an_error_with_the_command(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    begin = time.monotonic()
    with pytest.raises(gristway.MachineError, match="'gristway serve nobody'"):
        _loader(packed, "nobody")
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("name", ["", "a/b", ".hidden", "../up"])
def test_what_can_be_no_name_is_a_wrong_call(
    name: str,
    packed: PackedFiles,
    runtime_dir: Path,
    gristway_command: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    with pytest.raises(gristway.WrongCallError, match="name"):
        _loader(packed, name)
    done = gristway_command("serve", name, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["two words", "größe", "it's", "%n"])
def test_any_other_name_will_do(
    name: str, packed: PackedFiles, serve: Callable[[str], Serving]
) -> None:
    assert serve(name).said == f"node '{name}' is ready\n"
    with _loader(packed, name) as loader:
        assert len(loader) == 25


def test_a_name_is_taken_once(
    packed: PackedFiles,
    serve: Callable[[str], Serving],
    gristway_command: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    node = serve("taken")
    with _loader(packed, "taken") as loader:
        done = gristway_command("serve", "taken", check=False)
        assert (done.returncode, done.stdout) == (3, "")
        assert "another node has this name" in done.stderr
        assert len(_keys(packed, loader)) == len(packed.keys)
    assert node.process.poll() is None


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name
)
def test_when_it_is_ended_its_jobs_are_told_and_none_starts_another(
    number: signal.Signals,
    packed: PackedFiles,
    serve: Callable[[str], Serving],
    runtime_dir: Path,
) -> None:
    node = serve("ends")
    with _loader(packed, "ends") as loader:
        batches = iter(loader)
        next(batches)
        code, _, err = node.end(number)
        assert code == (-9 if number == signal.SIGKILL else 128 + number)
        assert err == ""
        with pytest.raises(gristway.LostNodeError):
            list(batches)
        with pytest.raises(gristway.Error):
            list(loader)
    left = list(runtime_dir.iterdir())
    assert len(left) == (1 if number == signal.SIGKILL else 0)
    # The next one takes away what was left.
    assert serve("ends").said
    with _loader(packed, "ends") as loader:
        assert len(_keys(packed, loader)) == len(packed.keys)


def test_a_job_that_waits_for_data_when_it_is_ended_is_told_too(
    packed: PackedFiles, serve: Callable[[str], Serving]
) -> None:
    node = serve("ends")
    with _loader(packed, "ends", batch_size=1) as loader:
        batches = iter(loader)
        next(batches)
        os.kill(node.pid, signal.SIGTERM)
        with pytest.raises(gristway.LostNodeError):
            while True:
                for _ in loader:
                    pass


def test_a_client_of_another_version_is_told_both(
    packed: PackedFiles, serve: Callable[[str], Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    serve("old")
    monkeypatch.setattr(java, "version", lambda: "77.1.0")
    with pytest.raises(gristway.WrongCallError) as raised:
        _loader(packed, "old")
    message = str(raised.value)
    assert "77.1.0" in message and gristway.__version__ in message
    assert "install the same version" in message and "\n" not in message


def test_clients_and_node_look_for_it_in_the_same_place(
    packed: PackedFiles, serve: Callable[[str], Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GRISTWAY_RUNTIME_DIR")
    variables = ("XDG_RUNTIME_DIR", "TMPDIR", "TEMP")
    for variable in variables:
        monkeypatch.delenv(variable, raising=False)
    name = f"place-{os.getpid()}"
    for variable in variables:
        with tempfile.TemporaryDirectory(prefix="gw-", dir="/tmp") as folder:
            monkeypatch.setenv(variable, folder)
            monkeypatch.setattr(tempfile, "tempdir", None)
            node = serve(name)
            with _loader(packed, name) as loader:
                assert len(loader) == 25
            node.end()
            monkeypatch.delenv(variable)


def test_what_is_no_client_is_sent_away_and_harms_nobody(
    packed: PackedFiles, serve: Callable[[str], Serving], runtime_dir: Path
) -> None:
    node = serve("sturdy")
    (path,) = runtime_dir.iterdir()
    with _loader(packed, "sturdy") as loader:
        batches = iter(loader)
        next(batches)
        silent = socket.socket(socket.AF_UNIX)
        silent.connect(str(path))  # and says nothing all the time
        for said in (
            b"",
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"\xff" * 64,
            struct.pack("<IB", 0, 1),
            struct.pack("<IB", 1 << 31, 1),
            struct.pack("<IB", 200 << 20, 1),
            struct.pack("<IB", 5, 9) + b"abcd",
            struct.pack("<IBi", 5, 1, 1),
        ):
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.connect(str(path))
                stranger.sendall(said)
                stranger.shutdown(socket.SHUT_WR)
                stranger.settimeout(10)
                with contextlib.suppress(ConnectionResetError):  # what it has not read is lost
                    while stranger.recv(1000):
                        pass
        silent.close()
        assert sum(1 for _ in batches) == 24
    assert node.process.poll() is None


def test_a_job_that_is_killed_leaves_nothing_in_it(
    packed: PackedFiles, serve: Callable[[str], Serving]
) -> None:
    node = serve("stays")
    alone = sorted(os.listdir(f"/proc/{node.pid}/fd"))

    def work() -> None:
        loader = _loader(packed, "stays")
        batches = iter(loader)
        kept = [next(batches) for _ in range(3)]
        assert len(kept) == 3
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(EOFError):
        apart(work)
    eventually(lambda: not memory_files(node.pid), "its memory is given back")
    eventually(
        lambda: len(os.listdir(f"/proc/{node.pid}/fd")) <= len(alone) + 2, "its files are closed"
    )
    with _loader(packed, "stays", seed=9) as loader:
        assert len(_keys(packed, loader)) == len(packed.keys)
