"""What goes wrong on a machine: each time one clear error, or none."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kills_program
import pytest
from conftest import PackedFiles
from processes import apart, assert_no_node, eventually, fake_java, kill, nodes, the_node

import gristway
from gristway import java

PROGRAM = Path(__file__).with_name("kills_program.py")
BATCH = 8

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


@pytest.fixture(scope="module")
def packed(dataset: Callable[..., PackedFiles]) -> PackedFiles:
    return dataset(samples=200, size=(500, 1500))


def _open(path: object, **options: Any) -> gristway.Loader:
    return gristway.Loader(path, BATCH, **{"memory": "1MiB", **options})  # type: ignore[arg-type]


def _keys(packed: PackedFiles, loader: gristway.Loader) -> list[str]:
    return [packed.key(view) for data, _ in loader for view in data]


def _raised(kind: type[gristway.Error], call: Callable[[], Any], *named: str) -> None:
    """The call raises this kind of error, with one line that has all these words."""
    with pytest.raises(kind) as raised:
        call()
    message = str(raised.value)
    assert type(raised.value) is kind
    assert "\n" not in message
    for words in named:
        assert words in message
    assert "Traceback" not in message


# ---- Java ---------------------------------------------------------------------------------------


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], None]:
    """Returns a function that hides all Java from this process."""

    def hide() -> None:
        monkeypatch.delenv("GRISTWAY_JAVA_HOME", raising=False)
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(java, "_USUAL_FOLDERS", ())

    return hide


def test_without_a_jdk_the_error_says_what_to_install(
    packed: PackedFiles, runtime_dir: Path, no_java: Callable[[], None]
) -> None:
    no_java()
    _raised(gristway.MachineError, lambda: _open(packed.path), "no Java 25", "GRISTWAY_JAVA_HOME")


def test_when_the_jdk_goes_and_then_the_node_the_error_says_so(
    packed: PackedFiles, runtime_dir: Path, no_java: Callable[[], None]
) -> None:
    with _open(packed.path) as loader:
        batches = iter(loader)
        next(batches)
        no_java()
        kill(the_node(runtime_dir))
        # One more batch may have been on its way.
        _raised(gristway.MachineError, lambda: list(batches), "no Java 25")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("-Xmx1k", "Too small maximum heap"),
        ("-XX:NoSuchOption=1", "Unrecognized VM option 'NoSuchOption=1'"),
    ],
)
def test_a_jvm_that_cannot_start_says_why(
    options: str,
    reason: str,
    packed: PackedFiles,
    runtime_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GRISTWAY_JAVA_OPTS", options)
    _raised(gristway.MachineError, lambda: _open(packed.path), "could not be started", reason)
    assert not list(runtime_dir.iterdir())


def test_a_java_that_is_broken_is_named(
    packed: PackedFiles, runtime_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "java home"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text('JAVA_VERSION="25.0.1"\n')
    (home / "bin" / "java").write_text("this is no program\n")
    (home / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("GRISTWAY_JAVA_HOME", str(home))
    _raised(gristway.MachineError, lambda: _open(packed.path), str(home / "bin" / "java"))
    (home / "bin" / "java").write_text("#!/bin/sh\necho this library is missing >&2\nexit 9\n")
    _raised(
        gristway.MachineError, lambda: _open(packed.path), "this library is missing", "exit code 9"
    )


@pytest.mark.torch
def test_a_heap_that_is_too_small_is_called_that(
    packed: PackedFiles, runtime_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gristway.torch import MapDataset

    monkeypatch.setenv("GRISTWAY_JAVA_OPTS", "-Xmx4m")
    _raised(
        gristway.MachineError,
        lambda: MapDataset(packed.path, redirect=True, indices=[80_000_000]),
        "heap",
        "GRISTWAY_JAVA_OPTS=-Xmx",
    )


# ---- the data -----------------------------------------------------------------------------------


@pytest.fixture
def damaged(packed: PackedFiles, tmp_path: Path) -> tuple[Path, str]:
    """A copy of the dataset with a byte of one sample flipped, and that sample's key."""
    path = tmp_path / "damaged.gw"
    shutil.copytree(packed.path, path)
    chunk = path / "chunk-000000.gwc"
    victim = packed.keys[77]
    data = bytearray(chunk.read_bytes())
    at = data.index(packed.data(victim))
    data[at + 300] ^= 0x10
    chunk.write_bytes(data)
    return path, victim


