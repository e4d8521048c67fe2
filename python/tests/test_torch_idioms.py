"""What training code does beside plain loops: it is right, or refused by name."""

from __future__ import annotations

import itertools
import subprocess
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
import transforms
from accelerate import Accelerator, skip_first_batches
from conftest import PackedFiles
from maps import SIZE, generator, mapped, numbers
from reading import LITTLE, flat, keyed
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    RandomSampler,
    Sampler,
    Subset,
    SubsetRandomSampler,
    random_split,
)

from gristway import Loader, WrongCallError
from gristway.torch import MapDataset, StreamDataset

if TYPE_CHECKING:
    from served import Served

pytest_plugins = ["served"]

WORKERS = [
    pytest.param({"num_workers": 0}, id="0"),
    pytest.param({"num_workers": 2, "multiprocessing_context": "fork"}, id="fork"),
    pytest.param(
        {"num_workers": 1, "multiprocessing_context": "spawn"},
        id="spawn",
        marks=pytest.mark.thorough,
    ),
]


def _refused(match: str, batches: Any) -> None:
    with pytest.raises(WrongCallError, match=match) as caught:
        list(batches)
    # One line; torch adds to what comes from a worker.
    assert "\n" not in str(caught.value).split("Original Traceback")[0].strip()
    traceback.clear_frames(caught.tb)


# Several iterations at once


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_loader_never_ends_an_epoch_silently(
    small: PackedFiles, node: Served, num_workers: int
) -> None:
    with keyed(small, node.name, num_workers=num_workers) as loader:
        steps = 0
        with pytest.raises(WrongCallError, match="a newer one has begun") as caught:
            for step, _ in enumerate(loader):
                steps += 1
                if step == 5:
                    next(iter(loader))  # to look at some pictures
        assert steps == 6
        traceback.clear_frames(caught.tb)
        with pytest.raises(WrongCallError, match="a newer one has begun") as caught:
            list(zip(loader, loader))
        traceback.clear_frames(caught.tb)
        assert sorted(flat(loader)) == sorted(small.keys)
        running = iter(loader)
        assert len(list(running)) == len(loader)
        iter(loader)
        assert list(running) == []  # which has come to its own end


def test_a_loader_that_is_closed_or_set_back_says_so(small: PackedFiles, node: Served) -> None:
    loader = keyed(small, node.name)
    running = iter(loader)
    next(running)
    loader.load_state_dict(loader.state_dict())
    with pytest.raises(WrongCallError, match="a state was loaded"):
        next(running)
    running = iter(loader)
    loader.close()
    with pytest.raises(WrongCallError, match="closed"):
        next(running)


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("kind", ["stream", "redirect"])
def test_iterations_of_a_data_loader_do_not_disturb_each_other(
    small: PackedFiles, node: Served, kind: str, num_workers: int
) -> None:
    if kind == "stream":
        stream = StreamDataset(
            small.path, 10, transform=transforms.number, node=node.name, **LITTLE
        )
        loader = DataLoader(stream, batch_size=None, num_workers=num_workers)
    else:
        dataset = mapped(small, node.name, redirect=True)
        loader = DataLoader(dataset, batch_size=10, shuffle=True, num_workers=num_workers)
    found: list[int] = []
    for batch in loader:
        found += batch.tolist()
        if len(found) == 50:
            next(iter(loader))
    assert sorted(found) == list(range(SIZE))
    pairs = [(one.tolist(), two.tolist()) for one, two in zip(loader, loader)]
    for side in zip(*pairs):
        assert sorted(itertools.chain(*side)) == list(range(SIZE))


# Parts of a dataset


