"""States of a run, as the node writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_STEPS = re.compile(r" steps=\d+$")


@dataclass(frozen=True)
class States:
    """What tells the state of a run at any epoch and step, also when no node is there to be asked.

    `text` is the state at the run's first epoch; the node's class `ReadState` draws it. The segments
    before the last one are of that epoch alone. The last one is the run's own, of every epoch.
    """

    text: str
    first_epoch: int

    def at(self, epoch: int, step: int) -> str:
        """The state when every rank has received so many steps of an epoch."""
        lines = self.text.splitlines()
        segments = [line for line in lines if line.startswith("segment ")]
        if epoch != self.first_epoch:
            del segments[:-1]
        segments[-1] = _STEPS.sub(f" steps={step}", segments[-1])
        head = [f"epoch {epoch}" if line.startswith("epoch ") else line for line in lines]
        head = [line for line in head[:-1] if not line.startswith("segment ")]
        return "\n".join([*head, *segments, lines[-1]]) + "\n"
