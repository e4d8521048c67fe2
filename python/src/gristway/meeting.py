"""Where the nodes of a job find each other, from what its launcher has set.

Nodes that read shared storage have nothing to tell each other, and do not meet. With a secret in
GRISTWAY_JOB_SECRET they do: they compare what they are about to do, push samples to each other if
they are to, and know when one is lost.
"""

from __future__ import annotations

import fcntl
import hashlib
import ipaddress
import os
import re
import socket
import struct
from dataclasses import dataclass

from gristway.errors import MachineError, WrongCallError
from gristway.world import World

_LOOPBACK = "127.0.0.1"
_SIOCGIFADDR = 0x8915
_FIRST_PORT = 20000
_PORTS = 10000

# Loaders that one training process has at once: each has its nodes, which meet at a port of theirs.
_LOADERS = 16

# What all machines of a job have in common, and other jobs do not. How often a launcher has started
# its ranks again is not among it: torchrun counts that on each machine by itself.
_SAME_EVERYWHERE = (
    *("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"),
    *("SLURM_JOB_ID", "SLURM_STEP_ID", "GRISTWAY_NODES"),
)

_made = 0


@dataclass(frozen=True)
class Meeting:
    """How a node takes it: `host:NAME:PORT` or `folder:PATH`, the own address, the job's name."""

    point: str
    listen: str
    group: str


NO_MEETING = Meeting("", _LOOPBACK, "")


def find_meeting(world: World) -> Meeting:
    """Where the nodes of this job meet; all of them find the same, loader by loader."""
    global _made
    if world.nodes == 1 or not os.environ.get("GRISTWAY_JOB_SECRET"):
        return NO_MEETING
    world.check_order()
    number = _made % _LOADERS
    _made += 1
    shared = [os.environ.get(name, "") for name in _SAME_EVERYWHERE]
    group = hashlib.sha256("\0".join([*shared, str(number)]).encode()).hexdigest()[:16]
    given = os.environ.get("GRISTWAY_NODES")
    if given and "/" in given:
        return Meeting(f"folder:{os.path.abspath(given)}", _listen(None), group)
    hosts = _listed(given, world) if given else None
    name, port = hosts[0] if hosts else _launchers()
    own = _listen(hosts[world.node][0] if hosts else None)
    if _is_loopback(own) and not _is_loopback(name):
        raise WrongCallError(
            f"the nodes of this job meet at {name}, and this one would listen at {own} only: set"
            " GRISTWAY_LISTEN to its address, interface or network among them, such as eth0 or"
            " 10.0.0.0/8"
        )
    return Meeting(f"host:{name}:{port + number}", own, group)


def _listed(given: str, world: World) -> list[tuple[str, int]]:
    entries = [entry.strip() for entry in given.split(",")]
    if len(entries) != world.nodes:
        raise WrongCallError(
            f"GRISTWAY_NODES lists {len(entries)} nodes, and the job has {world.nodes}"
        )
    hosts = []
    for entry in entries:
        name, _, port = entry.rpartition(":")
        if not name or not port.isdecimal():
            raise WrongCallError(
                f"GRISTWAY_NODES has {entry!r}: write each node as host:port, or give a folder"
            )
        hosts.append((name, int(port)))
    return hosts


def _launchers() -> tuple[str, int]:
    """Where torchrun's or Slurm's first node is."""
    port = os.environ.get("GRISTWAY_PORT", "")
    if port and not port.isdecimal():
        raise WrongCallError(f"GRISTWAY_PORT is {port!r}, not a number")
    master = os.environ.get("MASTER_ADDR")
    if master:
        return master, int(port or int(os.environ.get("MASTER_PORT", "29500")) + 1)
    nodes = os.environ.get("SLURM_STEP_NODELIST") or os.environ.get("SLURM_JOB_NODELIST")
    if nodes:
        job = int(re.sub(r"\D", "", os.environ.get("SLURM_JOB_ID", "")) or 0)
        return first_of(nodes), int(port or _FIRST_PORT + job % _PORTS)
    raise WrongCallError(
        "the nodes of this job do not know where to meet: set MASTER_ADDR, or GRISTWAY_NODES to their"
        " host:port list or to a folder that all can write to"
    )


def first_of(nodes: str) -> str:
    """The first of Slurm's list of hosts, such as `gpu[007-012,20],login`."""
    match = re.match(r"([^,\[]+)(?:\[(\d+)[^\]]*\]([^,]*))?", nodes)
    if match is None:
        raise WrongCallError(f"SLURM_STEP_NODELIST is {nodes!r}, which names no host")
    return "".join(part or "" for part in match.groups())


def _listen(listed: str | None) -> str:
    """The address that this node listens at: loopback unless told otherwise."""
    given = os.environ.get("GRISTWAY_LISTEN")
    if not given:
        return _address(listed) if listed else _LOOPBACK
    if "/" in given:
        return _in_network(given)
    if given in _interfaces():
        address = _address_of(given)
        if address is None:
            raise WrongCallError(f"GRISTWAY_LISTEN is {given}, which has no IPv4 address")
        return address
    try:
        address = _address(given)
    except MachineError:
        raise WrongCallError(
            f"GRISTWAY_LISTEN is {given}, which is no interface of this machine, and no host that it"
            f" knows: there are {_known()}"
        ) from None
    if ipaddress.ip_address(address).is_unspecified:
        raise WrongCallError(
            f"GRISTWAY_LISTEN is {given}: name one address, interface or network, which the other"
            " nodes are told"
        )
    return address


def _interfaces() -> list[str]:
    return [name for _, name in socket.if_nameindex()]


def _known() -> str:
    """The interfaces that a node of this machine can listen at, with their addresses."""
    addresses = {name: _address_of(name) for name in _interfaces()}
    return ", ".join(f"{name} ({address})" for name, address in addresses.items() if address)


def _in_network(given: str) -> str:
    try:
        network = ipaddress.ip_network(given, strict=False)
    except ValueError:
        raise WrongCallError(f"GRISTWAY_LISTEN is {given}, which is no network") from None
    for name in _interfaces():
        address = _address_of(name)
        if address is not None and ipaddress.ip_address(address) in network:
            return address
    raise WrongCallError(
        f"no interface of this machine is in the network GRISTWAY_LISTEN={given}: there are {_known()}"
    )


def _address_of(interface: str) -> str | None:
    request = struct.pack("256s", interface.encode()[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            answer = fcntl.ioctl(asked.fileno(), _SIOCGIFADDR, request)
        except OSError:
            return None
    return socket.inet_ntoa(answer[20:24])


def _address(host: str) -> str:
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as unknown:
        raise MachineError(f"cannot look up the host {host}: {unknown}") from None


def _is_loopback(host: str) -> bool:
    return ipaddress.ip_address(_address(host).partition("%")[0]).is_loopback
