"""StreamDataset in torch's DataLoader."""

from __future__ import annotations

import copy
import itertools
import os
import pickle
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
import transforms
from conftest import PackedFiles
from processes import eventually, memory_files, nodes
from reading import LITTLE, Datasets, Run, flat, keys_of, order_of_read
from torch.utils.data import DataLoader

from gristway import Loader, WrongCallError, shipment
from gristway.torch import StreamDataset

if TYPE_CHECKING:
    from served import Served

pytest_plugins = ["served"]

EPOCHS = 3


def streamed(packed: PackedFiles, name: str, **more: Any) -> StreamDataset:
    settings: dict[str, Any] = {"batch_size": 10, "transform": transforms.key, **LITTLE, **more}
    return StreamDataset(packed.path, node=name, **settings)


@pytest.fixture
def expected(small: PackedFiles, node: Served) -> list[list[str]]:
    """The keys of each epoch, as Loader gives them."""
    with Loader(small.path, 10, transform=transforms.key, node=node.name, **LITTLE) as loader:
        epochs = [flat(loader) for _ in range(EPOCHS)]
    node.idle()
    return epochs


# What is given


@pytest.mark.parametrize("num_workers", [0, 2])
def test_batches_are_bytes_and_labels(small: PackedFiles, node: Served, num_workers: int) -> None:
    dataset = streamed(small, node.name, transform=None)
    loader = DataLoader(dataset, batch_size=None, num_workers=num_workers)
    assert len(dataset) == len(loader) == 11
    batches = list(loader)
    for data, labels in batches:
        assert {type(each) for each in data} == {bytes}
        assert labels.dtype == torch.int64
    assert sorted(keys_of(small, batches)) == sorted(small.keys)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_transformed_samples_are_collated(
    small: PackedFiles, node: Served, num_workers: int
) -> None:
    dataset = streamed(small, node.name, transform=transforms.pair)
    batch = next(iter(DataLoader(dataset, batch_size=None, num_workers=num_workers)))
    assert isinstance(batch, transforms.Pair)
    assert batch.size.dtype == torch.int64
    assert len(batch.label) == 10


def test_collate_fn_gets_transformed_samples(small: PackedFiles, node: Served) -> None:
    dataset = streamed(
        small, node.name, transform=transforms.everything, collate_fn=transforms.as_list
    )
    for sample in flat(DataLoader(dataset, batch_size=None, num_workers=1)):
        assert sample["data"] == (small.files / sample["key"]).read_bytes()
        assert sample["label"] == small.label(sample["key"])


# Order


@pytest.mark.parametrize(
    "how",
    [
        {"num_workers": 0},
        {"num_workers": 1, "multiprocessing_context": "fork"},
        {"num_workers": 2, "multiprocessing_context": "fork", "persistent_workers": True},
        {"num_workers": 3, "multiprocessing_context": "fork", "prefetch_factor": 1},
        {"num_workers": 2, "multiprocessing_context": "spawn", "persistent_workers": True},
        {"num_workers": 1, "multiprocessing_context": "forkserver", "persistent_workers": True},
    ],
    ids=lambda each: "-".join(str(value) for value in each.values()),
)
def test_the_order_is_the_same_with_any_workers(
    small: PackedFiles, node: Served, expected: list[list[str]], how: dict[str, Any]
) -> None:
    loader = DataLoader(streamed(small, node.name), batch_size=None, **how)
    assert [flat(loader) for _ in range(EPOCHS)] == expected


@pytest.mark.thorough
@pytest.mark.limit(900)
def test_the_order_is_the_same_with_all_workers(
    small: PackedFiles, node: Served, expected: list[list[str]]
) -> None:
    for start, count, persists in itertools.product(
        ("fork", "spawn", "forkserver"), (1, 3), (False, True)
    ):
        loader = DataLoader(
            streamed(small, node.idle()),
            batch_size=None,
            num_workers=count,
            multiprocessing_context=start,
            persistent_workers=persists,
        )
        assert [flat(loader) for _ in range(EPOCHS)] == expected, (start, count, persists)
        del loader


