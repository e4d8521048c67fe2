"""What a client makes of a node that does not answer."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import gristway
from gristway import connection as connections
from gristway.connection import Connection


@pytest.fixture
def crowded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A node's socket at which more have connected than wait there, and nobody is let in."""
    monkeypatch.setattr(connections, "_SILENT_SECONDS", 1)
    with ExitStack() as stack:
        server = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        server.bind(str(tmp_path / "node.sock"))
        server.listen(3)
        yield server


def _fill(server: socket.socket, stack: ExitStack) -> None:
    """Those who wait to be let in, one more than there is room for."""
    with pytest.raises(BlockingIOError):
        while True:
            waiting = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            waiting.setblocking(False)
            waiting.connect(server.getsockname())


def test_a_node_at_which_there_is_no_room_to_wait_hangs(crowded: socket.socket) -> None:
    with ExitStack() as stack:
        connection = Connection(crowded.getsockname(), is_watched=True)
        _fill(crowded, stack)
        with pytest.raises(gristway.HungNodeError, match="hangs"):
            connection.stats()


def test_a_node_that_lets_in_whom_it_had_no_room_for_is_waited_for(crowded: socket.socket) -> None:
    crowded_for = 3.0
    ended = threading.Event()

    def serve() -> None:
        time.sleep(crowded_for / 2)
        with ExitStack() as stack:
            first, _ = crowded.accept()
            stack.enter_context(first)
            crowded.settimeout(0.1)
            until = time.monotonic() + crowded_for
            while time.monotonic() < until:
                try:
                    asking, _ = crowded.accept()
                except TimeoutError:
                    continue
                with asking:
                    asking.sendall(b"any")
        ended.set()

    with ExitStack() as stack:
        connection = Connection(crowded.getsockname(), is_watched=True)
        _fill(crowded, stack)
        serving = threading.Thread(target=serve)
        serving.start()
        # It is told that the node is gone when it goes, not before.
        with pytest.raises(gristway.LostNodeError) as raised:
            connection.stats()
        assert not isinstance(raised.value, gristway.HungNodeError)
        assert ended.wait(5)
        serving.join()
