"""Events, followed by an iterator."""

import pathlib
import threading

import numpy
import pytest

import chorus
from chorus import Client, RemoteWorker
from services import Fleet
from stand_ins import HeldPort, StandIn, message, proxy_error


def test_what_happened_and_what_happens(client: Client, a: RemoteWorker, b: RemoteWorker) -> None:
    for worker in (a, b):
        worker.put("event", numpy.zeros(4, "i1"))
    with client.events(0, types={"worker.joined", "collective.succeeded"}, timeout=20) as stream:
        assert {next(stream).worker, next(stream).worker} == {"a", "b"}
        record = client.run("all_reduce", "all", "event")
        for event in stream:
            if event.collective == record.id:
                break
    assert (event.type, event.group) == ("collective.succeeded", "all")


def test_a_stream_goes_on_from_a_position(client: Client) -> None:
    stream = client.events(0, timeout=20)
    first = [next(stream) for _ in range(2)]
    rest = client.events(stream.position, timeout=20)
    assert next(rest).sequence == first[-1].sequence + 1


def test_a_stream_without_a_position_begins_with_what_comes_next(client: Client) -> None:
    seen = list(client.events(timeout=0.3))
    assert seen == []


def test_types_are_a_collection(client: Client) -> None:
    with pytest.raises(TypeError, match="types is 'worker.joined', expected a collection"):
        client.events(0, types="worker.joined")


def test_another_thread_may_end_a_stream(client: Client) -> None:
    stream = client.events()
    threading.Timer(0.2, stream.close).start()
    assert list(stream) == []


def test_a_position_of_another_coordinator_is_refused(client: Client) -> None:
    with pytest.raises(chorus.BadRequest):
        next(client.events(1_000_000))


def test_a_stream_outlives_the_coordinator(tmp_path: pathlib.Path) -> None:
    with Fleet(["a"], flags=["--journal", str(tmp_path / "journal")], retries=20) as fleet:
        stream = fleet.client.events(0, timeout=20)
        before = next(stream)
        fleet.coordinator.kill()
        fleet.coordinator = fleet.start_coordinator()
        sequences = [before.sequence]
        for event in stream:
            sequences.append(event.sequence)
            if event.type == "coordinator.started":
                break
        assert sequences == list(range(1, len(sequences) + 1))  # none is missing, none comes twice


def test_a_stream_passes_over_a_coordinator_that_redirects_to_where_nobody_answers() -> None:
    event = b'id: 1-1\nevent: worker.joined\ndata: {"sequence":1,"type":"worker.joined","worker":"w"}\n\n'
    with HeldPort() as dead, StandIn(lambda _m, path, *_: message(307, {}, Location=dead.url + path)) as standby:
        with StandIn(lambda *_: (200, {"Content-Type": "text/event-stream"}, event)) as leader:
            with Client([standby.url, leader.url]) as client:
                assert next(client.events(timeout=20)).worker == "w"


def test_a_stream_passes_over_a_proxy_without_its_coordinator() -> None:
    event = b'id: 1-1\nevent: worker.joined\ndata: {"sequence":1,"type":"worker.joined","worker":"w"}\n\n'
    answers = [proxy_error(502), proxy_error(504), (200, {"Content-Type": "text/event-stream"}, event)]
    with StandIn(lambda *_: answers.pop(0)) as proxy, Client(proxy.url) as client:
        assert next(client.events(timeout=20)).worker == "w"