@pytest.mark.parametrize("redirect", [True, False])
def test_a_split_cannot_leak(small: PackedFiles, runtime_dir: Path, redirect: bool) -> None:
    def parts(*shares: float, seed: int = 1) -> list[MapDataset]:
        whole = MapDataset(small.path, transform=transforms.number, redirect=redirect, **LITTLE)
        return whole.split(*shares, seed=seed)

    training, validation = parts(0.9, 0.1)
    assert (len(training), len(validation)) == (93, 10)
    had: list[set[int]] = []
    for part, num_workers in ((training, 0), (training, 2), (validation, 0)):
        loader = DataLoader(part, batch_size=10, shuffle=True, num_workers=num_workers)
        for _ in range(2):
            given = numbers(loader)
            assert len(given) == len(set(given)) == len(part)
            had.append(set(given))
    assert had[0] == had[1] == had[2] == had[3] and had[4] == had[5]
    assert had[0].isdisjoint(had[4]) and had[0] | had[4] == set(range(SIZE))
    with pytest.raises(IndexError):
        validation[10]
    if not redirect:
        assert [training[i] for i in (0, 92)] == [min(had[0]), max(had[0])]
        # By its seed, for ever: whoever splits again gets the same.
        assert sorted(had[4]) == [1, 10, 33, 35, 46, 51, 53, 63, 71, 79]
        others = numbers(DataLoader(parts(0.9, 0.1, seed=2)[1]))
        assert set(others) != had[4]
        first, second, third = parts(50, 50, 3)
        assert [len(first), len(second), len(third)] == [50, 50, 3]
        inner = first.split(0.5, 0.5)
        assert sorted(numbers(DataLoader(inner[0])) + numbers(DataLoader(inner[1]))) == sorted(
            numbers(DataLoader(first))
        )
    sampler = [DistributedSampler(training, 2, rank, shuffle=True) for rank in range(2)]
    assert sum(map(len, sampler)) == 94


@pytest.mark.parametrize("shares", [(0.9, 0.2), (1.0,), (50, 50), (103, 0), (), (0.5, 0.5, 0.0)])
def test_a_split_that_is_none_is_refused(
    small: PackedFiles, node: Served, shares: tuple[float, ...]
) -> None:
    dataset = mapped(small, node.name)
    with pytest.raises(WrongCallError, match="split"):
        dataset.split(*shares)


class Shown(Dataset[Any]):
    """As users wrap a subset, to transform it."""

    def __init__(self, subset: Any) -> None:
        self.subset = subset

    def __len__(self) -> int:
        return len(self.subset)

    def __getitem__(self, index: int) -> Any:
        return self.subset[index]


@pytest.mark.parametrize("how", WORKERS)
def test_a_part_of_a_redirected_dataset_is_refused_and_its_own_indices_serve(
    small: PackedFiles, node: Served, how: dict[str, Any]
) -> None:
    dataset = mapped(small, node.name, redirect=True)
    training, validation = random_split(dataset, [80, 23], generator=generator(4))
    for part in (training, validation, Shown(validation), Subset(training, range(40))):
        loader = DataLoader(part, batch_size=10, shuffle=True, **how)
        _refused(r"a Subset draws \d+ of 103 samples.*split\(", loader)
    sampler = SubsetRandomSampler(training.indices)
    loader = DataLoader(dataset, batch_size=10, sampler=sampler, **how)
    _refused(r"a SubsetRandomSampler draws 80 of 103 samples.*split\(", loader)
    _refused("a Subset draws 23 of 103", (validation[number] for number in [5]))
    # Nothing of this has taken anything away.
    assert sorted(numbers(DataLoader(dataset, batch_size=10, **how))) == list(range(SIZE))
    del dataset, training, validation, part, loader, sampler
    indices = random_split(range(SIZE), [80, 23], generator=generator(4))[0].indices
    dataset = mapped(small, node.idle(), redirect=True, indices=indices)
    for part in (Subset(dataset, indices), Shown(Subset(dataset, indices))):
        loader = DataLoader(part, batch_size=10, shuffle=True, **how)
        assert sorted(numbers(loader)) == sorted(indices)


class Rest(Sampler[int]):
    """A sampler of a user's own that leaves out what an earlier run has had."""

    def __len__(self) -> int:
        return 53

    def __iter__(self) -> Any:
        return iter(range(50, SIZE))


