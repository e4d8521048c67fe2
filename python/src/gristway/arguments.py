"""Checks of what a user passes: what is wrong is told in one line that names the argument."""

from __future__ import annotations

import multiprocessing
import numbers
import operator
from multiprocessing.context import BaseContext
from typing import Any

from gristway.errors import WrongCallError


def whole_number(name: str, value: Any, least: int, most: int) -> int:
    """A whole number of any kind, numpy's too."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise WrongCallError(f"{name} must be a whole number, not {value!r}")
    if not least <= number <= most:
        raise WrongCallError(f"{name} must be {least} to {most}, not {number}")
    return number


def share(name: str, value: Any, example: str = "") -> float:
    """A share of the samples, as a number or in digits."""
    try:
        number = None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = None
    if number is None or not 0 <= number <= 1:
        raise WrongCallError(f"{name} is a share of the samples, 0 to 1{example}, not {value!r}")
    return number


def is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def context_of(value: Any) -> BaseContext:
    """How worker processes are started: the name of a start method, or a context of multiprocessing."""
    if isinstance(value, BaseContext):
        return value
    methods = multiprocessing.get_all_start_methods()
    if value is not None and value not in methods:
        named = ", ".join(map(repr, methods))
        raise WrongCallError(
            f"multiprocessing_context must be one of {named}, or what multiprocessing.get_context"
            f" returns, not {value!r}"
        )
    context: BaseContext = multiprocessing.get_context(value)
    return context
