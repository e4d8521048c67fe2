"""A time limit for every test, so that a hang is a failure that shows where it hangs.

Set-up, the test itself and tear-down may each take `@pytest.mark.limit(seconds)`, or 120 seconds.
What then runs is interrupted and fails. If that has no effect within half a minute, because the
interpreter is stuck in native code, the stacks of all threads are printed and the session ends.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

SECONDS = 120
GRACE_SECONDS = 30

_terminal = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "limit(seconds): how long each phase of the test may take")
    # While tests run, descriptor 2 is a file of pytest's.
    config.stash[_terminal] = os.dup(2)


def pytest_unconfigure(config: pytest.Config) -> None:
    os.close(config.stash[_terminal])


@contextmanager
def _limited(item: pytest.Item) -> Iterator[None]:
    marker = item.get_closest_marker("limit")
    seconds = marker.args[0] if marker else SECONDS

    def give_up(number: int, frame: FrameType | None) -> None:
        __tracebackhide__ = True
        pytest.fail(f"still running after {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    terminal = item.config.stash[_terminal]
    faulthandler.dump_traceback_later(seconds + GRACE_SECONDS, exit=True, file=terminal)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with _limited(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with _limited(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    with _limited(item):
        return (yield)