def test_the_order_is_that_of_read(small: PackedFiles, node: Served, gristway_command: Run) -> None:
    options = ("--batch-size", 10, "--seed", 3, "--epochs", 2, "--memory", "64KiB")
    expected = order_of_read(gristway_command, small.path, *options, "--extent", "4KiB")
    loader = DataLoader(
        streamed(small, node.name, transform=None, seed=3), batch_size=None, num_workers=2
    )
    assert keys_of(small, loader) == expected[0, 0]
    assert keys_of(small, loader) == expected[1, 0]


def test_a_dataset_can_be_iterated_without_a_data_loader(
    small: PackedFiles, node: Served, expected: list[list[str]]
) -> None:
    dataset = streamed(small, node.name)
    assert flat(dataset) == expected[0]
    assert flat(dataset) == expected[1]


def test_ranks_given_by_hand_share_an_epoch(small: PackedFiles, node: Served) -> None:
    found = []
    for rank in range(3):
        dataset = streamed(small, node.idle(), rank=rank, world_size=3)
        batches = list(DataLoader(dataset, batch_size=None, num_workers=2))
        assert len(batches) == len(dataset) == 4
        found += flat(batches)
        del dataset
    assert sorted(found) == sorted(small.keys)


# Epochs

WORKERS: list[dict[str, Any]] = [
    {"num_workers": 0},
    {"num_workers": 2},
    {"num_workers": 2, "persistent_workers": True},
]


@pytest.mark.parametrize("how", WORKERS, ids=["0", "2", "2-persistent"])
def test_an_epoch_can_be_chosen(
    small: PackedFiles, node: Served, expected: list[list[str]], how: dict[str, Any]
) -> None:
    dataset = streamed(small, node.name)
    loader = DataLoader(dataset, batch_size=None, **how)
    for epoch in (2, 0, 0, 1):
        dataset.set_epoch(epoch)
        assert flat(loader) == expected[epoch]
    assert flat(loader) == expected[2]
    with pytest.raises(WrongCallError, match="no epoch -1"):
        dataset.set_epoch(-1)


@pytest.mark.parametrize("how", WORKERS, ids=["0", "2", "2-persistent"])
def test_a_break_is_followed_by_the_next_epoch_complete(
    small: PackedFiles, node: Served, expected: list[list[str]], how: dict[str, Any]
) -> None:
    loader = DataLoader(streamed(small, node.name), batch_size=None, **how)
    for batch in loader:
        assert batch == expected[0][:10]
        break
    for number, batch in enumerate(loader):
        assert batch == expected[1][number * 10 : number * 10 + 10]
        if number == 7:
            break
    assert flat(loader) == expected[2]


@pytest.mark.parametrize("persistent", [False, True])
def test_a_break_before_all_workers_have_begun(
    small: PackedFiles, node: Served, expected: list[list[str]], persistent: bool
) -> None:
    loader = DataLoader(
        streamed(small, node.name),
        batch_size=None,
        num_workers=2,
        persistent_workers=persistent,
        worker_init_fn=transforms.sleep_if_second,
    )
    assert next(iter(loader)) == expected[0][:10]
    assert flat(loader) == expected[1]
    assert flat(loader) == expected[2]


@pytest.mark.parametrize("how", WORKERS, ids=["0", "2", "2-persistent"])
def test_the_same_random_seed_each_epoch_does_no_harm(
    small: PackedFiles, node: Served, expected: list[list[str]], how: dict[str, Any]
) -> None:
    loader = DataLoader(streamed(small, node.name), batch_size=None, **how)
    for epoch in range(EPOCHS):
        torch.manual_seed(1)
        assert flat(loader) == expected[epoch]