@pytest.mark.parametrize("how", WORKERS)
def test_a_sampler_of_fewer_samples_is_refused_and_one_that_picks_is_not(
    small: PackedFiles, node: Served, how: dict[str, Any]
) -> None:
    dataset = mapped(small, node.name, redirect=True)
    _refused(
        "the sampler draws 60 of 103 samples.*skip_first_batches",
        DataLoader(dataset, batch_size=10, sampler=Rest(), **how),
    )
    some = RandomSampler(dataset, num_samples=40)
    given = numbers(DataLoader(dataset, batch_size=10, sampler=some, **how))
    assert len(given) == len(set(given)) == 40
    last = DataLoader(dataset, batch_sampler=BatchSampler(RandomSampler(dataset), 10, True), **how)
    assert len(set(numbers(last))) == 100


# Batches that are left out


@pytest.mark.parametrize("how", WORKERS)
@pytest.mark.parametrize("kind", ["redirect", "exact", "stream"])
def test_skipping_first_batches_gives_the_rest_of_the_epoch(
    small: PackedFiles, node: Served, kind: str, how: dict[str, Any]
) -> None:
    def made() -> tuple[Any, DataLoader[Any]]:
        torch.manual_seed(5)
        if kind == "stream":
            stream = StreamDataset(
                small.path, 10, transform=transforms.number, node=node.idle(), **LITTLE
            )
            return stream, DataLoader(stream, batch_size=None, **how)
        dataset = mapped(small, node.idle(), redirect=kind == "redirect")
        return dataset, DataLoader(dataset, batch_size=10, shuffle=kind == "redirect", **how)

    for epoch, skipped in ((0, 4), (2, 10)):
        dataset, loader = made()
        dataset.set_epoch(epoch)
        expected = [batch.tolist() for batch in loader]
        del dataset, loader
        dataset, loader = made()
        dataset.set_epoch(epoch)
        rest = skip_first_batches(loader, skipped)
        assert [batch.tolist() for batch in rest] == expected[skipped:]
        assert sorted(numbers(loader)) == list(range(SIZE))  # the next epoch
        del dataset, loader, rest


@pytest.mark.parametrize("is_prepared", [False, True])
@pytest.mark.parametrize("kind", ["redirect", "stream"])
def test_skipping_batches_of_an_epoch_that_nobody_has_named_is_told_or_refused(
    small: PackedFiles,
    node: Served,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    is_prepared: bool,
) -> None:
    dataset: Any
    if kind == "stream":
        dataset = StreamDataset(
            small.path, 10, transform=transforms.number, node=node.name, **LITTLE
        )
        loader = DataLoader(dataset, batch_size=None)
    else:
        dataset = mapped(small, node.name, redirect=True)
        loader = DataLoader(dataset, batch_size=10, shuffle=True)
    if is_prepared:
        loader = Accelerator(cpu=True).prepare(loader)

    def warned(epoch: int | None) -> bool:
        """Whether leaving out batches of an epoch says something; of the next one, if it is None."""
        monkeypatch.setattr("gristway.torch._has_warned", False)
        caplog.clear()
        if epoch is not None:
            (loader if is_prepared else dataset).set_epoch(epoch)
        assert len(numbers(skip_first_batches(loader, 4))) == SIZE - 40
        return "4 batches are left out of epoch 0" in caplog.text

    assert warned(None)
    assert not warned(3)
    assert not warned(0)
    if not is_prepared:
        _refused("nobody has said of which epoch", skip_first_batches(loader, 4))


@pytest.mark.parametrize("num_workers", [0, 2])
def test_skipping_first_batches_of_a_loader_is_exact_or_refused(
    small: PackedFiles, node: Served, num_workers: int
) -> None:
    with keyed(small, node.name, num_workers=num_workers) as loader:
        loader.set_epoch(3)
        expected = [list(batch) for batch in loader]
        loader.set_epoch(3)
        assert [list(batch) for batch in skip_first_batches(loader, 4)] == expected[4:]
        _refused("set_epoch", skip_first_batches(loader, 4))
        loader.set_epoch(3)
        list(itertools.islice(loader, 4))
        loader.load_state_dict(loader.state_dict())
        _refused("not both", skip_first_batches(loader, 4))
        assert [list(batch) for batch in loader] == expected[4:]
        assert Accelerator(cpu=True).prepare(loader) is loader


