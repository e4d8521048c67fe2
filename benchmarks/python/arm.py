"""One loader in one fresh process: `arm.py JOB`, where JOB is a JSON object (see `Job`).

It imports what it needs, says `ready`, waits for a line (meanwhile the page cache is made cold and
the storage slow), reads epoch after epoch, and prints one JSON object: what came in the timed
window, and what that took. The consumer does the same with every loader's batches: it adds up the
length and the first byte of each sample, and the labels; if told to, it copies every sample too.

All loaders deliver samples with their labels, shuffled, in batches of the same size, and keep their
workers from epoch to epoch. What is set beyond that, and why, stands at each.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

# A peer's scripts folder is not the place of its packages, but this file's folder is on the path.
from storage import Usage, page_out, usage


@dataclass(frozen=True)
class Job:
    arm: str
    data: str
    samples: int
    batch: int
    workers: int
    memory: int  # bytes for shuffling, for loaders that have such a setting
    cold: bool
    policy: str  # ours only
    decode: bool
    warm_up: float  # seconds after the first batch …
    first_epoch: float  # … and to the end of the first epoch, but no more than this many seconds
    seconds: float  # the window is at least this long …
    batches: int  # … and has at least this many batches …
    most: float  # … but ends after this many seconds, if a batch has come
    touch: str  # what the consumer does with a sample: looks at its first byte, or copies all
    check: bool  # one epoch, to see that each sample comes once; nothing is timed
    blkio: str
    cpuacct: str
    device: str


Epochs = Callable[[], Iterator[Any]]
"""Begins an epoch: an iterator over batches of (data, labels)."""


def decode(data: Any) -> Any:
    """A picture as most training takes it in; the same for every loader."""
    import numpy
    import torch
    from PIL import Image

    picture = Image.open(io.BytesIO(data)).convert("RGB").resize((224, 224))
    return torch.from_numpy(numpy.array(picture))


def listed(samples: list[tuple[Any, int]]) -> tuple[list[Any], Any]:
    """Collates raw samples: PyTorch's own way would make a tensor of each of their bytes."""
    import torch

    return [data for data, _ in samples], torch.tensor([label for _, label in samples])


def collate(job: Job) -> Any:
    from torch.utils.data import default_collate

    return default_collate if job.decode else listed


class Files:
    """A file per sample, as torchvision's ImageFolder has it."""

    def __init__(self, tree: str, decoding: bool) -> None:
        from formats import shuffled

        self.entries = sorted(shuffled(Path(tree)))
        self.decoding = decoding

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        path, label = self.entries[index]
        with open(path, "rb", buffering=0) as file:
            data = file.read()
        return (decode(data) if self.decoding else data), label


def files(job: Job) -> Epochs:
    from torch.utils.data import DataLoader

    loader: Any = DataLoader(
        Files(job.data, job.decode),  # type: ignore[arg-type]
        batch_size=job.batch,
        shuffle=True,
        num_workers=job.workers,
        persistent_workers=True,
        collate_fn=collate(job),
    )
    return lambda: iter(loader)


def webdataset(job: Job) -> Epochs:
    import webdataset as wds

    shards = sorted(str(path) for path in Path(job.data).glob("*.tar"))
    # As its documentation has it: shards in random order, dealt to workers, then a buffer of
    # samples in each worker, and batches made in the worker. The buffers of all workers together
    # hold as many bytes as ours may; bounded by the samples that a worker has.
    sample = sum(os.path.getsize(shard) for shard in shards) / job.samples
    buffer = int(job.memory / sample / job.workers)
    dataset = wds.WebDataset(shards, shardshuffle=len(shards)).shuffle(buffer)
    dataset = dataset.to_tuple("bin", "cls")
    dataset = dataset.map_tuple(decode if job.decode else bytes, int)
    dataset = dataset.batched(job.batch, collation_fn=collate(job))
    loader = wds.WebLoader(
        dataset, batch_size=None, num_workers=job.workers, persistent_workers=True
    )
    return lambda: iter(loader)


def streaming(job: Job) -> Epochs:
    from streaming import StreamingDataset
    from streaming.base.util import clean_stale_shared_memory
    from torch.utils.data import DataLoader

    class Samples(StreamingDataset):  # type: ignore[misc]
        def __getitem__(self, at: Any) -> Any:
            sample = super().__getitem__(at)
            data = sample["data"]
            return (decode(data) if job.decode else data), sample["label"]

    # Names in shared memory that an arm that was killed has left would stop this one.
    clean_stale_shared_memory()
    # The data is local, nothing is downloaded. "Merely setting shuffle=True is performant in
    # nearly all cases", says its documentation; py1e is what it then uses, over blocks of at least
    # 262,144 samples: here all of them. It has no memory of its own but the page cache.
    dataset = Samples(
        local=job.data,
        shuffle=True,
        shuffle_algo="py1e",
        batch_size=job.batch,
        num_canonical_nodes=1,
    )
    loader: Any = DataLoader(
        dataset,
        batch_size=job.batch,
        num_workers=job.workers,
        persistent_workers=True,
        collate_fn=collate(job),
    )
    return lambda: iter(loader)


