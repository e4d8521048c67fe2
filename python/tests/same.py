"""Comparing what was collated."""

from __future__ import annotations

from typing import Any


def assert_same(found: Any, expected: Any) -> None:
    """Fails unless both are alike in types, names, shapes and values, all the way down."""
    assert type(found) is type(expected)
    if hasattr(expected, "dtype"):  # of numpy or torch
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        assert bool((found == expected).all())
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for key in expected:
            assert_same(found[key], expected[key])
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            assert_same(one, other)
    else:
        assert found == expected
