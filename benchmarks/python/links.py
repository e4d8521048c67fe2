"""Machines that are network namespaces of this one, with links of a rate, and what they carry."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "python" / "tests"))

from namespaces import Machines

# Large enough for a segment as the kernel hands it over (64 KiB) to pass whole: one that must be
# cut up first costs more processor time than all the rest.
_BURST = "256kb"
_QUEUE = "50ms"


class LinkedMachines(Machines):
    """Machines each of which sends and receives at a rate, such as 1gbit."""

    def __init__(self, count: int, rate: str) -> None:
        super().__init__(count)
        self._rate = rate

    def make(self) -> None:
        super().make()
        for number in range(self.count):
            out = ["ip", "netns", "exec", self._space(number), "tc", "qdisc", "add", "dev", "eth0"]
            into = ["tc", "qdisc", "add", "dev", f"{self._name}v{number}"]
            shape = ["root", "tbf", "rate", self._rate, "burst", _BURST, "latency", _QUEUE]
            for command in (out, into):
                subprocess.run([*command, *shape], check=True)

    def _space(self, number: int) -> str:
        return f"{self._name}-{number}"

    def inside(self, number: int) -> list[str]:
        """Unlike `ip netns exec`, this leaves /sys as it is, where control groups are."""
        return ["nsenter", f"--net=/run/netns/{self._space(number)}"]


def carried() -> int:
    """The bytes that the machine of this process has received on its link, with all headers."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "eth0":
            return int(numbers.split()[0])
    return 0


def goodput(machines: LinkedMachines, pairs: list[tuple[int, int]], seconds: float) -> float:
    """Bytes a second that bare TCP streams carry, from the first of a pair to the second, in all."""
    program = [sys.executable, str(Path(__file__).with_name("stream.py"))]
    takers: list[subprocess.Popen[str]] = []
    givers: list[subprocess.Popen[bytes]] = []
    try:
        for port, (_, to) in enumerate(pairs, 5000):
            taker = subprocess.Popen(
                [*machines.inside(to), *program, "take", machines.address(to), str(port)],
                stdout=subprocess.PIPE,
                text=True,
            )
            takers.append(taker)
            assert taker.stdout
            taker.stdout.readline()
        for port, (source, to) in enumerate(pairs, 5000):
            words = ["give", machines.address(to), str(port), str(seconds)]
            givers.append(subprocess.Popen([*machines.inside(source), *program, *words]))
        rates = [json.loads(taker.communicate(timeout=seconds + 30)[0]) for taker in takers]
        return float(sum(rates))
    finally:
        for taker in takers:
            taker.kill()
            taker.wait()
        for giver in givers:
            giver.kill()
            giver.wait()
