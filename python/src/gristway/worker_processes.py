"""Transforms the samples of a batch in processes, which may die."""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import logging
import multiprocessing
import multiprocessing.connection
import multiprocessing.context
import multiprocessing.resource_tracker
import os
import pickle
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

from gristway import shipment
from gristway.arguments import context_of
from gristway.batch import Batch, Mappings
from gristway.collate import Collate, join, stack
from gristway.errors import Error
from gristway.source import Source
from gristway.workers import Transform, key_of, note, stretches

_log = logging.getLogger("gristway")

# A transform that kills its process this often will do it again.
_DEATHS = 3
_QUICK_SECONDS = 60.0


class InProcesses:
    """Transforms in processes, each of which maps the node's memory itself.

    A worker that dies is replaced and its work done again, with a warning; one that dies again and
    again is an error. Workers end with the trainer, however that ends.
    """

    def __init__(
        self,
        transform: Transform,
        collate_fn: Collate | None,
        workers: int,
        context: str | multiprocessing.context.BaseContext | None,
        source: Source,
        seed: str,
    ) -> None:
        self._transform = transform
        self._collate = collate_fn
        self._context = context_of(context)
        self._source = source
        self._seed = seed
        self._started = 0
        self._lock = threading.Lock()
        self._deaths: list[float] = []
        self._owner = os.getpid()
        self._closed = False
        # Batches that a transform keeps views of in its process: their memory is not reused.
        self.kept: list[Batch] = []
        self._workers: list[_Worker] = []
        try:
            for number in range(workers):
                self._workers.append(_Worker(self, number))
        except BaseException:
            self.close()
            raise

    def submit(self, batch: Batch) -> Callable[[], Any]:
        cuts = stretches(len(batch), len(self._workers))
        # The batch is kept until all of it is transformed: until then its memory is not reused.
        futures = [
            worker.submit(batch, start, end) for worker, (start, end) in zip(self._workers, cuts)
        ]

        def result() -> Any:
            parts = [future.result() for future in futures]
            if self._collate is None:
                return join(parts)
            return self._collate([sample for part in parts for sample in part])

        return result

    def next_seed(self) -> str:
        """What the random numbers of the next worker process depend on."""
        self._started += 1
        return f"{self._seed}-{self._started}"

    def replaced(self, worker: _Worker, exit_code: int | None) -> bool:
        """True if a worker that has died may be replaced."""
        now = time.monotonic()
        with self._lock:
            self._deaths = [then for then in self._deaths if now - then < _QUICK_SECONDS] + [now]
            again = len(self._deaths) < _DEATHS and not self._closed
        if again:
            _log.warning("%s; it is replaced and its work done again", died(worker.pid, exit_code))
        return again

    def close(self) -> None:
        if self._owner != os.getpid():
            return  # a forked copy: the workers are the parent's
        self._closed = True
        for worker in self._workers:
            worker.end()
        for worker in self._workers:
            worker.join()
        shipment.forget_gone()


def died(pid: int | None, exit_code: int | None) -> str:
    """What is known about a worker's end."""
    how = f"with exit code {exit_code}"
    if exit_code is not None and exit_code < 0:
        try:
            how = f"by {signal.Signals(-exit_code).name}"
        except ValueError:
            how = f"by signal {-exit_code}"
        if exit_code == -signal.SIGKILL:
            how += " (out of memory?)"
    return f"worker process {pid} has died {how}"


class _Worker:
    """One process, and the thread of the trainer that talks to it."""

    def __init__(self, pool: InProcesses, number: int) -> None:
        self._pool = pool
        self._number = number
        self._condition = threading.Condition()
        self._tasks: list[tuple[Batch, int, int, Future[Any]]] = []
        self._ended = False
        self._lost: BaseException | None = None
        self._start()
        self._thread = threading.Thread(
            target=self._run, name=f"gristway-worker-{number}", daemon=True
        )
        self._thread.start()

    @property
    def pid(self) -> int | None:
        pid: int | None = self._process.pid
        return pid

    def _start(self) -> None:
        pool = self._pool
        pipe, theirs = pool._context.Pipe()
        process = pool._context.Process(  # type: ignore[attr-defined]
            target=_work,
            args=(
                theirs,
                os.getpid(),
                pool._transform,
                pool._collate is None,
                pool._source,
                pool.next_seed(),
            ),
            name=f"gristway-worker-{self._number}",
            daemon=True,
        )
        try:
            with _interrupts_held(pool._context):
                process.start()
        except BaseException:
            pipe.close()
            raise
        finally:
            theirs.close()
        self._pipe, self._process = pipe, process

    def submit(self, batch: Batch, start: int, end: int) -> Future[Any]:
        future: Future[Any] = Future()
        with self._condition:
            if self._ended:
                future.cancel()
            else:
                self._tasks.append((batch, start, end, future))
                self._condition.notify()
        return future

    def end(self) -> None:
        with self._condition:
            self._ended = True
            self._condition.notify()
            self._process.kill()

    def join(self) -> None:
        self._thread.join()
        self._process.join()
        self._process.close()
        self._pipe.close()
        del self._pool  # which has this, and what goes with both is not to wait for the collector

    def _run(self) -> None:
        while True:
            with self._condition:
                while not self._tasks and not self._ended:
                    self._condition.wait()
                if self._ended:
                    tasks, self._tasks = self._tasks, []
                    for _, _, _, future in tasks:
                        future.cancel()
                    return
                batch, start, end, future = self._tasks.pop(0)
            try:
                self._do(batch, start, end, future)
            except BaseException as wrong:
                if not future.done():
                    future.set_exception(wrong)  # the trainer waits for it; this thread goes on
            del batch, future

    def _do(self, batch: Batch, start: int, end: int, future: Future[Any]) -> None:
        if self._lost is not None:
            raise self._lost
        while True:
            try:
                self._pipe.send((batch.area, batch.first + start, end - start))
                body, ticket, is_kept = pickle.loads(self._answer())
                buffers = _fetched(ticket)
                break
            except (EOFError, OSError):
                self._process.kill()  # it may only have closed the pipe
                self._process.join()
                with self._condition:
                    if self._ended:
                        future.cancel()
                        return
                    self._replace()
        done, outcome = pickle.loads(body, buffers=buffers)
        if is_kept:
            self._pool.kept.append(batch)
        if done:
            future.set_result(outcome)
        else:
            future.set_exception(_rebuilt(*outcome))

    def _replace(self) -> None:
        """Starts another process in place of one that has died. Where that fails it stays so: one
        death is counted once, however many tasks are waiting."""
        try:
            if not self._pool.replaced(self, self._process.exitcode):
                raise Error(f"{died(self.pid, self._process.exitcode)}, and others before it")
            self._pipe.close()
            self._start()
        except BaseException as wrong:
            self._lost = wrong
            raise

    def _answer(self) -> bytes:
        # A process that was forked at the same moment may hold the other end open.
        while not self._pipe.poll(1.0):
            if self._process.exitcode is not None and not self._pipe.poll(0):
                raise EOFError
        return self._pipe.recv_bytes()


