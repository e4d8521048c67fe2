"""Ranks of one machine compare what they are about to read, without torch.distributed."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cluster import Raised, Rank, job
from conftest import PackedFiles
from processes import assert_no_node, eventually

from gristway import MachineError, agreement
from gristway.world import World

READING: dict[str, Any] = {"batch_size": 4, "seed": 5, "memory": "64KiB", "extent": "8KiB"}
SAMPLES = 300
WITHOUT_SECRET = {"GRISTWAY_JOB_SECRET": ""}


@pytest.fixture(scope="module")
def packed(dataset: Callable[..., PackedFiles]) -> PackedFiles:
    return dataset(samples=SAMPLES, size=(200, 3000))


def variables(rank: int, name: str = "job") -> dict[str, str]:
    """What torchrun sets for one of two."""
    return {
        "RANK": str(rank),
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "TORCHELASTIC_RUN_ID": name,
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": "29500",
    }


def refusal(rank: Rank) -> str:
    """What a rank raises sooner or later when it reads."""
    begin = time.monotonic()
    while time.monotonic() < begin + 30:
        rank.tell("1")
        try:
            rank.answer(30)
        except Raised as raised:
            return str(raised)
        time.sleep(0.05)
    raise AssertionError("it goes on reading")


def start(path: Path, number: int, **options: Any) -> Rank:
    return Rank(path, variables(number), {**READING, **options}, [])


def end(*ranks: Rank) -> None:
    for rank in ranks:
        rank.end()
        try:
            rank.process.wait(20)
        finally:
            rank.process.kill()
            rank.process.wait()


@pytest.mark.parametrize(
    ("own", "first", "second"),
    [
        ({"seed": 6}, "rank 0 has seed=5", "rank 1 has seed=6"),
        ({"batch_size": 5}, "rank 0 has batch_size=4", "rank 1 has batch_size=5"),
        ({"memory": "128KiB"}, "rank 0 has memory=65536", "rank 1 has memory=131072"),
    ],
    ids=["seed", "batch_size", "memory"],
)
def test_ranks_that_differ_are_refused_by_name_on_every_rank_also_one_that_reads_already(
    packed: PackedFiles, runtime_dir: Path, own: dict[str, Any], first: str, second: str
) -> None:
    early = start(packed.path, 0)
    early.tell("2")
    early.answer()
    early.answer()
    late = start(packed.path, 1, **own)
    said = [refusal(late), refusal(early)]
    end(early, late)
    for line in said:
        assert line.startswith("raised WrongCallError: the ranks of this job do not read alike: ")
        assert f"{first}; {second}: make the same loaders" in line
    assert_no_node(runtime_dir)
    assert not list(runtime_dir.iterdir())


# A rank that makes its loader when it is told to, and ends when it is told to.
PATIENT = """
import sys, gristway
print("started", flush=True)
sys.stdin.readline()
seed = int(sys.argv[2])
try:
    made = gristway.Loader(sys.argv[1], batch_size=4, seed=seed, memory="64KiB", extent="8KiB")
    print("nothing", flush=True)
except gristway.WrongCallError as error:
    print(error, flush=True)
sys.stdin.readline()
"""


class Patient:
    """One rank of three."""

    def __init__(self, path: Path, number: int, seed: int) -> None:
        given = {**variables(number), "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", PATIENT, str(path), str(seed)],
            env={**os.environ, **given},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._hear() == "started"

    def _hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def refusal(self) -> str:
        """Tells it to make its loader, and returns what that raises."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return self._hear()

    def end(self) -> None:
        self.process.communicate("end\n", 20)


