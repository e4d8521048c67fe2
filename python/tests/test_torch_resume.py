"""Going on from a state with Loader, into any world."""

from __future__ import annotations

import io
import itertools
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
import transforms
from conftest import PackedFiles
from reading import LITTLE, Datasets, epochs_of, flat, keyed, through_json

from gristway import Error, Loader, WrongCallError

if TYPE_CHECKING:
    from served import Served

pytest_plugins = ["served"]

BATCHES = 11


def resumed(packed: PackedFiles, node: Served, state: Any, **more: Any) -> Loader:
    """A new loader that goes on from a state."""
    loader = keyed(packed, node.idle(), **more)
    deadline = time.monotonic() + 5
    while True:
        try:
            loader.load_state_dict(state)
            return loader
        except WrongCallError as refused:
            # The node may not have noticed yet that the loader has left it, to come back.
            if "another state" not in str(refused) or time.monotonic() > deadline:
                raise


def through_torch(state: Any) -> Any:
    file = io.BytesIO()
    torch.save({"loader": state, "weights": torch.zeros(2)}, file)
    file.seek(0)
    return torch.load(file)["loader"]


@pytest.fixture
def expected(small: PackedFiles, node: Served) -> list[list[list[str]]]:
    """The batches of three epochs."""
    return epochs_of(small, node, 3)


@pytest.mark.parametrize(
    ("received", "before", "after"),
    [(0, 0, 2), (1, 2, 0), (5, 0, 0), (5, 2, 3), (BATCHES - 1, 2, 2)],
)
def test_a_loader_goes_on_where_training_was(
    small: PackedFiles,
    node: Served,
    expected: list[list[list[str]]],
    received: int,
    before: int,
    after: int,
) -> None:
    with keyed(small, node.name, num_workers=before, prefetch_factor=4) as loader:
        list(loader)
        iterator = iter(loader)
        assert list(itertools.islice(iterator, received)) == expected[1][:received]
        time.sleep(0.05)  # what is read and transformed ahead meanwhile does not count
        state = loader.state_dict()
        assert state == loader.state_dict()
        # Taking a state changes nothing.
        assert list(iterator) == expected[1][received:]
    with resumed(small, node, through_json(state), num_workers=after) as loader:
        assert loader.epoch == 1
        assert len(loader) == BATCHES
        assert list(loader) == expected[1][received:]
        assert loader.epoch == 2
        assert list(loader) == expected[2]


@pytest.mark.parametrize("in_loop", [True, False], ids=["in the loop", "after it"])
def test_a_state_of_the_last_batch_goes_on_with_the_next_epoch(
    small: PackedFiles, node: Served, expected: list[list[list[str]]], in_loop: bool
) -> None:
    with keyed(small, node.name) as loader:
        iterator = iter(loader)
        list(itertools.islice(iterator, BATCHES))
        state = loader.state_dict()
        if not in_loop:
            assert list(iterator) == []
            assert loader.state_dict() == state
    with resumed(small, node, through_torch(state)) as loader:
        received = []
        for epoch in range(loader.epoch, 3):
            loader.set_epoch(epoch)
            received += list(loader)
        assert received == expected[1] + expected[2]


def test_a_state_before_the_first_iteration(
    small: PackedFiles, node: Served, expected: list[list[list[str]]]
) -> None:
    with keyed(small, node.name) as loader:
        state = loader.state_dict()
    with resumed(small, node, state) as loader:
        assert loader.epoch == 0
        assert list(loader) == expected[0]


def test_a_state_can_be_gone_on_from_again_and_again(
    small: PackedFiles, node: Served, expected: list[list[list[str]]]
) -> None:
    with keyed(small, node.name) as loader:
        list(itertools.islice(loader, 3))
        state = loader.state_dict()
    states = []
    for more in (4, 0, 2):
        with resumed(small, node, state, num_workers=2) as loader:
            begun = 3 + 4 * (len(states) > 0)
            assert list(itertools.islice(loader, more)) == expected[0][begun : begun + more]
            state = loader.state_dict()
            states.append(state)
    assert states[0] == states[1]
    with resumed(small, node, states[0]) as loader:
        assert list(loader) == expected[0][7:]
        # Into the same loader, which has gone on meanwhile.
        list(itertools.islice(loader, 2))
    with resumed(small, node, states[2]) as loader:
        assert list(loader) == expected[0][9:]
        assert list(loader) == expected[1]


