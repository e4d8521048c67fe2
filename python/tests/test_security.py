"""Users on one machine: they do not get in each other's way, and not at each other's data."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import PackedFiles
from processes import apart, assert_no_node, eventually, nodes, the_node

import gristway
from gristway import java, node
from gristway.connection import Hello

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs root")

NOBODY = 65534
# A user that no file knows, as containers run with.
NAMELESS = 54321


@pytest.fixture(scope="module")
def packed(dataset: Callable[..., PackedFiles]) -> Iterator[PackedFiles]:
    """A dataset that everybody may read, and with it all that is needed to do so."""
    made = dataset(samples=100, size=1000)
    folder = Path(tempfile.mkdtemp(prefix="gw-", dir="/tmp"))
    folder.chmod(0o755)
    path = folder / "data.gw"
    shutil.copytree(made.path, path)
    shutil.copy(java.jar(), folder / "gristway.jar")
    before = os.environ.get("GRISTWAY_JAR")
    os.environ["GRISTWAY_JAR"] = str(folder / "gristway.jar")
    java.jar.cache_clear()
    yield PackedFiles(path, made.files, made.keys, made.size, made.labels)
    if before is None:
        del os.environ["GRISTWAY_JAR"]
    else:
        os.environ["GRISTWAY_JAR"] = before
    java.jar.cache_clear()
    shutil.rmtree(folder)


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for everybody's temporary files: runtime folders are in it, as nothing else is set."""
    folder = Path(tempfile.mkdtemp(prefix="gw-", dir="/tmp"))
    folder.chmod(0o1777)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.delenv("GRISTWAY_RUNTIME_DIR", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    yield folder
    assert_no_node(folder)
    shutil.rmtree(folder)


def _read(packed: PackedFiles) -> list[str]:
    with gristway.Loader(packed.path, 8, memory="1MiB") as loader:
        return [packed.key(view) for data, _ in loader for view in data]


def _refused(packed: PackedFiles) -> str:
    with pytest.raises(gristway.MachineError) as raised:
        _read(packed)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("user", [NOBODY, NAMELESS])
def test_two_users_read_side_by_side(user: int, packed: PackedFiles, temporary: Path) -> None:
    with gristway.Loader(packed.path, 8, memory="1MiB") as loader:
        batches = iter(loader)
        received = [packed.key(view) for view in next(batches)[0]]
        assert sorted(apart(lambda: _read(packed), user)) == list(packed.keys)
        received += [packed.key(view) for data, _ in batches for view in data]
    assert sorted(received) == list(packed.keys)
    folders = {each.name: each.stat() for each in temporary.iterdir()}
    assert set(folders) == {"gristway-0", f"gristway-{user}"}
    assert {status.st_mode & 0o777 for status in folders.values()} == {0o700}
    assert folders[f"gristway-{user}"].st_uid == user


def hello(path: str) -> str:
    """What comes of it when a stranger connects to a node."""
    with socket.socket(socket.AF_UNIX) as stranger:
        try:
            stranger.connect(path)
            stranger.sendall(b"\x01\x00\x00\x00\x07")
            return "nothing" if stranger.recv(1) == b"" else "an answer"
        except ConnectionError:
            return "nothing"
        except PermissionError:
            return "no permission"


def test_another_user_cannot_attach(packed: PackedFiles, runtime_dir: Path) -> None:
    with gristway.Loader(packed.path, 8, memory="1MiB") as loader:
        batches = iter(loader)
        next(batches)
        process = the_node(runtime_dir)
        (path,) = runtime_dir.iterdir()
        assert apart(lambda: hello(str(path)), NOBODY) == "no permission"
        # Even if somebody has opened folder and socket for all, the node asks who it is.
        runtime_dir.chmod(0o777)
        path.chmod(0o777)
        assert apart(lambda: hello(str(path)), NOBODY) == "nothing"
        assert apart(lambda: hello(str(path)), NAMELESS) == "nothing"
        assert hello(str(path)) == "an answer"
        runtime_dir.chmod(0o700)
        # Its memory is the kernel's to guard.
        assert apart(lambda: os.access(f"/proc/{process}/fd", os.R_OK), NOBODY) is False
        assert sum(1 for _ in batches) == 12
        assert the_node(runtime_dir) == process


def test_strangers_do_not_keep_a_node_alive(packed: PackedFiles, runtime_dir: Path) -> None:
    with gristway.Loader(packed.path, 8, memory="1MiB"):
        (path,) = runtime_dir.iterdir()
        runtime_dir.chmod(0o777)
        path.chmod(0o777)
        for _ in range(3):
            apart(lambda: hello(str(path)), NOBODY)
        runtime_dir.chmod(0o700)
    assert_no_node(runtime_dir)


def test_a_folder_of_another_user_is_refused(packed: PackedFiles, temporary: Path) -> None:
    # In a folder that all may write to, somebody else may come first.
    folder = temporary / "gristway-0"
    folder.mkdir(mode=0o700)
    os.chown(folder, NOBODY, NOBODY)
    assert str(folder) in _refused(packed)
    assert not list(folder.iterdir())


@pytest.mark.parametrize("mode", [0o777, 0o755, 0o750, 0o701])
def test_a_folder_that_others_may_enter_is_refused(
    mode: int, packed: PackedFiles, temporary: Path
) -> None:
    folder = temporary / "gristway-0"
    folder.mkdir()
    folder.chmod(mode)
    assert "chmod 700" in _refused(packed)


def test_a_link_or_a_file_in_place_of_the_folder_is_refused(
    packed: PackedFiles, temporary: Path
) -> None:
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    folder = temporary / "gristway-0"
    folder.symlink_to(elsewhere)
    assert str(folder) in _refused(packed)
    assert not list(elsewhere.iterdir())
    folder.unlink()
    folder.touch(mode=0o600)
    assert str(folder) in _refused(packed)


@pytest.mark.parametrize("what", ["another user's", "open to all", "a link"])
def test_a_named_node_is_as_careful_about_its_folder(what: str, temporary: Path) -> None:
    folder = temporary / "gristway-0"
    if what == "a link":
        (temporary / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(temporary / "elsewhere")
    else:
        folder.mkdir(mode=0o700)
        if what == "open to all":
            folder.chmod(0o777)
        else:
            os.chown(folder, NOBODY, NOBODY)
    done = subprocess.run(
        java.command_line(["serve", "some"]),
        env=java.environment(),
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert len(done.stderr.splitlines()) == 1 and str(folder) in done.stderr


def test_users_do_not_find_each_others_named_nodes(packed: PackedFiles, temporary: Path) -> None:
    serving = subprocess.Popen(
        java.command_line(["serve", "shared"]), env=java.environment(), stdout=subprocess.PIPE
    )
    try:
        assert serving.stdout and serving.stdout.readline()

        def attach() -> str:
            with pytest.raises(gristway.MachineError) as raised:
                gristway.Loader(packed.path, 8, memory="1MiB", node="shared")
            return str(raised.value)

        assert "gristway serve shared" in apart(attach, NOBODY)
        with gristway.Loader(packed.path, 8, memory="1MiB", node="shared") as loader:
            assert len(loader) == 13
    finally:
        serving.terminate()
        serving.wait()
        assert serving.stdout
        serving.stdout.close()


def test_a_node_that_is_not_ones_own_is_not_talked_to(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    # Should another user's process listen at the place of a node, nothing is said to it.
    hello = Hello("settings")
    where = node.address(hello, "job", "victim")
    runtime_dir.chmod(0o777)
    listening, said = os.pipe()

    def listen() -> bytes:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(where.socket)
            os.chmod(where.socket, 0o777)
            server.listen()
            server.settimeout(10)
            os.write(said, b".")
            client, _ = server.accept()
            client.settimeout(10)
            return client.recv(1000)

    heard: list[bytes] = []
    thread = threading.Thread(target=lambda: heard.append(apart(listen, NOBODY)))
    thread.start()
    os.read(listening, 1)
    runtime_dir.chmod(0o700)
    with pytest.raises(gristway.Error):
        node.Client(where, hello).welcome()
    thread.join()
    assert heard == [b""]
    os.close(listening)
    os.close(said)
    eventually(lambda: not nodes(runtime_dir), "no node")
