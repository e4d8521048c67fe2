"""What goes wrong with a dataset, or with how it is named: each time one clear error, or none."""

from __future__ import annotations

import functools
import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import kills_program
import pytest
from conftest import PackedFiles
from faults import keys, opened, raised
from processes import assert_no_node, kill, the_node

import gristway

PROGRAM = Path(__file__).with_name("kills_program.py")


@pytest.fixture(scope="module")
def packed(dataset: Callable[..., PackedFiles]) -> PackedFiles:
    return dataset(samples=400, size=(500, 1500))


@pytest.fixture
def damaged(packed: PackedFiles, tmp_path: Path) -> tuple[Path, str]:
    """A copy of the dataset with a byte of one sample flipped, and that sample's key."""
    path = tmp_path / "damaged.gw"
    shutil.copytree(packed.path, path)
    damage(packed, path, packed.keys[77])
    return path, packed.keys[77]


def damage(packed: PackedFiles, path: Path, victim: str) -> Path:
    """Flips a byte of a sample; the chunk that holds it."""
    for chunk in sorted(path.glob("*.gwc")):
        data = bytearray(chunk.read_bytes())
        at = data.find(packed.data(victim))
        if at >= 0:
            data[at + 300] ^= 0x10
            chunk.write_bytes(data)
            return chunk
    raise AssertionError(victim)


