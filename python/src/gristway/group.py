"""The process group of torch.distributed, where the program has initialised one.

Nothing here imports torch, and nothing is a collective: what ranks tell each other goes through the
group's store, whose every operation ends. A rank that never comes therefore keeps nobody for ever.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_PREFIX = "gristway/"

# A forked process has its parent's group, whose store is not for it to use.
_is_inherited = False


@dataclass(frozen=True)
class Group:
    """The default group. `store` is None where it has none, or is a parent's.

    A group that was inherited by a fork is not this process's own: the parent is that rank."""

    rank: int
    size: int
    store: Any
    is_own: bool = True

    def say(self, name: str, value: str) -> None:
        self.store.set(_PREFIX + name, value)

    def said(self, name: str) -> str | None:
        """What was said under a name; None if nothing was yet."""
        if not self.store.check([_PREFIX + name]):
            return None
        value: bytes = self.store.get(_PREFIX + name)
        return value.decode()

    def said_first(self, name: str, value: str) -> str:
        """What the first of all who call this for a name has given."""
        known: bytes = self.store.compare_set(_PREFIX + name, "", value)
        return known.decode()

    def count(self, name: str, more: int = 0) -> int:
        """How often something was counted by all."""
        return int(self.store.add(_PREFIX + name, more))

    def missing(self, names: Iterable[str]) -> list[int]:
        """The places in a list of names under which nothing was said yet."""
        return [place for place, name in enumerate(names) if not self.store.check([_PREFIX + name])]

    def job(self) -> str:
        """A name that all ranks of this group have, and no other group has."""
        return self.said_first("job", uuid.uuid4().hex)


def find_group() -> Group | None:
    """The group that this process is in; None before it is initialised, and after it is destroyed."""
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    store = None if _is_inherited else _store()
    return Group(dist.get_rank(), dist.get_world_size(), store, not _is_inherited)


def _store() -> Any:
    # Not public, and the same since torch 1.8. What is public is either a collective, which hangs
    # where one rank does not take part, or needs a port of its own.
    inside = sys.modules.get("torch.distributed.distributed_c10d")
    try:
        return inside._get_default_store()  # type: ignore[union-attr]
    except (AttributeError, KeyError, RuntimeError, ValueError):
        return None


def in_worker_of_dataloader() -> bool:
    """True in a worker process of torch's DataLoader: it reads for the rank that has started it."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def starts_workers() -> bool:
    """True while a DataLoader of this thread starts its workers."""
    frame = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith(("torch.utils.data.dataloader", "torchdata.stateful_dataloader")):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _forget_store() -> None:
    global _is_inherited
    _is_inherited = find_group() is not None


os.register_at_fork(after_in_child=_forget_store)
