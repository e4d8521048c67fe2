"""Batches of transformed samples are what torch's default_collate makes of them."""

from __future__ import annotations

import pickle
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import transforms
from conftest import PackedFiles
from same import assert_same
from torch.utils.data import default_collate
from transforms import Pair

import gristway.torch
from gristway import Loader, Sample, WrongCallError, collate
from gristway.torch import StreamDataset

if TYPE_CHECKING:
    from served import Served

pytest_plugins = ["served"]

Datasets = Callable[..., PackedFiles]

MAKERS: dict[str, Callable[[int], Any]] = {
    "int": lambda n: n,
    "large int": lambda n: 2**62 + n,
    "bool": lambda n: n % 2 == 0,
    "float": lambda n: n / 3,
    "str": str,
    "bytes": lambda n: bytes([n]),
    "float32 scalar": lambda n: np.float32(n),
    "float64 scalar": lambda n: np.float64(n),
    "int16 scalar": lambda n: np.int16(n),
    "bool scalar": lambda n: np.bool_(n % 2),
    "tensor": lambda n: torch.full((3, 2), n, dtype=torch.float32),
    "uint8 tensor": lambda n: torch.full((3, 2), n, dtype=torch.uint8),
    "bfloat16 tensor": lambda n: torch.full((3,), n, dtype=torch.bfloat16),
    "bool tensor": lambda n: torch.tensor([n % 2 == 0, True]),
    "complex tensor": lambda n: torch.full((2,), n * 1j),
    "0-d tensor": lambda n: torch.tensor(n),
    "empty tensor": lambda n: torch.zeros(0, 3),
    "transposed tensor": lambda n: torch.arange(6.0).reshape(2, 3).t() + n,
    "array": lambda n: np.full((2, 3), n, np.float64),
    "int32 array": lambda n: np.arange(4, dtype=np.int32) + n,
    "uint16 array": lambda n: np.arange(4, dtype=np.uint16) + n,
    "0-d array": lambda n: np.array(n, np.int64),
    "fortran array": lambda n: np.asfortranarray(np.full((2, 3), n)),
    "reversed array": lambda n: np.arange(4)[::-1] + n,
    "tuple": lambda n: (n, str(n), torch.tensor([n])),
    "list": lambda n: [n, [n, (n, n)]],
    "dict": lambda n: {"b": n, "a": {"c": torch.tensor([n]), "d": [n]}},
    "ordered dict": lambda n: OrderedDict(b=n, a=n),
    "default dict": lambda n: defaultdict(int, {"a": n}),
    "named tuple": lambda n: Pair(n, 2 * n),
    "nested named tuple": lambda n: (Pair(n, 0), {"pair": Pair(n, 1)}),
    "empty tuple": lambda n: (),
    "empty dict": lambda n: {},
    # Of another kind from the third sample on.
    "int and float": lambda n: n if n < 3 else n / 2,
    "float and int": lambda n: n / 2 if n < 3 else n,
    "int and bool": lambda n: n if n < 3 else True,
    "float32 and float64": lambda n: torch.tensor([n], dtype=torch.float32 if n < 3 else torch.float64),
    "list and tuple": lambda n: [n, n] if n < 3 else (n, n),
    "more names": lambda n: {"a": n} if n < 3 else {"a": n, "b": n},
}  # fmt: skip

REFUSED: dict[str, Callable[[int], Any]] = {
    "sparse tensor": lambda n: torch.eye(3).to_sparse() * n,
    "None": lambda n: None,
    "object": lambda n: object(),
    "object array": lambda n: np.array([None]),
    "text array": lambda n: np.array(["a"]),
    "shapes": lambda n: torch.zeros(n),
    "array shapes": lambda n: np.zeros(n),
    "shapes by stretches": lambda n: torch.zeros(3 if n < 3 else 4),
    "array shapes by stretches": lambda n: np.zeros(3 if n < 3 else 4),
    "lengths": lambda n: [0] * n,
    "lengths by stretches": lambda n: (n,) if n < 3 else (n, n),
    "lengths of lists by stretches": lambda n: {"a": [n, n] if n < 3 else [n]},
    "other names": lambda n: {"a": n} if n < 3 else {"b": n},
}


def outcome(collated: Callable[[], Any]) -> Any:
    """What is collated, or the kind of exception that is raised."""
    try:
        return collated()
    except Exception as wrong:
        return type(wrong)


@pytest.mark.parametrize("cuts", [(), (1,), (3,), (2, 4)], ids=str)
@pytest.mark.parametrize("name", [*MAKERS, *REFUSED])
def test_stacks_are_joined_as_if_collated_together(name: str, cuts: tuple[int, ...]) -> None:
    samples = [{**MAKERS, **REFUSED}[name](n) for n in range(6)]
    expected = outcome(lambda: default_collate(samples))
    assert (expected in (TypeError, RuntimeError, KeyError)) == (name in REFUSED), expected
    ends = [0, *cuts, 6]
    stretches = [samples[start:end] for start, end in zip(ends, ends[1:])]
    found = outcome(
        lambda: collate.join([pickle.loads(pickle.dumps(collate.stack(s))) for s in stretches])
    )
    if name in REFUSED:
        assert isinstance(found, type) and issubclass(found, Exception), found
    else:
        assert_same(found, expected)