def test_damage_is_told_and_flagged_and_everything_else_delivered(
    packed: PackedFiles,
    damaged: tuple[Path, str],
    runtime_dir: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path, victim = damaged
    with opened(
        path,
        transform=lambda sample: (bytes(sample.data), sample.is_damaged),
        collate_fn=kills_program.as_they_are,
    ) as loader:
        received = []
        for batch in loader:
            received += batch
            loader.state_dict()  # over another connection, which must not tell the same again
        assert loader.stats()["node"]["damaged"] == 1
    sound = [packed.key(data) for data, is_damaged in received if not is_damaged]
    assert sorted(sound) == [key for key in packed.keys if key != victim]
    (filler,) = [packed.key(data) for data, is_damaged in received if is_damaged]
    assert filler in sound
    # Once for this epoch, and once more if the next has been read that far.
    lines = [line for line in caplog.messages if victim in line]
    assert 1 <= len(lines) <= 2 and ".gwc" in lines[0]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_where_it_must_be_strict_damage_is_an_error(
    num_workers: int, damaged: tuple[Path, str], runtime_dir: Path
) -> None:
    path, victim = damaged
    with opened(
        path, strict=True, transform=kills_program.number, num_workers=num_workers
    ) as loader:
        raised(gristway.DamagedDataError, lambda: list(loader), victim, ".gwc")


@pytest.mark.torch
def test_what_is_asked_for_by_index_and_damaged_is_an_error(
    packed: PackedFiles, damaged: tuple[Path, str], runtime_dir: Path
) -> None:
    from gristway.torch import MapDataset

    path, victim = damaged
    dataset = MapDataset(path)
    seen = []
    errors = []
    for index in range(len(dataset)):
        try:
            seen.append(packed.key(dataset[index][0]))
        except gristway.DamagedDataError as error:
            errors.append(str(error))
    assert sorted(seen) == [key for key in packed.keys if key != victim]
    assert len(errors) == 1 and victim in errors[0]


def test_a_damaged_snapshot_is_an_error(
    packed: PackedFiles, tmp_path: Path, runtime_dir: Path
) -> None:
    path = tmp_path / "damaged.gw"
    shutil.copytree(packed.path, path)
    (snapshot,) = path.glob("*.gws")
    data = bytearray(snapshot.read_bytes())
    data[20] ^= 1
    snapshot.write_bytes(data)
    raised(gristway.DamagedDataError, lambda: opened(path), snapshot.name)
    snapshot.write_bytes(data[: len(data) // 2])
    raised(gristway.DamagedDataError, lambda: opened(path), snapshot.name)
    assert_no_node(runtime_dir)


def test_more_damage_than_the_limit_ends_the_run_and_names_verify(
    packed: PackedFiles, damaged: tuple[Path, str], runtime_dir: Path
) -> None:
    path, _ = damaged
    for victim in packed.keys[100:103]:
        damage(packed, path, victim)
    # A thousandth of 400 samples is less than one, and one may be damaged; a hundredth is four.
    with opened(path) as loader:
        raised(
            gristway.DamagedDataError,
            lambda: keys(packed, loader),
            "2 damaged samples",
            f"gristway verify {path}",
        )
    with opened(path, max_damage=0.01) as loader:
        assert len(keys(packed, loader)) == len(packed.keys)
        assert loader.stats()["node"]["damaged"] == 4


def test_many_missing_chunks_are_one_line_when_it_is_opened(
    packed: PackedFiles, tmp_path: Path, runtime_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "incomplete.gw"
    shutil.copytree(packed.path, path)
    chunks = sorted(path.glob("*.gwc"))
    assert len(chunks) > 4
    for chunk in chunks[:2]:
        chunk.unlink()
    words = f"2 of {len(chunks)} chunks are missing: {chunks[0].name}, {chunks[1].name}, "
    raised(gristway.DamagedDataError, lambda: opened(path), words, "bring them back from a copy")
    # All but one, as while a copy is under way.
    for chunk in chunks[3:]:
        chunk.unlink()
    words = f"{len(chunks) - 1} of {len(chunks)} chunks are missing: {chunks[0].name}, "
    raised(gristway.DamagedDataError, lambda: opened(path), words)
    assert not caplog.messages
    assert_no_node(runtime_dir)


@pytest.mark.torch
def test_a_missing_chunk_is_an_error(
    packed: PackedFiles, tmp_path: Path, runtime_dir: Path
) -> None:
    from gristway.torch import MapDataset, StreamDataset

    path = tmp_path / "incomplete.gw"
    shutil.copytree(packed.path, path)
    chunk = path / "chunk-000003.gwc"
    chunk.write_bytes(chunk.read_bytes()[:-1])
    words = "chunks is cut off, or not of this dataset: chunk-000003.gwc, "
    raised(gristway.DamagedDataError, lambda: opened(path), words)
    chunk.unlink()
    words = "chunks is missing: chunk-000003.gwc, "
    raised(gristway.DamagedDataError, lambda: opened(path), words)
    raised(gristway.DamagedDataError, lambda: StreamDataset(path, 8), words)
    raised(gristway.DamagedDataError, lambda: MapDataset(path, redirect=True), words)
    raised(gristway.DamagedDataError, lambda: MapDataset(path)[0], words)
    gc.collect()  # the error's traceback holds it


def test_what_is_no_dataset_is_a_wrong_call(
    packed: PackedFiles, tmp_path: Path, runtime_dir: Path
) -> None:
    absent = tmp_path / "absent.gw"
    raised(gristway.WrongCallError, lambda: opened(absent), str(absent))
    raised(gristway.WrongCallError, lambda: opened(tmp_path), str(tmp_path), "gristway pack")
    raised(gristway.WrongCallError, lambda: opened(__file__), __file__)
    assert_no_node(runtime_dir)


def test_a_dataset_that_is_gone_when_the_node_is_started_again_is_told(
    packed: PackedFiles, tmp_path: Path, runtime_dir: Path
) -> None:
    path = tmp_path / "moved.gw"
    shutil.copytree(packed.path, path)
    with opened(path) as loader:
        batches = iter(loader)
        next(batches)
        path.rename(tmp_path / "elsewhere.gw")
        kill(the_node(runtime_dir))
        # One more batch may have been on its way.
        raised(gristway.WrongCallError, lambda: list(batches), str(path))


@pytest.mark.parametrize("name", ["with spaces.gw", "Größe – 日本.gw", "100% 'odd' \"$x\";.gw"])
def test_any_path_will_do(
    name: str, packed: PackedFiles, tmp_path: Path, runtime_dir: Path
) -> None:
    path = tmp_path / name
    shutil.copytree(packed.path, path)
    link = tmp_path / f"link to {name}"
    link.symlink_to(path)
    for odd in (path, link):
        with opened(odd) as loader:
            assert sorted(keys(packed, loader)) == list(packed.keys)


def test_any_path_will_do_in_any_locale(packed: PackedFiles, tmp_path: Path) -> None:
    folder = Path(f"/tmp/gw-ö ü-{os.getpid()}")
    moved = tmp_path / "Größe.gw"
    shutil.copytree(packed.path, moved)
    done = subprocess.run(
        [sys.executable, PROGRAM, moved, "batch_size=8"],
        env={**os.environ, "LC_ALL": "C", "GRISTWAY_RUNTIME_DIR": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.stdout.endswith("over\n"), done.stderr
    assert_no_node(folder)
    folder.rmdir()


def test_a_path_that_no_node_can_be_told_is_a_wrong_call(tmp_path: Path) -> None:
    for odd in ("two\nlines", "two\rlines", os.fsdecode(b"\xff\xfe"), "null\0"):
        raised(gristway.WrongCallError, functools.partial(opened, tmp_path / odd))


def test_a_number_that_no_node_can_count_to_is_a_wrong_call(
    packed: PackedFiles, runtime_dir: Path
) -> None:
    for wrong in ({"batch_size": 2**32}, {"seed": 2**63}, {"extent": 2**62}):
        raised(gristway.WrongCallError, functools.partial(gristway.Loader, packed.path, **wrong))
