"""Batches and samples: views of the node's memory, their contents and how long they last."""

from __future__ import annotations

import copy
import gc
import io
import itertools
import multiprocessing
import os
import pickle
import re
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import transforms
from conftest import PackedFiles
from processes import assert_no_node, handover_bytes, kill, the_node
from reading import LITTLE, Datasets, Run

import gristway
from gristway import Loader, Sample, WrongCallError
from gristway.connection import Connection

if TYPE_CHECKING:
    from served import Served

pytest_plugins = ["served"]

np = pytest.importorskip("numpy")


@pytest.fixture(scope="module")
def in_parts(
    tmp_path_factory: pytest.TempPathFactory, gristway_command: Run
) -> tuple[Path, dict[str, dict[str, bytes]]]:
    """A dataset from a tar file, whose samples have one to three parts, and what is in them.

    As usual in tar files, a part `cls` is the label; every third sample has none.
    """
    folder = tmp_path_factory.mktemp("parts")
    content: dict[str, dict[str, bytes]] = {}
    with tarfile.open(folder / "samples.tar", "w") as tar:
        for number in range(30):
            key = f"folder/{number:03}"
            parts = {"jpg": b"picture" * number, "cls": b"%d" % number, "seg.png": b"mask"}
            names = [["jpg"], ["cls", "jpg"], ["jpg", "seg.png", "cls"]][number % 3]
            content[key] = {name: parts[name] for name in names}
            for name in names:
                entry = tarfile.TarInfo(f"{key}.{name}")
                entry.size = len(parts[name])
                tar.addfile(entry, io.BytesIO(parts[name]))
    gristway_command("pack", folder / "samples.tar", folder / "data.gw")
    return folder / "data.gw", content


# Contents


def test_parts_are_those_of_the_tar(
    in_parts: tuple[Path, dict[str, dict[str, bytes]]], node: Served
) -> None:
    path, content = in_parts
    with Loader(
        path, 7, transform=transforms.everything, collate_fn=transforms.as_list, node=node.name
    ) as loader:
        samples = {sample["key"]: sample for batch in loader for sample in batch}
    assert samples.keys() == content.keys()
    for key, sample in samples.items():
        assert sample["parts"] == content[key]
        assert list(sample["parts"]) == list(content[key])
        assert sample["data"] == next(iter(content[key].values()))
        assert sample["label"] == (int(key[-3:]) if "cls" in content[key] else -1)


def test_without_a_transform_data_are_all_parts_by_name(
    in_parts: tuple[Path, dict[str, dict[str, bytes]]], node: Served
) -> None:
    path, content = in_parts

    def plain(data: Any) -> Any:
        if isinstance(data, dict):
            return sorted((name, bytes(part)) for name, part in data.items())
        return bytes(data)

    expected = [parts if len(parts) > 1 else parts["jpg"] for parts in content.values()]
    with Loader(path, 7, node=node.name) as loader:
        found = [plain(data) for views, _ in loader for data in views]
    assert sorted(found, key=str) == sorted(map(plain, expected), key=str)


def test_an_empty_file_is_a_sample_without_bytes(
    tmp_path: Path, gristway_command: Run, node: Served
) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "empty").touch()
    (tmp_path / "files" / "full").write_bytes(b"x")
    gristway_command("pack", tmp_path / "files", tmp_path / "data.gw")
    with Loader(tmp_path / "data.gw", node=node.name) as loader:
        ((data, _),) = loader
        assert sorted(map(bytes, data)) == [b"", b"x"]


def test_a_key_is_text_whatever_the_file_was_called(
    tmp_path: Path, gristway_command: Run, node: Served
) -> None:
    (tmp_path / "files").mkdir()
    names = ["ein Bär\tmit\nZeilen.bin", "日本語", "a=b\\c"]
    for name in names:
        (tmp_path / "files" / name).write_bytes(name.encode())
    gristway_command("pack", tmp_path / "files", tmp_path / "data.gw")
    with Loader(tmp_path / "data.gw", transform=transforms.key, node=node.name) as loader:
        (keys,) = loader
        assert sorted(keys) == sorted(names)


