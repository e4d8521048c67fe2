"""Programs that use Loader: what they are told, need, and leave behind. Runs with torch and without."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import transforms
from conftest import PackedFiles
from processes import nodes
from reading import keyed

if TYPE_CHECKING:
    from served import Served

pytest_plugins = ["served"]


# What is counted


def test_stats_count_what_was_received(small: PackedFiles, node: Served) -> None:
    size = sum(len(small.data(key)) for key in small.keys)
    with keyed(small, node.name) as loader:
        assert loader.stats()["batches"] == 0
        next(iter(loader))
        stats = loader.stats()
        assert stats["batches"] == 1
        assert stats["samples"] == 10
        assert 0 < stats["bytes"] < size
        list(loader)
        stats = loader.stats()
        assert stats["samples"] == 113
        assert stats["bytes"] > size
        assert 0 <= stats["stall_seconds"] <= stats["seconds"]
        assert stats["stall_share"] == pytest.approx(
            stats["stall_seconds"] / stats["seconds"], rel=0.2
        )
        assert stats["node"]["storage-bytes"] >= size
        assert stats["node"]["damaged"] == 0


def test_one_warning_when_training_waits(
    small: PackedFiles,
    node: Served,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("gristway.loader._STALL_AFTER_SECONDS", 0.1)
    with keyed(small, node.name, transform=transforms.slow, batch_size=2) as loader:
        for _ in itertools.islice(loader, 2):
            time.sleep(0.2)
        list(itertools.islice(iter(loader), 2))
        list(itertools.islice(iter(loader), 2))
    (warning,) = [record for record in caplog.records if record.name.startswith("gristway")]
    assert warning.levelname == "WARNING"
    assert "% of the time" in warning.getMessage()


def test_no_warning_when_training_does_not_wait(
    small: PackedFiles,
    node: Served,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("gristway.loader._STALL_AFTER_SECONDS", 0.1)
    with keyed(small, node.name) as loader:
        for _ in loader:
            time.sleep(0.05)
    assert not caplog.records


# Programs


def run_program(text: str, *arguments: object, flags: tuple[str, ...] = ()) -> str:
    """Runs a Python program; its output, errors included. It must succeed."""
    done = subprocess.run(
        [sys.executable, *flags, "-c", textwrap.dedent(text), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_without_torch_batches_are_of_numpy(small: PackedFiles, node: Served) -> None:
    out = run_program(
        """
        import sys
        import numpy, gristway

        def shape(sample):
            return {"size": len(sample.data), "array": numpy.ones((2, 3), "f4"), "key": sample.key}

        node = sys.argv[2]
        loader = gristway.Loader(sys.argv[1], 10, node=node)
        views, labels = next(iter(loader))
        assert type(views[0]) is memoryview and len(views) == 10
        assert type(labels) is numpy.ndarray and labels.dtype == "int64"
        loader.close()
        for workers in (0, 2):
            loader = gristway.Loader(
                sys.argv[1], 10, transform=shape, num_workers=workers, node=node
            )
            batches = list(loader)
            batch = batches[0]
            assert batch["array"].shape == (10, 2, 3) and batch["array"].dtype == "float32"
            assert batch["size"].dtype == "int64"
            assert type(batch["key"]) is list
            assert len({key for batch in batches for key in batch["key"]}) == 103
            loader.close()
        try:
            gristway.Loader(sys.argv[1], pin_memory=True)
        except gristway.WrongCallError as wrong:
            print(wrong)
        assert "torch" not in sys.modules
        """,
        small.path,
        node.name,
    )
    assert out == "pin_memory needs torch: import it first\n"


def test_without_numpy_batches_are_lists(small: PackedFiles, node: Served) -> None:
    run_program(
        """
        import sys

        class NotInstalled:
            def find_spec(self, name, path=None, target=None):
                if name == "numpy":
                    raise ModuleNotFoundError(name)

        sys.meta_path.insert(0, NotInstalled())
        import gristway

        def pair(sample):
            return sample.key, sample.label

        node = sys.argv[2]
        loader = gristway.Loader(sys.argv[1], 10, node=node)
        views, labels = next(iter(loader))
        assert type(labels) is list and type(labels[0]) is int
        loader.close()
        for workers in (0, 2):
            with gristway.Loader(
                sys.argv[1], 10, transform=pair, num_workers=workers, node=node
            ) as loader:
                keys, labels = next(iter(loader))
                assert len(keys) == len(labels) == 10, (keys, labels)
                assert [int(key[5:9]) for key in keys] == list(labels)
        """,
        small.path,
        node.name,
    )


def test_a_program_that_leaves_all_open_ends_quietly(small: PackedFiles, node: Served) -> None:
    out = run_program(
        """
        import sys, gristway

        def key(sample):
            return sample.key

        how = {"transform": key, "num_workers": 2}
        loaders = [
            gristway.Loader(sys.argv[1], 10, **how),
            gristway.Loader(sys.argv[1], 10, node=sys.argv[2], workers="threads", **how),
            gristway.Loader(sys.argv[1], 10, node=sys.argv[2]),
        ]
        iterators = [iter(loader) for loader in loaders]
        batches = [next(iterator) for iterator in iterators]
        print("done")
        """,
        small.path,
        node.name,
        flags=("-X", "dev"),
    )
    assert out == "done\n"


TRAINING = """
import sys, time
import gristway

def key(sample):
    if {slow}:
        time.sleep(60)
    return sample.key

if __name__ == "__main__":
    loader = gristway.Loader(sys.argv[1], 10, transform=key, {arguments})
    print("begun", flush=True)
    while True:
        for batch in loader:
            pass
"""


@pytest.mark.parametrize(
    ("arguments", "slow"),
    [
        ("", True),
        ("num_workers=2, workers='threads'", True),
        ("num_workers=2, multiprocessing_context='fork'", False),
        ("num_workers=2, multiprocessing_context='fork'", True),
        ("num_workers=1, multiprocessing_context='spawn'", False),
    ],
    ids=lambda each: str(each).replace("multiprocessing_context=", "").replace(" ", ""),
)
def test_ctrl_c_ends_at_once_and_quietly(
    small: PackedFiles, runtime_dir: Path, tmp_path: Path, arguments: str, slow: bool
) -> None:
    program = tmp_path / "train.py"
    program.write_text(TRAINING.format(arguments=arguments, slow=slow))
    training = subprocess.Popen(
        [sys.executable, str(program), str(small.path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert training.stdout is not None
        assert training.stdout.readline() == "begun\n"
        time.sleep(1.5 if "spawn" in arguments else 0.5)
        os.killpg(training.pid, signal.SIGINT)  # as a terminal does: to all of its processes
        begun = time.monotonic()
        out, err = training.communicate(timeout=20)
        took = time.monotonic() - begun
    finally:
        training.kill()
        training.wait()
    assert training.returncode == -signal.SIGINT
    assert out == ""
    assert err.count("Traceback") == 1, err
    assert err.rstrip().endswith("KeyboardInterrupt"), err
    assert took < 2
    deadline = time.monotonic() + 2
    while nodes(runtime_dir):
        assert time.monotonic() < deadline, "the node lives on"
        time.sleep(0.02)
