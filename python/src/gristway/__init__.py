"""Gristway feeds training from ordinary storage: packed datasets, read in large sequential reads,
inside a fixed memory, in a random order that delivers every sample exactly once an epoch."""

import sys as _sys

if _sys.platform == "win32":
    raise ImportError("Gristway runs on Linux, also in the Windows Subsystem for Linux")

# ruff: noqa: E402
from gristway import java as _java
from gristway.batch import Sample
from gristway.errors import (
    DamagedDataError,
    Error,
    HungNodeError,
    LostNodeError,
    MachineError,
    WrongCallError,
)
from gristway.loader import Loader

__version__ = _java.version()

__all__ = [
    "DamagedDataError",
    "Error",
    "HungNodeError",
    "Loader",
    "LostNodeError",
    "MachineError",
    "Sample",
    "WrongCallError",
    "__version__",
]
