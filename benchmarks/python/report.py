"""Makes Markdown tables of results: `report.py RESULTS.jsonl…`; medians, with their spread."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Line = dict[str, Any]

NAMES = {
    "files": "files, a `Dataset`",
    "webdataset": "WebDataset",
    "streaming": "MosaicML Streaming",
    "litdata": "LitData",
    "ffcv": "FFCV",
    "ours-stream": "**`StreamDataset`**",
    "ours-map": "**`MapDataset`**, `redirect`",
    "ours-loader": "**`Loader`**",
    "ours-resident": "**`Loader`**, `unbounded`",
    "ours-threads": "**`Loader`**, threads",
    "read": "`gristway read`",
    "bare-stream": "no loader: an `IterableDataset` that makes its batches up",
    "bare-map": "no loader: a `Dataset` that makes its samples up",
    "exact-map": "**`MapDataset`**, exact",
}


def rate(line: Line) -> float:
    return float(line["samples"] / line["seconds"])


def per_cpu_second(line: Line) -> float:
    return float(line["samples"] / line["cpu"])


def summary(line: Line) -> str:
    """One line about one run of an arm, for whoever watches."""
    name = f"{line['mode']:5} {line['size']:6} {line['arm']:12} workers {line['workers']}"
    if "error" in line:
        what = f"failed: {line['error']}"
    elif "checked" in line:
        what = f"{line['checked']:,} samples, each once an epoch"
        what += "" if line["reordered"] else ", in the same order twice"
    else:
        what = f"{rate(line):10,.0f} samples/s, {per_cpu_second(line):10,.0f} a CPU-second"
        what += f", {line.get('batches', 0)} batches in {line['seconds']:.1f} s"
    notes = [f"{key}: {line[key]}" for key in ("left_running", "exit") if key in line]
    return "; ".join([f"{name}  {what}", *notes, f"took {line['took']:.0f} s"])


def spread(values: Sequence[float], form: Callable[[float], str]) -> str:
    middle = form(statistics.median(values))
    if len(values) == 1:
        return middle
    return f"{middle} ({form(min(values))} to {form(max(values))})"


def plain(value: float) -> str:
    return f"{value:,.0f}"


def middle(lines: Sequence[Line], value: Callable[[Line], float]) -> float:
    return statistics.median(map(value, lines))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def grouped(lines: Sequence[Line], *keys: str) -> dict[tuple[Any, ...], list[Line]]:
    """Lines by the values of some keys, in the order in which those first came."""
    groups: dict[tuple[Any, ...], list[Line]] = {}
    for line in lines:
        groups.setdefault(tuple(line[key] for key in keys), []).append(line)
    return groups


def name_of(arm: str, policy: str, workers: int) -> str:
    name = NAMES[arm]
    if policy not in ("", "redirect"):
        name += f", policy `{policy}`"
    return name if arm == "read" else f"{name}, {workers} worker{'' if workers == 1 else 's'}"


def comparison(mode: str, size: int, lines: Sequence[Line], decoded: bool) -> str:
    """The table of one kind of storage and one size of sample."""
    rows = []
    for (arm, policy, workers), runs in grouped(lines, "arm", "policy", "workers").items():
        name = name_of(arm, policy, workers)
        good = [line for line in runs if "error" not in line]
        if not good:
            rows.append([name, runs[0]["error"], *[""] * 7])
            continue
        waits = [line["wait_p99"] for line in good if "wait_p99" in line]
        rows.append(
            [
                name,
                spread([rate(line) for line in good], plain),
                plain(middle(good, lambda line: line["bytes"] / line["seconds"] / 1e6)),
                spread([per_cpu_second(line) for line in good], plain),
                plain(middle(good, lambda line: line["peak_memory"] / 1e6)),
                f"{middle(good, lambda line: line['stall']):.2f}",
                f"{statistics.median(waits) * 1e3:,.0f}" if waits else "",
                f"{middle(good, lambda line: line['read_bytes'] / line['bytes']):.2f}",
                plain(middle(good, lambda line: line["reads"] / line["seconds"])),
            ]
        )
    head = [
        "loader",
        "samples/s",
        "MB/s",
        "samples a CPU-second",
        "memory, MB",
        "stall",
        "p99 wait, ms",
        "bytes read / delivered",
        "disk requests/s",
    ]
    rounds = sorted({line["round"] for line in lines})
    seconds = middle([line for line in lines if "error" not in line] or [{"seconds": 0}], window)
    if decoded:
        # Pixels are delivered, so that bytes say nothing about what was read.
        kept = [0, 1, 3, 4, 5, 6]
        head, rows = [head[i] for i in kept], [[row[i] for i in kept] for row in rows]
    storage = f"`{mode}`, JPEG" if decoded else f"`{mode}`"
    times = "one round" if len(rounds) == 1 else f"{len(rounds)} rounds"
    how = f"{lines[0]['count']:,} samples, {times}, windows of {seconds:.0f} s"
    return f"**{storage}, {size // 1000} KB** ({how})\n\n{table(head, rows)}"


def window(line: Line) -> float:
    return float(line["seconds"])


def is_ours(arm: str) -> bool:
    return arm.startswith("ours")


def goals(lines: Sequence[Line]) -> str:
    """Ours against the fastest peer with as many workers, and against `read`."""
    rows = []
    for (mode, size, workers), runs in grouped(lines, "mode", "size", "workers").items():
        peers = grouped([line for line in runs if not line["policy"]], "arm")
        ours = grouped([line for line in runs if is_ours(line["arm"])], "arm", "policy")
        if not peers:
            continue
        (fastest,) = max(peers, key=lambda arm: middle(peers[arm], rate))
        (thriftiest,) = max(peers, key=lambda arm: middle(peers[arm], per_cpu_second))
        for (arm, policy), of in ours.items():
            read = [
                line
                for line in lines
                if (line["arm"], line["policy"], line["mode"], line["size"])
                == ("read", policy, mode, size)
            ]
            fast = middle(of, rate) / middle(peers[(fastest,)], rate)
            thrifty = middle(of, per_cpu_second) / middle(peers[(thriftiest,)], per_cpu_second)
            rows.append(
                [
                    f"`{mode}`",
                    f"{size // 1000} KB",
                    name_of(arm, policy, workers),
                    f"{fast:.2f} × {NAMES[fastest]}",
                    f"{thrifty:.2f} × {NAMES[thriftiest]}",
                    f"{middle(of, rate) / middle(read, rate):.2f}" if read else "",
                ]
            )
    head = ["storage", "samples", "ours", "samples/s, × the fastest peer"]
    return table([*head, "a CPU-second, × the thriftiest peer", "of `read`"], rows)


def large(lines: Sequence[Line]) -> str:
    """Ten million samples: start-up, and what a worker takes for itself."""
    bare = {
        kind: [line for line in lines if line["arm"] == f"bare-{kind}" and "error" not in line]
        for kind in ("stream", "map")
    }
    rows = []
    for (arm,), runs in grouped(lines, "arm").items():
        good = [line for line in runs if "error" not in line]
        if not good:
            rows.append([NAMES[arm], runs[0]["error"], *[""] * 4])
            continue
        below = bare["stream" if "stream" in arm else "map"]
        own = middle(good, lambda line: line["worker"] / 1e6)
        growth = own - middle(below, lambda line: line["worker"] / 1e6) if below else 0.0
        rows.append(
            [
                NAMES[arm],
                spread([line["first_batch"] for line in good], lambda value: f"{value:.2f}"),
                f"{own:.1f}",
                "" if arm.startswith("bare") else f"{growth:+.1f}",
                plain(middle(good, lambda line: line["trainer"] / 1e6)),
                plain(middle(good, lambda line: line["peak_memory"] / 1e6)),
            ]
        )
    head = ["loader", "first batch, s", "a worker's own memory, MB", "more than without a loader"]
    return table([*head, "trainer's own, MB", "all processes, MB"], rows)


def tables(paths: Sequence[Path]) -> str:
    lines = [json.loads(text) for path in paths for text in path.read_text().splitlines()]
    parts = []
    for run in (line for line in lines if line["kind"] == "run"):
        versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
        parts.append(f"{run['benchmark']}, commit {run['commit']}, {run['machine']}; {versions}")
    arms = [line for line in lines if line["kind"] == "arm" and "checked" not in line]
    for (benchmark,), of in grouped(arms, "benchmark").items():
        for (size, mode), runs in grouped(of, "size", "mode").items():
            parts.append(comparison(mode, size, runs, benchmark == "torch-jpeg"))
        good = [line for line in of if "error" not in line]
        if {is_ours(line["arm"]) for line in good} == {True, False}:
            parts.append(goals(good))
    if many := [line for line in lines if line["kind"] == "large"]:
        parts.append(large(many))
    return "\n\n".join(parts)


if __name__ == "__main__":
    print(tables([Path(name) for name in sys.argv[1:]]))
