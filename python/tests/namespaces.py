"""Machines that are network namespaces of this one, each with an address, joined by a bridge."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
from collections.abc import Iterator

NETWORK = "10.77.0.0/24"
_NUMBERS = itertools.cycle("abcdefghijklmnopqrstuvwxyz")


def _ip(*words: object) -> None:
    done = subprocess.run(["ip", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, f"ip {words}: {done.stderr}"


class Machines:
    """Some namespaces; the first has the address 10.77.0.1, and so on."""

    def __init__(self, count: int) -> None:
        # A name of its own: what a namespace held goes a little later than its name.
        self._name = f"gw{os.getpid() % 10000}{next(_NUMBERS)}"
        self.count = count

    def address(self, number: int) -> str:
        return f"10.77.0.{number + 1}"

    def inside(self, number: int) -> list[str]:
        """What a command begins with that is run on a machine."""
        return ["ip", "netns", "exec", f"{self._name}-{number}"]

    def make(self) -> None:
        _ip("link", "add", self._name, "type", "bridge")
        _ip("link", "set", self._name, "up")
        for number in range(self.count):
            space, inner, outer = f"{self._name}-{number}", "eth0", f"{self._name}v{number}"
            _ip("netns", "add", space)
            _ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", space)
            _ip("link", "set", outer, "master", self._name, "up")
            _ip("-n", space, "address", "add", f"{self.address(number)}/24", "dev", inner)
            _ip("-n", space, "link", "set", inner, "up")
            _ip("-n", space, "link", "set", "lo", "up")

    def cut(self, number: int) -> None:
        """Has nobody reach a machine any more, nor it anybody."""
        _ip("link", "set", f"{self._name}v{number}", "down")

    def slow_down(self, number: int, rate: str) -> None:
        """Has what a machine is sent come at a rate, such as 10mbit."""
        interface = f"{self._name}v{number}"
        shape = ["tbf", "rate", rate, "burst", "32kb", "latency", "400ms"]
        subprocess.run(["tc", "qdisc", "add", "dev", interface, "root", *shape], check=True)

    def remove(self) -> None:
        for number in range(self.count):
            with contextlib.suppress(AssertionError):
                _ip("link", "delete", f"{self._name}v{number}")
            with contextlib.suppress(AssertionError):
                _ip("netns", "delete", f"{self._name}-{number}")
        with contextlib.suppress(AssertionError):
            _ip("link", "delete", self._name)


@contextlib.contextmanager
def machines(count: int) -> Iterator[Machines]:
    made = Machines(count)
    try:
        made.make()
        yield made
    finally:
        made.remove()
