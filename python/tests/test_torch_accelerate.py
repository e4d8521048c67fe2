"""Accelerate itself trains two ranks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PackedFiles
from frameworks import TORCHRUN, WAYS, run, stopped_and_gone_on

PREPARES = """
import sys
import gristway
from accelerate import Accelerator, DataLoaderConfiguration
from accelerate.utils import gather_object
from gristway.torch import MapDataset, StreamDataset
from torch.utils.data import DataLoader

how = {"transform": lambda sample: sample.id, "memory": "256KiB", "extent": "4KiB"}

def prepared(make, **settings):
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**settings))
    return accelerator.prepare(make())

def mapped(redirect):
    return DataLoader(MapDataset(sys.argv[1], redirect=redirect, **how), batch_size=10, shuffle=True)

def stream():
    return DataLoader(StreamDataset(sys.argv[1], batch_size=10, **how), batch_size=None)

def loader():
    return gristway.Loader(sys.argv[1], batch_size=10, **how)

def exact():
    return mapped(False)

def redirect():
    return mapped(True)

for make, settings in (
    (loader, {"dispatch_batches": True}),
    (loader, {"dispatch_batches": False, "split_batches": True}),
    (exact, {"dispatch_batches": True}),
    (exact, {"dispatch_batches": True, "split_batches": True}),
    (exact, {"dispatch_batches": False, "split_batches": True}),
    (redirect, {"dispatch_batches": False}),
    (redirect, {"dispatch_batches": False, "split_batches": True}),
):
    given = [number for batch in prepared(make, **settings) for number in batch.tolist()]
    everywhere = gather_object(given)
    assert sorted(everywhere) == list(range(200)), (make, settings, sorted(everywhere))
    assert len(given) == 100, (make, settings)
what = {"stream": stream, "redirect": redirect}[sys.argv[2]]
for batch in prepared(what, dispatch_batches=True):
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
@pytest.mark.parametrize(
    ("kind", "refused"),
    [
        ("stream", "deals the batches of a StreamDataset to the ranks"),
        pytest.param("redirect", "has one rank read for all of them", marks=pytest.mark.thorough),
    ],
)
def test_batches_that_accelerate_dispatches_or_splits_are_right_or_refused(
    dataset: Callable[..., PackedFiles], tmp_path: Path, runtime_dir: Path, kind: str, refused: str
) -> None:
    program = tmp_path / "prepares.py"
    program.write_text(PREPARES)
    packed = dataset(samples=200, labels=4)
    run(*TORCHRUN, program, packed.path, kind, refused=refused)
