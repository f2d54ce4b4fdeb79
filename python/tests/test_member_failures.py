"""What a worker in this process refuses, and how its calls fail: exceptions, never a crash or a hang."""

import mmap
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import chorus
from chorus.native.library import Library
from members import Pair
from services import PATIENCE_S, ROOT, Fleet, until


def zeros(*shape: int) -> Any:
    return numpy.zeros(shape, "f4")


def read_only() -> Any:
    array = zeros(4)
    array.flags.writeable = False
    return array


WORLD = {"format": "int8", "between": "world"}
UNKNOWN = {"format": "auto", "allow": ["bf16", "int9"]}
BESIDE = {"format": "int8", "allow": ["int8"]}
REFUSED: list[tuple[str, type[Exception], str, Callable[[chorus.Group], Any]]] = [
    ("strided, written", ValueError, "not contiguous", lambda g: g.all_reduce(zeros(4, 2)[:, 0])),
    ("strided out", ValueError, "not contiguous", lambda g: g.all_reduce(zeros(4), zeros(4, 2)[:, 0])),
    ("read-only", ValueError, "read-only", lambda g: g.all_reduce(read_only())),
    ("read-only out", ValueError, "read-only", lambda g: g.all_reduce(zeros(4), read_only())),
    ("bytes", ValueError, "read-only", lambda g: g.all_reduce(b"abcd")),
    ("no dtype", TypeError, "have no dtype here", lambda g: g.all_reduce(numpy.array([True]))),
    ("no array", TypeError, "int: expected a numpy array", lambda g: g.all_reduce(7)),
    ("None", TypeError, "NoneType: expected a numpy array", lambda g: g.broadcast(None)),
    ("big-endian", ValueError, "not little-endian", lambda g: g.all_reduce(numpy.zeros(4, ">f4"))),
    ("unknown dtype", TypeError, "dtype 'f4': expected", lambda g: g.all_reduce(zeros(4), dtype="f4")),
    ("dtype of another size", TypeError, "f32 cannot be meant as bf16", lambda g: g.all_reduce(zeros(4), dtype="bf16")),
    ("another dtype", TypeError, "f32 cannot be meant as i32", lambda g: g.all_reduce(zeros(4), dtype="i32")),
    ("scalar", ValueError, "float32: only a copy", lambda g: g.all_reduce(zeros(4).sum())),
    ("scalar of f64", ValueError, "float64: only a copy", lambda g: g.all_reduce(numpy.float64(3))),
    ("scalar out", ValueError, "float32: only a copy", lambda g: g.all_reduce(zeros(1), numpy.float32(0))),
    ("scalars in a list", ValueError, "float32: only a copy", lambda g: g.all_reduce([zeros(1), numpy.float32(0)])),
    ("scalar of reduce", ValueError, "float32: only a copy", lambda g: g.reduce(numpy.float32(0))),
    ("scalar of reduce elsewhere", ValueError, "float32: only", lambda g: g.reduce(numpy.float32(0), root=1)),
    ("scalar of broadcast", ValueError, "float32: only a copy", lambda g: g.broadcast(numpy.float32(0), root=1)),
    ("scalar compressed", ValueError, "float32: only", lambda g: g.broadcast(numpy.float32(0), compression="bf16")),
    ("scalar in place", ValueError, "float32: only", lambda g: g.all_gather(numpy.float32(0), in_place=True)),
    ("scalar of scatter", ValueError, "float32: only", lambda g: g.scatter(zeros(2), numpy.float32(0))),
    ("scalars for out", ValueError, "float32: only", lambda g: g.all_gather([zeros(1)], [numpy.float32(0)])),
    ("scalar of recv", ValueError, "float64: only a copy", lambda g: g.recv(numpy.float64(0), 1)),
    ("scalar of sendrecv", ValueError, "float32: only a copy", lambda g: g.sendrecv(zeros(1), 1, numpy.float32(0))),
    ("out of another dtype", ValueError, "f32 and an output of f64", lambda g: g.all_reduce(zeros(4), numpy.zeros(4))),
    ("out of another size", ValueError, "needs an input", lambda g: g.all_reduce(zeros(4), zeros(3))),
    ("overlap", ValueError, "overlap", lambda g: g.all_reduce((x := zeros(8))[:4], x[2:6])),
    (
        "reduction",
        ValueError,
        "reduce 'mean': expected one of sum avg",
        lambda g: g.all_reduce(zeros(4), reduce="mean"),
    ),
    (
        "bits of floats",
        ValueError,
        "bxor of f32: bit operations are for integers",
        lambda g: g.all_reduce(zeros(4), reduce="bxor"),
    ),
    ("root", ValueError, "root 2 in a group of 2", lambda g: g.broadcast(zeros(4), root=2)),
    ("negative root", ValueError, "root is -1, expected 0 to", lambda g: g.broadcast(zeros(4), root=-1)),
    ("root of another type", TypeError, "root is '0', expected a whole", lambda g: g.reduce(zeros(4), root="0")),  # type: ignore[arg-type]
    ("algorithm", ValueError, "algorithm", lambda g: g.all_reduce(zeros(4), algorithm="fastest")),
    ("compression", ValueError, "int8", lambda g: g.all_reduce(zeros(4), compression="int9")),
    ("a level of no group", ValueError, "host, rack", lambda g: g.all_reduce(zeros(4), compression=WORLD)),
    ("a compression of nothing", ValueError, "expected format", lambda g: g.all_reduce(zeros(4), compression={})),
    ("an unknown format allowed", ValueError, "int8", lambda g: g.all_reduce(zeros(4), compression=UNKNOWN)),
    ("formats beside one", ValueError, "not beside", lambda g: g.all_reduce(zeros(4), compression=BESIDE)),
    ("feedback", ValueError, "is for calls with compression", lambda g: g.all_reduce(zeros(4), error_feedback="x")),
    ("a character 0", ValueError, "character 0", lambda g: g.all_reduce(zeros(4), algorithm="ring\0")),
    ("too few counts", ValueError, "1 counts for a group of 2", lambda g: g.all_gather(zeros(4), counts=[4])),
    ("no counts", ValueError, "0 counts for a group|needs an", lambda g: g.reduce_scatter(zeros(4), counts=[])),
    ("counts of one", TypeError, "counts is 3, expected a list", lambda g: g.all_to_all(zeros(4), counts=3)),  # type: ignore[arg-type]
    ("negative counts", ValueError, r"counts\[1\] is -1", lambda g: g.all_gather(zeros(4), counts=[5, -1])),
    ("counts of another block", ValueError, "needs an input of 1", lambda g: g.all_gather(zeros(4), counts=[1, 1])),
    ("one of two counts", ValueError, "receive_counts", lambda g: g.all_to_all(zeros(4), receive_counts=[2, 2])),
    ("unequal in place", ValueError, "equal blocks", lambda g: g.all_to_all(zeros(3), in_place=True)),
    ("timeout 0", ValueError, "timeout is 0, expected seconds above 0", lambda g: g.barrier(timeout=0)),
    ("timeout NaN", ValueError, "timeout is nan", lambda g: g.barrier(timeout=float("nan"))),
    ("a list with out", TypeError, "out is not allowed", lambda g: g.all_reduce([zeros(4)], [zeros(4)])),
    ("out in place", TypeError, "takes no out", lambda g: g.all_gather(zeros(4), zeros(4), in_place=True)),
    ("no out", TypeError, "rank 0 is not the root, and needs out", lambda g: g.scatter(root=1)),
    ("no tensor", TypeError, "rank 0 is the root, and needs a tensor", lambda g: g.scatter(None, zeros(2))),
    ("list of numbers", TypeError, "float: expected a numpy array", lambda g: g.all_reduce([1.0, 2.0])),
]


