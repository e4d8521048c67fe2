"""Accelerate itself trains two ranks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PackedFiles
from frameworks import TORCHRUN, WAYS, run, stopped_and_gone_on

PREPARES_A_STREAM = """
import sys
from accelerate import Accelerator, DataLoaderConfiguration
from gristway.torch import StreamDataset
from torch.utils.data import DataLoader
how = DataLoaderConfiguration(dispatch_batches=None if sys.argv[2] == "dispatch" else False)
accelerator = Accelerator(cpu=True, dataloader_config=how)
dataset = StreamDataset(sys.argv[1], batch_size=10, transform=lambda sample: sample.id)
for batch in accelerator.prepare(DataLoader(dataset, batch_size=None)):
    pass
"""


@pytest.mark.limit(600)
@pytest.mark.parametrize("kind", WAYS)
def test_accelerate_gives_every_sample_once_and_goes_on_in_mid_epoch(
    dataset: Callable[..., PackedFiles], tmp_path: Path, runtime_dir: Path, kind: str
) -> None:
    packed = dataset(samples=200, labels=4)
    stopped_and_gone_on(packed, tmp_path / "run", TORCHRUN, "accelerate_train.py", kind)


@pytest.mark.limit(300)
def test_a_stream_that_accelerate_would_deal_again_is_refused(
    dataset: Callable[..., PackedFiles], tmp_path: Path, runtime_dir: Path
) -> None:
    program = tmp_path / "prepares.py"
    program.write_text(PREPARES_A_STREAM)
    packed = dataset(samples=200, labels=4)
    refused = "deals the batches of a StreamDataset to the ranks"
    run(*TORCHRUN, program, packed.path, "dispatch", refused=refused)