@pytest.mark.parametrize("persistent", [False, True])
def test_the_same_random_seed_after_a_break_before_all_workers_have_begun(
    small: PackedFiles, node: Served, expected: list[list[str]], persistent: bool
) -> None:
    loader = DataLoader(
        streamed(small, node.name),
        batch_size=None,
        num_workers=2,
        persistent_workers=persistent,
        worker_init_fn=transforms.sleep_if_second,
    )
    torch.manual_seed(1)
    next(iter(loader))
    torch.manual_seed(1)
    assert flat(loader) == expected[1]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_two_iterations_at_once_are_two_epochs(
    small: PackedFiles, node: Served, expected: list[list[str]], num_workers: int
) -> None:
    loader = DataLoader(
        streamed(small, node.name),
        batch_size=None,
        num_workers=num_workers,
        # The first iteration's second worker begins after the second iteration's first.
        worker_init_fn=transforms.sleep_if_second,
    )
    both = list(zip(loader, loader))
    assert flat(first for first, _ in both) == expected[0]
    assert flat(second for _, second in both) == expected[1]


def test_two_data_loaders_share_a_dataset_in_turn(
    small: PackedFiles, node: Served, expected: list[list[str]]
) -> None:
    dataset = streamed(small, node.name)
    one = DataLoader(dataset, batch_size=None, num_workers=2)
    other = DataLoader(dataset, batch_size=None, num_workers=0)
    assert flat(one) == expected[0]
    assert flat(other) == expected[1]
    assert flat(one) == expected[2]


def test_several_datasets_at_once(
    dataset: Datasets, small: PackedFiles, expected: list[list[str]], runtime_dir: Path
) -> None:
    other = dataset(samples=41, size=(100, 300))
    own: dict[str, Any] = {"transform": transforms.key, **LITTLE}
    training = DataLoader(StreamDataset(small.path, 10, **own), batch_size=None, num_workers=2)
    validation = DataLoader(StreamDataset(other.path, 10, **own), batch_size=None, num_workers=1)
    assert len(nodes(runtime_dir)) == 2
    found: list[str] = []
    for batch in training:
        found += batch
        if len(found) % 50 == 0:
            assert sorted(flat(validation)) == list(other.keys)
    assert found == expected[0]
    del training, validation
    eventually(lambda: not nodes(runtime_dir), "the nodes end with their datasets")


# Sizes


@pytest.mark.parametrize("num_workers", [0, 3])
def test_a_dataset_smaller_than_a_batch(dataset: Datasets, node: Served, num_workers: int) -> None:
    packed = dataset(samples=3)
    stream = streamed(packed, node.name, batch_size=256)
    loader = DataLoader(stream, batch_size=None, num_workers=num_workers)
    for _ in range(2):
        (batch,) = loader
        assert sorted(batch) == list(packed.keys)
    assert len(loader) == 1
    del stream, loader
    stream = streamed(packed, node.idle(), batch_size=256, drop_last=True)
    loader = DataLoader(stream, batch_size=None, num_workers=num_workers)
    assert len(loader) == 0
    assert list(loader) == []
    assert list(loader) == []


def test_drop_last_and_batches_of_one(small: PackedFiles, node: Served) -> None:
    stream = streamed(small, node.name, drop_last=True)
    batches = list(DataLoader(stream, batch_size=None, num_workers=2))
    assert [len(batch) for batch in batches] == [10] * 10
    assert len(stream) == 10
    del stream
    stream = streamed(small, node.idle(), batch_size=1)
    batches = list(DataLoader(stream, batch_size=None, num_workers=2))
    assert len(batches) == len(stream) == 103
    assert sorted(flat(batches)) == sorted(small.keys)


