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

# By who reads it: where the dataset is, and the numbers of its classes by name.
_open: weakref.WeakKeyDictionary[Source, tuple[str, dict[str, int]]]
_open = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def compare_classes(source: Source, path: str) -> None:
    """Notes a dataset that was opened.

    Raises WrongCallError if a class has another number in one that is open already. Each dataset is
    asked once, when it is opened: the node of one that nobody uses any more may be gone.
    """
    path = os.path.realpath(path)
    numbers = source.classes()
    with _lock:
        for other, (there, known) in list(_open.items()):
            if there == path or other.is_closed:
                continue
            for name, number in known.items():
                if numbers.get(name, number) != number:
                    source.close()
                    raise WrongCallError(
                        f"class '{name}' is {number} in {there} and {numbers[name]} in {path}: pack one"
                        " with 'gristway pack --classes-of' the other; or, if they have nothing to do"
                        " with each other, open this one with compare_classes=False"
                    )
        _open[source] = (path, numbers)
