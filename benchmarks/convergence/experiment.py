"""Does training converge as well with Gristway's order as with a true global shuffle?

Packs Fashion-MNIST twice, as Gristway does by default (scattered over the chunks) and as it lies in
its class folders (--keep-order), and trains the same network with every order and seed: the global
shuffle in memory, and `redirect` with little memory. Every training is checked: the samples that
the network got, and their order, are those that `gristway read --order` tells.

Called by ./run; writes results.json into the folder of its argument.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import fashion
import numpy as np
import torch
import training
import verdict

import gristway
from gristway import java


@dataclass(frozen=True)
class Arm:
    """A way to order the samples. Without a dataset it is the global shuffle, in memory."""

    name: str
    dataset: str | None = None
    percent: int = 0  # memory, of the dataset's bytes
    extent: str = ""


REFERENCE = Arm("global shuffle")
ARMS = [
    REFERENCE,
    *(Arm(f"redirect, {m} %", "packed.gw", m, "16KiB") for m in (1, 5, 10)),
    *(Arm(f"class-sorted, {m} %", "sorted.gw", m, "16KiB") for m in (1, 5, 10)),
    # 77 samples an extent, as pictures of 14 KB have with extents of 1 MiB: there the order
    # in the chunks decides.
    Arm("redirect, 1 %, 64 KiB", "packed.gw", 1, "64KiB"),
    Arm("class-sorted, 1 %, 64 KiB", "sorted.gw", 1, "64KiB"),
]


def main() -> None:
    arguments = argparse.ArgumentParser(description="Training with Gristway's orders.")
    arguments.add_argument("out", type=Path, help="where results.json is written")
    arguments.add_argument("--idx", type=Path, help="folder of the four IDX files")
    arguments.add_argument("--seeds", type=int, default=5)
    arguments.add_argument("--epochs", type=int, default=training.EPOCHS)
    arguments.add_argument(
        "--jobs", type=int, help="trainings at once (default: 1; GPU: the cores)"
    )
    given = arguments.parse_args()
    jobs = given.jobs or ((os.cpu_count() or 1) if torch.cuda.is_available() else 1)
    given.out.mkdir(parents=True, exist_ok=True)

    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gristway-convergence-") as temporary:
        work = Path(temporary)
        fashion.write_files(work, given.idx)
        command_line("pack", work / "train", work / "packed.gw")
        command_line("pack", "--keep-order", work / "train", work / "sorted.gw")
        outcomes = train_all(work, jobs, given.seeds, given.epochs)

    results = {
        "machine": machine(),
        "trainingSamples": 60_000,
        "batchSize": training.BATCH_SIZE,
        "epochs": given.epochs,
        "seeds": given.seeds,
        "marginPoints": verdict.MARGIN,
        "minutes": round((time.monotonic() - begin) / 60, 1),
        "arms": [summary(arm, outcomes[arm.name], outcomes[REFERENCE.name]) for arm in ARMS],
    }
    (given.out / "results.json").write_text(as_json(results))
    print(table(results))


def train_all(
    work: Path, jobs: int, seeds: int, epochs: int
) -> dict[str, dict[int, training.Outcome]]:
    outcomes: dict[str, dict[int, training.Outcome]] = {arm.name: {} for arm in ARMS}
    # Not forked: CUDA does not survive it.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        runs = {
            pool.submit(train_one, work, arm, seed, epochs, jobs): (arm, seed)
            for seed in range(seeds)
            for arm in ARMS
        }
        for done in as_completed(runs):
            arm, seed = runs[done]
            outcomes[arm.name][seed] = done.result()
            final = outcomes[arm.name][seed].accuracy[-1]
            print(f"{arm.name}, seed {seed}: {final:.2f} %", file=sys.stderr, flush=True)
    return outcomes


def train_one(work: Path, arm: Arm, seed: int, epochs: int, jobs: int) -> training.Outcome:
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // jobs))
    keys, images, labels = fashion.read_files(work / "train")
    _, test_images, test_labels = fashion.read_files(work / "test")
    steps = -(-len(labels) // training.BATCH_SIZE)

    def train(epoch: training.Epoch) -> training.Outcome:
        test = (test_images, test_labels)
        return training.train(epoch, test, steps_per_epoch=steps, seed=seed, epochs=epochs)

    if arm.dataset is None:
        return train(training.global_shuffle(images, labels, seed))
    with gristway.Loader(
        work / arm.dataset,
        batch_size=training.BATCH_SIZE,
        seed=seed,
        memory=f"{arm.percent}%",
        extent=arm.extent,
    ) as loader:
        outcome = train(lambda: decoded(loader))
    # The pictures that were read from their files are only for this check.
    row_of = {key: row for row, key in enumerate(keys)}
    for number, order in enumerate(told_order(work, arm, seed, epochs)):
        told = hashlib.sha256(images[[row_of[key] for key in order]].tobytes()).hexdigest()
        if sorted(order) != keys or told != outcome.digest[number]:
            raise AssertionError(f"{arm}, seed {seed}: epoch {number} is not as `read` tells")
    return outcome


def decoded(loader: gristway.Loader) -> Iterator[tuple[training.Images, training.Labels]]:
    for files, labels in loader:
        pictures = np.frombuffer(b"".join(files), np.uint8).reshape(len(files), -1)
        yield np.ascontiguousarray(pictures[:, len(fashion.HEADER) :]), np.asarray(labels)


def told_order(work: Path, arm: Arm, seed: int, epochs: int) -> list[list[str]]:
    """The keys of each epoch in the order that the command line tells."""
    assert arm.dataset is not None
    text = command_line(
        "read", work / arm.dataset, "--memory", f"{arm.percent}%", "--extent", arm.extent,
        "--seed", seed, "--batch-size", training.BATCH_SIZE, "--epochs", epochs, "--order", "-",
    )  # fmt: skip
    orders: list[list[str]] = [[] for _ in range(epochs)]
    for line in text.splitlines():
        epoch, _step, _rank, _requested, delivered = line.split("\t")
        orders[int(epoch)].append(delivered)
    return orders


def command_line(*arguments: object) -> str:
    command = java.command_line([str(each) for each in arguments])
    return subprocess.run(
        command, env=java.environment(), check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def summary(
    arm: Arm, outcomes: dict[int, training.Outcome], reference: dict[int, training.Outcome]
) -> dict[str, Any]:
    by_seed = [outcomes[seed] for seed in sorted(outcomes)]
    final = [outcome.accuracy[-1] for outcome in by_seed]
    return {
        **asdict(arm),
        "accuracy": [outcome.accuracy for outcome in by_seed],
        "loss": [[round(loss, 5) for loss in outcome.loss] for outcome in by_seed],
        "clumping": round(mean(mean(outcome.clumping) for outcome in by_seed), 4),
        "mean": mean(final),
        "deviation": stdev(final),
        "comparison": None
        if arm == REFERENCE
        else asdict(
            verdict.compare(final, [reference[seed].accuracy[-1] for seed in sorted(reference)])
        ),
    }


def table(results: dict[str, Any]) -> str:
    lines = [
        "| order | accuracy | clumping | difference (95 %) | p | p (TOST) | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    for arm in results["arms"]:
        cells = [arm["name"], f"{arm['mean']:.2f} ± {arm['deviation']:.2f}"]
        cells.append(f"{arm['clumping']:.2f}")
        if c := arm["comparison"]:
            cells.append(f"{c['difference']:+.2f} ({c['low95']:+.2f} to {c['high95']:+.2f})")
            cells += [f"{c['p']:.3f}", f"{c['p_equivalence']:.4f}", c["verdict"]]
        else:
            cells += ["", "", "", ""]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def as_json(results: dict[str, Any]) -> str:
    """One line a list of numbers, in place of one line a number."""
    text = json.dumps(results, indent=1)
    return re.sub(r"\[[^][{}]*\]", lambda numbers: " ".join(numbers[0].split()), text) + "\n"


def machine() -> str:
    where = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    return (
        f"{where}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"torch {torch.__version__}"
    )


if __name__ == "__main__":
    main()