def test_a_running_loader_can_be_set_back(
    small: PackedFiles, runtime_dir: Path, node: Served, expected: list[list[list[str]]]
) -> None:
    with Loader(small.path, 10, transform=transforms.key, num_workers=2, **LITTLE) as loader:
        iterator = iter(loader)
        list(itertools.islice(iterator, 2))
        state = loader.state_dict()
        list(itertools.islice(iterator, 3))
        loader.load_state_dict(state)
        with pytest.raises(WrongCallError, match="ended, since a state was loaded"):
            next(iterator)
        assert loader.state_dict() == state
        assert list(loader) == expected[0][2:]
        assert list(loader) == expected[1]
        loader.load_state_dict(state)  # the same once more
        assert list(loader) == expected[0][2:]


def test_the_rest_of_an_epoch_can_be_chosen_or_left(
    small: PackedFiles, node: Served, expected: list[list[list[str]]]
) -> None:
    with keyed(small, node.name) as loader:
        loader.set_epoch(1)
        list(itertools.islice(loader, 4))
        state = loader.state_dict()
    with resumed(small, node, state) as loader:
        loader.set_epoch(1)  # as loops do
        assert list(loader) == expected[1][4:]
        loader.set_epoch(2)
        assert list(loader) == expected[2]
    with resumed(small, node, state) as loader:
        loader.set_epoch(2)
        assert list(loader) == expected[2]
        loader.set_epoch(1)
        assert list(loader)[-1] == expected[1][-1]


def test_a_break_after_going_on_leaves_the_rest_behind(
    small: PackedFiles, node: Served, expected: list[list[list[str]]]
) -> None:
    with keyed(small, node.name) as loader:
        list(itertools.islice(loader, 4))
        state = loader.state_dict()
    with resumed(small, node, state, num_workers=2) as loader:
        assert next(iter(loader)) == expected[0][4]
        assert list(loader) == expected[1]


def test_the_epoch_of_a_finished_state_is_not_repeated(
    small: PackedFiles, node: Served, expected: list[list[list[str]]]
) -> None:
    """Loops that keep count of the epoch themselves set the one that they were in."""
    with keyed(small, node.name) as loader:
        list(itertools.islice(loader, BATCHES))
        state = loader.state_dict()
    with resumed(small, node, state) as loader:
        loader.set_epoch(0)
        assert list(loader) == []
        loader.set_epoch(1)
        assert list(loader) == expected[1]


@pytest.mark.parametrize(
    "state",
    [
        None,
        {},
        {"gristway": 3},
        {"gristway": "nonsense"},
        {"gristway": ""},
        {"other": "x"},
        "gristway-state 1",
    ],
    ids=repr,
)
def test_what_is_no_state_is_refused(small: PackedFiles, node: Served, state: Any) -> None:
    with keyed(small, node.name) as loader:
        with pytest.raises(Error) as caught:
            loader.load_state_dict(state)
        assert "\n" not in str(caught.value)