def test_damage_is_told_and_flagged_and_everything_else_delivered(
    packed: PackedFiles,
    damaged: tuple[Path, str],
    runtime_dir: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path, victim = damaged
    with _open(
        path,
        transform=lambda sample: (bytes(sample.data), sample.is_damaged),
        collate_fn=kills_program.as_they_are,
    ) as loader:
        received = []
        for batch in loader:
            received += batch
            loader.state_dict()  # over another connection, which must not tell the same again
        assert loader.stats()["node"]["damaged"] == 1
    sound = [packed.key(data) for data, is_damaged in received if not is_damaged]
    assert sorted(sound) == [key for key in packed.keys if key != victim]
    (filler,) = [packed.key(data) for data, is_damaged in received if is_damaged]
    assert filler in sound
    # Once for this epoch, and once more if the next has been read that far.
    lines = [line for line in caplog.messages if victim in line]
    assert 1 <= len(lines) <= 2 and "chunk-000000.gwc" in lines[0]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_where_it_must_be_strict_damage_is_an_error(
    num_workers: int, damaged: tuple[Path, str], runtime_dir: Path
) -> None:
    path, victim = damaged
    with _open(
        path, strict=True, transform=kills_program.number, num_workers=num_workers
    ) as loader:
        _raised(gristway.DamagedDataError, lambda: list(loader), victim, "chunk-000000.gwc")


@pytest.mark.torch
def test_what_is_asked_for_by_index_and_damaged_is_an_error(
    packed: PackedFiles, damaged: tuple[Path, str], runtime_dir: Path
) -> None:
    from gristway.torch import MapDataset

    path, victim = damaged
    dataset = MapDataset(path)
    seen = []
    errors = []
    for index in range(len(dataset)):
        try:
            seen.append(packed.key(dataset[index][0]))
        except gristway.DamagedDataError as error:
            errors.append(str(error))
    assert sorted(seen) == [key for key in packed.keys if key != victim]
    assert len(errors) == 1 and victim in errors[0]


def test_a_damaged_snapshot_is_an_error(
    packed: PackedFiles, tmp_path: Path, runtime_dir: Path
) -> None:
    path = tmp_path / "damaged.gw"
    shutil.copytree(packed.path, path)
    (snapshot,) = path.glob("*.gws")
    data = bytearray(snapshot.read_bytes())
    data[20] ^= 1
    snapshot.write_bytes(data)
    _raised(gristway.DamagedDataError, lambda: _open(path), snapshot.name)
    snapshot.write_bytes(data[: len(data) // 2])
    _raised(gristway.DamagedDataError, lambda: _open(path), snapshot.name)
    assert_no_node(runtime_dir)


def test_a_missing_chunk_is_an_error(
    packed: PackedFiles, tmp_path: Path, runtime_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "incomplete.gw"
    shutil.copytree(packed.path, path)
    (path / "chunk-000000.gwc").unlink()

    def read() -> None:
        with _open(path) as loader:
            list(loader)

    _raised(gristway.DamagedDataError, read, "gristway verify")
    assert "chunk-000000.gwc is missing" in caplog.text


def test_what_is_no_dataset_is_a_wrong_call(
    packed: PackedFiles, tmp_path: Path, runtime_dir: Path
) -> None:
    absent = tmp_path / "absent.gw"
    _raised(gristway.WrongCallError, lambda: _open(absent), str(absent))
    _raised(gristway.WrongCallError, lambda: _open(tmp_path), str(tmp_path), "gristway pack")
    _raised(gristway.WrongCallError, lambda: _open(__file__), __file__)
    assert_no_node(runtime_dir)


def test_a_dataset_that_is_gone_when_the_node_is_started_again_is_told(
    packed: PackedFiles, tmp_path: Path, runtime_dir: Path
) -> None:
    path = tmp_path / "moved.gw"
    shutil.copytree(packed.path, path)
    with _open(path) as loader:
        batches = iter(loader)
        next(batches)
        path.rename(tmp_path / "elsewhere.gw")
        kill(the_node(runtime_dir))
        # One more batch may have been on its way.
        _raised(gristway.WrongCallError, lambda: list(batches), str(path))


@pytest.mark.parametrize("name", ["with spaces.gw", "Größe – 日本.gw", "100% 'odd' \"$x\";.gw"])
def test_any_path_will_do(
    name: str, packed: PackedFiles, tmp_path: Path, runtime_dir: Path
) -> None:
    path = tmp_path / name
    path.symlink_to(packed.path)
    moved = tmp_path / f"copy of {name}"
    shutil.copytree(packed.path, moved)
    with _open(moved) as loader:
        assert sorted(_keys(packed, loader)) == list(packed.keys)


def test_any_path_will_do_in_any_locale(packed: PackedFiles, tmp_path: Path) -> None:
    folder = Path(f"/tmp/gw-ö ü-{os.getpid()}")
    moved = tmp_path / "Größe.gw"
    shutil.copytree(packed.path, moved)
    done = subprocess.run(
        [sys.executable, PROGRAM, moved, "batch_size=8"],
        env={**os.environ, "LC_ALL": "C", "GRISTWAY_RUNTIME_DIR": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.stdout.endswith("over\n"), done.stderr
    assert_no_node(folder)
    folder.rmdir()


def test_a_path_that_no_node_can_be_told_is_a_wrong_call(tmp_path: Path) -> None:
    for odd in ("two\nlines", "two\rlines", os.fsdecode(b"\xff\xfe"), "null\0"):
        _raised(gristway.WrongCallError, functools.partial(_open, tmp_path / odd))


def test_a_number_that_no_node_can_count_to_is_a_wrong_call(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    for wrong in ({"batch_size": 2**32}, {"seed": 2**63}, {"extent": 2**62}):
        _raised(gristway.WrongCallError, functools.partial(gristway.Loader, packed.path, **wrong))


# ---- memory -------------------------------------------------------------------------------------


@contextlib.contextmanager
def _memory_limit(size: int) -> Iterator[Path]:
    """A control group for processes that may have so much memory: write their ids into this file."""
    v1 = Path("/sys/fs/cgroup/memory")
    is_v1 = (v1 / "memory.limit_in_bytes").exists()
    group = (v1 if is_v1 else Path("/sys/fs/cgroup")) / f"gristway-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("no control groups for memory here")
    try:
        (group / ("memory.limit_in_bytes" if is_v1 else "memory.max")).write_text(str(size))
        yield group / "cgroup.procs"
    finally:
        # Processes that have just ended are counted for a moment.
        eventually(lambda: _removed(group), "the control group is removed")


def _removed(group: Path) -> bool:
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()


@needs_root
def test_more_memory_than_is_free_is_refused_with_what_would_fit(
    dataset: Callable[..., PackedFiles], runtime_dir: Path
) -> None:
    large = dataset(samples=300, size=1 << 20)

    def work() -> tuple[str, str]:
        group.write_text(str(os.getpid()))
        with pytest.raises(gristway.MachineError) as raised:
            _open(large.path, memory="2GiB")
        with _open(large.path, memory="8MiB", extent="64KiB") as loader:
            next(iter(loader))
        return str(raised.value), raised.value.kind

    with _memory_limit(280 << 20) as group:
        message, kind = apart(work)
        assert_no_node(runtime_dir)
    assert kind == "environment" and "\n" not in message
    numbers = [int(word) for word in message.replace(",", "").split() if word.isdigit()]
    assert len(numbers) == 2, message
    wanted, free = numbers
    assert wanted > free and 10 << 20 < free < 280 << 20
    # Said to somebody who writes Python.
    assert "memory" in message and "--memory" not in message


@needs_root
def test_no_memory_is_left_in_dev_shm_or_needed_there(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    # In containers it is small: 4 KiB here.
    script = 'mount -t tmpfs -o size=4k none /dev/shm && exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh"]
        + [sys.executable, str(PROGRAM), str(packed.path), "batch_size=8", "num_workers=2"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.stdout.endswith("over\n"), done.stderr


# ---- the runtime folder -------------------------------------------------------------------------


@contextlib.contextmanager
def _runtime_folder(monkeypatch: pytest.MonkeyPatch, name: str) -> Iterator[Path]:
    folder = Path("/tmp") / name
    monkeypatch.setenv("GRISTWAY_RUNTIME_DIR", str(folder))
    try:
        yield folder
        assert_no_node(folder)
        assert not folder.exists() or not list(folder.iterdir())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("name", ["gw spaces", "gw-größe", "gw-line\nbreak", "gw-%s'\"$x"])
def test_any_runtime_folder_will_do(
    name: str, packed: PackedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _runtime_folder(monkeypatch, f"{name}-{os.getpid()}/in it") as folder:
        with _open(packed.path) as loader:
            assert len(_keys(packed, loader)) == len(packed.keys)
        assert folder.stat().st_mode & 0o777 == 0o700
    folder.parent.rmdir()


def test_a_runtime_folder_with_a_long_path_is_refused(
    packed: PackedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In it is a socket: "/", 16 digits and ".sock". Java takes 106 bytes for all.
    longest = f"gw-{os.getpid()}-".ljust(106 - len("/tmp/") - 22, "x")
    with _runtime_folder(monkeypatch, longest):
        with _open(packed.path) as loader:
            assert len(loader) == 25
    for longer in (longest + "x", longest + "xx", longest + "x" * 50):
        with _runtime_folder(monkeypatch, longer):
            _raised(gristway.MachineError, lambda: _open(packed.path), "GRISTWAY_RUNTIME_DIR")


@needs_root
def test_a_full_runtime_folder_is_an_error_and_works_when_it_has_room(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    # A socket has no bytes, so it is inodes that it needs: one is the folder's.
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=2,mode=700", "none", runtime_dir],
        check=True,
    )
    try:
        ballast = runtime_dir / "ballast"
        ballast.touch()
        _raised(
            gristway.MachineError, lambda: _open(packed.path), str(runtime_dir), "No space left"
        )
        assert list(runtime_dir.iterdir()) == [ballast]
        ballast.unlink()
        with _open(packed.path) as loader:
            assert len(loader) == 25
        assert_no_node(runtime_dir)
    finally:
        subprocess.run(["umount", runtime_dir], check=True)


def test_a_runtime_folder_that_cannot_be_made_is_an_error(
    packed: PackedFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("/proc/none", str(tmp_path / "file" / "below")):
        (tmp_path / "file").touch()
        monkeypatch.setenv("GRISTWAY_RUNTIME_DIR", folder)
        _raised(gristway.MachineError, lambda: _open(packed.path), folder, "GRISTWAY_RUNTIME_DIR")


def test_a_file_where_the_socket_should_be_is_taken_away(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    with _open(packed.path) as loader:
        (socket,) = runtime_dir.iterdir()
        batches = iter(loader)
        next(batches)
        kill(the_node(runtime_dir))
        socket.unlink()
        socket.write_text("not a socket")
        assert sum(1 for _ in batches) == 24


# ---- processes ----------------------------------------------------------------------------------


def test_when_the_trainer_ends_without_closing_anything_nothing_is_left(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    for end in ("", "raise SystemExit(3)", "os._exit(4)", "os.abort()", "raise ValueError"):
        script = f"""
import os, gristway
loader = gristway.Loader({str(packed.path)!r}, 8, transform=id, num_workers=2)
batches = iter(loader)
next(batches)
{end}
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
        assert (done.returncode == 0) == (end == "")
        assert_no_node(runtime_dir)


def test_ctrl_c_in_the_terminal_reaches_the_trainer_and_ends_the_rest(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    trainer = subprocess.Popen(
        [sys.executable, PROGRAM, packed.path, "batch_size=8", "num_workers=2"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert trainer.stdout and trainer.stdout.readline() == b"begun\n"
    begin = time.monotonic()
    os.killpg(trainer.pid, signal.SIGINT)
    _, said = trainer.communicate()
    assert time.monotonic() - begin < 10
    assert trainer.returncode == -signal.SIGINT
    assert said.strip().endswith(b"KeyboardInterrupt") and said.count(b"Traceback") == 1
    assert_no_node(runtime_dir)


def test_a_loader_in_a_forked_child_has_a_node_of_its_own(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    with _open(packed.path) as loader:
        batches = iter(loader)
        next(batches)

        def work() -> tuple[int, int]:
            with _open(packed.path) as own:
                return len(_keys(packed, own)), len(nodes(runtime_dir))

        assert apart(work) == (len(packed.keys), 2)
        assert sum(1 for _ in batches) == 24
        eventually(lambda: len(nodes(runtime_dir)) == 1, "the child's node ends")


def test_a_node_that_complains_is_quoted_when_it_has_died_too_often(
    packed: PackedFiles,
    runtime_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # It says that it is ready, and then dies each time.
    home = fake_java(
        tmp_path / "java",
        f"""#!{sys.executable}
import os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[-1])
server.listen()
print("ready", flush=True)
client, _ = server.accept()
client.recv(1)
print("it is all too much", file=sys.stderr, flush=True)
os._exit(1)
""",
    )
    monkeypatch.setenv("GRISTWAY_JAVA_HOME", str(home))
    caplog.set_level(logging.WARNING, "gristway")
    _raised(
        gristway.LostNodeError,
        lambda: _open(packed.path),
        "has died 3 times",
        "it is all too much",
    )
    assert sum("it is started again" in line for line in caplog.messages) == 2
