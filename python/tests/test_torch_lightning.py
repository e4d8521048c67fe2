"""Lightning itself trains two ranks, which its own launcher starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PackedFiles
from frameworks import WAYS, stopped_and_gone_on


@pytest.mark.limit(600)
@pytest.mark.parametrize("kind", WAYS)
def test_lightning_gives_every_sample_once_and_goes_on_in_mid_epoch(
    dataset: Callable[..., PackedFiles], tmp_path: Path, runtime_dir: Path, kind: str
) -> None:
    packed = dataset(samples=200, labels=4)
    stopped_and_gone_on(packed, tmp_path / "run", (), "lightning_train.py", kind)
    # The sanity check was broken off, and every validation after it was complete.
    for rank in range(2):
        lines = (tmp_path / "run" / f"validation-{rank}").read_text().splitlines()
        checks = [line for line in lines if line.startswith("check")]
        assert (len(checks), len(lines) - len(checks)) == (2, 20)
