"""A DataLoader over a dataset that is replaced between two epochs."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from replaced import (
    SAMPLES,
    Command,
    Twins,
    as_they_are,
    assert_old,
    collect,
    copied,
    make_twins,
    told,
)
from torch.utils.data import DataLoader

import gristway
from gristway.torch import MapDataset, StreamDataset


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory, gristway_command: Command) -> Twins:
    return make_twins(tmp_path_factory.mktemp("twins"), gristway_command)


@pytest.fixture
def twins(packed: Twins, tmp_path: Path, runtime_dir: Path) -> Twins:
    return copied(packed, tmp_path)


@pytest.mark.parametrize(
    ("kind", "start"), [("exact", "spawn"), ("redirect", "fork"), ("stream", "fork")]
)
def test_the_workers_of_the_next_epoch_give_nothing_of_a_replaced_dataset(
    twins: Twins, kind: str, start: str
) -> None:
    options: dict[str, Any] = {"transform": told, "memory": "64KiB", "extent": "8KiB"}
    dataset: Any
    if kind == "stream":
        dataset = StreamDataset(twins.path, 20, collate_fn=as_they_are, **options)
        loader = DataLoader(
            dataset,
            None,
            num_workers=1,
            collate_fn=as_they_are,
            multiprocessing_context=start,
        )
    else:
        dataset = MapDataset(twins.path, redirect=kind == "redirect", **options)
        loader = DataLoader(
            dataset,
            20,
            num_workers=1,
            collate_fn=as_they_are,
            multiprocessing_context=start,
        )
    received: list[Any] = []
    assert collect(loader, received) == ""
    assert len(set(received)) == SAMPLES
    twins.pack_anew()
    if kind == "redirect":
        dataset.set_epoch(1)
    later: list[Any] = []
    error = collect(loader, later)
    assert_old(later)
    # One client has its own files; what a rank's clients share may be open, and the old one's.
    if kind == "exact" or error:
        assert "was replaced while a run read it" in error or "another dataset" in error
    else:
        assert sorted(later) == sorted(received)
    del loader, dataset
    gc.collect()  # an exception has had them in its frames


def test_items_that_are_asked_for_one_by_one_stay_what_they_were(twins: Twins) -> None:
    dataset = MapDataset(twins.path, transform=told, memory="64KiB")
    assert_old([dataset[number] for number in range(0, SAMPLES, 7)])
    twins.pack_anew()
    for number in range(SAMPLES):
        try:
            assert_old([dataset[number]])
        except gristway.Error as error:
            assert "another dataset" in str(error) or "was replaced" in str(error)


def test_a_version_that_is_named_is_read_by_index_and_as_a_stream(
    twins: Twins, tmp_path: Path
) -> None:
    more = tmp_path / "more" / "class0" / "new.bin"
    more.parent.mkdir(parents=True)
    more.write_bytes(b"new")
    twins.command("append", more.parents[1], twins.path)
    assert len(MapDataset(twins.path, memory="64KiB")) == SAMPLES + 1
    assert len(MapDataset(twins.path, memory="1MiB", version=1)) == SAMPLES
    assert len(StreamDataset(twins.path, 1, memory="1MiB", version=1)) == SAMPLES
    for kind in (MapDataset, StreamDataset):
        with pytest.raises(gristway.WrongCallError, match="no version 3"):
            kind(twins.path, version=3)