def test_a_sample_shows_what_it_is(small: PackedFiles, node: Served) -> None:
    def check(sample: Sample) -> str:
        assert repr(sample) == (
            f"Sample(id={sample.id}, label={sample.label}, {len(sample.data)} bytes)"
        )
        return sample.key

    with Loader(small.path, transform=check, node=node.name) as loader:
        assert len(next(iter(loader))) == 103


# Views


def address(view: Any) -> int:
    return int(np.frombuffer(view, np.uint8).__array_interface__["data"][0])


def shared_stretches() -> list[tuple[int, int]]:
    """Where this process has the memory of nodes."""
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "memfd:gristway-handover" in line:
            low, high = re.match("([0-9a-f]+)-([0-9a-f]+)", line).groups()  # type: ignore[union-attr]
            found.append((int(low, 16), int(high, 16)))
    return found


def test_views_are_of_shared_memory_and_cannot_be_written(small: PackedFiles, node: Served) -> None:
    with Loader(small.path, 10, node=node.name, **LITTLE) as loader:
        for views, _ in loader:
            for view in views:
                assert type(view) is memoryview
                assert view.readonly
                assert (view.format, view.ndim, view.c_contiguous) == ("B", 1, True)
                assert any(
                    low <= address(view) and address(view) + len(view) <= high
                    for low, high in shared_stretches()
                )
            with pytest.raises(TypeError):
                views[0][0] = 1
            assert not np.frombuffer(views[0], np.uint8).flags.writeable
            del view, views


KEEP: dict[str, Callable[[memoryview], Any]] = {
    "view": lambda view: view,
    "view of a view": lambda view: view[0:][:],
    "array": lambda view: np.frombuffer(view, np.uint8),
    "array of an array": lambda view: np.frombuffer(view, np.uint8)[1:].reshape(-1, 1)[:, 0],
}


@pytest.mark.parametrize("keep", KEEP.values(), ids=KEEP.keys())
def test_what_is_kept_keeps_its_content(
    small: PackedFiles, node: Served, keep: Callable[[memoryview], Any]
) -> None:
    with Loader(small.path, 10, node=node.name, **LITTLE) as loader:
        iterator = iter(loader)
        views, _ = next(iterator)
        kept = keep(views[3])
        content = bytes(kept)
        assert content in bytes(views[3])
        del views
        for _ in range(3):  # epochs: all other areas come again and again
            for _ in iterator:
                assert bytes(kept) == content
            iterator = iter(loader)
        loader.set_epoch(77)  # reading begins anew
        next(iter(loader))
        assert bytes(kept) == content


def test_keeping_one_view_keeps_one_batch_only(small: PackedFiles, node: Served) -> None:
    with Loader(small.path, 10, node=node.name, **LITTLE) as loader:
        kept = []
        for _, (views, _labels) in zip(range(5), loader):
            kept.append(views[0])
            del views
        assert len({address(view) for view in kept}) == 5
        expected = [bytes(view) for view in kept]
        del kept[1:4]
        for _ in range(3):
            list_of_sizes = [len(views) for views, _ in loader]
            assert sum(list_of_sizes) == 103
        assert [bytes(view) for view in kept] == [expected[0], expected[4]]


def test_views_outlive_the_loader(small: PackedFiles, runtime_dir: Path) -> None:
    for seed in range(2):
        loader = Loader(small.path, 2, seed=seed, **LITTLE)
        kept = [view for _, (views, _) in zip(range(5), loader) for view in views]
        content = [bytes(view) for view in kept]
        loader.close()
        assert_no_node(runtime_dir)
        assert [bytes(view) for view in kept] == content


def test_views_outlive_a_loader_whose_node_goes_on(small: PackedFiles, node: Served) -> None:
    world: dict[str, Any] = {"world_size": 2, "node": node.name, **LITTLE}
    with Loader(small.path, 10, rank=1, **world) as other:
        loader = Loader(small.path, 10, rank=0, **world)
        kept = [view for _, (views, _) in zip(range(3), loader) for view in views]
        content = [bytes(view) for view in kept]
        loader.close()
        assert sum(len(views) for views, _ in other) == 51
        again = Loader(small.path, 10, rank=0, **world)  # such as a rank that is started again
        for _ in range(3):
            assert sum(len(views) for views, _ in again) == 52
        again.close()
        assert [bytes(view) for view in kept] == content


