"""Where nodes meet and listen, by what the launcher and the user have set."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from gristway import MachineError, WrongCallError, meeting
from gristway.meeting import NO_MEETING, Meeting, find_meeting, first_of
from gristway.world import World

VARIABLES = (
    *("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"),
    *("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"),
    *("GRISTWAY_JOB_SECRET", "GRISTWAY_NODES", "GRISTWAY_PORT", "GRISTWAY_LISTEN"),
)
SECRET = "a secret of this test"
OTHER_MACHINE = "192.0.2.7"  # an address for examples, which nobody has


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(meeting, "_made", 0)


def found(
    monkeypatch: pytest.MonkeyPatch, node: int = 0, nodes: int = 2, /, **values: str
) -> Meeting:
    """What a node of a job with a rank a node finds."""
    for name, value in {"GRISTWAY_JOB_SECRET": SECRET, **values}.items():
        monkeypatch.setenv(name, value)
    return find_meeting(World(node, nodes, 1, "job"))


def test_nodes_meet_only_if_there_are_several_with_a_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert found(monkeypatch, 0, 1, MASTER_ADDR="127.0.0.1") == NO_MEETING
    assert found(monkeypatch, GRISTWAY_JOB_SECRET="") == NO_MEETING
    assert found(monkeypatch, GRISTWAY_JOB_SECRET=SECRET) != NO_MEETING


def test_nodes_of_torchrun_meet_a_port_after_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    given = found(monkeypatch, MASTER_ADDR="127.0.0.1", MASTER_PORT="4000")
    assert (given.point, given.listen) == ("host:127.0.0.1:4001", "127.0.0.1")
    monkeypatch.delenv("MASTER_PORT")
    assert found(monkeypatch).point == "host:127.0.0.1:29502", "of the job's second loader"


def test_nodes_of_slurm_meet_on_the_first_host(monkeypatch: pytest.MonkeyPatch) -> None:
    given = found(monkeypatch, SLURM_STEP_NODELIST="localhost", SLURM_JOB_ID="1234567")
    assert given.point == "host:localhost:24567"


@pytest.mark.parametrize(
    ("hosts", "first"),
    [
        ("gpu7", "gpu7"),
        ("gpu7,gpu8", "gpu7"),
        ("gpu[007-012,20],login", "gpu007"),
        ("rack[3,5]-gpu,x", "rack3-gpu"),
    ],
)
def test_the_first_of_slurms_hosts(hosts: str, first: str) -> None:
    assert first_of(hosts) == first


@pytest.mark.parametrize(
    "launcher",
    [
        {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "4000"},
        {"SLURM_STEP_NODELIST": "127.0.0.1", "SLURM_JOB_ID": "7"},
    ],
    ids=["torchrun", "slurm"],
)
def test_another_port_may_be_set(monkeypatch: pytest.MonkeyPatch, launcher: dict[str, str]) -> None:
    assert found(monkeypatch, GRISTWAY_PORT="5000", **launcher).point == "host:127.0.0.1:5000"
    with pytest.raises(WrongCallError, match="GRISTWAY_PORT is 'five', not a number"):
        found(monkeypatch, GRISTWAY_PORT="five")


def test_nodes_of_a_list_meet_at_its_first_and_listen_each_at_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = "127.0.0.1:4000, 127.0.0.2:4100 ,127.0.0.3:4200"
    for node in range(3):
        monkeypatch.setattr(meeting, "_made", 0)
        given = found(monkeypatch, node, 3, GRISTWAY_NODES=listed, MASTER_ADDR=OTHER_MACHINE)
        assert (given.point, given.listen) == ("host:127.0.0.1:4000", f"127.0.0.{node + 1}")
    elsewhere = found(monkeypatch, 1, 3, GRISTWAY_LISTEN="127.0.0.9")
    assert elsewhere.listen == "127.0.0.9"


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ("127.0.0.1:4000", "lists 1 nodes, and the job has 2"),
        ("127.0.0.1:1,127.0.0.1:2,127.0.0.1:3", "lists 3 nodes, and the job has 2"),
        ("127.0.0.1:4000,127.0.0.2", "has '127.0.0.2': write each node as host:port"),
        ("127.0.0.1:4000,:4000", "has ':4000': write each node as host:port"),
        ("127.0.0.1:x,127.0.0.2:4000", "has '127.0.0.1:x': write each node as host:port"),
    ],
)
def test_a_list_that_cannot_be_meant_is_refused(
    monkeypatch: pytest.MonkeyPatch, listed: str, said: str
) -> None:
    with pytest.raises(WrongCallError, match=f"GRISTWAY_NODES {said}"):
        found(monkeypatch, GRISTWAY_NODES=listed)


def test_nodes_meet_by_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, GRISTWAY_NODES="/a/folder").point == "folder:/a/folder"


def test_nodes_that_know_no_place_say_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WrongCallError, match="set MASTER_ADDR, or GRISTWAY_NODES"):
        found(monkeypatch)


@pytest.mark.parametrize("listen", ["lo", "127.0.0.0/8", "127.0.0.1/32", "localhost", "127.0.0.1"])
def test_a_node_listens_at_an_interface_a_network_or_an_address(
    monkeypatch: pytest.MonkeyPatch, listen: str
) -> None:
    given = found(monkeypatch, MASTER_ADDR="127.0.0.1", GRISTWAY_LISTEN=listen)
    assert given.listen in ("127.0.0.1", "::1")


@pytest.mark.parametrize(
    ("listen", "said"),
    [
        ("255.255.255.255/32", "no interface of this machine is in the network"),
        ("192.0.2.0/99", "is no network"),
        ("0.0.0.0", "name one address, interface or network"),
        ("::", "name one address, interface or network"),
    ],
)
def test_a_node_refuses_to_listen_nowhere_or_everywhere(
    monkeypatch: pytest.MonkeyPatch, listen: str, said: str
) -> None:
    with pytest.raises(WrongCallError, match=said):
        found(monkeypatch, MASTER_ADDR="127.0.0.1", GRISTWAY_LISTEN=listen)


def test_a_host_that_nobody_knows_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    known = socket.getaddrinfo

    def unknown(host: str, *question: Any, **how: Any) -> Any:
        if host == "gpu7":
            raise socket.gaierror("nobody knows it")
        return known(host, *question, **how)

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(MachineError, match="cannot look up the host gpu7: nobody knows it"):
        found(monkeypatch, MASTER_ADDR="gpu7")


@pytest.mark.parametrize("listen", ["eth9.invalid", "255.255.255.255/32"])
def test_an_interface_that_is_not_there_is_answered_with_those_that_are(
    monkeypatch: pytest.MonkeyPatch, listen: str
) -> None:
    with pytest.raises(WrongCallError, match=r"there are .*\blo \(127\.0\.0\.1\)"):
        found(monkeypatch, MASTER_ADDR="127.0.0.1", GRISTWAY_LISTEN=listen)


def test_a_node_that_others_could_not_reach_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    said = (
        f"meet at {OTHER_MACHINE}, and this one would listen at 127.0.0.1 only: set GRISTWAY_LISTEN"
    )
    with pytest.raises(WrongCallError, match=said):
        found(monkeypatch, MASTER_ADDR=OTHER_MACHINE)
    with pytest.raises(WrongCallError, match=said):
        found(monkeypatch, GRISTWAY_LISTEN="lo")
    with pytest.raises(WrongCallError, match=said):
        found(monkeypatch, 1, GRISTWAY_LISTEN="", GRISTWAY_NODES=f"{OTHER_MACHINE}:1,127.0.0.1:2")


def test_loaders_of_a_job_meet_apart_and_its_nodes_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launcher = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "4000", "TORCHELASTIC_RUN_ID": "a"}
    first, second = (found(monkeypatch, **launcher) for _ in range(2))
    assert (first.point, second.point) == ("host:127.0.0.1:4001", "host:127.0.0.1:4002")
    assert first.group != second.group
    monkeypatch.setattr(meeting, "_made", 0)
    assert found(monkeypatch, 1) == first, "on the other node"
    monkeypatch.setattr(meeting, "_made", 0)
    assert found(monkeypatch, TORCHELASTIC_RUN_ID="b").group != first.group, "of another job"
