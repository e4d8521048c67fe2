"""What tests of faults share: a small loader, and the error that a call raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from conftest import PackedFiles

import gristway

BATCH = 8


def opened(path: object, **options: Any) -> gristway.Loader:
    return gristway.Loader(path, BATCH, **{"memory": "1MiB", **options})  # type: ignore[arg-type]


def keys(packed: PackedFiles, loader: gristway.Loader) -> list[str]:
    return [packed.key(view) for data, _ in loader for view in data]


def raised(kind: type[gristway.Error], call: Callable[[], Any], *named: str) -> None:
    """The call raises this kind of error, with one line that has all these words."""
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert type(caught.value) is kind
    assert "\n" not in message
    for words in named:
        assert words in message
    assert "Traceback" not in message
