"""The examples, as a user runs them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from pictures import PICTURES, Pictures, pictures
from processes import eventually, nodes

__all__ = ["pictures"]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"


def _start(name: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(EXAMPLES / name), *map(str, arguments)],
        # One thread: the same sums in the same order. Warnings are torch's, where a machine has
        # fewer processors than workers.
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _run(name: str, *arguments: object) -> list[str]:
    """The lines that an example prints; it must have nothing to complain about."""
    process = _start(name, *arguments)
    said, complained = process.communicate()
    assert process.returncode == 0, complained
    assert complained == ""
    return said.splitlines()


def _accuracies(lines: list[str]) -> list[int]:
    found = [re.fullmatch(r"epoch (\d): (\d+) pictures, (\d+) % right", line) for line in lines]
    assert [each and each[1] for each in found] == ["0", "1", "2"], lines
    assert all(each and each[2] == str(PICTURES) for each in found), lines
    return [int(each[3]) for each in found if each]


def test_training_file_by_file_learns(pictures: Pictures) -> None:
    first, _, last = _accuracies(_run("before.py", pictures.files))
    assert last > first + 20


def test_training_from_the_dataset_learns_alike_in_all_three_ways(
    pictures: Pictures, runtime_dir: Path
) -> None:
    lines = _run("after_stream.py", pictures.path)
    first, _, last = _accuracies(lines)
    assert last > first + 20
    assert _run("after_map.py", pictures.path) == lines
    assert _run("loader.py", pictures.path) == lines


def test_training_that_is_killed_goes_on_as_if_it_had_not_been(
    pictures: Pictures, tmp_path: Path, runtime_dir: Path
) -> None:
    undisturbed = _run("resume.py", pictures.path, tmp_path / "undisturbed.pt")
    assert undisturbed[-1] == "done"

    process = _start("resume.py", pictures.path, tmp_path / "killed.pt")
    assert process.stdout is not None and process.stderr is not None
    with process.stdout, process.stderr:
        for line in process.stdout:
            if line.startswith("batch 20:"):
                process.kill()
                break
    process.wait()

    resumed = _run("resume.py", pictures.path, tmp_path / "killed.pt")
    # It may have come to the next checkpoint before the signal reached it.
    goes_on = re.fullmatch(r"goes on after batch (20|30), in epoch (1|2)", resumed[0])
    assert goes_on, resumed
    assert resumed[1:] == undisturbed[int(goes_on[1]) // 10 :]


def test_a_job_that_is_told_to_end_saves_and_goes_on_with_each_sample_once(
    pictures: Pictures, tmp_path: Path, runtime_dir: Path
) -> None:
    log = tmp_path / "log"
    log.mkdir()

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
            + [
                str(EXAMPLES / "preempted.py"),
                str(pictures.path),
                str(tmp_path / "c.pt"),
                str(log),
            ],
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def lines() -> list[str]:
        return [line for file in log.iterdir() for line in file.read_text().splitlines()]

    process = start()
    eventually(lambda: len(lines()) >= 6 or process.poll() is not None, "it trains", 120)
    for node in nodes(runtime_dir):  # a scheduler signals these too
        os.kill(node, signal.SIGTERM)
    process.terminate()
    said, complained = process.communicate(timeout=120)
    assert "saved in epoch" in said, complained
    assert 0 < len(lines()) < 5 * PICTURES // 4

    process = start()
    said, complained = process.communicate(timeout=300)
    assert (process.returncode, said) == (0, "done\n"), complained
    for epoch in range(5):
        words = [line.split() for line in lines()]
        numbers = sorted(
            int(each) for first, *rest in words if int(first) == epoch for each in rest
        )
        assert numbers == list(range(PICTURES))
