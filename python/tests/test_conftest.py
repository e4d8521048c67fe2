"""The tests' own machinery: what is counted, what is limited, and what is noticed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent
TAG_TABLE = TESTS.parents[1] / "scripts" / "tag-table.awk"


def run_pytest(folder: Path, *arguments: str, **variables: str) -> str:
    """Runs the tests in a folder with the plugins of this one, and returns what is printed."""
    (folder / "pytest.ini").touch()
    conftest = (TESTS / "conftest.py").read_text(encoding="utf-8")
    (folder / "conftest.py").write_text(conftest.replace("GRACE_SECONDS = 5", "GRACE_SECONDS = 1"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments, str(folder)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ["PYTHONPATH"]]),
            **variables,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
    )
    return done.stdout


def test_tests_are_counted_by_tag(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        """
import pytest

@pytest.fixture
def broken():
    yield
    raise AssertionError

def test_good(): pass
def test_bad(): assert False
def test_bad_afterwards(broken): pass
def test_bad_twice(broken): assert False
@pytest.mark.skip(reason="no\\tdisk; no luck")
def test_skipped(): pass
@pytest.mark.torch
def test_marked(): pass
@pytest.mark.parametrize("number", range(3))
def test_many(number):
    if number == 1: pytest.skip("odd")
"""
    )
    (tmp_path / "test_torch_some.py").write_text("import gristway\ndef test_a(): pass\n")
    counts = tmp_path / "counts" / "python.tsv"
    output = run_pytest(tmp_path, "--tags", str(counts))
    assert counts.is_file(), output
    assert counts.read_text().splitlines() == [
        "python\t6\t3\t2\tno disk; no luck; odd",
        "torch\t2\t0\t0\t",
    ]


def test_a_marker_and_no_reason_exempts_a_skip_from_being_counted(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        """
import pytest

@pytest.mark.thorough
def test_marked(): assert False
@pytest.mark.parametrize("each", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_cases(each): assert each == 1
def test_prose(): pytest.skip("in the thorough run")
@pytest.mark.skip(reason="in the thorough run")
def test_marked_otherwise(): pass
"""
    )
    counts = tmp_path / "python.tsv"
    output = run_pytest(tmp_path, "--tags", str(counts), GRISTWAY_THOROUGH="")
    assert counts.read_text() == "python\t1\t0\t2\tin the thorough run\n", output
    output = run_pytest(tmp_path, "--tags", str(counts), GRISTWAY_THOROUGH="1")
    assert counts.read_text() == "python\t3\t2\t2\tin the thorough run\n", output
    # Whoever requires the tag is told of the two skips.
    table = subprocess.run(
        ["awk", "-v", "require=python", "-v", "partial=1", "-f", TAG_TABLE, os.devnull, counts],
        capture_output=True,
        text=True,
    )
    assert table.returncode != 0 and "2 skipped" in table.stdout + table.stderr


def test_without_torch_its_tests_are_skipped_and_not_even_imported(tmp_path: Path) -> None:
    (tmp_path / "hide_torch.py").write_text(
        "import tags\ntags.without_torch = lambda: 'PyTorch is not installed'\n"
    )
    (tmp_path / "test_some.py").write_text(
        "import pytest\ndef test_a(): pass\n@pytest.mark.torch\ndef test_b(): assert False\n"
    )
    (tmp_path / "test_torch_some.py").write_text("raise ImportError\n")
    counts = tmp_path / "python.tsv"
    output = run_pytest(tmp_path, "-p", "hide_torch", "--tags", str(counts))
    assert counts.is_file(), output
    assert counts.read_text().splitlines() == [
        "python\t1\t0\t0\t",
        "torch\t0\t0\t2\tPyTorch is not installed",
    ]


def test_a_test_that_hangs_fails_and_shows_where(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        """
import time, pytest

@pytest.fixture
def slow():
    time.sleep(60) # in set-up
@pytest.mark.limit(0.2)
def test_hangs(): time.sleep(60) # in test
@pytest.mark.limit(0.2)
def test_hangs_before(slow): pass
def test_good(): pass
"""
    )
    output = run_pytest(tmp_path)
    assert "1 failed, 1 passed, 1 error" in output
    assert output.count("Failed: still running after 0.2 s") >= 2
    assert "# in test" in output
    assert "# in set-up" in output


def test_a_test_that_cannot_be_interrupted_ends_the_session(tmp_path: Path) -> None:
    (tmp_path / "less_grace.py").write_text("import limits\nlimits.GRACE_SECONDS = 0.2\n")
    (tmp_path / "test_some.py").write_text(
        """
import signal, time, pytest

@pytest.mark.limit(0.2)
def test_hangs():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    time.sleep(60)
"""
    )
    output = run_pytest(tmp_path, "-p", "less_grace")
    assert "Timeout" in output
    assert 'test_some.py", line 7 in test_hangs' in output
    assert "passed" not in output


def test_what_a_test_leaves_behind_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        """
import multiprocessing, os, socket, subprocess, time

def test_good(runtime_dir):
    assert os.environ["GRISTWAY_RUNTIME_DIR"] == str(runtime_dir)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(runtime_dir / "a.sock"))
    # Others may end a little later.
    subprocess.Popen(["sleep", "0.3"], start_new_session=True)
    for method in ("fork", "spawn", "forkserver"):
        multiprocessing.get_context(method).Process(target=time.sleep, args=(0,)).start()

def test_file(runtime_dir): (runtime_dir / "a.lock").touch()
def test_fork(runtime_dir):
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,), daemon=True).start()
def test_orphan(runtime_dir): subprocess.Popen(["sh", "-c", "sleep 61 & sleep 0"])
"""
    )
    output = run_pytest(tmp_path)
    assert "4 passed, 3 errors" in output
    assert "left in the runtime folder: ['a.lock']" in output
    assert output.count("AssertionError: still running after the test, killed now:") >= 2
    assert "'sleep 61 '" in output
    assert "test_good" not in output