def test_views_outlive_an_interrupted_wait(
    small: PackedFiles, node: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Loader(small.path, 10, node=node.name, **LITTLE) as loader:
        iterator = iter(loader)
        for _ in range(9):
            next(iterator)
        kept = next(iterator)[0] + next(iterator)[0]
        content = [bytes(view) for view in kept]

        def interrupted(connection: Connection) -> Any:
            monkeypatch.undo()
            raise KeyboardInterrupt

        monkeypatch.setattr(Connection, "_receive", interrupted)
        with pytest.raises(KeyboardInterrupt):  # as in a notebook, where one goes on after it
            next(iterator)
        for _ in range(3):
            assert sum(len(views) for views, _ in loader) == 103
        assert [bytes(view) for view in kept] == content


def test_views_outlive_a_node_that_is_killed(small: PackedFiles, runtime_dir: Path) -> None:
    with Loader(small.path, 10, **LITTLE) as loader:
        iterator = iter(loader)
        kept = next(iterator)[0]
        content = [bytes(view) for view in kept]
        kill(the_node(runtime_dir))
        rest = sum(len(views) for views, _ in iterator)
        assert rest == 93
        assert [bytes(view) for view in kept] == content


def test_views_outlive_loading_a_state(small: PackedFiles, runtime_dir: Path) -> None:
    with Loader(small.path, 10, **LITTLE) as loader:
        views, _ = next(iter(loader))
        content = [bytes(view) for view in views]
        loader.load_state_dict(loader.state_dict())
        assert sum(len(each) for each, _ in loader) == 93
        assert [bytes(view) for view in views] == content


def test_views_that_are_all_kept_are_refused_with_a_remedy(
    small: PackedFiles, node: Served
) -> None:
    with Loader(small.path, 2, node=node.name, **LITTLE) as loader:
        kept = []
        with pytest.raises(WrongCallError, match="views") as caught:
            for views, _ in loader:
                kept.append(views)
        # What is promised may be kept: prefetch_factor and two more.
        assert 4 <= len(kept) < 51
        named = re.search(r"(\d+) bytes", str(caught.value))
        assert named is not None
        assert int(named.group(1)) >= sum(len(view) for views in kept for view in views)
        assert "copy" in str(caught.value)
        assert "\n" not in str(caught.value)
        del kept, views
        assert sum(len(views) for views, _ in loader) == 103


def test_what_could_not_be_sent_ahead_is_asked_for_again(small: PackedFiles, node: Served) -> None:
    with Loader(small.path, 2, node=node.name, **LITTLE) as loader:
        expected = [[bytes(view) for view in views] for views, _ in loader]
        loader.set_epoch(0)
        iterator = iter(loader)
        received = []
        while len(received) < len(expected):
            # All that may be kept, so that there is no memory for the one after.
            kept = [views for views, _ in itertools.islice(iterator, 7)]
            received += [[bytes(view) for view in views] for views in kept]
            del kept
        assert received == expected


@pytest.mark.parametrize("workers", [0, 2])
def test_kept_views_of_threads_are_refused_with_a_remedy(
    small: PackedFiles, node: Served, workers: int
) -> None:
    with Loader(
        small.path,
        2,
        node=node.name,
        transform=transforms.view,
        collate_fn=transforms.as_list,
        num_workers=workers,
        workers="threads",
        **LITTLE,
    ) as loader:
        kept = []
        with pytest.raises(WrongCallError, match="views"):
            for views in loader:
                kept.append(views)
        assert len(kept) >= 2


def test_memory_of_views_that_are_let_go_of_is_used_again(dataset: Datasets, node: Served) -> None:
    packed = dataset(samples=100, size=1000)
    with Loader(packed.path, 10, node=node.name) as loader:
        seen: set[int] = set()
        sizes = []
        for _ in range(6):
            for views, _ in loader:
                seen.add(address(views[0]) & ~4095)
                del views
            sizes.append(handover_bytes(node.pid))
        assert sizes[-1] <= 8 * (16 << 10)
        assert len(seen) <= 8
        assert loader.stats()["node"]["handover-bytes"] <= sizes[-1]


def test_dead_mappings_do_not_pile_up(small: PackedFiles, node: Served) -> None:
    with Loader(small.path, 10, node=node.name, **LITTLE) as loader:
        before = len(shared_stretches())
        for epoch in range(0, 140, 2):
            loader.set_epoch(epoch)  # reading begins anew each time, in a memory file of its own
            next(iter(loader))
        assert len(shared_stretches()) <= before + 64


def test_where_all_stays_in_memory_all_views_may_be_kept(
    small: PackedFiles, runtime_dir: Path
) -> None:
    expected = sorted(small.data(key) for key in small.keys)
    with Loader(small.path, 10, policy="unbounded", **LITTLE) as loader:
        kept = [[view for views, _ in loader for view in views] for _ in range(3)]
        first = kept[0][0]
        assert len(mapped_files()) == 1
        loader.set_epoch(0)  # what is behind is read anew, into other memory
        kept.append([view for views, _ in loader for view in views])
        for views in kept:
            assert sorted(map(bytes, views)) == expected
        assert list(map(bytes, kept[3])) == list(map(bytes, kept[0]))
        assert len(mapped_files()) == 2
        del kept, views
        gc.collect()
        assert len(mapped_files()) == 2  # `first` holds its own
        content = bytes(first)
        kill(the_node(runtime_dir))
        assert sum(len(views) for views, _ in loader) == 103
        assert bytes(first) == content
        del first
        gc.collect()
        assert len(mapped_files()) == 1


def mapped_files() -> set[str]:
    """The nodes' memory files of which this process has something mapped, by their numbers."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return {line.split()[4] for line in lines if "memfd:gristway-handover" in line}


def populated_bytes() -> int:
    """How much of nodes' memory this process has in its page tables."""
    total = 0
    is_ours = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match("[0-9a-f]+-[0-9a-f]+ ", line):
            is_ours = "memfd:gristway-handover" in line
        elif is_ours and line.startswith("Rss:"):
            total += int(line.split()[1]) << 10
    return total


def test_only_what_a_batch_shows_is_populated(dataset: Datasets, node: Served) -> None:
    packed = dataset(samples=400, size=50_000)
    with Loader(packed.path, 4, policy="unbounded", node=node.name) as loader:
        views, _ = next(iter(loader))
        assert sum(map(len, map(bytes, views))) == 200_000
        # The kernel maps the pages around one that is touched.
        assert 200_000 < populated_bytes() < 2_000_000


# Forks


def in_child(work: Callable[[], Any]) -> Callable[[], Any]:
    """Forks a child now, which does something when the function is called; returns what it says."""
    mine, theirs = multiprocessing.Pipe()

    def run() -> None:
        theirs.recv()
        theirs.send(work())

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()

    def result() -> Any:
        mine.send("go")
        said = mine.recv()
        process.join()
        return said

    return result


def contents(views: list[memoryview]) -> list[bytes]:
    return [bytes(view) for view in views]


def in_grandchild(views: list[memoryview]) -> Any:
    return in_child(partial(contents, views))()


@pytest.mark.parametrize("policy", ["redirect", "unbounded"])
def test_views_keep_their_content_in_a_forked_child(
    small: PackedFiles, node: Served, policy: str
) -> None:
    with Loader(small.path, 10, node=node.name, policy=policy, **LITTLE) as loader:
        iterator = iter(loader)
        next(iterator)
        views, labels = next(iterator)
        expected = [bytes(view) for view in views]
        children = [in_child(partial(contents, views)) for _ in range(2)]
        del views, labels
        for _ in range(3):  # all areas are built in again
            for _ in iterator:
                pass
            iterator = iter(loader)
        assert [child() for child in children] == [expected] * 2


def test_forks_while_batches_are_held_cost_the_node_nothing(
    dataset: Datasets, node: Served
) -> None:
    packed = dataset(samples=100, size=1000)
    with Loader(packed.path, 5, node=node.name, **LITTLE) as loader:
        for views, _ in itertools.chain(loader, loader):
            del views
        before = handover_bytes(node.pid)
        children = []
        for step, (views, _) in enumerate(itertools.chain(loader, loader)):
            if step % 2 == 0:
                children.append(in_child(partial(len, views)))
            del views
        assert [child() for child in children] == [5] * 20
        assert handover_bytes(node.pid) <= 1.5 * before  # 20 areas more would be four times


def test_a_child_of_a_child_has_the_views_too(small: PackedFiles, node: Served) -> None:
    with Loader(small.path, 10, node=node.name, **LITTLE) as loader:
        iterator = iter(loader)
        views, _ = next(iterator)
        expected = [bytes(view) for view in views]
        child = in_child(partial(in_grandchild, views))
        del views
        for _ in iterator:
            pass
        assert child() == expected


# Closing


@pytest.mark.parametrize("policy", ["redirect", "unbounded"])
@pytest.mark.parametrize("workers", [0, 2])
def test_close_gives_memory_and_descriptors_back_at_once(
    small: PackedFiles, runtime_dir: Path, policy: str, workers: int
) -> None:
    options: dict[str, Any] = {"policy": policy, "num_workers": workers, **LITTLE}
    options["transform"] = transforms.key if workers else None
    loaders = []

    def use_and_close() -> int:
        loaders.append(Loader(small.path, 10, **options))
        for batch in loaders[-1]:
            del batch
        loaders[-1].close()
        return len(os.listdir("/proc/self/fd"))

    before = use_and_close()  # Python keeps some of its own from the first time on
    gc.collect()
    gc.disable()  # nothing of it is to wait for the collector
    try:
        assert use_and_close() <= before
        assert shared_stretches() == []
    finally:
        gc.enable()
    assert [len(loader) for loader in loaders] == [11, 11]  # they exist


def test_after_close_views_keep_their_own_memory_only(
    small: PackedFiles, runtime_dir: Path
) -> None:
    loader = Loader(small.path, 10, **LITTLE)
    kept = [views[0] for views, _ in itertools.islice(loader, 3)]
    content = [bytes(view) for view in kept]
    loader.close()
    assert len(shared_stretches()) == 3
    assert [bytes(view) for view in kept] == content
    del kept[1:]
    assert len(shared_stretches()) == 1
    kept.clear()
    assert shared_stretches() == []


@pytest.mark.parametrize("workers", ["processes", "threads"])
def test_workers_see_what_stays_in_memory(
    in_parts: tuple[Path, dict[str, dict[str, bytes]]], node: Served, workers: str
) -> None:
    path, content = in_parts
    with Loader(
        path,
        7,
        policy="unbounded",
        transform=transforms.everything,
        collate_fn=transforms.as_list,
        num_workers=2,
        workers=workers,
        node=node.name,
    ) as loader:
        for _ in range(2):
            samples = {sample["key"]: sample for batch in loader for sample in batch}
            assert {key: sample["parts"] for key, sample in samples.items()} == content


def test_samples_can_be_used_after_their_batch(small: PackedFiles, node: Served) -> None:
    def itself(sample: Sample) -> Sample:
        return sample

    with Loader(
        small.path, 10, transform=itself, collate_fn=transforms.as_list, node=node.name, **LITTLE
    ) as loader:
        iterator = iter(loader)
        sample = next(iterator)[0]
        content = bytes(sample.data)
        for _ in iterator:
            pass
        assert bytes(sample.data) == content
        assert small.data(sample.key) == content


def test_views_are_copied_by_pickling_nothing_else(small: PackedFiles, node: Served) -> None:
    """A view cannot leave its process by mistake."""
    with Loader(small.path, 10, node=node.name, **LITTLE) as loader:
        views, _ = next(iter(loader))
        with pytest.raises(TypeError):
            pickle.dumps(views[0])
        with pytest.raises(TypeError):
            copy.deepcopy(views[0])


def test_version_and_exports() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", gristway.__version__)
    for name in gristway.__all__:
        assert hasattr(gristway, name)
    for error in ("DamagedDataError", "LostNodeError", "MachineError", "WrongCallError"):
        assert issubclass(getattr(gristway, error), gristway.Error)
    kinds = {gristway.DamagedDataError.kind, gristway.LostNodeError.kind}
    assert kinds | {gristway.MachineError.kind, gristway.WrongCallError.kind} == {
        "damaged",
        "lost-node",
        "environment",
        "wrong-call",
    }
