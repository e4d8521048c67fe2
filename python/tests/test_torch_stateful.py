"""Going on from a state with torchdata's StatefulDataLoader."""

from __future__ import annotations

import io
import itertools
import pickle
import signal
import traceback
from typing import TYPE_CHECKING, Any

import pytest
import torch
import transforms
from conftest import PackedFiles
from reading import LITTLE, epochs_of, flat, through_json
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

from gristway import WrongCallError
from gristway.torch import MapDataset, StreamDataset

if TYPE_CHECKING:
    from served import Served

pytest_plugins = ["served"]

SIZE = 103
BATCHES = 11


@pytest.fixture
def expected(small: PackedFiles, node: Served) -> list[list[list[str]]]:
    """The batches of three epochs."""
    return epochs_of(small, node, 3)


def stream(
    packed: PackedFiles, node: Served, num_workers: int, batch_size: int = 10
) -> StatefulDataLoader[Any]:
    dataset = StreamDataset(
        packed.path, batch_size, transform=transforms.key, node=node.idle(), **LITTLE
    )
    return StatefulDataLoader(dataset, batch_size=None, num_workers=num_workers)


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("received", [1, 4, BATCHES - 1])
def test_a_stream_goes_on_under_a_stateful_data_loader(
    small: PackedFiles,
    node: Served,
    expected: list[list[list[str]]],
    num_workers: int,
    received: int,
) -> None:
    loader = stream(small, node, num_workers)
    assert list(loader) == expected[0]
    assert list(itertools.islice(loader, received)) == expected[1][:received]
    state = loader.state_dict()
    del loader
    for _ in range(2):  # the same state twice, and then one that was taken after it
        loader = stream(small, node, num_workers)
        loader.load_state_dict(through_torch_unsafe(state))
        iterator = iter(loader)
        assert next(iterator) == expected[1][received]
        later = loader.state_dict()
        del iterator, loader
    loader = stream(small, node, num_workers)
    loader.load_state_dict(later)
    assert list(loader) == expected[1][received + 1 :]
    assert list(loader) == expected[2]
    del loader


def through_torch_unsafe(state: Any) -> Any:
    """torchdata's states hold more than plain values."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.limit(30)
@pytest.mark.parametrize("received", [17, 18, 33])
def test_a_stream_goes_on_far_into_an_epoch(
    small: PackedFiles, node: Served, received: int
) -> None:
    """What lies before the state is some workers' own, and nobody asks for it."""
    loader = stream(small, node, 2, batch_size=3)
    expected = list(itertools.islice(loader, received))
    state = loader.state_dict()
    del loader
    loader = stream(small, node, 2, batch_size=3)
    loader.load_state_dict(state)
    assert sorted(flat(expected + list(loader))) == sorted(small.keys)
    del loader


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_stream_goes_on_after_a_complete_epoch(
    small: PackedFiles, node: Served, expected: list[list[list[str]]], num_workers: int
) -> None:
    loader = stream(small, node, num_workers)
    assert list(loader) == expected[0]
    state = loader.state_dict()
    del loader
    loader = stream(small, node, num_workers)
    loader.load_state_dict(state)
    received = list(loader) or list(loader)
    assert received == expected[1]
    assert list(loader) == expected[2]
    del loader


@pytest.mark.limit(30)
@pytest.mark.parametrize(
    ("redirect", "num_workers", "received"),
    [
        *itertools.product([True], [0, 2], [1, 4, BATCHES - 1]),
        *itertools.product([False], [0, 2], [4]),
    ],
)
def test_a_map_goes_on_under_a_stateful_data_loader(
    small: PackedFiles, node: Served, redirect: bool, num_workers: int, received: int
) -> None:
    def mapped() -> tuple[MapDataset, StatefulDataLoader[Any]]:
        dataset = MapDataset(
            small.path, transform=transforms.number, redirect=redirect, node=node.idle(), **LITTLE
        )
        return dataset, StatefulDataLoader(
            dataset, batch_size=10, shuffle=True, num_workers=num_workers
        )

    torch.manual_seed(3)
    dataset, loader = mapped()
    expected = []
    for epoch in range(2):
        dataset.set_epoch(epoch)
        expected.append([batch.tolist() for batch in loader])
    assert sorted(flat(expected[0])) == sorted(flat(expected[1])) == list(range(SIZE))
    del dataset, loader

    torch.manual_seed(3)
    dataset, loader = mapped()
    dataset.set_epoch(0)
    assert [b.tolist() for b in itertools.islice(loader, received)] == expected[0][:received]
    state = loader.state_dict()
    del dataset, loader
    for _ in range(2):
        dataset, loader = mapped()
        loader.load_state_dict(through_torch_unsafe(state))
        iterator = iter(loader)
        assert next(iterator).tolist() == expected[0][received]
        later = loader.state_dict()
        del dataset, loader, iterator
    dataset, loader = mapped()
    loader.load_state_dict(later)
    assert [batch.tolist() for batch in loader] == expected[0][received + 1 :]
    dataset.set_epoch(1)
    again = flat(batch.tolist() for batch in loader)
    assert sorted(again) == list(range(SIZE))
    if redirect:
        assert again == flat(expected[1])
    del dataset, loader


def test_another_number_of_workers_is_refused(small: PackedFiles, node: Served) -> None:
    loader = stream(small, node, 2)
    next(iter(loader))
    state = loader.state_dict()
    del loader
    loader = stream(small, node, 1)
    with pytest.raises((WrongCallError, AssertionError, KeyError)) as caught:
        loader.load_state_dict(state)
        list(loader)
    traceback.clear_frames(caught.tb)


def test_states_of_datasets_are_plain(small: PackedFiles, node: Served) -> None:
    dataset = StreamDataset(small.path, 10, node=node.name, **LITTLE)
    list(itertools.islice(DataLoader(dataset, batch_size=None), 3))
    assert pickle.loads(pickle.dumps(dataset.state_dict())) == through_json(dataset.state_dict())
    wrong = {**dataset.state_dict(), "workers": 4}
    with pytest.raises(WrongCallError, match=r"keep num_workers.*gristway\.Loader"):
        dataset.load_state_dict(wrong)
    for nonsense in ({"epoch": 1, "workers": 1}, {"epoch": "x", "step": 0, "workers": 1}):
        with pytest.raises(WrongCallError):
            dataset.load_state_dict(nonsense)


@pytest.mark.parametrize("kind", ["stream", "redirect"])
def test_a_signal_handler_can_take_a_state_while_the_epochs_are_written(
    small: PackedFiles, node: Served, kind: str
) -> None:
    dataset: Any
    if kind == "stream":
        dataset = StreamDataset(small.path, 10, node=node.name, **LITTLE)
        loader = StatefulDataLoader(dataset, batch_size=None)
    else:
        dataset = MapDataset(small.path, redirect=True, node=node.name, **LITTLE)
        loader = StatefulDataLoader(dataset, batch_size=10)
    states: list[Any] = []
    before = signal.signal(signal.SIGUSR1, lambda *_: states.append(loader.state_dict()))
    try:
        for _ in itertools.islice(loader, 3):
            with dataset._ledger._page():
                signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(states) == 3
