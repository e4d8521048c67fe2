"""What goes wrong on a machine: each time one clear error, or none."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import PackedFiles
from faults import keys, opened, raised
from processes import (
    apart,
    assert_no_node,
    eventually,
    fake_java,
    kill,
    memory_limit,
    nodes,
    the_node,
)

import gristway
from gristway import java

PROGRAM = Path(__file__).with_name("kills_program.py")

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


@pytest.fixture(scope="module")
def packed(dataset: Callable[..., PackedFiles]) -> PackedFiles:
    return dataset(samples=200, size=(500, 1500))


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
    raised(gristway.MachineError, lambda: opened(packed.path), "no Java 25", "GRISTWAY_JAVA_HOME")


def test_when_the_jdk_goes_and_then_the_node_the_error_says_so(
    packed: PackedFiles, runtime_dir: Path, no_java: Callable[[], None]
) -> None:
    with opened(packed.path) as loader:
        batches = iter(loader)
        next(batches)
        no_java()
        kill(the_node(runtime_dir))
        # One more batch may have been on its way.
        raised(gristway.MachineError, lambda: list(batches), "no Java 25")


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
    raised(gristway.MachineError, lambda: opened(packed.path), "could not be started", reason)
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
    raised(gristway.MachineError, lambda: opened(packed.path), str(home / "bin" / "java"))
    (home / "bin" / "java").write_text("#!/bin/sh\necho this library is missing >&2\nexit 9\n")
    raised(
        gristway.MachineError, lambda: opened(packed.path), "this library is missing", "exit code 9"
    )


@pytest.mark.torch
def test_a_heap_that_is_too_small_is_called_that(
    packed: PackedFiles, runtime_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gristway.torch import MapDataset

    monkeypatch.setenv("GRISTWAY_JAVA_OPTS", "-Xmx4m")
    raised(
        gristway.MachineError,
        lambda: MapDataset(packed.path, redirect=True, indices=[80_000_000]),
        "heap",
        "GRISTWAY_JAVA_OPTS=-Xmx",
    )


# ---- memory -------------------------------------------------------------------------------------


@needs_root
def test_more_memory_than_is_free_is_refused_with_what_would_fit(
    dataset: Callable[..., PackedFiles], runtime_dir: Path
) -> None:
    large = dataset(samples=300, size=1 << 20)

    def work() -> tuple[str, str]:
        group.write_text(str(os.getpid()))
        with pytest.raises(gristway.MachineError) as caught:
            opened(large.path, memory="2GiB")
        with opened(large.path, memory="8MiB", extent="64KiB") as loader:
            next(iter(loader))
        return str(caught.value), caught.value.kind

    with memory_limit(280 << 20) as group:
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
        with opened(packed.path) as loader:
            assert len(keys(packed, loader)) == len(packed.keys)
        assert folder.stat().st_mode & 0o777 == 0o700
    folder.parent.rmdir()


def test_a_runtime_folder_with_a_long_path_is_refused(
    packed: PackedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In it is a socket: "/", 16 digits and ".sock". Java takes 106 bytes for all.
    longest = f"gw-{os.getpid()}-".ljust(106 - len("/tmp/") - 22, "x")
    with _runtime_folder(monkeypatch, longest):
        with opened(packed.path) as loader:
            assert len(loader) == 25
    for longer in (longest + "x", longest + "xx", longest + "x" * 50):
        with _runtime_folder(monkeypatch, longer):
            raised(gristway.MachineError, lambda: opened(packed.path), "GRISTWAY_RUNTIME_DIR")


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
        raised(
            gristway.MachineError, lambda: opened(packed.path), str(runtime_dir), "No space left"
        )
        assert list(runtime_dir.iterdir()) == [ballast]
        ballast.unlink()
        with opened(packed.path) as loader:
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
        raised(gristway.MachineError, lambda: opened(packed.path), folder, "GRISTWAY_RUNTIME_DIR")


def test_a_file_where_the_socket_should_be_is_taken_away(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    with opened(packed.path) as loader:
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


@pytest.mark.parametrize("context", ["fork", "fork", "fork", "spawn", "spawn"])
def test_ctrl_c_in_the_terminal_reaches_the_trainer_and_ends_the_rest(
    packed: PackedFiles, runtime_dir: Path, context: str
) -> None:
    """Also while the workers are still on their way to their work, as here: nothing is waited for."""
    options = ["batch_size=8", "num_workers=2", f"multiprocessing_context={context}"]
    trainer = subprocess.Popen(
        [sys.executable, PROGRAM, packed.path, *options],
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
    with opened(packed.path) as loader:
        batches = iter(loader)
        next(batches)

        def work() -> tuple[int, int]:
            with opened(packed.path) as own:
                return len(keys(packed, own)), len(nodes(runtime_dir))

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
    raised(
        gristway.LostNodeError,
        lambda: opened(packed.path),
        "has died 3 times",
        "it is all too much",
    )
    assert sum("it is started again" in line for line in caplog.messages) == 2