def test_a_difference_is_told_to_a_rank_that_comes_when_all_others_are_gone(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    ranks = [Patient(packed.path, number, 5 + number) for number in range(3)]
    said = [ranks[0].refusal(), ranks[1].refusal()]
    assert said[0] == "nothing"
    ranks[0].end()
    ranks[1].end()
    said.append(ranks[2].refusal())
    for line in said[1:]:
        assert "rank 0 has seed=5; rank 1 has seed=6" in line
    ranks[2].end()
    assert_no_node(runtime_dir)
    assert not list(runtime_dir.iterdir())


def test_a_difference_is_not_told_to_a_later_start_of_the_job(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    first = [Patient(packed.path, number, 5 + number) for number in range(2)]
    assert [rank.refusal() == "nothing" for rank in first] == [True, False]
    for rank in first:
        rank.end()
    again = [Patient(packed.path, number, 5) for number in (2, 1, 0)]
    assert [rank.refusal() for rank in again] == ["nothing"] * 3
    for rank in again:
        rank.end()
    assert_no_node(runtime_dir)
    assert not list(runtime_dir.iterdir())


def test_other_content_under_the_same_names_is_refused(
    packed: PackedFiles, runtime_dir: Path, dataset: Callable[..., PackedFiles]
) -> None:
    other = dataset(samples=SAMPLES - 1, size=(200, 3000))
    ranks = [start(packed.path, 0), start(other.path, 1)]
    said = [refusal(rank) for rank in ranks]
    end(*ranks)
    for line in said:
        assert f"rank 0 has path={packed.path}, snapshot=" in line
        assert f"rank 1 has path={other.path}, snapshot=" in line


def test_machines_without_a_secret_are_compared_where_they_share_a_runtime_folder(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    with job(
        packed.path, 2, 1, own={1: {"seed": 6}}, variables=WITHOUT_SECRET, **READING
    ) as running:
        for rank in running.ranks:
            assert "rank 0 has seed=5; rank 1 has seed=6" in refusal(rank)


def test_two_processes_that_are_the_same_rank_are_refused(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    ranks = [start(packed.path, 1), start(packed.path, 1)]
    for rank in ranks:
        assert "of this job are both rank 1: give each its own" in refusal(rank)
    end(*ranks)


def test_what_killed_ranks_have_told_is_swept_at_the_next_start_and_not_believed(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    ranks = [start(packed.path, number) for number in range(2)]
    for rank in ranks:
        rank.tell("1")
        rank.answer()
    assert len(list(runtime_dir.glob("*.ranks"))) == 1
    for rank in ranks:
        rank.process.send_signal(signal.SIGKILL)
        rank.process.wait()
    # The same job anew, with another seed.
    ranks = [start(packed.path, number, seed=9) for number in range(2)]
    for rank in ranks:
        rank.tell("1")
        rank.answer()
        rank.process.send_signal(signal.SIGKILL)
        rank.process.wait()
    assert_no_node(runtime_dir)
    # Another job that has nothing to do with it.
    done = run_program(packed.path, {}, "print(len(Loader(path, 4, memory='1MiB')))")
    assert done == "75\n"
    eventually(lambda: not list(runtime_dir.iterdir()), "nothing is left", 20)


def run_program(path: Path, environment: dict[str, str], text: str) -> str:
    return started_program(path, environment, text).communicate(timeout=120)[0]


def started_program(path: Path, environment: dict[str, str], text: str) -> subprocess.Popen[str]:
    """A program that has a path, and waits less long for ranks that do not come."""
    head = f"""
        from gristway import Error, Loader, agreement
        agreement._EPOCH_END_SECONDS = 1.0
        path = {os.fspath(path)!r}
    """
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(head) + textwrap.dedent(text)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_loader_that_one_rank_alone_makes_is_refused_at_the_end_of_its_epoch(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    program = """
        loader, taken = Loader(path, 50, memory="1MiB"), 0
        try:
            for data, labels in loader:
                taken += len(data)
        except Error as refused:
            print(taken, refused)
        # As it says.
        with Loader(path, 50, memory="1MiB", rank=0, world_size=1) as loader:
            print(sum(len(data) for data, labels in loader))
    """
    refused, whole = run_program(packed.path, variables(0), program).splitlines()
    assert refused.startswith("150 rank 1 of this job did not make this loader within")
    assert "rank=0, world_size=1" in refused
    assert whole == "300"


def test_loaders_are_compared_by_their_place_among_those_that_all_ranks_make(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    program = """
        import json, os
        rank = int(os.environ["RANK"])
        if rank == 0:
            alone = Loader(path, 7, memory="1MiB", rank=0, world_size=1)
        loaders = [Loader(path, batch, memory="1MiB", seed=batch) for batch in (4, 5, 4)]
        loaders[1].load_state_dict(loaders[1].state_dict())
        taken = [[len(data) for data, labels in loader] for loader in loaders]
        taken += [[len(data) for data, labels in loader] for loader in loaders]
        print(json.dumps([sum(sizes) for sizes in taken]))
    """
    running = [started_program(packed.path, variables(rank), program) for rank in range(2)]
    for rank in running:
        said, _ = rank.communicate(timeout=120)
        assert json.loads(said) == [150] * 6
    assert_no_node(runtime_dir)
    assert not list(runtime_dir.iterdir())


# Epochs that are counted

PARTED = (
    "raised WrongCallError: the ranks of this job are in different epochs: rank {} left epoch {} after"
    " {}, rank {} {}: call set_epoch(epoch) before each epoch, or peek and break at the same batch on"
    " every rank"
)


def take(rank: Rank, count: int) -> list[str]:
    """The keys of some batches of a rank."""
    rank.tell(str(count))
    return [key for _ in range(count) for key in rank.answer()]


def take_none(rank: Rank) -> str:
    """What a rank raises at its next batch."""
    rank.tell("1")
    with pytest.raises(Raised) as raised:
        rank.answer(30)
    return str(raised.value)


@pytest.mark.parametrize("num_workers", [0, pytest.param(2, marks=pytest.mark.thorough)])
def test_a_rank_that_peeks_alone_is_named_at_the_next_batch_of_every_rank(
    packed: PackedFiles, runtime_dir: Path, num_workers: int
) -> None:
    ranks = [start(packed.path, number, num_workers=num_workers) for number in range(2)]
    take(ranks[0], 1)
    ranks[0].tell("break")
    take(ranks[0], 1)
    take(ranks[1], 1)
    said = [take_none(rank) for rank in (ranks[1], ranks[0])]
    end(*ranks)
    assert said == [PARTED.format(0, 0, "1 batch", 1, "read on")] * 2
    assert_no_node(runtime_dir)
    assert not list(runtime_dir.iterdir())


@pytest.mark.parametrize(
    ("steps", "then"),
    [
        (38, "read on"),
        pytest.param(5, "left it after 5 batches", marks=pytest.mark.thorough),
    ],
)
def test_a_rank_that_leaves_an_epoch_that_others_have_read_is_refused_where_it_goes_on(
    packed: PackedFiles, runtime_dir: Path, steps: int, then: str
) -> None:
    ranks = [start(packed.path, number) for number in range(2)]
    take(ranks[1], steps)
    if steps == 5:
        ranks[1].tell("break")
        ranks[1].tell("counters")
        ranks[1].answer()
    take(ranks[0], 3)
    ranks[0].tell("break")
    said = [take_none(rank) for rank in ranks]
    end(*ranks)
    assert said == [PARTED.format(0, 0, "3 batches", 1, then)] * 2


def test_ranks_that_leave_epochs_alike_or_are_told_them_get_each_sample_once(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    ranks = [start(packed.path, number) for number in range(2)]

    def whole(*taken: str) -> None:
        """Takes an epoch to its end."""
        assert sorted([*taken, *(key for rank in ranks for key in take(rank, 38))]) == list(
            packed.keys
        )
        for rank in ranks:
            rank.tell("1")
            assert rank.answer() == "over"

    # Both peek, then one some batches later than the other.
    for rank in ranks:
        take(rank, 1)
        rank.tell("break")
    take(ranks[0], 3)
    ranks[0].tell("break")
    for _ in range(3):
        take(ranks[1], 1)
    ranks[1].tell("break")
    whole()
    # One alone peeks, and all are told the epoch.
    for _ in range(2):
        take(ranks[0], 1)
        ranks[0].tell("break")
    for epoch in (3, 7, 3):
        for rank in ranks:
            rank.tell(f"epoch {epoch}")
        whole()
    # Which counts on from there.
    whole()
    # One alone peeks before all go on where they were.
    take(ranks[0], 2)
    for rank in ranks:
        rank.tell("epoch 9")
    whole()
    take(ranks[0], 1)
    ranks[0].tell("break")
    take(ranks[1], 1)
    assert take_none(ranks[1]) == PARTED.format(0, 10, "1 batch", 1, "read on")
    end(*ranks)


# What happens to the file


def test_a_loader_that_is_collected_while_a_page_is_locked_leaves_and_waits_for_nobody(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    program = """
        import gc
        class Holder: pass
        holder = Holder()
        holder.itself = holder
        holder.loader = Loader(path, 4, memory="1MiB")
        file = holder.loader._source._agreement._path
        gc.collect()
        gc.disable()
        del holder
        with agreement._page(file):
            agreement.sweep(file.parent)
            gc.collect()
            print(file.exists())
        print(file.exists())
    """
    assert run_program(packed.path, variables(0), program) == "True\nFalse\n"


def test_a_file_that_cannot_be_used_is_told_in_one_line_with_its_folder(tmp_path: Path) -> None:
    own = agreement.Agreement(
        tmp_path, World(0, 2, 2, "job"), agreement.Place("found", 1), {}, is_exact=False
    )
    own.enter()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    for use in (own.enter, own.check_all_came):
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
        try:
            with pytest.raises(MachineError) as caught:
                use()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert str(caught.value) == (
            f"cannot use the file in which ranks compare, in the folder {tmp_path}: Too many open"
            " files: correct that, or set GRISTWAY_RUNTIME_DIR to another folder"
        )
    own.leave()
    assert not list(tmp_path.iterdir())


def test_where_nobody_has_counted_the_ranks_of_a_machine_it_is_said_how_to(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    program = """
        try:
            print(len(list(Loader(path, 50, memory="1MiB"))))
        except Error as refused:
            print(refused)
    """
    uncounted = {k: v for k, v in variables(0).items() if k != "LOCAL_WORLD_SIZE"}
    said = run_program(packed.path, uncounted, program)
    assert "rank 1 of this job did not make this loader" in said
    assert "set LOCAL_WORLD_SIZE to the number of ranks on each machine" in said
    assert "rank=0" not in said


def test_a_state_that_one_rank_alone_loads_is_called_that(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    program = """
        loader = Loader(path, 50, memory="1MiB")
        loader.load_state_dict(loader.state_dict())
        try:
            print(len(list(loader)))
        except Error as refused:
            print(refused)
    """
    said = run_program(packed.path, variables(0), program)
    assert said.startswith("rank 1 of this job did not load a state into this loader within")
    assert said.endswith(": call load_state_dict on every rank, and as often\n")
