"""Draws the pictures of docs/convergence.md: picture.py RESULTS.JSON FOLDER."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BLACK = "#1a1a1a"
# Told apart by eyes that see fewer colours, too.
COLOURS = {1: "#d55e00", 5: "#0072b2", 10: "#009e73"}
plt.style.use(Path(__file__).resolve().parents[1] / "pictures.mplstyle")


def main() -> None:
    results = json.loads(Path(sys.argv[1]).read_text())
    folder = Path(sys.argv[2])
    curves(results, folder / "convergence-curves.svg")
    differences(results, folder / "convergence-differences.svg")


def curves(results: dict[str, Any], file: Path) -> None:
    reference, *others = results["arms"]
    figure, axes = plt.subplots(1, 3, figsize=(11, 4.3), layout="constrained")
    for axis, dataset in zip(axes, ("packed.gw", "sorted.gw"), strict=False):
        mean(axis, reference, "global shuffle", BLACK, "--")
        for arm in others:
            if (arm["dataset"], arm["extent"]) == (dataset, "16KiB"):
                label = f"redirect, {arm['percent']} % memory"
                mean(axis, arm, label, COLOURS[arm["percent"]], "-")
        axis.set_ylim(84, 93)
    axes[0].set_title("packed as by default\n16 KiB extents", fontsize=11)
    axes[1].set_title("class-sorted (--keep-order)\n16 KiB extents", fontsize=11)

    mean(axes[2], reference, "global shuffle", BLACK, "--")
    for arm in others:
        if (arm["dataset"], arm["extent"]) == ("packed.gw", "64KiB"):
            mean(axes[2], arm, "packed, 1 %", COLOURS[1], "-")
        elif arm["extent"] == "64KiB":
            # A mean of trainings that learn and trainings that do not would tell nothing.
            for number, accuracy in enumerate(arm["accuracy"]):
                label = "" if number else "class-sorted, 1 %, each seed"
                axes[2].plot(
                    range(1, len(accuracy) + 1), accuracy, ":", color="#cc79a7", label=label
                )
    axes[2].set_ylim(0, 100)
    axes[2].set_title("both\n64 KiB extents", fontsize=11)
    for axis in axes:
        axis.set_xlabel("epoch")
        axis.set_xticks(range(1, results["epochs"] + 1))
    for axis in axes[:2]:
        axis.legend(loc="lower right", frameon=False, fontsize=9)
    axes[2].legend(loc="center right", frameon=False, fontsize=9, bbox_to_anchor=(1, 0.3))
    axes[0].set_ylabel("accuracy on the test pictures, %")
    save(figure, file)


def mean(axis: Axes, arm: dict[str, Any], label: str, colour: str, line: str) -> None:
    """The mean over the seeds, and from the lowest to the highest of them a shade."""
    accuracy = np.array(arm["accuracy"])
    epochs = range(1, accuracy.shape[1] + 1)
    axis.fill_between(epochs, accuracy.min(0), accuracy.max(0), color=colour, alpha=0.12, lw=0)
    axis.plot(epochs, accuracy.mean(0), line, color=colour, lw=1.6, label=label)


def differences(results: dict[str, Any], file: Path) -> None:
    arms = results["arms"][1:]
    reference = results["arms"][0]["mean"]
    margin = results["marginPoints"]
    figure, axis = plt.subplots(figsize=(9, 0.42 * len(arms) + 1.6), layout="constrained")
    axis.set_xlim(-2 * margin, 2 * margin)
    axis.axvspan(-margin, margin, color="#009e73", alpha=0.1, lw=0)
    axis.axvline(0, color=BLACK, lw=1)
    for row, arm in enumerate(arms):
        compared = arm["comparison"]
        colour = COLOURS[arm["percent"]]
        if compared["difference"] < -2 * margin:
            text = f"\N{LEFTWARDS ARROW} far outside: {compared['difference']:.1f}"
            axis.text(-1.96 * margin, row, text, color=colour, va="center")
            continue
        axis.plot([compared["low95"], compared["high95"]], [row, row], color=colour, lw=2.5)
        axis.plot(compared["difference"], row, "o", color=colour, ms=8)
        seeds = [accuracy[-1] - reference for accuracy in arm["accuracy"]]
        axis.plot(seeds, [row] * len(seeds), "|", color=BLACK, ms=9, mew=1)
    axis.set_yticks(range(len(arms)), [arm["name"] for arm in arms])
    axis.set_ylim(len(arms) - 0.5, -0.5)
    axis.grid(axis="y", visible=False)
    axis.set_title(f"shaded: the margin of ±{margin} points", fontsize=10, color="#00704f")
    axis.set_xlabel(
        f"final accuracy less that of the global shuffle ({reference:.2f} %), percentage points"
    )
    save(figure, file)


def save(figure: Figure, file: Path) -> None:
    figure.savefig(file, metadata={"Date": None}, facecolor="white")
    plt.close(figure)


if __name__ == "__main__":
    main()