def test_what_is_collated_does_not_share_memory_with_the_samples() -> None:
    sample = torch.zeros(3)
    batch = collate.join([collate.stack([sample])])
    batch += 1
    assert sample.tolist() == [0, 0, 0]


class MakeAll:
    """Makes of a sample all that is in MAKERS, by its number in the batch."""

    def __init__(self, keys: list[str]) -> None:
        self.keys = keys

    def __call__(self, sample: Sample) -> Any:
        number = self.keys.index(sample.key)
        return {name: make(number) for name, make in MAKERS.items()}


@pytest.mark.parametrize(
    "workers",
    [
        {},
        {"num_workers": 2, "workers": "threads"},
        {"num_workers": 2, "multiprocessing_context": "fork"},
        {"num_workers": 3, "multiprocessing_context": "fork"},
    ],
    ids=["trainer", "threads", "fork-2", "fork-3"],
)
def test_a_loader_collates_as_torch_does(
    dataset: Datasets, node: Served, workers: dict[str, Any]
) -> None:
    packed = dataset(samples=6, size=20)
    with Loader(packed.path, transform=transforms.key, node=node.name) as loader:
        (keys,) = loader
    make = MakeAll(keys)
    expected = {name: default_collate([MAKERS[name](n) for n in range(6)]) for name in MAKERS}
    with Loader(packed.path, transform=make, node=node.idle(), **workers) as loader:
        (batch,) = loader
    differ = [name for name in expected if not is_same(batch[name], expected[name])]
    assert not differ
    assert list(batch) == list(expected)


def is_same(found: Any, expected: Any) -> bool:
    try:
        assert_same(found, expected)
    except AssertionError:
        return False
    return True


def test_a_batch_without_transform_has_a_tensor_of_labels(dataset: Datasets, node: Served) -> None:
    packed = dataset(samples=20, size=20, labels=3)
    with Loader(packed.path, 8, node=node.name) as loader:
        for data, labels in loader:
            assert isinstance(data, list)
            assert labels.dtype == torch.int64
            assert labels.tolist() == [packed.label(packed.key(each)) for each in data]


def test_numpy_strings_are_collated_to_a_list() -> None:
    names = [np.str_(f"name {n}") for n in range(5)]
    joined = collate.join([collate.stack(names[:2]), collate.stack(names[2:])])
    assert joined == default_collate(names) == names


def test_views_are_not_taken_apart_to_be_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    pinned = []

    def pin(value: Any) -> Any:
        pinned.append(value)
        return value

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.utils.data._utils.pin_memory, "pin_memory", pin)
    view, labels = memoryview(b"12345"), torch.tensor([1])
    data, same = gristway.torch.pin_memory(([view], labels))
    assert data[0] is view and same is labels
    nested = gristway.torch.pin_memory({"a": [view, (labels, view)], "b": Pair(labels, 1)})
    assert nested["a"][0] is view and nested["a"][1][1] is view
    assert pinned == [labels, labels, Pair(labels, 1)]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_pin_memory_is_harmless_without_an_accelerator(
    dataset: Datasets, node: Served, num_workers: int
) -> None:
    packed = dataset(samples=20, size=20, labels=3)
    with Loader(
        packed.path,
        8,
        transform=transforms.key_and_label,
        pin_memory=True,
        num_workers=num_workers,
        node=node.name,
    ) as loader:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            keys, labels = next(iter(loader))
    assert isinstance(labels, torch.Tensor)
    assert labels.tolist() == [packed.label(key) for key in keys]


def test_a_tensor_over_a_view_keeps_its_content(dataset: Datasets, node: Served) -> None:
    packed = dataset(samples=100, size=1000)
    with Loader(packed.path, 5, node=node.name) as loader:
        iterator = iter(loader)
        views, _ = next(iterator)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns that it cannot know of read-only memory
            kept = torch.frombuffer(views[0], dtype=torch.uint8)
        content = bytes(views[0])
        del views
        for _ in range(3):
            for _ in iterator:
                pass
            iterator = iter(loader)
        assert bytes(kept.tolist()) == content


@pytest.mark.parametrize(
    "workers",
    [
        {},
        {"num_workers": 1, "workers": "threads"},
        {"num_workers": 1, "multiprocessing_context": "fork"},
    ],
    ids=["trainer", "threads", "fork"],
)
def test_views_in_a_batch_are_refused_with_what_to_return(
    small: PackedFiles, node: Served, workers: dict[str, Any]
) -> None:
    def view_and_label(sample: Sample) -> Any:
        return {"data": sample.data, "label": sample.label}

    with Loader(small.path, 10, transform=view_and_label, node=node.name, **workers) as loader:
        with pytest.raises(WrongCallError, match=r"a memoryview.*return bytes\(sample.data\)"):
            next(iter(loader))
    if not workers:
        stream = StreamDataset(small.path, 10, transform=view_and_label, node=node.idle())
        with pytest.raises(WrongCallError, match=r"a memoryview.*return bytes\(sample.data\)"):
            next(iter(stream))
