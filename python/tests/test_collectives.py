"""Collectives over numpy arrays, launched at the coordinator and called by members."""

import threading

import numpy
import pytest

import chorus
from chorus import Client, RemoteWorker
from chorus.messages import CallReport, CollectiveRecord


def test_every_rank_has_the_sum(client: Client, a: RemoteWorker, b: RemoteWorker) -> None:
    a.put("sum", numpy.array([[1, 2], [3, 4]], "i4"))
    b.put("sum", numpy.array([[10, 20], [30, 40]], "i4"))
    record = client.run("all_reduce", "all", "sum")
    assert (record.state, record.dtype, record.shape) == ("succeeded", "i32", [2, 2])
    assert [rank.worker for rank in record.ranks] == ["a", "b"]
    for worker in (a, b):
        assert worker.get("sum").tolist() == [[11, 22], [33, 44]]


@pytest.mark.parametrize(
    "op, expected_a, expected_b",
    [
        ("all_gather", [1, 2, 3, 4], [1, 2, 3, 4]),
        ("gather", [1, 2, 3, 4], [3, 4]),
        ("broadcast", [1, 2], [1, 2]),
        ("reduce_scatter", [4], [6]),
        ("reduce", [4, 6], [3, 4]),
        ("scatter", [1], [2]),
        ("all_to_all", [1, 3], [2, 4]),
    ],
)
def test_operations(
    client: Client, a: RemoteWorker, b: RemoteWorker, op: str, expected_a: list[int], expected_b: list[int]
) -> None:
    a.put(op, numpy.array([1, 2], "f4"))
    b.put(op, numpy.array([3, 4], "f4"))
    client.run(op, "all", op)
    assert (a.get(op).tolist(), b.get(op).tolist()) == (expected_a, expected_b)


def test_a_barrier_has_no_tensor(client: Client) -> None:
    assert client.run("barrier", "all").state == "succeeded"


def test_the_result_may_go_to_another_tensor(client: Client, a: RemoteWorker, b: RemoteWorker) -> None:
    for worker in (a, b):
        worker.put("kept", numpy.array([4, 6], "f8"))
    client.run("all_reduce", "all", "kept", output="average", reduce="avg", algorithm="ring")
    assert (a.get("kept").tolist(), b.get("average").tolist()) == ([4, 6], [4, 6])


def test_validating_plans_and_leaves_no_trace(client: Client, a: RemoteWorker, b: RemoteWorker) -> None:
    for worker in (a, b):
        worker.put("planned", numpy.ones(1000, "f4"))
    known = len(client.records())
    record = client.run("all_reduce", "all", "planned", validate_only=True)
    assert (record.state, record.bytes) == ("planned", 4000)
    assert record.considered and record.reason
    assert len(client.records()) == known
    assert a.get("planned").sum() == 1000


def test_a_dry_run_on_paper_has_every_move(client: Client) -> None:
    plan = client.plan(ranks=4, op="all_reduce", bytes=1 << 20, algorithm="ring")
    assert (plan.algorithm, plan.verified, len(plan.rounds)) == ("ring", True, 6)
    assert plan.rounds[0][0].peer in range(4)


def test_simulations(client: Client) -> None:
    answer = client.simulate(ranks=8, op="all_reduce", bytes=1 << 20, algorithm="ring")
    assert answer.items[0].algorithm == "ring"


def test_launching_and_waiting_are_two_steps_too(client: Client, a: RemoteWorker, b: RemoteWorker) -> None:
    for worker in (a, b):
        worker.put("later", numpy.ones(1 << 20, "f4"))
    launched = client.run("all_reduce", "all", "later", wait=False)
    seen: list[CollectiveRecord] = []
    record = client.wait(launched.id, on_progress=seen.append)
    assert (record.id, record.state) == (launched.id, "succeeded")
    assert client.record(record.id).seconds == record.seconds
    assert any(one.id == record.id for one in client.records())
    assert client.trace(record.id)["traceEvents"]


def test_waiting_has_a_deadline_and_progress_says_where_ranks_are(client: Client, b: RemoteWorker) -> None:
    """A members' call that only one member has made keeps the tensor busy, and the group's other call waits."""
    b.put("alone", numpy.ones(4, "f4"))
    failures: list[chorus.ChorusError] = []

    def call() -> None:
        try:
            b.call("all_reduce", "all", "alone", timeout_ms=1500)
        except chorus.ChorusError as error:
            failures.append(error)

    caller = threading.Thread(target=call)
    caller.start()
    while not (runs := b.progress()):
        pass
    assert (runs[0].worker, runs[0].group, runs[0].rank, runs[0].ranks) == ("b", "all", 1, 2)
    caller.join()
    assert isinstance(failures[0], chorus.DeadlineExceeded) and isinstance(failures[0], TimeoutError)
    assert failures[0].ranks == [0]
    assert client.create_group("all", ["a", "b"]).state == "ready"  # a failed call ends the epoch


def test_members_call_without_the_coordinator(a: RemoteWorker, b: RemoteWorker) -> None:
    a.put("called", numpy.array([1, 2], "u2"))
    b.put("called", numpy.array([3, 4], "u2"))
    reports: list[CallReport] = []
    other = threading.Thread(target=lambda: reports.append(b.call("all_reduce", "all", "called")))
    other.start()
    reports.append(a.call("all_reduce", "all", "called"))
    other.join()
    assert sorted(report.rank for report in reports) == [0, 1]
    assert a.get("called").tolist() == b.get("called").tolist() == [4, 6]
    assert a.group("all").next_sequence == reports[0].next_sequence
    assert a.flight(1)[0]["op"] == "all_reduce"


def test_a_cancelled_collective_is_an_exception(client: Client, a: RemoteWorker, b: RemoteWorker) -> None:
    for worker in (a, b):
        worker.put("gone", numpy.ones(4, "f4"))
    record = client.run("all_reduce", "all", "gone")
    assert client.cancel(record.id).state == "succeeded"  # it has ended: nothing to cancel
    with pytest.raises(chorus.UnknownCollective):
        client.wait("no-such-collective")