def litdata_pair(item: dict[str, Any]) -> tuple[Any, int]:
    return bytes(item["data"]), item["label"]  # a view of a mapped chunk: it cannot leave a worker


def litdata_decoded(item: dict[str, Any]) -> tuple[Any, int]:
    return decode(item["data"]), item["label"]


def litdata(job: Job) -> Epochs:
    import litdata as library
    from litdata.streaming import dataset as inner

    # It asks PyPI for a newer release of itself whenever a dataset is made.
    inner._check_version_and_prompt_upgrade = lambda version: None
    # Chunks in random order, samples shuffled inside them: its defaults for local data.
    dataset = library.StreamingDataset(
        job.data, shuffle=True, transform=litdata_decoded if job.decode else litdata_pair
    )
    loader = library.StreamingDataLoader(
        dataset,
        batch_size=job.batch,
        num_workers=job.workers,
        persistent_workers=True,
        collate_fn=collate(job),
    )
    return lambda: iter(loader)


def ffcv(job: Job) -> Epochs:
    from ffcv.fields.basics import IntDecoder
    from ffcv.fields.bytes import BytesDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import ToTensor

    # Its tuning guide: a random order over the operating system's cache where the dataset fits
    # into memory; otherwise pages read by the process itself, in the quasi-random order that
    # bounds how many it holds (two batches' worth). Workers are threads. A batch is one
    # array, in which each sample has as many bytes as the longest.
    loader = Loader(
        job.data,
        batch_size=job.batch,
        num_workers=job.workers,
        order=OrderOption.QUASI_RANDOM if job.cold else OrderOption.RANDOM,
        os_cache=not job.cold,
        drop_last=False,
        pipelines={"data": [BytesDecoder(), ToTensor()], "label": [IntDecoder(), ToTensor()]},
    )
    return lambda: iter(loader)


def pillow(sample: Any) -> tuple[Any, int]:
    return decode(sample.data), sample.label


def ours(job: Job) -> dict[str, Any]:
    """The settings that all of ours share: the memory that the others' shuffling may take."""
    return {
        "memory": f"{job.memory >> 20}MiB",
        "policy": job.policy,
        "transform": pillow if job.decode else None,
    }


def ours_stream(job: Job) -> Epochs:
    from torch.utils.data import DataLoader

    from gristway.torch import StreamDataset

    dataset = StreamDataset(job.data, batch_size=job.batch, **ours(job))
    loader: Any = DataLoader(
        dataset, batch_size=None, num_workers=job.workers, persistent_workers=True
    )
    return lambda: iter(loader)


def ours_map(job: Job) -> Epochs:
    from torch.utils.data import DataLoader, RandomSampler

    from gristway.torch import MapDataset

    dataset: Any = MapDataset(job.data, redirect=True, **ours(job))
    loader: Any = DataLoader(
        dataset,
        batch_size=job.batch,
        sampler=RandomSampler(dataset),
        num_workers=job.workers,
        persistent_workers=True,
        collate_fn=collate(job),
    )
    epoch = -1

    def begin() -> Iterator[Any]:
        nonlocal epoch
        epoch += 1
        dataset.set_epoch(epoch)
        return iter(loader)

    return begin


def ours_loader(job: Job, workers: str = "processes") -> Epochs:
    import gristway

    loader: Any = gristway.Loader(
        job.data, batch_size=job.batch, num_workers=job.workers, workers=workers, **ours(job)
    )
    return lambda: iter(loader)


ARMS: dict[str, Callable[[Job], Epochs]] = {
    "files": files,
    "webdataset": webdataset,
    "streaming": streaming,
    "litdata": litdata,
    "ffcv": ffcv,
    "ours-stream": ours_stream,
    "ours-map": ours_map,
    "ours-loader": ours_loader,
    "ours-resident": lambda job: ours_loader(replace(job, policy="unbounded")),
    "ours-threads": lambda job: ours_loader(job, "threads"),
}


class Consumer:
    """Takes what a loader gives, and touches each sample."""

    def __init__(self, copies: bool) -> None:
        self.copy = memoryview(bytearray(1 << 20)) if copies else None
        self.samples = 0
        self.bytes = 0
        self.sum = 0

    def take(self, batch: Any) -> None:
        data, labels = batch
        if isinstance(data, list):
            total = 0
            first = 0
            for sample in data:
                total += len(sample)
                first += sample[0]
                if self.copy is not None:
                    self.copy[: len(sample)] = sample
        else:  # one array, a row a sample
            rows = data.reshape(len(data), -1)
            total = rows.nbytes
            first = int(rows[:, 0].sum())
            if self.copy is not None:
                for row in rows.numpy():
                    self.copy[: row.nbytes] = row.data
        self.samples += len(data)
        self.bytes += total
        self.sum += first + int(labels.sum())