# A StreamDataset that is batched again, or several parts


@pytest.mark.parametrize("how", WORKERS)
def test_batches_of_batches_are_refused(
    small: PackedFiles, node: Served, how: dict[str, Any]
) -> None:
    dataset = StreamDataset(small.path, 10, transform=transforms.number, node=node.name, **LITTLE)
    for batch_size in ({}, {"batch_size": 64}):
        _refused("batch_size=None", DataLoader(dataset, **batch_size, **how))
    assert sorted(numbers(DataLoader(dataset, batch_size=None, **how))) == list(range(SIZE))


def test_without_a_transform_a_sample_has_all_of_its_parts(
    tmp_path: Path,
    runtime_dir: Path,
    gristway_command: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    expected = []
    for number in range(20):
        parts = {"json": b"{}", "txt": b"text %d" % number, "wav": bytes([number]) * 50}
        expected.append(parts)
        for name, content in parts.items():
            (tmp_path / "files").mkdir(exist_ok=True)
            (tmp_path / "files" / f"{number:03d}.{name}").write_bytes(content)
    tar = tmp_path / "files.tar"
    names = sorted(each.name for each in (tmp_path / "files").iterdir())
    subprocess.run(["tar", "-C", tmp_path / "files", "-cf", tar, *names], check=True)
    gristway_command("pack", tar, tmp_path / "parts.gw")

    def content(data: Any) -> list[dict[str, bytes]]:
        found = [{name: bytes(part) for name, part in each.items()} for each in data]
        return sorted(found, key=lambda parts: parts["wav"])

    path = tmp_path / "parts.gw"
    with Loader(path, batch_size=8, **LITTLE) as loader:
        assert content(each for data, _ in loader for each in data) == expected
    stream = StreamDataset(path, 8, **LITTLE)
    for num_workers in (0, 1):
        batches = DataLoader(stream, batch_size=None, num_workers=num_workers)
        assert content(each for data, _ in batches for each in data) == expected
    for redirect in (False, True):
        dataset = MapDataset(path, redirect=redirect, **LITTLE)
        assert content(dataset[index][0] for index in range(20)) == expected
        batch, _ = next(iter(DataLoader(dataset, batch_size=20)))
        assert sorted(batch["wav"]) == [parts["wav"] for parts in expected]


# Class numbers


def test_classes_that_differ_between_open_datasets_are_refused(
    tmp_path: Path,
    runtime_dir: Path,
    gristway_command: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    for name, classes in (("train", ("disc", "ring")), ("val", ("ring", "star"))):
        for each in classes:
            for number in range(5):
                (tmp_path / name / each).mkdir(parents=True, exist_ok=True)
                (tmp_path / name / each / f"{number}.bin").write_bytes(bytes([number]) * 100)
        gristway_command("pack", tmp_path / name, tmp_path / f"{name}.gw")
    train, val = tmp_path / "train.gw", tmp_path / "val.gw"
    with Loader(train, 5, **LITTLE) as loader:
        with pytest.raises(WrongCallError) as caught:
            Loader(val, 5, **LITTLE)
        for said in ("'ring' is 1 in", str(train), f"0 in {val}", "pack --classes-of"):
            assert said in str(caught.value)
        with pytest.raises(WrongCallError, match="classes-of"):
            MapDataset(val, **LITTLE)
        Loader(val, 5, compare_classes=False, **LITTLE).close()
        Loader(train, 5, **LITTLE).close()
        assert len(list(loader)) == 2
    # Only what is open counts.
    Loader(val, 5, **LITTLE).close()
