"""The `gristway` command that installing the package brings: the command line of the jar."""

from __future__ import annotations

import os
import sys

from gristway import java
from gristway.errors import MachineError


def main() -> int:
    """Becomes the Java process, so that signals and exit codes are its own.

    Returns only where that process cannot be started: 3, the exit code for a machine that lacks
    something, after one line on stderr.
    """
    try:
        words = java.command_line(sys.argv[1:])
    except MachineError as error:
        print(f"gristway: {error}", file=sys.stderr)
        return 3
    os.execve(words[0], words, java.environment())
