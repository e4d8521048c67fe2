"""A small version of benchmarks/convergence: does training with `redirect` learn as well?

The same network, loop and measures as there, on fewer and easier pictures.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import gristway

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks" / "convergence"))
import experiment
import fashion
import training
import verdict

EPOCHS = 2
# Percentage points of accuracy. The final accuracies of six seeds lie within 0.6.
MARGIN = 3


def write_pictures(folder: Path, samples: int, seed: int) -> None:
    """Noisy pictures of ten patterns, in one folder a class, in the format of the experiment."""
    patterns = np.random.default_rng(0).normal(0, 1, (fashion.CLASSES, 7, 7)).repeat(4, 1)
    patterns = patterns.repeat(4, 2)
    random = np.random.default_rng(seed)
    for number in range(samples):
        label = number % fashion.CLASSES
        picture = 128 + 25 * patterns[label] + random.normal(0, 60, patterns[label].shape)
        file = folder / str(label) / f"{number:05}.pgm"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(fashion.HEADER + picture.clip(0, 255).astype(np.uint8).tobytes())


@pytest.fixture(scope="module")
def pictures(
    tmp_path_factory: pytest.TempPathFactory,
    gristway_command: Callable[..., subprocess.CompletedProcess[str]],
) -> Path:
    """A folder with train/ and test/, and the former packed as packed.gw and sorted.gw."""
    folder = tmp_path_factory.mktemp("pictures")
    write_pictures(folder / "train", 2000, seed=1)
    write_pictures(folder / "test", 500, seed=2)
    gristway_command("pack", folder / "train", folder / "packed.gw")
    gristway_command("pack", "--keep-order", folder / "train", folder / "sorted.gw")
    return folder


def trained(pictures: Path, dataset: str | None, memory: str = "") -> training.Outcome:
    """Trains with the global shuffle, or with what the loader gives of a dataset."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        _, images, labels = fashion.read_files(pictures / "train")
        _, *test = fashion.read_files(pictures / "test")
        settings = {"steps_per_epoch": -(-len(labels) // training.BATCH_SIZE), "epochs": EPOCHS}
        if dataset is None:
            epoch = training.global_shuffle(images, labels, seed=1)
            return training.train(epoch, tuple(test), seed=1, **settings)
        with gristway.Loader(
            pictures / dataset,
            batch_size=training.BATCH_SIZE,
            seed=1,
            memory=memory,
            extent="16KiB",
        ) as loader:
            return training.train(
                lambda: experiment.decoded(loader), tuple(test), seed=1, **settings
            )
    finally:
        torch.set_num_threads(threads)


@pytest.mark.thorough
def test_redirect_learns_as_well_as_a_global_shuffle(pictures: Path, runtime_dir: Path) -> None:
    reference = trained(pictures, None)
    # A tenth of the dataset, so 9 extents of 16 pictures or more are in memory.
    packed = trained(pictures, "packed.gw", "10%")
    assert packed.accuracy[-1] > reference.accuracy[-1] - MARGIN
    assert packed.clumping[-1] == pytest.approx(1, abs=0.4)
    # What the order in the chunks is good for: packed by class, 2 extents in memory are 2 classes.
    by_class = trained(pictures, "sorted.gw", "32KiB")
    assert by_class.clumping[-1] > 5
    assert by_class.accuracy[0] < reference.accuracy[0] - MARGIN


def test_clumping_is_1_by_chance_and_the_batch_size_at_worst() -> None:
    labels = np.arange(100_000) % 10
    shuffled = np.random.default_rng(1).permutation(labels)
    assert training.clumping(np.split(shuffled, 1000)) == pytest.approx(1, abs=0.05)
    assert training.clumping(np.split(np.sort(labels), 1000)) == pytest.approx(100)


def test_the_statistics_agree_with_the_tables() -> None:
    assert verdict.t_quantile(0.975, 4) == pytest.approx(2.7764, abs=1e-4)
    assert verdict.t_quantile(0.95, 8) == pytest.approx(1.8595, abs=1e-4)
    assert verdict.t_quantile(0.975, 1) == pytest.approx(12.7062, abs=1e-4)


def test_verdicts_tell_equivalent_different_and_undecided_apart() -> None:
    reference = [92.0, 92.1, 92.2, 92.3, 92.4]
    same = verdict.compare([92.1, 92.1, 92.3, 92.2, 92.4], reference)
    assert same.verdict == "equivalent; no difference found"
    worse = verdict.compare([each - 2 for each in reference], reference)
    assert worse.verdict == "not shown to be equivalent; worse"
    assert worse.low95 < -2 < worse.high95 < 0
    noisy = verdict.compare([90.0, 91.0, 92.0, 93.0, 94.0], reference)
    assert noisy.verdict == "not shown to be equivalent; no difference found"
    slightly = verdict.compare([each - 0.2 for each in (92.2, 92.21)], [92.2, 92.21])
    assert slightly.verdict == "equivalent; worse"