def first_bytes(data: Any, count: int) -> list[bytes]:
    return (
        [bytes(memoryview(sample)[:count]) for sample in data]
        if isinstance(data, list)
        else [bytes(row.tolist()) for row in data[:, :count]]
    )


def check(job: Job, begin: Epochs) -> dict[str, Any]:
    """Two epochs: does each sample come once in each, with its label, and in another order?"""
    from formats import label_of

    orders = []
    for _ in range(2):
        order = []
        for data, labels in begin():
            for head, label in zip(first_bytes(data, 8), labels.reshape(-1).tolist(), strict=True):
                number = int.from_bytes(head, "little")
                order.append(number)
                if label != label_of(number, job.samples):
                    raise AssertionError(f"sample {number} has label {label}")
        if sorted(order) != list(range(job.samples)):
            missing = job.samples - len(set(order))
            raise AssertionError(f"{len(order)} samples came, {missing} of all never")
        orders.append(order)
    return {"checked": job.samples, "reordered": orders[0] != orders[1]}


def measure(job: Job, begin: Epochs, created: float) -> dict[str, Any]:
    def now() -> Usage:
        return usage(job.blkio, job.cpuacct, job.device)

    consumer = Consumer(job.touch == "all")
    waits: list[float] = []
    first = 0.0  # when the first batch came
    first_epoch = 0.0  # its samples a second, if it ended before the window began
    start = 0.0  # of the window, once it has begun; moved on by what is not to be counted
    before = now()
    uncounted = Usage(0, 0, 0)
    epochs = 0
    batches: Iterator[Any] = iter(())
    while True:
        asked = time.perf_counter()
        batch = next(batches, None)
        if batch is None:
            if epochs == 1 and not start:
                first_epoch = consumer.samples / (asked - created)
            # The page cache holds what the epoch has read: dropped, or the next would be a warm
            # one. This takes no part in the window; the loader is idle between epochs. Ours
            # reads past the page cache.
            if job.cold and epochs and not job.arm.startswith("ours"):
                paused, taken = time.perf_counter(), now()
                page_out(job.data, job.cpuacct)
                Path("/proc/sys/vm/drop_caches").write_text("3")
                after = now()
                uncounted = Usage(
                    uncounted.cpu_seconds + after.cpu_seconds - taken.cpu_seconds,
                    uncounted.reads + after.reads - taken.reads,
                    uncounted.read_bytes + after.read_bytes - taken.read_bytes,
                )
                pause = time.perf_counter() - paused
                if start:
                    start += pause
                asked += pause
            batches = begin()
            epochs += 1
            batch = next(batches)
        came = time.perf_counter()
        consumer.take(batch)
        if not start:
            first = first or came
            # What is read once a job is read in the first epoch: metadata of the dataset and of
            # the file system. `read`, which ours is compared with, leaves that epoch out too.
            if came - first >= (job.warm_up if epochs > 1 else max(job.warm_up, job.first_epoch)):
                consumer = Consumer(job.touch == "all")
                waits = []
                uncounted = Usage(0, 0, 0)
                before = now()
                start = time.perf_counter()
            continue
        waits.append(came - asked)
        elapsed = time.perf_counter() - start
        enough = elapsed >= job.seconds and len(waits) >= job.batches
        if enough or elapsed >= job.most:
            break
    after = now()
    return {
        "samples": consumer.samples,
        "bytes": consumer.bytes,
        "batches": len(waits),
        "epochs": epochs,
        "seconds": elapsed,
        "first_batch": first - created,
        "first_epoch": first_epoch,
        "stall": sum(waits) / elapsed,
        "wait_p99": sorted(waits)[int(len(waits) * 0.99)],
        "cpu": after.cpu_seconds - before.cpu_seconds - uncounted.cpu_seconds,
        "reads": after.reads - before.reads - uncounted.reads,
        "read_bytes": after.read_bytes - before.read_bytes - uncounted.read_bytes,
    }


def imports(arm: str) -> None:
    """Everything that the arm will import, while the disk is still fast."""
    import numpy  # noqa: F401
    import torch.utils.data  # noqa: F401
    from PIL import Image

    Image.init()
    match arm:
        case "webdataset":
            import webdataset  # noqa: F401
        case "streaming":
            import streaming  # noqa: F401
        case "litdata":
            import litdata  # noqa: F401
        case "ffcv":
            import ffcv.loader
            import ffcv.transforms  # noqa: F401
        case "files":
            pass
        case _:
            import gristway.torch  # noqa: F401


def main() -> None:
    # Some peers print; this keeps their words away from the answer.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    job = Job(**json.loads(sys.argv[1]))
    imports(job.arm)
    print("ready", file=answer, flush=True)
    sys.stdin.readline()
    created = time.perf_counter()
    begin = ARMS[job.arm](job)
    result = check(job, begin) if job.check else measure(job, begin, created)
    print(json.dumps(result), file=answer, flush=True)


if __name__ == "__main__":
    main()
