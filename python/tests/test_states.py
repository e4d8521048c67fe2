"""A state can be taken at any moment, whatever has become of the node, its folder or its peers."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cluster
import pytest
import transforms
from conftest import PackedFiles
from processes import eventually, kill, nodes, the_node
from reading import LITTLE, flat, through_json

import gristway
from gristway import Loader, connection


@pytest.fixture(scope="module")
def packed(dataset: Callable[..., PackedFiles]) -> PackedFiles:
    return dataset(samples=103, size=(200, 2000), labels=4)


def loader_of(packed: PackedFiles, **more: Any) -> Loader:
    options: dict[str, Any] = {"transform": transforms.key, "seed": 3, **LITTLE, **more}
    return Loader(packed.path, options.pop("batch_size", 10), **options)


def rest_of(packed: PackedFiles, state: Any) -> list[str]:
    with loader_of(packed) as loader:
        loader.load_state_dict(through_json(state))
        return flat(loader)


def test_a_state_is_the_nodes_own_at_every_epoch_and_step(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    draw = random.Random(seed)
    state = None
    for batch_size in (10, 7, 7, 12):  # each but one begins a further segment of the epoch
        with loader_of(packed, batch_size=batch_size) as loader:
            if state is not None:
                loader.load_state_dict(state)
            source = loader._source
            epochs = [loader.epoch, loader.epoch + 1, *(draw.randrange(1 << 40) for _ in range(3))]
            for epoch in epochs:
                step = draw.randrange(1 << 30)
                said = source._client.ask(lambda asked, e=epoch, s=step: asked.state(0, e, s))
                assert source.state(epoch, step) == said
            batches = iter(loader)
            for _ in range(draw.randrange(1, 3)):
                next(batches)
            state = loader.state_dict()


def test_a_state_can_be_taken_when_node_and_folder_are_gone(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    with loader_of(packed) as loader:
        batches = iter(loader)
        received = flat([next(batches) for _ in range(4)])
        kill(the_node(runtime_dir))
        shutil.rmtree(runtime_dir)
        state = loader.state_dict()
        assert not nodes(runtime_dir)
    runtime_dir.mkdir(mode=0o700)
    assert sorted(received + rest_of(packed, state)) == list(packed.keys)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGINT])
def test_a_node_with_clients_outlives_what_schedulers_send(
    packed: PackedFiles, runtime_dir: Path, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    with loader_of(packed) as loader:
        batches = iter(loader)
        received = next(batches)
        node = the_node(runtime_dir)
        for _ in range(3):
            os.kill(node, number)
        received += flat(batches)
        assert sorted(received) == list(packed.keys)
        assert sorted(flat(loader)) == list(packed.keys)
        assert the_node(runtime_dir) == node
    eventually(lambda: not nodes(runtime_dir), "it ends with its client")
    assert caplog.records == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_every_rank_of_a_job_has_a_state_after_a_node_was_signalled(
    packed: PackedFiles, runtime_dir: Path, number: int
) -> None:
    with cluster.job(packed.path, 2, 1, batch_size=5, seed=3, memory="1MiB") as job:
        received = flat(flat(job.take(3)))
        for node in nodes(runtime_dir)[: 1 if number == signal.SIGKILL else 2]:
            os.kill(node, number)
        one, other = job.ask("state")
    assert one == other
    eventually(lambda: not nodes(runtime_dir), "the nodes end")
    assert sorted(received + rest_of(packed, one)) == list(packed.keys)


def test_keys_and_later_loaders_do_without_the_folder(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    with loader_of(packed, transform=None) as loader:
        batches = iter(loader)
        next(batches)
        node = the_node(runtime_dir)
        shutil.rmtree(runtime_dir)
        assert loader._source.describe([0])[0][0] in packed.keys
        eventually(lambda: list(runtime_dir.glob("*.sock")), "the node listens again", 20)
        assert runtime_dir.stat().st_mode & 0o777 == 0o700
        # A process that comes later, such as a worker of the next epoch, finds the same node.
        gristway.connection.Connection(str(next(runtime_dir.glob("*.sock")))).drop()
        assert nodes(runtime_dir) == [node]


def test_a_folder_that_cannot_be_made_again_is_replaced_by_that_for_temporaries(
    packed: PackedFiles, monkeypatch: pytest.MonkeyPatch, runtime_dir: Path
) -> None:
    """As when a user logs out and /run/user/1000 goes: only root can make it again."""
    lost = runtime_dir / "user"
    monkeypatch.setenv("GRISTWAY_RUNTIME_DIR", str(lost / "gristway"))
    with tempfile.TemporaryDirectory(prefix="gw-", dir="/tmp") as temporary:
        monkeypatch.setenv("TMPDIR", temporary)
        with loader_of(packed, transform=None) as loader:
            next(iter(loader))
            node = the_node(lost / "gristway")
            shutil.rmtree(lost)
            lost.touch()
            found = eventually(lambda: list(Path(temporary).glob("*/*.sock")), "it listens", 20)
            assert [path.parent.name for path in found] == [f"gristway-{os.getuid()}"]
            loader._source._client._side.drop()
            assert loader._source.describe([0])[0][0] in packed.keys
            assert the_node(lost / "gristway") == node
            # Where nothing is to be had at all, one line says which folder is missing.
            shutil.rmtree(Path(temporary) / f"gristway-{os.getuid()}")
            (Path(temporary) / f"gristway-{os.getuid()}").touch()
            with pytest.raises(gristway.MachineError, match=str(lost / "gristway")):
                loader_of(packed, transform=None, seed=4)
        lost.unlink()


def zombies() -> list[int]:
    found = []
    for task in Path("/proc/self/task").glob("*/children"):
        for child in task.read_text().split():
            status = Path("/proc", child, "stat").read_text().rpartition(")")[2].split()[0]
            if status == "Z":
                found.append(int(child))
    return found


def test_a_loader_that_is_forgotten_leaves_no_zombie(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    # In a program of its own: whatever starts a process reaps those that were forgotten before.
    program = """if True:
        import gc, os, sys, time, gristway
        def read():
            loader = gristway.Loader(sys.argv[1], memory="1MiB")
            next(iter(loader))
            return loader._source.welcome().process
        node = read()
        gc.collect()
        end = time.monotonic() + 10
        while os.path.exists(f"/proc/{node}") and time.monotonic() < end:
            time.sleep(0.01)
        print(os.path.exists(f"/proc/{node}"))
    """
    done = subprocess.run(
        [sys.executable, "-c", program, packed.path], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_a_node_is_not_bound_to_the_processors_of_the_rank_that_starts_it(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    program = (
        "import os, sys, gristway\n"
        "all = os.sched_getaffinity(0)\n"
        "os.sched_setaffinity(0, {min(all)})\n"
        "with gristway.Loader(sys.argv[1], memory='1MiB') as loader:\n"
        "    node = loader._source.welcome().process\n"
        "    print(os.sched_getaffinity(node) == all, os.sched_getaffinity(0) == {min(all)})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, packed.path], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True True\n"


@pytest.fixture
def stopped() -> Iterator[list[int]]:
    """Processes that go on when the test is over, whatever becomes of it."""
    those: list[int] = []
    yield those
    for each in those:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGCONT)


def test_a_stopped_node_is_named_and_waited_for(
    packed: PackedFiles,
    runtime_dir: Path,
    stopped: list[int],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "_UNHEARD_SECONDS", 0.5)
    with loader_of(packed) as loader:
        batches = iter(loader)
        received = next(batches)
        stopped.append(the_node(runtime_dir))
        os.kill(stopped[0], signal.SIGSTOP)
        waiting = threading.Thread(target=lambda: received.extend(flat(batches)))
        waiting.start()
        eventually(lambda: f"process {stopped[0]}," in caplog.text, "it is named", 20)
        assert caplog.records[0].levelno == logging.WARNING
        os.kill(stopped[0], signal.SIGCONT)
        waiting.join(60)
        assert sorted(received) == list(packed.keys)


def test_close_while_a_batch_is_waited_for_leaves_views_as_they_are(
    packed: PackedFiles, runtime_dir: Path, stopped: list[int]
) -> None:
    loader = loader_of(packed, transform=None)
    batches = iter(loader)
    views, _ = next(batches)
    next(batches)
    content = [bytes(view) for view in views]
    stopped.append(the_node(runtime_dir))
    os.kill(stopped[0], signal.SIGSTOP)
    raised: list[BaseException] = []

    def take() -> None:
        try:
            for _ in range(20):
                next(batches)
        except BaseException as wrong:
            raised.append(wrong)

    waiting = threading.Thread(target=take)
    waiting.start()
    time.sleep(0.5)
    loader._source.close()
    os.kill(stopped[0], signal.SIGCONT)
    waiting.join(60)
    assert isinstance(raised[0], gristway.WrongCallError)
    loader.close()
    eventually(lambda: not nodes(runtime_dir), "the node ends")
    stopped.clear()
    assert [bytes(view) for view in views] == content
