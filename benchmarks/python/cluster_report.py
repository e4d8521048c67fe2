"""Tables and pictures of the benchmark of several nodes: `cluster_report.py RESULTS.jsonl`.

Pictures are written beside the results. Medians over the rounds, with their spread; ratios are made
within a round, since all of its runs lie close together in time.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import report

Line = dict[str, Any]

BUSY = 0.9  # of all processors: from here on they may be what bounds a figure
FRAME = 1448  # payload bytes of TCP in an Ethernet frame …
HEADERS = 66  # … and what comes with them
COLOURS = ["#d55e00", "#0072b2", "#009e73", "#cc79a7"]


def summary(line: Line) -> str:
    """One line about one run, for whoever watches."""
    name = f"{line['arm']} {line['place']:14} {line['name']:24}"
    if line["arm"] == "c":
        times = (
            f"{line['latency']:g} ms, batches of {line['batch']:g}, {line['step']:g} ms a step: "
        )
        times += f"{line['seconds']:.2f} s"
        return f"{name} {times}"
    parts = [f"{line['rate'] / 1e6:7,.0f} MB/s", f"{line['busy']:.0%} busy"]
    if line.get("received"):
        parts.append(f"{line['late'] / line['received']:.1%} late")
    if "opening" in line:
        parts.append(f"opened in {line['opening']:.1f} s")
    return f"{name} {', '.join(parts)}; took {line['took']:.0f} s"


def megabytes(value: float) -> str:
    return f"{value / 1e6:,.0f}"


def share(value: float) -> str:
    return f"{value:.3f}"


def percent(value: float) -> str:
    return f"{value:.1%}".replace("%", " %")


class Results:
    """The lines of one file."""

    def __init__(self, path: Path) -> None:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.about = lines[0]
        self.link: Line = next((line for line in lines if line["kind"] == "link"), {})
        self.arms = [line for line in lines if line["kind"] == "arm"]

    def of(self, arm: str, name: str | None = None, place: str | None = None) -> list[Line]:
        return [
            line
            for line in self.arms
            if line["arm"] == arm
            and (name is None or line["name"] == name)
            and (place is None or line["place"] == place)
        ]

    def places(self, arm: str, name: str) -> list[str]:
        return list(dict.fromkeys(line["place"] for line in self.of(arm, name)))

    def names(self, arm: str) -> list[str]:
        return list(dict.fromkeys(line["name"] for line in self.of(arm)))


def busy(lines: Sequence[Line]) -> str:
    middle = statistics.median(line["busy"] for line in lines)
    return f"{middle:.2f}{' (**the processors bound it**)' if middle >= BUSY else ''}"


def by_round(lines: Sequence[Line]) -> dict[int, Line]:
    return {line["round"]: line for line in lines}


def ratios(
    lines: Sequence[Line], others: Sequence[Line], value: Callable[[Line, Line], float]
) -> list[float]:
    """Of each round that has both."""
    known = by_round(others)
    return [value(line, known[line["round"]]) for line in lines if line["round"] in known]


def rates(line: Line, other: Line) -> float:
    return float(line["rate"] / other["rate"])


def apart(results: Results) -> str:
    rows = []
    for name in ("job", "job, all in memory"):
        for place in results.places("a", name):
            job = results.of("a", name, place)
            readers = results.of("a", name.replace("job", "readers"), place)
            counted = [line for line in job if "storage" in line]
            rows.append(
                [
                    place + name.removeprefix("job"),
                    report.spread([line["rate"] for line in readers], megabytes),
                    report.spread([line["rate"] for line in job], megabytes),
                    report.spread(ratios(job, readers, rates), share),
                    report.spread([line["storage"] / line["dataset"] for line in counted], share)
                    if counted
                    else "",
                    f"{statistics.median(line['cpu'] / line['span'] for line in job):.2f}",
                    busy(job),
                ]
            )
    head = ["storage", "4 readers apart, MB/s", "the job, MB/s", "job / apart (goal 0.95)"]
    head += ["bytes read / dataset, an epoch", "cores of its processes", "machine busy"]
    return report.table(head, rows)


def pushed(results: Results) -> str:
    rows = []
    link = results.link["bound"]
    for name in results.names("b"):
        for place in results.places("b", name) if name != "readers" else []:
            lines = results.of("b", name, place)
            readers = results.of("a", name.replace("pushed", "readers"), place)

            def of_bound(line: Line, other: Line) -> float:
                return float(line["rate"] / min(other["rate"], link))

            bound = min(statistics.median(line["rate"] for line in readers), link)
            cause = "links" if bound == link else "storage"
            moved = [line["carried"] / line["pushed_bytes"] for line in lines]
            rows.append(
                [
                    place + name.removeprefix("pushed"),
                    report.spread([line["rate"] for line in lines], megabytes),
                    f"{megabytes(bound)} ({cause})",
                    report.spread(ratios(lines, readers, of_bound), share),
                    report.spread([1 - line["late"] / line["received"] for line in lines], percent),
                    report.spread(moved, share),
                    share(statistics.median(moved) * (1 + HEADERS / FRAME)),
                    f"{statistics.median(line['cpu'] / line['span'] for line in lines):.2f}",
                    busy(lines),
                ]
            )
    head = [
        "storage",
        "MB/s",
        "bound, MB/s",
        "of the bound (goal 0.90)",
        "there in time (goal 98 %)",
    ]
    head += ["bytes on links / samples' bytes (goal 1.05)", "with headers of each 1,500 bytes"]
    return report.table([*head, "cores of its processes", "machine busy"], rows)


def asking(results: Results) -> str:
    rows = []
    groups = report.grouped(results.of("c"), "batch", "step", "latency")
    for (batch, step, latency), lines in groups.items():
        pushing = [line for line in lines if not line["asks"]]
        asked = [line for line in lines if line["asks"]]
        quotients = ratios(asked, pushing, lambda line, other: line["seconds"] / other["seconds"])
        rows.append(
            [
                f"{batch:g}",
                f"{step:g} ms",
                f"{latency:g} ms",
                report.spread([line["seconds"] for line in pushing], "{:.2f} s".format),
                report.spread([line["seconds"] for line in asked], "{:.2f} s".format),
                report.spread(quotients, "{:.2f}".format),
            ]
        )
    head = ["batch", "a step of training", "latency each way"]
    head += ["pushed: an epoch", "asked for: an epoch"]
    return report.table([*head, "asked for / pushed"], rows)


def windows(results: Results) -> str:
    rows = []
    for name in results.names("d"):
        lines = results.of("d", name)
        waiting = [[b for _, b in steady(node)] for line in lines for node in line["waiting"]]
        rows.append(
            [
                name.removeprefix("window "),
                report.spread([line["late"] / line["received"] for line in lines], percent),
                report.spread([line["rate"] for line in lines], megabytes),
                f"{statistics.median(statistics.mean(node) for node in waiting) / 1e6:.1f}",
                f"{max(max(node) for node in waiting) / 1e6:.1f}",
                busy(lines),
            ]
        )
    head = [
        "window, steps",
        "late",
        "MB/s",
        "waiting at a node, mean, MB",
        "most, MB",
        "machine busy",
    ]
    return report.table(head, rows)


def paced(results: Results) -> str:
    rows = []
    for name in results.names("g"):
        for place in results.places("g", name) if name != "readers" else []:
            lines = results.of("g", name, place)
            rows.append(
                [
                    f"{place}, {name}",
                    report.spread([1 - line["late"] / line["received"] for line in lines], percent),
                    report.spread([line["stall"] for line in lines], percent),
                    report.spread([line["rate"] for line in lines], megabytes),
                    busy(lines),
                ]
            )
    head = ["storage", "there in time (goal 98 %)", "trainers wait", "MB/s"]
    return report.table([*head, "machine busy"], rows)


def steady(seen: list[list[float]]) -> list[list[float]]:
    """From the moment on at which something was there."""
    for i, (_, waiting) in enumerate(seen):
        if waiting:
            return seen[i:]
    return [[0.0, 0.0]]


def kept(results: Results, nodes: int = 4, batch: int = 64) -> str:
    rows = []
    formula = math.sqrt((1 - 1 / nodes) / (2 * math.pi * batch))
    for policy in results.names("e"):
        lines = results.of("e", policy)
        moved = [
            carried / line["dataset"] for line in lines for carried in line["carried_by_epoch"][1:]
        ]
        rows.append(
            [
                policy,
                report.spread([line["rate"] for line in lines], megabytes),
                report.spread(moved, percent),
                f"{statistics.mean(moved) / formula:.2f}" if policy == "locality" else "",
                epochs(lines, "reads_by_epoch"),
                epochs(lines, "fall_backs_by_epoch"),
                busy(lines),
            ]
        )
    head = ["policy", "MB/s after the first epoch", "bytes on links / dataset, an epoch"]
    head += [f"mean / formula ({percent(formula)})", "storage reads by epoch (medians)"]
    return report.table([*head, "fall-backs by epoch (medians)", "machine busy"], rows)


def epochs(lines: Sequence[Line], key: str) -> str:
    return ", ".join(
        f"{statistics.median(line[key][i] for line in lines):,.0f}"
        for i in range(len(lines[0][key]))
    )


def owners(results: Results, size: int = 110_000) -> str:
    rows = []
    for name in results.names("f"):
        lines = results.of("f", name)
        rows.append(
            [
                name,
                report.spread([line["rate"] / size for line in lines], report.plain),
                report.spread([line["rate"] for line in lines], megabytes),
                report.spread(ratios(lines, results.of("f", "owners"), rates), "{:.2f}".format),
                f"{statistics.median(map(cpu_of_epoch, lines)):.2f}",
                busy(lines),
            ]
        )
    head = ["cache", "samples/s, 4 ranks", "MB/s", "of `owners`, 4 threads a rank"]
    head += ["core-seconds an epoch", "machine busy"]
    return report.table(head, rows)


def cpu_of_epoch(line: Line) -> float:
    """Of all processes; that of softirqs, which carry what is sent, is in none of them."""
    known = line.get("cpu_per_epoch")
    return float(line["cpu"] / line["epochs"] if known is None else known)


SECTIONS: dict[str, tuple[str, Callable[[Results], str]]] = {
    "a": ("Nodes that send each other nothing", apart),
    "b": ("Samples pushed to other nodes", pushed),
    "c": ("Pushing against asking", asking),
    "d": ("What waits at the receiver", windows),
    "e": ("Samples kept where they are wanted", kept),
    "f": ("Against a cache without a plan", owners),
    "g": ("Samples pushed to trainers that take longer", paced),
}


def report_of(path: Path) -> str:
    results = Results(path)
    about = results.about
    parts = [f"{about['machine']}; {about['commit'][:12]}; {about['rounds']} rounds"]
    if results.link:
        link = results.link
        parts.append(
            f"A bare TCP stream over a link: {megabytes(link['goodput'])} MB/s; over all links at"
            f" once, each of them: {megabytes(link['at_once'])} MB/s. Links let all ranks together have"
            f" {megabytes(link['bound'])} MB/s."
        )
    for arm, (title, table) in SECTIONS.items():
        if any(line["name"] != "readers" or arm == "a" for line in results.of(arm)):
            parts.append(f"**{arm}. {title}**\n\n{table(results)}")
    if results.of("d"):
        picture = path.with_name(f"{path.stem}-waiting.svg")
        draw_waiting(results, picture)
        parts.append(f"picture: {picture}")
    if results.of("c"):
        picture = path.with_name(f"{path.stem}-asking.svg")
        draw_asking(results, picture)
        parts.append(f"picture: {picture}")
    return "\n\n".join(parts)


def plots() -> Any:
    """Drawn as the pictures of docs/convergence.md are."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.style.use(Path(__file__).resolve().parents[1] / "pictures.mplstyle")
    return plt


