"""What survivors are told when a worker dies."""

import signal
import threading
import time

import numpy
import pytest

import chorus
from services import Fleet, until


def test_a_killed_worker_is_named_by_its_rank() -> None:
    with Fleet(["a", "b", "c"]) as fleet:
        a = fleet.client.worker("a")
        a.put("x", numpy.ones(1000, "f4"))
        failures: list[chorus.ChorusError] = []

        def call() -> None:
            try:
                a.call("all_reduce", "all", "x", timeout_ms=60_000)
            except chorus.ChorusError as error:
                failures.append(error)

        waiting = threading.Thread(target=call)
        waiting.start()
        until(a.progress, "the call waits for the others")
        begun = time.monotonic()
        fleet.workers["b"].kill()
        waiting.join()
        assert isinstance(failures[0], chorus.PeerLost)
        assert (failures[0].ranks, failures[0].retryable) == ([1], True)
        assert "rank 1 (b)" in str(failures[0]) and time.monotonic() - begun < 10
        assert a.get("x").tolist() == [1.0] * 1000  # as before

        with pytest.raises((chorus.PeerLost, chorus.WorkerUnreachable, chorus.GroupBroken), match="'b'"):
            fleet.client.run("all_reduce", "all", "x")
        until(lambda: fleet.client.group("all").state == "degraded", "the coordinator knows")
        with pytest.raises(chorus.GroupBroken, match="'b'"):
            fleet.client.run("all_reduce", "all", "x")
        with pytest.raises(chorus.NotEnoughWorkers):
            fleet.client.create_group("all", 3)
        group = fleet.client.create_group("all", ["a", "c"])
        fleet.client.worker("c").put("x", numpy.ones(1000, "f4"))
        assert fleet.client.run("all_reduce", "all", "x").epoch == group.epoch


def test_a_group_that_shrinks_goes_on() -> None:
    with Fleet(["a", "b"], lease_ms=3000) as fleet:
        epoch = fleet.client.create_group("all", ["a", "b"], on_failure="shrink").epoch
        fleet.workers["b"].kill()
        group = fleet.client.wait_for_group("all", after_epoch=epoch, timeout=20)
        assert [member.worker for member in group.members] == ["a"]


def divides(_: object) -> None:
    raise ZeroDivisionError


def test_a_collective_that_ran_and_failed_has_its_record() -> None:
    with Fleet(["a", "b"]) as fleet:
        client = fleet.client
        for name in ("a", "b"):
            client.worker(name).put("x", numpy.ones(1000, "f4"))
        for _ in range(4):  # from then on the coordinator launches without asking what the ranks hold
            client.run("all_reduce", "all", "x")
        fleet.workers["b"].process.send_signal(signal.SIGSTOP)  # silent, and not gone
        with pytest.raises(chorus.NoAnswer, match="has not ended within 1 s") as waited:
            client.run("all_reduce", "all", "x", timeout_ms=3000, timeout=1)
        record = waited.value.record
        assert record is not None and record.state == "running"
        assert [(one.rank, one.worker) for one in client.progress(record.id, timeout=0.5)] == [(0, "a")]
        with pytest.raises(ZeroDivisionError):  # what a callback raises ends the wait alone
            client.wait(record.id, on_progress=divides)
        with pytest.raises(chorus.DeadlineExceeded) as caught:
            client.wait(record.id)
        assert caught.value.ranks == [1]
        assert caught.value.record is not None and caught.value.record.state == "failed"
        fleet.workers["b"].process.send_signal(signal.SIGCONT)
        assert (client.worker("a").get("x") == 16).all()


def test_pushes_and_pulls_go_on_when_an_owner_dies() -> None:
    with Fleet(["a", "b"]) as fleet:
        w = fleet.client.create_parameter("w", "all", [4], replicas=2)
        w.push(numpy.ones(4, "f4"))
        until(lambda: w.refresh().state == "ready", "both copies are there")
        owner = next(endpoint for endpoint in w.info.endpoints if endpoint.role == "owner")
        fleet.workers[str(owner.worker)].kill()
        assert not w.push(numpy.ones(4, "f4"), timeout=30).duplicate
        assert w.pull().tolist() == [2, 2, 2, 2]


def test_a_parameter_that_was_lost_says_so() -> None:
    with Fleet(["a"]) as fleet:
        w = fleet.client.create_parameter("w", "all", [4])
        fleet.workers["a"].kill()
        with pytest.raises(chorus.ParameterLost):
            w.push(numpy.ones(4, "f4"), timeout=20)
        assert w.info.state == "lost"
