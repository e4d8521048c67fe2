"""One bare TCP stream: `stream.py take ADDRESS PORT` and `stream.py give ADDRESS PORT SECONDS`.

Whoever takes prints a line once it listens, and then the bytes a second that it got after the first
quarter of a second.
"""

from __future__ import annotations

import socket
import sys
import time

_LEFT_OUT = 0.25
_PIECE = 1 << 20


def take(address: str, port: int) -> None:
    piece = bytearray(_PIECE)
    with socket.create_server((address, port)) as server:
        print("listening", flush=True)
        stream, _ = server.accept()
        begin = time.monotonic() + _LEFT_OUT
        first = last = 0.0
        taken = 0
        while count := stream.recv_into(piece):
            now = time.monotonic()
            if first:
                taken += count
                last = now
            elif now >= begin:
                first = now
        print(taken / (last - first))


def give(address: str, port: int, seconds: float) -> None:
    piece = bytes(_PIECE)
    with socket.create_connection((address, port)) as stream:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            stream.sendall(piece)


if __name__ == "__main__":
    what, address, port, *seconds = sys.argv[1:]
    if what == "take":
        take(address, int(port))
    else:
        give(address, int(port), float(seconds[0]))
