"""Bytes on their way from a worker to its trainer."""

from __future__ import annotations

import multiprocessing
import random
from multiprocessing.connection import Connection

import pytest

from gristway import shipment

PAGE = 4096


@pytest.fixture(autouse=True)
def nothing_sent_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipment, "_outbox", None)


def pieces(*sizes: int) -> list[memoryview]:
    return [memoryview(random.randbytes(size)) for size in sizes]


def test_what_is_sent_is_fetched() -> None:
    for sent in (pieces(10, 0, 300_000), pieces(), pieces(0), pieces(*range(100))):
        assert shipment.fetch(shipment.send(sent)) == [bytes(piece) for piece in sent]


def test_memory_that_was_given_up_is_not_taken_for_what_came_after_it() -> None:
    small, large = pieces(PAGE), pieces(4 * PAGE)
    tickets = [shipment.send(small), shipment.send(large)]
    assert [shipment.fetch(ticket) for ticket in tickets] == [small, large]
    # This fits into the second one only; the first one is given up.
    middle = shipment.send(pieces(3 * PAGE))
    # A new one of the first one's size, and very likely with its descriptor.
    again = pieces(PAGE)
    assert shipment.fetch(shipment.send(again)) == again
    shipment.fetch(middle)


def test_any_sequence_of_sizes_arrives_whole() -> None:
    random.seed(1)
    waiting: list[tuple[shipment.Ticket, list[memoryview]]] = []
    for _ in range(300):
        sent = pieces(*(random.randrange(6 * PAGE) for _ in range(random.randrange(4))))
        waiting.append((shipment.send(sent), sent))
        while len(waiting) > random.randrange(5):
            ticket, expected = waiting.pop(0)
            assert shipment.fetch(ticket) == expected
    for ticket, expected in waiting:
        assert shipment.fetch(ticket) == expected


def test_memory_that_was_given_up_is_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipment, "_mapped", type(shipment._mapped)())
    for size in range(1, 20):  # each too large for the one before
        sent = pieces(size * 3 * PAGE)
        assert shipment.fetch(shipment.send(sent)) == sent
    assert len(shipment._mapped) <= 2


def test_memory_of_processes_that_have_ended_is_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipment, "_mapped", type(shipment._mapped)())
    context = multiprocessing.get_context("spawn")
    for _ in range(2):
        ours, theirs = context.Pipe()
        process = context.Process(target=_send_and_wait, args=(theirs,))
        process.start()
        ticket = ours.recv()
        assert shipment.fetch(ticket) == [b"x" * PAGE]
        ours.send("done")
        process.join()
    assert len(shipment._mapped) == 1  # of the last one
    shipment.forget_gone()
    assert not shipment._mapped


def _send_and_wait(pipe: Connection) -> None:
    pipe.send(shipment.send([memoryview(b"x" * PAGE)]))
    pipe.recv()
