"""Makes batches of transformed samples, as torch's default_collate does.

Where training uses torch, the result has tensors; otherwise it has numpy arrays, by the same rules.
Workers stack what they have of a batch, and the trainer joins the stacks: the result is the same as
if all samples had been collated together.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

from gristway.errors import WrongCallError

Collate = Callable[[list[Any]], Any]


def uses_torch() -> bool:
    """True if this process has imported torch: then batches are made of its tensors."""
    return "torch" in sys.modules


def labels_array(labels: memoryview) -> Any:
    """Labels as training wants them: an int64 tensor, or an array, or a list without numpy."""
    numpy = _numpy()
    values = labels.tolist() if numpy is None else numpy.array(labels, dtype=numpy.int64)
    if not uses_torch():
        return values
    from gristway import torch

    return torch.labels_tensor(values) if numpy is None else torch.from_array(values)


def default_collate(samples: list[Any]) -> Any:
    """Collates transformed samples."""
    if uses_torch():
        from gristway import torch

        _refuse_views(samples[0])
        return torch.default_collate(samples)
    return join([stack(samples)])


def _refuse_views(sample: Any) -> None:
    """Raises if there is a memoryview in what a transform has returned, of which torch would make a
    tensor for each byte."""
    if isinstance(sample, memoryview):
        raise WrongCallError(
            "the transform returns a memoryview, of which no batch can be made: return"
            " bytes(sample.data), or decode it"
        )
    if isinstance(sample, Mapping):
        sample = tuple(sample.values())
    if isinstance(sample, (tuple, list)):
        for each in sample:
            if not isinstance(each, (int, float)):
                _refuse_views(each)


class Stack:
    """What one leaf of the samples' structure has in some samples of a batch, in order."""

    __slots__ = ("values", "is_array")

    def __init__(self, values: Any, is_array: bool) -> None:
        self.values = values
        self.is_array = is_array


def stack(samples: Sequence[Any]) -> Any:
    """Some samples of a batch, ready to be sent and joined with the others: their structure, with a
    Stack for each leaf. Arrays of equal shapes become one."""
    first = samples[0]
    if isinstance(first, Mapping):
        if all(isinstance(s, Mapping) and s.keys() == first.keys() for s in samples):
            return _like(first, {key: stack([sample[key] for sample in samples]) for key in first})
    elif isinstance(first, (tuple, list)):
        if all(isinstance(s, type(first)) and len(s) == len(first) for s in samples):
            columns = [stack(column) for column in zip(*samples)]
            return type(first)(*columns) if _is_named(first) else columns
    return _leaf(samples)


def _is_named(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _like(first: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    """A mapping of the same kind with other values, as far as that can be made."""
    if isinstance(first, MutableMapping):
        same = copy.copy(first)
        same.update(values)
        return same
    return values


def _leaf(values: Sequence[Any]) -> Stack:
    numpy = _numpy()
    if numpy is None:
        return Stack(values, False)
    first = values[0]
    if uses_torch():
        from gristway import torch

        _refuse_views(first)
        arrays = torch.as_arrays(list(values))
        if arrays is not None:
            return Stack(numpy.stack(arrays), True)
    if isinstance(first, numpy.ndarray) and first.dtype.kind in "biufc":
        if all(
            isinstance(v, numpy.ndarray) and v.shape == first.shape and v.dtype == first.dtype
            for v in values
        ):
            return Stack(numpy.stack(values), True)
    elif (
        isinstance(first, numpy.generic)
        and first.dtype.kind in "biufc"
        and all(type(v) is type(first) for v in values)
    ):
        return Stack(numpy.array(values), True)
    return Stack(values, False)


def join(stacks: Sequence[Any]) -> Any:
    """The batch whose samples were stacked in these stretches, one behind the other."""
    first = stacks[0]
    if all(isinstance(s, Stack) for s in stacks):
        return _joined_leaf(stacks)
    if isinstance(first, Mapping):
        if all(isinstance(s, Mapping) and s.keys() == first.keys() for s in stacks):
            return _like(first, {key: join([part[key] for part in stacks]) for key in first})
    elif isinstance(first, (tuple, list)):
        if all(type(s) is type(first) and len(s) == len(first) for s in stacks):
            columns = [join(column) for column in zip(*stacks)]
            return type(first)(*columns) if _is_named(first) else columns
    return _collated([value for part in stacks for value in _unstacked(part)])


def _joined_leaf(stacks: Sequence[Stack]) -> Any:
    first = stacks[0]
    same = all(
        s.is_array
        and first.is_array
        and s.values.dtype == first.values.dtype
        and s.values.shape[1:] == first.values.shape[1:]
        for s in stacks
    )
    if same:
        numpy = _numpy()
        values = first.values
        if len(stacks) > 1:
            values = numpy.concatenate([s.values for s in stacks])
        if uses_torch():
            from gristway import torch

            return torch.from_array(values)
        return values
    # As a column of samples that are sequences comes to torch, or as their values by a name.
    kind = tuple if all(isinstance(s.values, tuple) or s.is_array for s in stacks) else list
    return _collated(kind(value for s in stacks for value in s.values))


def _collated(values: Sequence[Any]) -> Any:
    """What could not be stacked: torch says what it is, or what is wrong with it."""
    if uses_torch():
        from gristway import torch

        return torch.default_collate(values)  # type: ignore[arg-type]
    numpy = _numpy()
    if numpy is None:
        return list(values)
    if all(isinstance(value, (bool, int, float)) for value in values):
        array = numpy.array(values)
        return array.astype(numpy.int64) if array.dtype.kind == "i" else array
    if any(hasattr(value, "shape") for value in values):
        shapes = sorted({str(getattr(v, "shape", type(v).__name__)) for v in values})
        raise ValueError(
            f"samples of one batch have different shapes or kinds ({', '.join(shapes)}): make them"
            " alike in transform, or give a collate_fn"
        )
    if any(isinstance(value, (Mapping, tuple, list)) for value in values):
        raise ValueError(
            "samples of one batch have different parts: make them alike in transform, or give a"
            " collate_fn"
        )
    return list(values)


def _unstacked(part: Any) -> list[Any]:
    """The samples of a stretch that is not like the others."""
    if isinstance(part, Stack):
        return list(part.values)
    if isinstance(part, Mapping):
        columns = [_unstacked(column) for column in part.values()]
        return [dict(zip(part, row)) for row in zip(*columns)]
    rows = zip(*(_unstacked(column) for column in part))
    return [type(part)(*row) if _is_named(part) else list(row) for row in rows]


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        return None
    return numpy