def draw_waiting(results: Results, file: Path) -> None:
    """What waits at each node over time, in the last round, for each window."""
    plt = plots()
    names = results.names("d")
    figure, axes = plt.subplots(
        1, len(names), figsize=(11, 3.8), layout="constrained", sharey=True, squeeze=False
    )
    for axis, name in zip(axes[0], names, strict=True):
        line = results.of("d", name)[-1]
        begin = min(steady(node)[0][0] for node in line["waiting"])
        for number, node in enumerate(line["waiting"]):
            seen = [(at - begin, waiting / 1e6) for at, waiting in node if at >= begin]
            axis.plot(
                *zip(*seen, strict=True), color=COLOURS[number], lw=0.9, label=f"node {number}"
            )
        late = line["late"] / line["received"]
        axis.set_title(f"{name}: {percent(late)} late", fontsize=11)
        axis.set_xlabel("seconds")
    axes[0][0].set_ylabel("pushed samples that wait, MB")
    axes[0][0].set_ylim(bottom=0)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    figure.savefig(file, metadata={"Date": None}, facecolor="white")
    plt.close(figure)


def draw_asking(results: Results, file: Path) -> None:
    """How much longer epochs take that are asked for, against the latency."""
    plt = plots()
    figure, axis = plt.subplots(figsize=(6.4, 4), layout="constrained")
    groups = report.grouped(results.of("c"), "batch", "step")
    for number, ((batch, step), lines) in enumerate(groups.items()):
        points = []
        for (latency,), at in report.grouped(lines, "latency").items():
            pushing = [line for line in at if not line["asks"]]
            asked = [line for line in at if line["asks"]]
            found = ratios(asked, pushing, lambda line, other: line["seconds"] / other["seconds"])
            points.append((latency, statistics.median(found)))
        label = f"batches of {batch:g}, training takes {step:g} ms a step"
        axis.plot(*zip(*points, strict=True), "o-", color=COLOURS[number], label=label)
    axis.axhline(1, color="#1a1a1a", lw=1)
    axis.set_ylim(bottom=0)
    axis.set_xlabel("added latency each way, ms")
    axis.set_ylabel("an epoch, asked for / pushed")
    axis.legend(frameon=False, fontsize=9)
    figure.savefig(file, metadata={"Date": None}, facecolor="white")
    plt.close(figure)


if __name__ == "__main__":
    print(report_of(Path(sys.argv[1])))
