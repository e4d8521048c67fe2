"""transformers.Trainer itself trains two ranks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PackedFiles
from frameworks import TORCHRUN, WAYS, stopped_and_gone_on


@pytest.mark.limit(600)
@pytest.mark.parametrize("kind", WAYS[1:])
def test_transformers_gives_every_sample_once_and_goes_on_in_mid_epoch(
    dataset: Callable[..., PackedFiles], tmp_path: Path, runtime_dir: Path, kind: str
) -> None:
    packed = dataset(samples=200, labels=4)
    stopped_and_gone_on(packed, tmp_path / "run", TORCHRUN, "transformers_train.py", kind)
