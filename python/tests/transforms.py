"""Transforms that worker processes can be sent, and what else they must import by name."""

from __future__ import annotations

import os
import threading
import time
from typing import Any, NamedTuple

from gristway import Sample


class Refused(Exception):
    """Carries a number besides its message, as exceptions of users do."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message, number)
        self.number = number


class Unpicklable(Exception):
    """Cannot be made again from what it was pickled as."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


class Pair(NamedTuple):
    size: int
    label: int


def key(sample: Sample) -> str:
    return sample.key


def key_and_label(sample: Sample) -> tuple[str, int]:
    return sample.key, sample.label


def everything(sample: Sample) -> dict[str, Any]:
    """All that there is to know about a sample, in copies."""
    return {
        "id": sample.id,
        "key": sample.key,
        "label": sample.label,
        "data": bytes(sample.data),
        "parts": {name: bytes(part) for name, part in sample.parts.items()},
        "repeat": sample.is_repeat,
        "damaged": sample.is_damaged,
    }


def as_list(samples: list[Any]) -> list[Any]:
    """A collate function that leaves samples as they are."""
    return samples


def view(sample: Sample) -> memoryview:
    return sample.data


def process_and_thread(sample: Sample) -> tuple[str, int, str]:
    return sample.key, os.getpid(), threading.current_thread().name


def uneven(sample: Sample) -> str:
    """Takes longer for some samples, so that workers finish in another order than they began."""
    time.sleep(0.02 if sample.id % 7 == 0 else 0)
    return sample.key


def slow(sample: Sample) -> str:
    time.sleep(0.05)
    return sample.key


def pair(sample: Sample) -> Pair:
    return Pair(len(sample.data), sample.label)


class RefuseKey:
    """Raises at one sample."""

    def __init__(self, key: str, how: str = "Refused") -> None:
        self.key = key
        self.how = how

    def __call__(self, sample: Sample) -> str:
        if sample.key == self.key:
            if self.how == "Refused":
                raise Refused("no good", 17)
            if self.how == "Unpicklable":
                raise Unpicklable("this", "that")
            if self.how == "KeyError":
                raise KeyError("no such field")
            if self.how == "StopIteration":
                next(iter(()))
        return sample.key


def sleep_if_second(worker: int) -> None:
    """For `worker_init_fn`: the second worker begins late."""
    if worker == 1:
        time.sleep(0.4)


def sleepy_key(sample: Sample) -> str:
    """Takes so long that a worker is always behind with what it was asked for."""
    time.sleep(0.03)
    return sample.key


def number(sample: Sample) -> int:
    return sample.id


def sleepy_number(sample: Sample) -> int:
    time.sleep(0.002)
    return sample.id


def number_and_repeat(sample: Sample) -> tuple[int, bool]:
    return sample.id, sample.is_repeat


def key_after_a_caught_exception(sample: Sample) -> str:
    """What some do about samples that they cannot read; it leaves a cycle that holds a view."""
    data = sample.data
    try:
        raise ValueError("not readable")
    except ValueError as caught:
        last = caught
    assert last is not None and data is not None
    return sample.key
