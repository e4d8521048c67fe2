"""Collation without torch: workers' stacks are joined as if one had collated all samples."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest
from same import assert_same
from transforms import Pair

from gristway import collate

np = pytest.importorskip("numpy")


@pytest.fixture(autouse=True)
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests may have imported it; test_torch_collate has the same rules with it."""
    monkeypatch.setattr(collate, "uses_torch", lambda: False)


def in_stretches(samples: list[Any], *cuts: int) -> Any:
    """Collates as workers and the trainer do together."""
    ends = [0, *cuts, len(samples)]
    stretches = [samples[start:end] for start, end in zip(ends, ends[1:]) if start < end]
    return collate.join([collate.stack(stretch) for stretch in stretches])


ONE_TO_THREE = np.array([1, 2, 3])
CASES: dict[str, tuple[list[Any], Any]] = {
    "int": ([1, 2, 3], ONE_TO_THREE),
    "float": ([1.5, 2.5, 3.0], np.array([1.5, 2.5, 3.0])),
    "bool": ([True, False, True], np.array([True, False, True])),
    "str": (["a", "b", "c"], ["a", "b", "c"]),
    "bytes": ([b"a", b"b", b""], [b"a", b"b", b""]),
    "scalar": ([np.float32(1), np.float32(2)], np.array([1, 2], "float32")),
    "array": ([np.full((2, 1), n, "u1") for n in (4, 5)], np.array([[[4]] * 2, [[5]] * 2], "u1")),
    "0-d": ([np.array(n) for n in (1, 2, 3)], ONE_TO_THREE),
    "tuple": ([(n, "x") for n in (1, 2, 3)], [ONE_TO_THREE, ["x", "x", "x"]]),
    "nested": ([[n, [n, "x"]] for n in (1, 2, 3)], [ONE_TO_THREE, [ONE_TO_THREE, ["x"] * 3]]),
    "dict": ([{"a": n, "b": {"c": "x"}} for n in (1, 2, 3)], {"a": ONE_TO_THREE, "b": {"c": ["x"] * 3}}),
    "()": ([(), (), ()], []),
    "{}": ([{}, {}, {}], {}),
}  # fmt: skip


@pytest.mark.parametrize("cuts", [(), (1,), (2,), (1, 2)], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_stacks_are_joined_as_if_collated_together(case: str, cuts: tuple[int, ...]) -> None:
    samples, expected = CASES[case]
    assert_same(in_stretches(samples, *cuts), expected)
    assert_same(collate.default_collate(samples), expected)


@pytest.mark.parametrize("cuts", [(), (1,), (2,), (3,)], ids=str)
def test_arrays_of_different_shapes_are_refused(cuts: tuple[int, ...]) -> None:
    samples = [np.zeros(3), np.zeros(3), np.zeros(4), np.zeros(4)]
    with pytest.raises(ValueError, match="shapes.*collate_fn"):
        in_stretches(samples, *cuts)


@pytest.mark.parametrize("cuts", [(), (1,), (2,)], ids=str)
def test_samples_of_different_lengths_are_refused(cuts: tuple[int, ...]) -> None:
    """None may lose its last element without a word."""
    samples = [(1, 2), (1, 2), (1, 2, 3), (1, 2, 3)]
    with pytest.raises((ValueError, RuntimeError)):
        in_stretches(samples, *cuts)


@pytest.mark.parametrize("cuts", [(), (1,), (2,)], ids=str)
def test_samples_with_different_names_are_refused(cuts: tuple[int, ...]) -> None:
    samples = [{"a": 1}, {"a": 1}, {"b": 1}, {"b": 1}]
    with pytest.raises((ValueError, KeyError)):
        in_stretches(samples, *cuts)


def test_named_tuples_and_ordered_dicts_stay_what_they_are() -> None:
    pairs = collate.default_collate([Pair(1, 2), Pair(3, 4)])
    assert_same(pairs, Pair(np.array([1, 3]), np.array([2, 4])))
    named = collate.default_collate([OrderedDict(a=1), OrderedDict(a=2)])
    assert type(named) is OrderedDict
    assert_same(named["a"], np.array([1, 2]))


def test_a_collated_array_can_be_written_to() -> None:
    batch = in_stretches([np.zeros(3), np.zeros(3)], 1)
    batch += 1
    assert batch.tolist() == [[1.0] * 3] * 2