def test_a_state_that_was_cut_or_changed_is_refused(small: PackedFiles, node: Served) -> None:
    with keyed(small, node.name) as loader:
        list(itertools.islice(loader, 3))
        text = loader.state_dict()["gristway"]
    for wrong in (
        text[: len(text) // 2],
        text.replace("gristway-state 1", "gristway-state 99"),
        text.replace("steps=3", "steps=99"),
        text.replace("version=1", "version=99"),
        text.replace("policy=redirect", "policy=nothing"),
    ):
        assert wrong != text
        with pytest.raises(Error) as caught:
            resumed(small, node, {"gristway": wrong})
        assert "\n" not in str(caught.value)


def test_a_state_of_another_dataset_is_refused(
    dataset: Datasets, small: PackedFiles, node: Served
) -> None:
    other = dataset(samples=41, size=(100, 300))
    with keyed(other, node.name) as loader:
        state = loader.state_dict()
    with pytest.raises(WrongCallError, match="another dataset|of dataset|other dataset"):
        resumed(small, node, state)


def test_a_state_of_another_seed_is_refused_or_goes_on_with_its_own(
    small: PackedFiles, node: Served, expected: list[list[list[str]]]
) -> None:
    """Never is an epoch begun in one order and ended in another."""
    with keyed(small, node.name) as loader:
        list(itertools.islice(loader, 3))
        state = loader.state_dict()
    try:
        loader = resumed(small, node, state, seed=5)
    except WrongCallError as refused:
        assert "seed" in str(refused)
    else:
        with loader:
            assert list(loader) == expected[0][3:]


def test_a_loader_that_refused_a_state_can_be_given_another(
    small: PackedFiles, node: Served, expected: list[list[list[str]]]
) -> None:
    with keyed(small, node.name) as loader:
        list(itertools.islice(loader, 3))
        state = loader.state_dict()
    loader = keyed(small, node.idle())
    with pytest.raises(Error):
        loader.load_state_dict({"gristway": "nonsense"})
    loader.close()
    with resumed(small, node, state) as loader:
        assert list(loader) == expected[0][3:]


@pytest.mark.parametrize(
    "worlds", [(2, 3), (3, 2), (1, 4), (4, 1), (2, 3, 2), (1, 2, 1, 3)], ids=str
)
def test_a_state_goes_on_in_another_world(
    small: PackedFiles, node: Served, worlds: tuple[int, ...]
) -> None:
    delivered: Counter[str] = Counter()
    state: Any = None
    steps = 2
    for number, ranks in enumerate(worlds):
        is_last = number == len(worlds) - 1
        states = []
        lengths = set()
        following: list[str] = []
        for rank in range(ranks):
            how: dict[str, Any] = {
                "rank": rank,
                "world_size": ranks,
                "batch_size": 4,
                "num_workers": rank % 2,
                "transform": transforms.everything,
                "collate_fn": transforms.as_list,
            }
            if state is None:
                loader = keyed(small, node.idle(), **how)
            else:
                loader = resumed(small, node, state, **how)
            with loader:
                batches = list(itertools.islice(iter(loader), None if is_last else steps))
                lengths.add(len(batches))
                states.append(loader.state_dict())
                delivered.update(s["key"] for s in flat(batches) if not s["repeat"])
                if is_last:
                    following += [s["key"] for s in flat(loader) if not s["repeat"]]
        assert len(lengths) == 1
        assert all(each == states[0] for each in states)  # the same on every rank
        state = through_json(states[0])
    assert delivered == Counter(small.keys)
    assert Counter(following) == Counter(small.keys)


def test_another_batch_size_or_memory_goes_on_too(small: PackedFiles, node: Served) -> None:
    with keyed(small, node.name) as loader:
        received = flat(itertools.islice(loader, 4))
        state = loader.state_dict()
    with resumed(small, node, state, batch_size=7, memory="256KiB") as loader:
        batches = list(loader)
        assert {len(batch) for batch in batches[:-1]} == {7}
        assert sorted(received + flat(batches)) == sorted(small.keys)


def test_a_loader_that_refuses_a_state_goes_on_as_before(small: PackedFiles, node: Served) -> None:
    loader = keyed(small, node.name, seed=3)
    expected = [[list(batch) for batch in loader] for _ in range(2)]
    other = keyed(small, node.name, seed=3)
    first = list(itertools.islice(other, 4))
    before = other.state_dict()
    for wrong in ("nonsense", before["gristway"].replace("seed 3", "seed 4")):
        with pytest.raises(Error):
            other.load_state_dict({"gristway": wrong})
        assert other.state_dict() == before
    assert [list(batch) for batch in other] == expected[1]
    assert [list(batch) for batch in first] == expected[0][:4]