@pytest.mark.parametrize("call, kind, text", [row[3:] + row[1:3] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_cannot_be_is_refused_and_a_corrected_call_fits(
    pair: Pair, call: Callable[[chorus.Group], Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        call(pair.groups[0])
    assert [result.tolist() for result in pair.both(lambda group, rank: group.all_reduce(zeros(2) + rank))] == [
        [1, 1],
        [1, 1],
    ]


def test_members_that_call_different_things_are_told(own_pair: Pair) -> None:
    def story(group: chorus.Group, rank: int) -> Any:
        with pytest.raises(chorus.Mismatch) as caught:
            group.all_reduce(zeros(2 + rank))
        with pytest.raises((chorus.Aborted, chorus.Mismatch)):  # the epoch has ended
            group.barrier()
        return type(caught.value), caught.value.ranks

    kinds = own_pair.both(story)
    assert {kind for kind, _ in kinds} == {chorus.PlanMismatch} and all(ranks for _, ranks in kinds)
    own_pair.make()
    groups = own_pair.both(lambda group, rank: own_pair.workers[rank].join(own_pair.name, PATIENCE_S))
    assert [group.epoch for group in groups] == [2, 2]
    assert [x.tolist() for x in own_pair.both(lambda group, rank: group.all_reduce(zeros(1) + 1), groups)] == [[2], [2]]


def test_a_member_that_leaves_is_named(own_pair: Pair) -> None:
    own_pair.both(lambda group, rank: group.barrier())
    work = own_pair.groups[0].all_reduce(zeros(2), async_op=True)
    own_pair.workers[1].close()
    with pytest.raises(chorus.PeerLost, match=own_pair.ids[1]) as caught:
        work.wait(PATIENCE_S)
    assert caught.value.ranks == [1] and work.done()


def test_a_member_that_does_not_come_is_named(own_pair: Pair) -> None:
    own_pair.both(lambda group, rank: group.barrier())
    with pytest.raises(chorus.DeadlineExceeded) as caught:
        own_pair.groups[0].all_reduce(zeros(2), timeout=0.1)
    assert caught.value.ranks == [1] and isinstance(caught.value, TimeoutError)


def test_a_closed_worker_refuses_and_ends_what_is_under_way(own_pair: Pair) -> None:
    worker, group = own_pair.workers[0], own_pair.groups[0]
    own_pair.both(lambda group, rank: group.barrier())
    work, failures = group.all_reduce(zeros(2), async_op=True), []

    def blocked() -> None:
        try:
            group.barrier()
        except chorus.ChorusError as error:
            failures.append(error)

    thread = threading.Thread(target=blocked)
    thread.start()
    kept = worker.empty(4)
    worker.close()
    worker.close()
    thread.join()
    assert isinstance(failures[0], (chorus.Aborted, chorus.Stopped))
    with pytest.raises(chorus.Aborted):
        work.wait()
    calls: list[Callable[[], Any]] = [
        group.barrier,
        lambda: group.path,
        lambda: group.members,
        lambda: worker.join("g"),
        lambda: worker.empty(1),
    ]
    for call in calls:
        with pytest.raises(chorus.Stopped, match=f"(worker|group) '{own_pair.name}.* is closed"):
            call()
    kept[:] = 1  # memory outlives the worker
    assert worker.closed and kept.sum() == 4


def test_a_closed_group_refuses_and_the_worker_goes_on(own_pair: Pair) -> None:
    own_pair.groups[0].close()
    with pytest.raises(chorus.Stopped, match="is closed"):
        own_pair.groups[0].barrier()
    groups = [worker.join(own_pair.name, PATIENCE_S) for worker in own_pair.workers]
    own_pair.both(lambda group, rank: group.barrier(), groups)


def test_two_groups_at_once_have_an_order_each(own_pair: Pair) -> None:
    own_pair.make(f"{own_pair.name}-other")
    others = [worker.join(f"{own_pair.name}-other", PATIENCE_S) for worker in own_pair.workers]
    waiting = own_pair.groups[0].all_reduce(zeros(2) + 1, async_op=True)
    assert [x.tolist() for x in own_pair.both(lambda group, rank: group.all_reduce(zeros(1) + 1), others)] == [[2], [2]]
    assert not waiting.done()
    own_pair.groups[1].all_reduce(zeros(2) + 1)
    assert waiting.wait(PATIENCE_S).tolist() == [2, 2]


def test_a_child_of_fork_is_told(own_pair: Pair) -> None:
    work = own_pair.groups[0].barrier(async_op=True)
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        told = []
        try:
            worker = own_pair.workers[0]
            for call in (
                own_pair.groups[0].barrier,
                work.done,
                work.wait,
                lambda: worker.join("g"),
                lambda: worker.empty(1),
            ):
                try:
                    call()
                except RuntimeError as error:
                    told.append("by fork()" in str(error))
            own_pair.close()  # is the parent's
            os.write(writing, repr(told).encode())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        assert answer.read() == repr([True] * 5)
    os.waitpid(child, 0)
    own_pair.groups[1].barrier()
    assert work.wait(PATIENCE_S) is None  # the parent goes on


def test_names_that_cannot_be(library: Library, bare: Fleet) -> None:
    with pytest.raises(ValueError, match="port is 65536, expected 0 to 65535"):
        chorus.Worker(bare.coordinator.url, port=65536)
    with pytest.raises(TypeError, match="spin_us is '20', expected a whole number"):
        chorus.Worker(spin_us="20")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="id is a int, expected a string"):
        chorus.Worker(bare.coordinator.url, 7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="allowed_hosts is a string"):
        chorus.Worker(bare.coordinator.url, allowed_hosts="host")
    with pytest.raises(chorus.BadArgument, match="link_checksum|checksum"):
        chorus.Worker(bare.coordinator.url, link_checksum="perhaps")
    with chorus.Worker(bare.coordinator.url) as worker:
        taken = int(worker.url.rsplit(":", 1)[1])
        with pytest.raises(chorus.BindFailed):
            chorus.Worker(bare.coordinator.url, port=taken)
        with pytest.raises(chorus.NotAssigned) as caught:
            worker.join("nobody-makes-it", 0.2)
        assert isinstance(caught.value, TimeoutError)
        with pytest.raises(chorus.BadArgument, match="name is NULL"):
            worker.join(None)  # type: ignore[arg-type]
    with chorus.Worker("http://127.0.0.1:9") as alone, pytest.raises(chorus.NoCoordinator):
        alone.join("g", 0.2)


def test_memory_that_cannot_be(pair: Pair) -> None:
    worker = pair.workers[0]
    with pytest.raises(ValueError, match="shape is -1"):
        worker.empty((2, -1))
    with pytest.raises(TypeError, match="dtype 'f4'"):
        worker.empty(2, "f4")
    with pytest.raises(chorus.OutOfMemory) as caught:
        worker.empty(1 << 50, "u8")
    assert isinstance(caught.value, MemoryError)
    with pytest.raises(chorus.BadArgument):
        worker.register(numpy.zeros(100, "f4")[1:])
    with pytest.raises(ValueError, match="read-only"):
        worker.register(bytes(4096))


def test_registered_memory_keeps_its_contents(pair: Pair) -> None:
    if pair.groups[0].path != "shm":
        pytest.skip("workers share no memory here: nothing can be registered")
    pages = mmap.mmap(-1, 1 << 16, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    x = numpy.frombuffer(pages, "f4")
    x[:] = 1
    with pair.workers[0].register(x) as registration:
        ones = numpy.ones_like(x)
        pair.both(lambda group, rank: group.all_reduce(x if rank == 0 else ones))
        assert (x == 2).all()
    registration.close()
    assert (x == 2).all()
