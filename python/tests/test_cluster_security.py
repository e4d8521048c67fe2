"""A job of several nodes, and another user on the same machine, who is none of its business."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from cluster import Job, Rank, environment, free_port
from conftest import PackedFiles
from processes import Socket, apart, assert_no_node, eventually, nodes, sockets
from test_cluster import READING, SAMPLES
from test_security import NOBODY, hello

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs root")

# As node 1 begins, with the number that it makes up; and then no proof.
GREETING = b"GWPEER02" + (1).to_bytes(4, "big") + bytes(32) + bytes(32)


@pytest.fixture(scope="module")
def packed(dataset: Callable[..., PackedFiles]) -> PackedFiles:
    return dataset(samples=SAMPLES, size=(200, 3000))


@pytest.fixture
def everybodys() -> Iterator[Path]:
    """A folder that all may look into: pytest's are for their user alone."""
    folder = Path(tempfile.mkdtemp(prefix="gw-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def _readable(pids: list[int], folders: list[Path]) -> Iterator[bytes]:
    """All that can be read of some processes, and the files of some folders."""
    paths = [path for folder in folders for path in _files(folder)]
    paths += [path for pid in pids for path in _files(Path("/proc", str(pid)))]
    for path in paths:
        try:
            with path.open("rb") as file:
                os.set_blocking(file.fileno(), False)
                yield file.read(1 << 20) or b""
        except OSError:
            pass


def _files(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if stat.S_ISREG(path.stat().st_mode)]
    except OSError:
        return []


def _finds(secret: str, pids: list[int], folders: list[Path]) -> bool:
    return any(secret.encode() in content for content in _readable(pids, folders))


def _says(port: int, words: bytes) -> bytes:
    """What somebody gets who says something at a port."""
    heard = b""
    with socket.socket() as stranger:
        stranger.settimeout(10)
        stranger.connect(("127.0.0.1", port))
        try:
            stranger.sendall(words)
            stranger.shutdown(socket.SHUT_WR)
            while part := stranger.recv(1000):
                heard += part
        except OSError as failure:
            # A node that hangs up while the words are still on their way resets the connection.
            if failure.errno not in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN):
                raise
    return heard


def _assert_no_way_in(runtime_dir: Path) -> None:
    sockets = list(runtime_dir.glob("*.sock"))
    assert len(sockets) == 2
    for path in sockets:
        assert apart(partial(hello, str(path)), NOBODY) == "no permission"
    # Even if somebody has opened folder and sockets for all, nodes ask who it is.
    runtime_dir.chmod(0o777)
    for path in sockets:
        path.chmod(0o777)
        assert apart(partial(hello, str(path)), NOBODY) == "nothing"
    runtime_dir.chmod(0o700)


def _listens_at_loopback_alone(pid: int) -> list[Socket]:
    """Where a process listens, over TCP; it listens nowhere else, nor over UDP."""
    found = [each for each in sockets(pid) if each.listens]
    assert {(each.protocol, each.address) for each in found} == {("tcp", "127.0.0.1")}, found
    return found


def _only_port(pid: int) -> int | None:
    """Where a process listens, if that is one port."""
    found = _listens_at_loopback_alone(pid)
    return found[0].port if len(found) == 1 else None


def _told(meet: Path) -> list[Path]:
    """The files of a folder that nodes meet by, if it is there."""
    return [path for path in meet.glob("*") if not path.name.endswith(".tmp")]


def test_another_user_gets_neither_in_nor_at_the_secret(
    packed: PackedFiles, runtime_dir: Path, everybodys: Path
) -> None:
    secret, port, meet = secrets.token_hex(16), free_port() - 1, everybodys / "meet"
    ranks: list[Rank] = []

    def start(number: int) -> None:
        variables = environment(number, 2, 1, port, secret)
        variables["GRISTWAY_NODES"] = str(meet)
        ranks.append(Rank(packed.path, variables, {"exchange": 1, **READING}, []))
        ranks[-1].tell("1")

    try:
        # As long as the other is missing, the first has told in the folder where it is.
        start(0)
        (told,) = eventually(lambda: _told(meet), "node 0 tells where it is", 20)
        assert told.stat().st_mode & 0o077 == 0 and meet.stat().st_mode & 0o022 == 0
        assert secret not in told.read_text()
        (first,) = nodes(runtime_dir)
        # One for the meeting, and one for the nodes that it will be connected to.
        ports = [each.port for each in _listens_at_loopback_alone(first)]
        assert len(ports) == 2 and int(told.read_text().rpartition(":")[2]) in ports
        folders = [runtime_dir, meet, Path(f"/tmp/hsperfdata_{os.environ.get('USER', 'root')}")]
        processes = [first, ranks[0].process.pid]
        assert _finds(secret, processes, folders), "in the environment, where its user sees it"
        assert not apart(lambda: _finds(secret, processes, folders), NOBODY)
        start(1)
        running = Job(ranks)
        begun = [rank.answer() for rank in ranks]
        processes += [*nodes(runtime_dir), ranks[1].process.pid]
        assert not apart(lambda: _finds(secret, processes, folders), NOBODY)
        _assert_no_way_in(runtime_dir)
        for node in nodes(runtime_dir):
            peers = eventually(partial(_only_port, node), "the meeting is over")
            assert apart(partial(_says, peers, b"GET / HTTP/1.1\r\n\r\n"), NOBODY) == b""
            # Whoever knows how nodes greet is asked for a proof, and is told that it gave none.
            answer = apart(partial(_says, peers, GREETING), NOBODY)
            assert len(answer) == 33 and answer[-1] == 0
        rest = running.epoch()
        for lines in running.ask("warnings"):
            refused = [line.split(" is refused: ")[1] for line in lines if " is refused: " in line]
            # In whichever order: they were connections of their own.
            assert sorted(refused) == [
                "it does not know the job's secret",
                "it does not speak as a node does",
            ], lines
    finally:
        for rank in ranks:
            rank.end()
        for rank in ranks:
            rank.process.wait(20)
    keys = [*begun[0], *begun[1], *(key for taken in rest for batch in taken for key in batch)]
    assert sorted(keys) == list(packed.keys)
    assert_no_node(runtime_dir, 10)
