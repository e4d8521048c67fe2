"""Counts tests by tag, as rows of the table that `./build` prints (scripts/tag-table.awk).

A test has the tag `torch` if it carries the marker of that name, as all tests do in a file whose
name begins with test_torch, and `python` otherwise. Where PyTorch is missing, tests with the tag
`torch` are skipped; of a file that is skipped whole nobody knows how many tests are in it, so it
counts as one.

A test with the marker `thorough` is of the thorough run alone. In any other run it is skipped, and
does not count as skipped: it is the marker that says so, and never the reason of a skip.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

TAGS = ("python", "torch")
THOROUGH_MARKER = "thorough"


class Row:
    """What is known of the tests with one tag."""

    def __init__(self) -> None:
        self.ran = 0
        self.failed = 0
        self.skipped = 0
        self.reasons: set[str] = set()

    def line(self, tag: str) -> str:
        reasons = "; ".join(sorted(self.reasons))
        return f"{tag}\t{self.ran}\t{self.failed}\t{self.skipped}\t{reasons}\n"


class Tally:
    """Listens to a test session and, at its end, writes its counts into a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._rows: dict[str, Row] = {}
        # A test that passes but fails in its tear-down is one test that ran, and failed.
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        row = self._row("torch" if "torch" in report.keywords else "python")
        if report.skipped and not hasattr(report, "wasxfail"):
            self._skip(row, report)
        elif report.when == "call" or (report.when == "setup" and report.failed):
            row.ran += 1
        if report.failed and report.nodeid not in self._failed:
            self._failed.add(report.nodeid)
            row.failed += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        # A file that cannot be collected fails the session without the table's help.
        if report.skipped:
            self._skip(self._row(file_tag(Path(report.nodeid))), report)

    def pytest_sessionfinish(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        lines = [self._rows[tag].line(tag) for tag in TAGS if tag in self._rows]
        self._file.write_text("".join(lines), encoding="utf-8")

    def _row(self, tag: str) -> Row:
        return self._rows.setdefault(tag, Row())

    def _skip(self, row: Row, report: pytest.TestReport | pytest.CollectReport) -> None:
        marks = report.keywords if isinstance(report, pytest.TestReport) else ()
        if THOROUGH_MARKER in marks and not is_thorough():
            return  # it is not of this run at all
        # Of a skip, pytest keeps file, line and "Skipped: reason".
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        row.skipped += 1
        row.reasons.add(" ".join(text.removeprefix("Skipped: ").split()) or "no reason given")


class ModuleWithoutTorch(pytest.Module):
    """A test file that is not even imported, since it imports PyTorch."""

    def collect(self) -> Iterator[pytest.Item]:
        pytest.skip(without_torch(), allow_module_level=True)


def file_tag(path: Path) -> str:
    """Returns the tag of the tests in a file, unless they are marked otherwise."""
    return "torch" if path.name.startswith("test_torch") else "python"


def is_thorough() -> bool:
    """Returns whether this is the long run, in which tests try all of their cases."""
    return os.environ.get("GRISTWAY_THOROUGH", "") not in ("", "0")


@pytest.fixture(scope="session")
def thorough() -> bool:
    """Whether this is the long run, in which tests try all of their cases."""
    return is_thorough()


def without_torch() -> str:
    """Returns why tests with the tag `torch` cannot run, nothing if they can."""
    return "" if importlib.util.find_spec("torch") else "PyTorch is not installed"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tags", type=Path, metavar="FILE", help="write counts by tag into this file")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "torch: needs PyTorch")
    config.addinivalue_line("markers", "thorough: is of the thorough run alone")
    file = config.getoption("--tags")
    if file is not None:
        config.pluginmanager.register(Tally(file.resolve()))


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    if file_tag(module_path) == "torch" and without_torch():
        return ModuleWithoutTorch.from_parent(parent, path=module_path)
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = without_torch()
    for item in items:
        if file_tag(item.path) == "torch":
            item.add_marker("torch")
        if reason and item.get_closest_marker("torch"):
            item.add_marker(pytest.mark.skip(reason=reason))
        if item.get_closest_marker(THOROUGH_MARKER) and not is_thorough():
            item.add_marker(pytest.mark.skip(reason="in the thorough run"))
