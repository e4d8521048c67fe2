"""What the documents say about Python is run, or compared with what it speaks of."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pictures import Pictures, pictures

__all__ = ["pictures"]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "python"

# What the pages leave to the reader. Their blocks are one program, which other start methods than
# fork would run again in every worker.
PRELUDE = """
import multiprocessing
multiprocessing.set_start_method("fork")
trained = []
def train(images, labels):
    assert len(images) == len(labels)
    trained.append(len(labels))
evaluate = train
"""
FINALE = """
assert sum(trained) > 0
print("ran to the end")
"""


def _blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    "page", ["README.md", "docs/pytorch.md", "docs/cluster.md", "python/README.md"]
)
def test_the_python_of_a_page_works(
    page: str, pictures: Pictures, tmp_path: Path, runtime_dir: Path
) -> None:
    if "torchdata" in (ROOT / page).read_text(encoding="utf-8"):
        pytest.importorskip("torchdata", reason="torchdata is not installed")
    blocks = _blocks(page, "python")
    assert blocks
    (tmp_path / "shapes.gw").symlink_to(pictures.path)
    program = tmp_path / "page.py"
    program.write_text("\n".join([PRELUDE, *blocks, FINALE]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("ran to the end\n")
    assert done.stderr == ""


def test_examples_differ_only_where_the_page_says() -> None:
    pairs = [
        ("before.py", "after_stream.py"),
        ("after_stream.py", "after_map.py"),
        ("after_stream.py", "loader.py"),
    ]
    assert _blocks("docs/pytorch.md", "diff") == [_changes(*pair) for pair in pairs]


def _changes(before: str, after: str) -> str:
    """The lines that differ between two examples, but for what they say of themselves."""
    lines = [_code(before), _code(after)]
    changes = list(difflib.unified_diff(*lines, n=0))[2:]
    return "".join(line for line in changes if not line.startswith("@@"))


def _code(name: str) -> list[str]:
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    assert text.startswith('"""')
    return text.split('"""', 2)[2].splitlines(keepends=True)
