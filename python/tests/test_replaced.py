"""What becomes of a run whose dataset is replaced, written over or added to: it goes on with what it
began with, or ends with one line; no key ever comes with another's bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cluster import Raised, job
from faults import raised
from processes import kill, the_node
from replaced import (
    SAMPLES,
    WAYS,
    Command,
    Twins,
    as_they_are,
    assert_old,
    collect,
    copied,
    make_twins,
    told,
    write_labels,
)

import gristway

READING: dict[str, Any] = {"memory": "64KiB", "extent": "8KiB"}


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory, gristway_command: Command) -> Twins:
    return make_twins(tmp_path_factory.mktemp("twins"), gristway_command)


@pytest.fixture
def twins(packed: Twins, tmp_path: Path, runtime_dir: Path) -> Twins:
    return copied(packed, tmp_path)


def opened(path: Path, **options: Any) -> gristway.Loader:
    return gristway.Loader(
        path, 20, transform=told, collate_fn=as_they_are, **{**READING, **options}
    )


@pytest.mark.parametrize("way", WAYS)
def test_an_epoch_after_the_dataset_was_replaced_ends_with_an_error(twins: Twins, way: str) -> None:
    with opened(twins.path) as loader:
        received: list[Any] = list(next(iter(loader)))
        getattr(twins, way)()
        error = collect(loader, received)
    assert_old(received)
    assert "was replaced while a run read it" in error
    assert str(twins.path) in error


@pytest.mark.parametrize("way", WAYS)
def test_a_dataset_replaced_in_the_middle_of_an_epoch_gives_no_new_byte(
    twins: Twins, way: str
) -> None:
    with opened(twins.path) as loader:
        received: list[Any] = []
        batches = iter(loader)
        received += next(batches)
        getattr(twins, way)()
        error = collect(batches, received)
        for _ in range(2):
            error = error or collect(loader, received)
        damaged = 0 if error else loader.stats()["node"]["damaged"]
    assert_old(received)
    # Files that were open before may be read to the end; what is written into them is damage.
    assert error or damaged or sorted(received) == sorted(3 * list(set(received)))


def test_a_dataset_that_is_appended_to_stays_what_it_was(
    twins: Twins, tmp_path: Path, runtime_dir: Path
) -> None:
    more = tmp_path / "more" / "class0" / "new.bin"
    more.parent.mkdir(parents=True)
    more.write_bytes(b"new")
    with opened(twins.path) as loader:
        next(iter(loader))
        twins.command("append", more.parents[1], twins.path)
        for _ in range(2):
            received: list[Any] = []
            assert collect(loader, received) == ""
            assert_old(received)
            assert len({key for key, _, _ in received}) == len(received) == SAMPLES
        kill(the_node(runtime_dir))  # the next one has to find the same version
        received = []
        assert collect(loader, received) == ""
        assert_old(received)
        assert len(received) == SAMPLES


@pytest.mark.parametrize("way", ["pack_anew", "write_in_place"])
def test_a_node_that_is_started_again_refuses_a_replaced_dataset(
    twins: Twins, way: str, runtime_dir: Path
) -> None:
    with opened(twins.path) as loader:
        batches = iter(loader)
        received = list(next(batches))
        getattr(twins, way)()
        kill(the_node(runtime_dir))
        error = collect(batches, received)
        assert_old(received)
        assert "was replaced while a run read it" in error
        # And so does everybody who asks later.
        raised(gristway.WrongCallError, lambda: list(loader), "was replaced")


def snapshot_id(twins: Twins) -> str:
    """As `info` shows it."""
    lines = twins.command("info", twins.path).stdout.splitlines()
    (row,) = [line.split() for line in lines if line.split()[0] == "snapshot"]
    return row[1].rstrip(",")


def test_a_state_of_other_content_with_the_same_names_and_sizes_is_refused(twins: Twins) -> None:
    with opened(twins.path) as loader:
        next(iter(loader))
        state = loader.state_dict()
    was = snapshot_id(twins)
    twins.pack_anew()
    with opened(twins.path) as loader:
        with pytest.raises(gristway.WrongCallError) as refused:
            loader.load_state_dict(state)
        now = snapshot_id(twins)
        assert was in str(refused.value) and now in str(refused.value) and was != now


def test_a_version_that_is_named_is_read_and_one_that_is_not_there_is_refused(
    twins: Twins, tmp_path: Path
) -> None:
    more = tmp_path / "more" / "class0" / "new.bin"
    more.parent.mkdir(parents=True)
    more.write_bytes(b"new")
    twins.command("append", more.parents[1], twins.path)
    with opened(twins.path) as newest, opened(twins.path, version=1) as first:
        assert newest.dataset_size == SAMPLES + 1
        assert first.dataset_size == SAMPLES
        received: list[Any] = []
        assert collect(first, received) == ""
        assert_old(received)
        state = newest.state_dict()
        raised(
            gristway.WrongCallError, lambda: first.load_state_dict(state), "version 2", "version 1"
        )
    raised(gristway.WrongCallError, lambda: opened(twins.path, version=3), "no version 3", "[1, 2]")
    for odd in (-1, True, "1", 1 << 31):
        raised(gristway.WrongCallError, lambda odd=odd: opened(twins.path, version=odd), "version=")


@pytest.mark.parametrize("num_workers", [0, 1])
def test_labels_written_into_the_snapshot_of_a_run_are_not_believed(
    twins: Twins, num_workers: int
) -> None:
    with opened(twins.path, strict=True, num_workers=num_workers) as loader:
        for epoch in range(2):
            received: list[Any] = []
            assert collect(loader, received) == ""
            assert_old(received)
            assert len(received) == SAMPLES
            if epoch == 0:
                write_labels(twins.path, 77)
    assert twins.command("verify", twins.path, check=False).returncode == 1


@pytest.mark.parametrize("exchange", [0, 1])
def test_nodes_with_other_content_under_the_same_names_do_not_start(
    packed: Twins, runtime_dir: Path, exchange: int
) -> None:
    paths = [packed.path, packed.other]
    with job(paths, 2, 1, exchange=exchange, seed=5, batch_size=4, **READING) as running:
        for rank in running.ranks:
            with pytest.raises(Raised, match="snapshot="):
                rank.tell("1")
                rank.answer()