def _packed(done: bool, outcome: Any) -> tuple[bytes, shipment.Ticket | None]:
    """What a worker says: what is large in it goes through shared memory."""
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps((done, outcome), protocol=5, buffer_callback=buffers.append)
    ticket = shipment.send([buffer.raw() for buffer in buffers]) if buffers else None
    return body, ticket


def _fetched(ticket: shipment.Ticket | None) -> list[Any]:
    try:
        return [] if ticket is None else shipment.fetch(ticket, bytearray)
    except (FileNotFoundError, ProcessLookupError):
        raise EOFError("the worker has died since it has answered") from None


def _rebuilt(pickled: bytes | None, text: str, key: str | None) -> BaseException:
    """An exception of a transform as it was in its worker, with the trace from there."""
    wrong: BaseException | None = None
    if pickled is not None:
        try:
            wrong = pickle.loads(pickled)
        except Exception:
            pass  # some exceptions cannot be made from what they were pickled as
    if not isinstance(wrong, BaseException):
        wrong = RuntimeError(text.strip().splitlines()[-1])
    if key is not None:
        note(wrong, key)
    if hasattr(wrong, "add_note"):
        wrong.add_note(f"gristway: in a worker process:\n{text}")
    return wrong


@contextlib.contextmanager
def _interrupts_held(context: multiprocessing.context.BaseContext) -> Iterator[None]:
    """Holds Ctrl-C back in this thread: a process started here inherits that, so that it cannot be
    interrupted, with a traceback of its own, before it has come to ignore interrupts.

    A fork server keeps the mask it was started with for all it will ever fork, for others too, and
    so is not started under this one.
    """
    if context.get_start_method() == "forkserver":
        yield
        return
    # It is started beside the first spawned process, and its start lifts the mask.
    if context.get_start_method() == "spawn":
        multiprocessing.resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(
    pipe: multiprocessing.connection.Connection,
    trainer: int,
    transform: Transform,
    stacks: bool,
    source: Source,
    seed: str,
) -> None:
    """What a worker process does."""
    _seed_all(seed)
    # Ctrl-C reaches the whole terminal; the trainer ends its workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    mappings = Mappings()
    while True:
        while not pipe.poll(1.0):
            if os.getppid() != trainer and multiprocessing.get_start_method(True) != "forkserver":
                return
        try:
            area, first, count = pipe.recv()
        except (EOFError, OSError):
            return
        released: list[bool] = []
        release = functools.partial(released.append, True)
        opened = functools.partial(Batch, mappings, area, first, count, source.describe, release)
        body, ticket = _transformed(opened, transform, stacks)
        if not released:
            gc.collect()  # an exception that was caught may have its frame in a cycle, with a view
        try:
            pipe.send_bytes(pickle.dumps((body, ticket, not released)))
        except OSError:
            return


def _seed_all(text: str) -> None:
    """Gives this process random numbers of its own, the same in every run: forked ones would all
    have their parent's."""
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1
    random.seed(number)
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        numpy.random.seed(number % (1 << 32))
    if torch is not None:
        torch.manual_seed(number)


def _transformed(
    opened: Callable[[], Batch], transform: Transform, stacks: bool
) -> tuple[bytes, shipment.Ticket | None]:
    key = None  # of the sample whose transform has failed
    try:
        results = []
        for sample in opened().samples():
            try:
                results.append(transform(sample))
            except Exception:
                key = key_of(sample)
                raise
        return _packed(True, stack(results) if stacks else results)
    except Exception as wrong:
        text = traceback.format_exc()
        try:
            pickled = pickle.dumps(wrong)
        except Exception:
            pickled = None
        return _packed(False, (pickled, text, key))
