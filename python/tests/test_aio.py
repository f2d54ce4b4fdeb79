"""The same calls for asyncio."""

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable

import numpy
import pytest

import chorus
import chorus.aio
from chorus.messages import Event
from services import Fleet


def in_loop(fleet: Fleet, story: Callable[[chorus.aio.Client], Awaitable[None]]) -> None:
    async def main() -> None:
        async with chorus.aio.Client(fleet.coordinator.url) as client:
            await story(client)

    asyncio.run(main())


@pytest.mark.parametrize("name", ["Client", "RemoteWorker", "Parameter"])
def test_every_call_has_its_awaited_form(name: str) -> None:
    blocking, awaited = getattr(chorus, name), getattr(chorus.aio, name)
    for call, function in inspect.getmembers(blocking, inspect.isfunction):
        if not call.startswith("_"):
            assert hasattr(awaited, call), f"chorus.aio.{name} lacks {call}"
            assert getattr(awaited, call).__doc__


def test_members_call_together(fleet: Fleet) -> None:
    async def story(client: chorus.aio.Client) -> None:
        workers = [await client.worker(name) for name in ("a", "b")]
        await asyncio.gather(*(worker.put("aio", numpy.ones(4, "f4")) for worker in workers))
        reports = await asyncio.gather(*(worker.call("all_reduce", "all", "aio") for worker in workers))
        assert [report.rank for report in reports] == [0, 1]
        assert [(await worker.get("aio")).tolist() for worker in workers] == [[2] * 4] * 2
        record = await client.run("all_reduce", "all", "aio")
        assert (await client.record(record.id)).state == "succeeded"
        assert (await client.plan(ranks=2, op="all_reduce", bytes=8)).verified

    in_loop(fleet, story)


def test_parameters(fleet: Fleet) -> None:
    async def story(client: chorus.aio.Client) -> None:
        w = await client.create_parameter("aio", "all", [2])
        reader = await client.parameter("aio")
        waiting = asyncio.ensure_future(reader.pull(min_version=3))
        await asyncio.gather(*(w.push(numpy.ones(2, "f4")) for _ in range(3)))
        assert (await waiting).tolist() == [3, 3] and w.sequence == 3
        await client.delete_parameter("aio")
        with pytest.raises(chorus.UnknownParameter):
            await client.parameter("aio")

    in_loop(fleet, story)


def test_many_calls_wait_at_once(fleet: Fleet) -> None:
    async def story(client: chorus.aio.Client) -> None:
        await client.create_parameter("many", "all", [1])
        readers = [await client.parameter("many") for _ in range(40)]
        waits = [asyncio.ensure_future(reader.pull(min_version=1)) for reader in readers]
        await asyncio.sleep(0.1)
        await (await client.parameter("many")).push(numpy.ones(1, "f4"))
        assert [value.tolist() for value in await asyncio.gather(*waits)] == [[1]] * 40
        await client.delete_parameter("many")

    in_loop(fleet, story)


def test_events(fleet: Fleet) -> None:
    async def story(client: chorus.aio.Client) -> None:
        async with client.events(0) as stream:
            assert (await stream.__anext__()).type == "coordinator.started"
            seen: list[Event] = []
            async for event in stream:
                seen.append(event)
                if sum(one.type == "worker.joined" for one in seen) == 2:
                    break
        latest = client.events()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(latest.__anext__(), 0.2)  # the wait is over, and the stream goes on
        await client.create_group("aio-events", ["a"])
        assert (await asyncio.wait_for(latest.__anext__(), 10)).group == "aio-events"
        await latest.aclose()
        await client.delete_group("aio-events")

    in_loop(fleet, story)


def test_a_cancelled_call_ends_at_once_and_leaves_the_array_alone(fleet: Fleet) -> None:
    async def story(client: chorus.aio.Client) -> None:
        w = await client.create_parameter("cancelled", "all", [2])
        out = numpy.full(2, 7, "f4")
        begun = time.monotonic()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(w.pull(out, min_version=1), 0.2)
        assert time.monotonic() - begun < 20
        await w.push(numpy.ones(2, "f4"))
        assert out.tolist() == [7, 7]
        await client.delete_parameter("cancelled")

    in_loop(fleet, story)


def test_a_loop_ends_with_work_in_flight(fleet: Fleet) -> None:
    async def main() -> None:
        client = chorus.aio.Client(fleet.coordinator.url)
        for stream in (client.events(), client.events()):
            asyncio.ensure_future(stream.__anext__())
        await asyncio.sleep(0.2)

    before = threading.active_count()
    begun = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - begun < 20
    assert threading.active_count() <= before + 2  # idle threads of the pool


def test_a_closed_client_says_so(fleet: Fleet) -> None:
    async def story(client: chorus.aio.Client) -> None:
        worker, stream = await client.worker("a"), client.events()
        client.close()
        for call in (client.workers(), worker.tensors(), stream.__anext__()):
            with pytest.raises(ValueError, match="the client is closed"):
                await call

    in_loop(fleet, story)


def test_problems_are_raised_where_they_are_awaited(fleet: Fleet) -> None:
    async def story(client: chorus.aio.Client) -> None:
        results = await asyncio.gather(
            client.group("nobody"), client.worker("nobody"), client.run("barrier", "nobody"), return_exceptions=True
        )
        assert [type(one) for one in results] == [chorus.UnknownGroup, chorus.UnknownWorker, chorus.UnknownGroup]

    in_loop(fleet, story)
