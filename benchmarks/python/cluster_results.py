"""What the ranks of a run have given: whether their epochs are right, and what they add up to."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Any

import run


class Wrong(Exception):
    """An epoch was not what it must be."""


def check(epochs: list[list[list[int]]], count: int) -> None:
    """Each sample once in each epoch; of every rank, of every epoch, the numbers of its samples."""
    for number, epoch in enumerate(zip(*epochs, strict=True)):
        seen = Counter(sample for rank in epoch for sample in rank)
        if len(seen) != count or seen.total() != count:
            twice = sum(times > 1 for times in seen.values())
            raise Wrong(
                f"epoch {number}: {count - len(seen)} samples are missing, {twice} came twice"
            )


def summed(
    results: list[dict[str, Any]], dataset: int, epochs: int, is_free: bool, is_shared: bool
) -> dict[str, Any]:
    """What all ranks together did in the epochs after the first."""
    begins = [result["looks"][1] for result in results]
    ends = [result["looks"][-1 if is_free else 1 + epochs] for result in results]

    def node(counter: str) -> int:
        return sum(
            e["node"][counter] - b["node"][counter] for b, e in zip(begins, ends, strict=True)
        )

    def by_epoch(counter: str) -> list[int]:
        looks = [result["looks"] for result in results]
        return [
            sum(each[i + 1]["node"][counter] - each[i]["node"][counter] for each in looks)
            for i in range(epochs + 1)
        ]

    # While all are at it: readers of one storage do not begin and end together.
    since, until = max(b["at"] for b in begins), min(e["at"] for e in ends)
    if since >= until:
        raise run.Failed("a rank was over before another had begun: measure more epochs")
    taken = sum(size for r in results for at, size in r["steps"] if since < at <= until)
    seconds = until - since
    span = max(e["at"] for e in ends) - min(b["at"] for b in begins)
    carried = [
        sum(r["looks"][i + 1]["carried"] - r["looks"][i]["carried"] for r in results)
        for i in range(epochs + 1)
    ]
    return {
        "epochs": epochs,
        "seconds": seconds,
        "dataset": dataset,
        "rate": taken / seconds,
        "stall": statistics.mean(
            sum(r["stalls"][1 : len(r["stalls"]) if is_free else 1 + epochs]) / (e["at"] - b["at"])
            for r, b, e in zip(results, begins, ends, strict=True)
        ),
        "opening": min(r["looks"][0]["at"] - r["began"] for r in results),
        "pushed_bytes": sum(r["rests"][-1]["node"]["pushed-bytes"] for r in results),
        "carried": sum(r["rests"][-1]["carried"] - r["carried"] for r in results),
        "reads_by_epoch": by_epoch("storage-reads"),
        "fall_backs_by_epoch": by_epoch("fall-backs"),
        "received": node("received"),
        "late": node("late"),
        "carried_by_epoch": carried,
        "cpu": processor_seconds(begins, ends, is_shared),
        "span": span,
        "busy": (ends[0]["busy"] - begins[0]["busy"])
        / max(0.01, ends[0]["possible"] - begins[0]["possible"]),
    }


def processor_seconds(
    begins: list[dict[str, Any]], ends: list[dict[str, Any]], is_shared: bool
) -> float:
    """Of all processes; where they share a group, each has looked at that of all."""
    if is_shared:
        return float(max(e["cpu"] for e in ends) - min(b["cpu"] for b in begins))
    return float(sum(e["cpu"] - b["cpu"] for b, e in zip(begins, ends, strict=True)))
