"""Class numbers of the datasets that one process has open.

Datasets that were packed apart number their classes by themselves. Whoever trains with one and validates
with another compares numbers that mean different classes, without a word. So a class that two open
datasets have must have one number in both.
"""

from __future__ import annotations

import os
import threading
import weakref

from gristway.errors import WrongCallError
from gristway.source import Source

# By who reads it: where the dataset is, and the numbers by name once they were asked for.
_open: weakref.WeakKeyDictionary[Source, tuple[str, dict[str, int] | None]]
_open = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def compare_classes(source: Source, path: str) -> None:
    """Notes a dataset that was opened.

    Raises WrongCallError if a class has another number in one that is open already. Nothing is asked of
    the nodes while all that is open is one dataset.
    """
    path = os.path.realpath(path)
    with _lock:
        others = [
            each for each, (there, _) in _open.items() if there != path and not each.is_closed
        ]
        numbers = source.classes() if others else None
        for other in others if numbers else []:
            there, known = _open[other]
            if known is None:
                known = other.classes()
                _open[other] = (there, known)
            for name, number in known.items():
                if numbers and numbers.get(name, number) != number:
                    source.close()
                    raise WrongCallError(
                        f"class '{name}' is {number} in {there} and {numbers[name]} in {path}: pack one"
                        " with 'gristway pack --classes-of' the other; or, if they have nothing to do"
                        " with each other, open this one with compare_classes=False"
                    )
        _open[source] = (path, numbers)
