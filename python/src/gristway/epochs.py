"""How far the ranks of a job have read an epoch, and how they notice that they are in different ones.

Without `set_epoch`, each iteration is the next epoch: it is counted. A rank that takes a look by itself,
or breaks off an epoch that the others read on, is then an epoch ahead of them, and what it gets is dealt
for another epoch than what they get. So a rank that goes on to the next epoch by counting tells how far
it has read the one before. Where another has read more of that epoch, the two have parted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# Batches that training may be behind what was asked for, if nobody knows how many are.
UNKNOWN = 1 << 62


@dataclass(frozen=True)
class Reach:
    """How far a rank has read an epoch, in batches that training has received: so many at least and
    at most. A worker of a DataLoader knows only how many batches were asked for. Training has received
    at most that many, and at least that many minus the prefetched ones."""

    epoch: int
    least: int
    most: int
    named: int  # how often the rank was told an epoch, before or with this one
    went_on: bool = False  # it has begun the next epoch by counting, before the end of this one

    @staticmethod
    def of(epoch: int, asked: int, ahead: int, named: int, went_on: bool = False) -> Reach:
        """The reach of a rank that has asked for so many batches, and received few less."""
        return Reach(epoch, max(0, asked - ahead), asked, named, went_on)

    @property
    def key(self) -> tuple[int, int]:
        """What is the same for ranks that read one epoch in one iteration."""
        return self.epoch, self.named

    def is_parted_from(self, further: Reach) -> bool:
        """True if this rank has left an epoch that another has read further.

        A rank that has been told fewer epochs may yet be told the one that the other reads."""
        return (
            self.went_on
            and self.epoch == further.epoch
            and self.named >= further.named
            and self.most < further.least
        )


def has_gone_on(reaches: Iterable[Reach], now: Reach) -> bool:
    """True if the rank of these reaches has left an epoch by counting before: one that it reads on
    none the less, as in a loop inside which it takes a look."""
    return any(
        each.named == now.named
        and (each.epoch > now.epoch or (each.epoch == now.epoch and each.went_on))
        for each in reaches
    )


def parted(rank: int, own: Reach, other_rank: int, other: Reach) -> str | None:
    """In which epochs two ranks are, in one line; None if they may be in the same."""
    for first, left, second, read in (
        (rank, own, other_rank, other),
        (other_rank, other, rank, own),
    ):
        if left.is_parted_from(read):
            then = f"left it after {_batches(read)}" if read.went_on else "read on"
            return (
                f"the ranks of this job are in different epochs: rank {first} left epoch"
                f" {left.epoch} after {_batches(left)}, rank {second} {then}: call"
                " set_epoch(epoch) before each epoch, or peek and break at the same batch on every"
                " rank"
            )
    return None


def _batches(reach: Reach) -> str:
    about = "" if reach.least == reach.most else "at most "
    return f"{about}{reach.most} batch{'' if reach.most == 1 else 'es'}"
