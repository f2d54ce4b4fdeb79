"""Groups that workers of this process make of themselves, divide and delete."""

import fractions

from typing import Any

import numpy
import pytest

import chorus
from members import Pair
from services import PATIENCE_S, Fleet, until

Group = chorus.Group


def sum_of_ranks(group: Group, _: int) -> float:
    return float(group.all_reduce(numpy.full(3, group.rank, "f4"))[0])


def test_workers_make_a_group_of_themselves_divide_it_and_delete_it(pair: Pair) -> None:
    order = list(reversed(pair.ids))
    made = pair.both(lambda group, rank: pair.workers[rank].create_group("own", order, timeout=PATIENCE_S))
    assert [group.rank for group in made] == [1, 0] and {group.size for group in made} == {2}
    assert pair.both(sum_of_ranks, made) == [1, 1]

    halves = pair.both(lambda group, rank: group.subgroup([group.rank]), made)
    assert [(half.rank, half.size) for half in halves] == [(0, 1), (0, 1)]
    swapped = pair.both(lambda group, rank: group.subgroup([1, 0]), made)
    assert [group.rank for group in swapped] == [0, 1] and swapped[0].name == swapped[1].name
    assert pair.both(sum_of_ranks, swapped) == [1, 1]

    pair.workers[0].delete_group("own")
    pair.workers[1].delete_group("own")  # there is none of that name any more
    with pytest.raises(chorus.EpochFenced):
        made[1].barrier()
    assert pair.both(sum_of_ranks, swapped) == [1, 1]
    pair.workers[0].delete_group(swapped[0].name)
    for half in halves:
        pair.workers[0].delete_group(half.name)
    until(lambda: [group.name for group in pair.client.groups()].count("own") == 0, "it is deleted")


def test_numbers_may_be_those_of_numpy(pair: Pair, fleet: Fleet) -> None:
    one: Any = numpy.int64(1)
    two: Any = numpy.uint8(2)
    timeouts: list[Any] = [numpy.float32(PATIENCE_S), numpy.int64(PATIENCE_S), fractions.Fraction(PATIENCE_S)]
    worker = pair.workers[0]
    assert worker.empty(two).shape == (2,) and worker.empty((two, one)).shape == (2, 1)
    alone = worker.create_group("counted", [worker.id], timeout=timeouts[0])
    for timeout in timeouts:
        alone.barrier(timeout=timeout)
    worker.delete_group("counted")
    with pytest.raises(chorus.NotAssigned, match="workers are ready"):
        worker.create_group("counted", one * 1000, timeout=1)
    # Not among workers of other stories, some of which have been killed and are not missed yet.
    fleet.client.wait_for_workers(two, timeout=PATIENCE_S)
    assert len(fleet.client.create_group("counted", two).members) == 2
    fleet.client.delete_group("counted")
    with pytest.raises(TypeError, match="timeout is '1', expected seconds"):
        alone.barrier(timeout="1")  # type: ignore[arg-type]


def test_a_group_of_more_workers_than_are_ready_is_not_made(pair: Pair) -> None:
    ready = len([worker for worker in pair.client.workers() if worker.state == "ready"])
    with pytest.raises(chorus.NotAssigned, match="workers are ready"):
        pair.workers[0].create_group("many", ready + 1, timeout=1)


def test_groups_that_cannot_be_are_refused(pair: Pair) -> None:
    worker, group = pair.workers[0], pair.groups[0]
    bad_workers: list[tuple[list[str], str]] = [
        ([*pair.ids, pair.ids[0]], "twice"),
        ([pair.ids[1]], "not among"),
        ([], "exactly one"),
    ]
    for workers, why in bad_workers:
        with pytest.raises(chorus.BadArgument, match=why):
            worker.create_group("bad", workers)
    with pytest.raises(chorus.BadArgument, match="backwards"):
        worker.create_group("bad", pair.ids, order="backwards")
    with pytest.raises(chorus.BadArgument, match="already"):
        worker.create_group(group.name, pair.ids)
    with pytest.raises(TypeError, match="sequence of strings"):
        worker.create_group("bad", "ab")
    with pytest.raises(ValueError, match="timeout"):
        worker.create_group("bad", pair.ids, timeout=0)
    bad_ranks: list[tuple[list[int], str]] = [
        ([0, 0], "twice"),
        ([0, 2], "has 2 ranks"),
        ([1], "which calls"),
        ([], "needs ranks"),
    ]
    for ranks, why in bad_ranks:
        with pytest.raises(chorus.BadArgument, match=why):
            group.subgroup(ranks)
    with pytest.raises(ValueError, match="ranks"):
        group.subgroup([-1])
