"""Machines that are network namespaces: what ranks get, where nodes listen, and links that fail."""

from __future__ import annotations

import functools
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster import Job, Rank, environment, free_port, job
from conftest import PackedFiles
from namespaces import NETWORK, Machines, machines
from processes import Socket, assert_no_node, eventually, nodes, sockets
from test_cluster import READING, SAMPLES, THOROUGH, all_raise, measured, planned

NODES = 4

# All that can be read with several ranks, in every way that it can; and of these a sample.
WAYS = [
    (policy, exchange) for policy in ("redirect", "chunk-shuffle") for exchange in (0.0, 0.5, 1.0)
] + [
    (policy, 0.0)
    for policy in (
        *("sample-order", "redirect-position", "unbounded"),
        *("clairvoyant", "clairvoyant-next-use", "locality"),
    )
]
FEW = [("chunk-shuffle", 0.5)]


@pytest.fixture(scope="module")
def packed(dataset: Callable[..., PackedFiles]) -> PackedFiles:
    return dataset(samples=SAMPLES, size=(200, 3000))


@pytest.fixture
def four() -> Iterator[Machines]:
    with machines(NODES) as made:
        yield made


def _job(four: Machines, path: Path, ranks_here: int, **options: Any) -> Any:
    variables = {"MASTER_ADDR": four.address(0), "GRISTWAY_LISTEN": NETWORK}
    given = {**READING, "memory": "128KiB", **options}
    return job(path, NODES, ranks_here, variables=variables, inside=four.inside, **given)


@pytest.mark.parametrize(("policy", "exchange"), WAYS if THOROUGH else FEW)
def test_ranks_of_four_machines_get_what_is_planned(
    packed: PackedFiles,
    runtime_dir: Path,
    four: Machines,
    gristway_command: Callable[..., subprocess.CompletedProcess[str]],
    policy: str,
    exchange: float,
) -> None:
    plan = functools.partial(
        gristway_command,
        *("plan", packed.path, "--order", "-", "--policy", policy, "--exchange", exchange),
        *("--seed", 5, "--batch-size", 4, "--memory", "128KiB", "--extent", "8KiB"),
    )
    with _job(four, packed.path, 2, policy=policy, exchange=exchange) as running:
        epochs = [running.epoch(), running.epoch()]
    for number, epoch in enumerate(epochs):
        assert epoch == planned(plan, NODES, 2 * NODES, number)
        assert len({len(batches) for batches in epoch}) == 1
        keys = [key for batches in epoch for batch in batches for key in batch]
        assert sorted(keys) == list(packed.keys)
    assert_no_node(runtime_dir, 10)


def test_a_node_that_waits_for_others_listens_at_the_address_that_it_was_told_alone(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    with machines(1) as one:
        variables = {
            **environment(0, 2, 1, free_port() - 1, secrets.token_hex(16)),
            "MASTER_ADDR": one.address(0),
            "GRISTWAY_LISTEN": NETWORK,
        }
        rank = Rank(packed.path, variables, {"exchange": 1, **READING}, one.inside(0))
        rank.tell("1")

        def found() -> list[Socket]:
            all_of_them = [each for node in nodes(runtime_dir) for each in sockets(node)]
            return [each for each in all_of_them if each.listens]

        def meets() -> bool:
            port = int(variables["MASTER_PORT"]) + 1
            return any(each.port == port for each in found())

        try:
            eventually(meets, "node 0 listens where nodes meet", 20)
            time.sleep(1)  # for whatever it opens after that
            assert {(each.protocol, each.address) for each in found()} == {("tcp", one.address(0))}
            assert len(found()) == 2, (
                "for the meeting, and for the nodes that it will be connected to"
            )
        finally:
            rank.process.kill()
            rank.process.wait()
        assert_no_node(runtime_dir, 10)


def test_a_machine_that_cannot_be_reached_is_named_at_every_rank(
    packed: PackedFiles, runtime_dir: Path, four: Machines
) -> None:
    with _job(four, packed.path, 1, exchange=1) as running:
        running.take(2)
        four.cut(2)
        begin = time.monotonic()
        said = all_raise(Job([running.ranks[number] for number in (0, 1, 3)]), 10)
        seconds = time.monotonic() - begin
        assert seconds < 10
        measured("link cut, exchange 1", f"told at all other ranks after {seconds:.1f} s")
        for line in said:
            assert f"node 2 at {four.address(2)}:" in line and "is lost" in line, line
        (cut_off,) = all_raise(Job([running.ranks[2]]), 10)
        assert "is lost" in cut_off
    assert_no_node(runtime_dir, 15)


def test_a_slow_link_slows_the_job_only(
    packed: PackedFiles, runtime_dir: Path, four: Machines
) -> None:
    with _job(four, packed.path, 1, exchange=1) as running:
        taken = running.take(1)
        four.slow_down(1, "1mbit")
        rest = running.epoch()
        counters = running.ask("counters")
    keys = [key for part in (taken, rest) for rank in part for batch in rank for key in batch]
    assert sorted(keys) == list(packed.keys)
    assert sum(each["late"] for each in counters) > 0
    assert sum(each["peer-wait-nanoseconds"] for each in counters) > 10**8
