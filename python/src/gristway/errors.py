"""What Gristway raises. Every message is one line: what happened, where, and what to do."""

from __future__ import annotations


class Error(Exception):
    """Something went wrong that a user can act on; `kind` says what sort of thing."""

    kind = "error"


class DamagedDataError(Error):
    """The data is damaged or incomplete."""

    kind = "damaged"


class WrongCallError(Error, ValueError):
    """The call is wrong, or names nothing that exists."""

    kind = "wrong-call"


class MachineError(Error):
    """The surroundings do not allow it: no Java, no memory, no space, no permission."""

    kind = "environment"


class LostNodeError(Error):
    """The process that reads has died, and could not be replaced without losing something."""

    kind = "lost-node"


class HungNodeError(LostNodeError):
    """The process that reads is there and does nothing."""


_BY_NUMBER = {1: DamagedDataError, 2: WrongCallError, 3: MachineError}


def failure(number: int, message: str) -> Error:
    """The exception for a failure that a node has told, by the number of its kind."""
    return _BY_NUMBER.get(number, Error)(message)