@pytest.mark.limit(60)
def test_a_worker_that_is_asked_for_much_ahead_waits_for_its_copies(
    small: PackedFiles, node: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = shipment.send

    def slowly(pieces: Any) -> Any:
        time.sleep(0.05)
        return send(pieces)

    monkeypatch.setattr(shipment, "send", slowly)
    stream = StreamDataset(small.path, 5, node=node.name, **LITTLE)
    loader = DataLoader(
        stream, batch_size=None, num_workers=1, prefetch_factor=16, multiprocessing_context="fork"
    )
    assert sorted(keys_of(small, loader)) == sorted(small.keys)


def test_pin_memory_is_harmless_without_an_accelerator(small: PackedFiles, node: Served) -> None:
    stream = streamed(small, node.name, transform=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, that there is no accelerator
        loader = DataLoader(stream, batch_size=None, num_workers=2, pin_memory=True)
        assert sorted(keys_of(small, loader)) == sorted(small.keys)


def test_epochs_use_up_no_memory_of_the_node(small: PackedFiles, node: Served) -> None:
    loader = DataLoader(streamed(small, node.name), batch_size=None, num_workers=2)
    for _ in range(4):
        next(iter(loader))
        assert len(flat(loader)) == 103
    assert len([file for file in memory_files(node.pid) if "handover" in file]) == 1


# Errors


@pytest.mark.parametrize("num_workers", [0, 2])
def test_an_exception_of_a_transform_comes_out_with_the_key(
    small: PackedFiles, node: Served, num_workers: int
) -> None:
    bad = small.keys[33]
    stream = streamed(small, node.name, transform=transforms.RefuseKey(bad, "KeyError"))
    loader = DataLoader(stream, batch_size=None, num_workers=num_workers)
    with pytest.raises(KeyError) as caught:
        list(loader)
    # torch makes a worker's exception anew, with the trace and the notes of the first as its text.
    told = str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
    assert f"'{bad}'" in told
    assert "no such field" in told
    # Or else the workers are part of a cycle, and torch takes 5 s for each to end.
    traceback.clear_frames(caught.tb)


def test_a_state_is_refused_where_workers_read(small: PackedFiles, node: Served) -> None:
    stream = streamed(small, node.name)
    loader = DataLoader(stream, batch_size=None, num_workers=2)
    assert stream.state_dict() == {}
    next(iter(loader))
    with pytest.raises(WrongCallError, match=r"StatefulDataLoader.*gristway\.Loader"):
        stream.state_dict()


def test_wrong_arguments_are_refused(small: PackedFiles, runtime_dir: Path) -> None:
    with pytest.raises(WrongCallError, match="needs a transform"):
        StreamDataset(small.path, collate_fn=transforms.as_list)
    with pytest.raises(WrongCallError, match="batch_size"):
        StreamDataset(small.path, batch_size=0)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))]
)
def test_a_copy_outlives_the_original(
    small: PackedFiles,
    node: Served,
    expected: list[list[str]],
    copied: Callable[[StreamDataset], StreamDataset],
) -> None:
    first = streamed(small, node.name)
    second = copied(first)
    del first
    filler = [open(os.devnull) for _ in range(20)]  # what was closed is used for something else
    assert flat(DataLoader(second, batch_size=None)) == expected[0]
    assert flat(DataLoader(second, batch_size=None, num_workers=2)) == expected[1]
    for each in filler:
        each.close()


TRAINING = """
import sys, time
from torch.utils.data import DataLoader
from gristway.torch import StreamDataset
import transforms

if __name__ == "__main__":
    dataset = StreamDataset(sys.argv[1], 10, transform=transforms.slow)
    loader = DataLoader(dataset, batch_size=None, num_workers=2, persistent_workers=True)
    while True:
        for batch in loader:
            print("batch", flush=True)
"""


def test_ctrl_c_ends_at_once_and_quietly(
    small: PackedFiles, runtime_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    training = subprocess.Popen(
        [sys.executable, str(tmp_path / "train.py"), str(small.path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert training.stdout is not None
        assert training.stdout.readline() == "batch\n"
        os.killpg(training.pid, signal.SIGINT)
        begun = time.monotonic()
        _, err = training.communicate(timeout=20)
        took = time.monotonic() - begun
    finally:
        training.kill()
        training.wait()
    assert training.returncode == -signal.SIGINT
    assert err.count("Traceback") == 1, err
    assert err.rstrip().endswith("KeyboardInterrupt"), err
    assert took < 2
    eventually(lambda: not nodes(runtime_dir), "the node ends", 2)
