"""The calls of the package for asyncio.

Every call runs in a thread of the client's own pool. The standard library has no HTTP for asyncio; a second
implementation of connections, repetitions and TLS would have to be as right as the first; and a thread that waits for a
socket holds no lock, and reads into the array's memory as well as a coroutine would. A call that is cancelled has its
connection closed, and ends before the cancellation goes on, so that nothing is written into an array afterwards.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, TypeVar

from . import client as blocking, deadline as deadlines, events, parameter, workers
from .messages import Event, ParameterInfo, PlanAnswer, SimulationAnswer

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")
R = TypeVar("R")


class _Threads:
    """Runs functions that block, and interrupts them."""

    def __init__(self, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, "chorus")
        self._is_closed = False

    async def run(self, function: Callable[[], R], interrupt: deadlines.Interrupt | None = None) -> R:
        if self._is_closed:
            raise ValueError("the client is closed")
        interrupt = interrupt or deadlines.Interrupt()
        context = contextvars.copy_context()
        context.run(deadlines.enter, interrupt)
        job: Future[R] = self._pool.submit(lambda: context.run(function))
        running: asyncio.Future[R] = asyncio.wrap_future(job)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if not job.cancel():
                interrupt.set()  # shuts the socket down: the thread ends soon
                await asyncio.wait([running])
                running.exception()
            raise

    def close(self) -> None:
        self._is_closed = True
        self._pool.shutdown(wait=False)


class _Waiting:
    """An object whose blocking calls are awaited."""

    _blocking: Any

    def __init__(self, wrapped: Any, threads: _Threads) -> None:
        self._blocking, self._threads = wrapped, threads

    def __repr__(self) -> str:
        return f"aio.{self._blocking!r}"


def _awaited(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[Any, P], Awaitable[R]]:
    async def call(self: _Waiting, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._threads.run(lambda: method(self._blocking, *args, **kwargs))

    call.__name__, call.__qualname__, call.__doc__ = method.__name__, method.__qualname__, method.__doc__
    return call


class RemoteWorker(_Waiting):
    """As `chorus.RemoteWorker`, awaited."""

    _blocking: workers.RemoteWorker

    @property
    def id(self) -> str:
        return self._blocking.id

    @property
    def url(self) -> str:
        return self._blocking.url

    put = _awaited(workers.RemoteWorker.put)
    get = _awaited(workers.RemoteWorker.get)
    delete = _awaited(workers.RemoteWorker.delete)
    tensors = _awaited(workers.RemoteWorker.tensors)
    call = _awaited(workers.RemoteWorker.call)
    group = _awaited(workers.RemoteWorker.group)
    progress = _awaited(workers.RemoteWorker.progress)
    flight = _awaited(workers.RemoteWorker.flight)


class Parameter(_Waiting):
    """As `chorus.Parameter`, awaited."""

    _blocking: parameter.Parameter

    @property
    def info(self) -> ParameterInfo:
        return self._blocking.info

    @property
    def version(self) -> int:
        return self._blocking.version

    @property
    def sequence(self) -> int:
        return self._blocking.sequence

    @property
    def in_doubt(self) -> bool:
        return self._blocking.in_doubt

    refresh = _awaited(parameter.Parameter.refresh)
    pull = _awaited(parameter.Parameter.pull)
    pull_rows = _awaited(parameter.Parameter.pull_rows)
    push = _awaited(parameter.Parameter.push)
    set = _awaited(parameter.Parameter.set)
    push_pull = _awaited(parameter.Parameter.push_pull)
    push_rows = _awaited(parameter.Parameter.push_rows)


class EventStream(AsyncIterator[Event]):
    """As `chorus.EventStream`, for ``async for``. A wait that is cancelled loses no event: the next one goes on."""

    def __init__(self, stream: events.EventStream, threads: _Threads) -> None:
        self._stream, self._threads = stream, threads
        self._next: asyncio.Task[Event | None] | None = None

    @property
    def position(self) -> str | None:
        return self._stream.position

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event:
        if self._next is None:
            self._next = asyncio.ensure_future(
                self._threads.run(lambda: next(self._stream, None), self._stream.interrupt)
            )
        event = await asyncio.shield(self._next)
        self._next = None
        if event is None:
            raise StopAsyncIteration
        return event

    async def __aenter__(self) -> EventStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends the stream."""
        self._stream.close()
        if self._next is not None:
            await asyncio.wait([self._next])


class Client(_Waiting):
    """As `chorus.Client`, awaited: the same calls, the same exceptions.

    Parameters
    ----------
    threads : int
        How many calls wait at the same time; others begin when one has ended.
    *args, **kwargs
        Those of `chorus.Client`.
    """

    _blocking: blocking.Client

    def __init__(self, *args: Any, threads: int = 64, **kwargs: Any) -> None:
        super().__init__(blocking.Client(*args, **kwargs), _Threads(threads))

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        return self._blocking.url

    def close(self) -> None:
        """Closes connections, and ends threads that wait for the next call."""
        self._blocking.close()
        self._threads.close()

    version = _awaited(blocking.Client.version)
    status = _awaited(blocking.Client.status)
    workers = _awaited(blocking.Client.workers)
    wait_for_workers = _awaited(blocking.Client.wait_for_workers)
    groups = _awaited(blocking.Client.groups)
    group = _awaited(blocking.Client.group)
    create_group = _awaited(blocking.Client.create_group)
    delete_group = _awaited(blocking.Client.delete_group)
    wait_for_group = _awaited(blocking.Client.wait_for_group)
    run = _awaited(blocking.Client.run)
    wait = _awaited(blocking.Client.wait)
    record = _awaited(blocking.Client.record)
    records = _awaited(blocking.Client.records)
    cancel = _awaited(blocking.Client.cancel)
    trace = _awaited(blocking.Client.trace)
    progress = _awaited(blocking.Client.progress)
    parameters = _awaited(blocking.Client.parameters)
    delete_parameter = _awaited(blocking.Client.delete_parameter)
    give_up_parameter = _awaited(blocking.Client.give_up_parameter)
    checkpoint = _awaited(blocking.Client.checkpoint)
    _worker = _awaited(blocking.Client.worker)
    _parameter = _awaited(blocking.Client.parameter)
    _create_parameter = _awaited(blocking.Client.create_parameter)

    async def plan(self, *, timeout: float | None = None, **fields: Any) -> PlanAnswer:
        """As `chorus.Client.plan`."""
        return await self._threads.run(lambda: self._blocking.plan(timeout=timeout, **fields))

    async def simulate(self, *, timeout: float | None = None, **fields: Any) -> SimulationAnswer:
        """As `chorus.Client.simulate`."""
        return await self._threads.run(lambda: self._blocking.simulate(timeout=timeout, **fields))

    async def worker(self, *args: Any, **kwargs: Any) -> RemoteWorker:
        """As `chorus.Client.worker`."""
        return RemoteWorker(await self._worker(*args, **kwargs), self._threads)

    async def parameter(self, *args: Any, **kwargs: Any) -> Parameter:
        """As `chorus.Client.parameter`."""
        return Parameter(await self._parameter(*args, **kwargs), self._threads)

    async def create_parameter(self, *args: Any, **kwargs: Any) -> Parameter:
        """As `chorus.Client.create_parameter`."""
        return Parameter(await self._create_parameter(*args, **kwargs), self._threads)

    def events(
        self, since: str | int | None = None, *, types: Collection[str] | None = None, timeout: float | None = None
    ) -> EventStream:
        """As `chorus.Client.events`, for ``async for``."""
        return EventStream(self._blocking.events(since, types=types, timeout=timeout), self._threads)
