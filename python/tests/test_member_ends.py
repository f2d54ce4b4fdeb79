"""How a process that is a member ends: interrupted, told by a signal, or without closing anything."""

import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import chorus
from chorus.native.handles import Handle
from chorus.native.library import Library
from members import Pair
from services import PATIENCE_S, ROOT, Fleet, until

CATCHES = """
import sys, chorus
with chorus.Worker(sys.argv[1], sys.argv[2]) as worker:
    group = worker.join("ends")
    try:
        print("joined", flush=True)
        group.barrier(timeout=600)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""
CLOSES = """
import signal, sys, chorus
worker = chorus.Worker(sys.argv[1], sys.argv[2])
signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True) or worker.close())
group = worker.join("ends")
print("joined", flush=True)
try:
    group.barrier(timeout=600)
except (chorus.Aborted, chorus.Stopped):
    print("ended", worker.closed, flush=True)
"""
FORGETS = """
import numpy, sys, threading, chorus
group = chorus.Worker(sys.argv[1], sys.argv[2]).join("ends")
work = group.all_reduce(numpy.ones(1000), async_op=True)
threading.Thread(target=group.barrier, kwargs={"timeout": 600}, daemon=True).start()
kept = group._worker.empty(100)
print("joined", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def other(library: Library, bare: Fleet) -> Iterator[chorus.Worker]:
    with chorus.Worker(bare.coordinator.url, "ends.1") as worker:
        yield worker
        bare.client.delete_group("ends")


def member(story: str, other: chorus.Worker, bare: Fleet) -> "subprocess.Popen[str]":
    """Starts a member, which has joined the group of `other` on return."""
    child = subprocess.Popen(
        [sys.executable, "-c", story, bare.coordinator.url, "ends.0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python/src")},
    )
    ids = ["ends.0", other.id]
    bare.client.wait_for_workers(ids, timeout=PATIENCE_S)
    bare.client.create_group("ends", ids, order="listed")
    other.join("ends", PATIENCE_S)
    assert child.stdout is not None and child.stdout.readline() == "joined\n"
    return child


def test_ctrl_c_leaves_a_wait(other: chorus.Worker, bare: Fleet) -> None:
    child = member(CATCHES, other, bare)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=PATIENCE_S)[0] == "interrupted\n" and child.returncode == 0


def test_a_handler_may_close_the_worker(other: chorus.Worker, bare: Fleet) -> None:
    child = member(CLOSES, other, bare)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=PATIENCE_S)[0] == "interrupted\nended True\n" and child.returncode == 0


class Interrupting:
    """A lock, or a function, after whose first call a signal's handler runs."""

    def __init__(self, inside: Any, handler: Callable[[], object]) -> None:
        self._inside, self._handlers = inside, [handler]

    def __call__(self, *arguments: Any) -> Any:
        result = self._inside(*arguments)
        while self._handlers:
            self._handlers.pop()()
        return result

    def acquire(self, timeout: float) -> Any:
        result = self._inside.acquire(timeout=timeout)
        while self._handlers:
            self._handlers.pop()()
        return result

    def release(self) -> None:
        self._inside.release()


def test_ctrl_c_as_a_wait_begins_leaves_the_call_to_be_waited_for(pair: Pair) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    x = numpy.ones(3)
    work = pair.groups[0].all_reduce(x, async_op=True)
    work._request._lock = Interrupting(work._request._lock, interrupt)
    with pytest.raises(KeyboardInterrupt):
        work.wait()
    pair.groups[1].all_reduce(numpy.ones(3))
    assert work.wait(PATIENCE_S) is x and x.tolist() == [2, 2, 2]


def test_a_handler_may_wait_for_the_call_whose_wait_it_interrupts(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    x = numpy.ones(3)
    work = pair.groups[0].all_reduce(x, async_op=True)
    pair.groups[1].all_reduce(numpy.ones(3))
    functions, freed = pair.groups[0]._library.functions, list[int]()
    wait, free = functions["chorus_request_wait_for"], functions["chorus_request_free"]
    monkeypatch.setitem(functions, "chorus_request_wait_for", Interrupting(wait, lambda: work.wait(PATIENCE_S)))
    monkeypatch.setitem(functions, "chorus_request_free", freed.append)
    assert work.wait(PATIENCE_S) is x
    assert len(freed) == 1
    free(freed[0])


def test_a_handler_that_closes_while_a_call_begins_is_as_if_it_had_closed_before() -> None:
    freed: list[int] = []
    handle = Handle(7, freed.append, "a thing")

    class Interrupted(list[int]):
        def append(self, thread: int) -> None:
            super().append(thread)
            handle.close()

    handle._users = Interrupted()
    with pytest.raises(chorus.Stopped, match="a thing is closed"), handle:
        pass
    assert freed == [] and handle._users == []


def test_a_program_that_closes_nothing_ends(other: chorus.Worker, bare: Fleet) -> None:
    child = member(FORGETS, other, bare)
    child.communicate("\n", timeout=PATIENCE_S)
    assert child.returncode == 0
    until(lambda: "ends.0" not in {one.id for one in bare.client.workers() if one.state == "ready"}, "it has left")


def test_a_join_ends_when_another_thread_closes_the_worker(library: Library, bare: Fleet) -> None:
    failures: list[chorus.ChorusError] = []
    worker = chorus.Worker(bare.coordinator.url, "joins")

    def joins() -> None:
        try:
            worker.join("nobody-makes-it", 600)
        except chorus.ChorusError as error:
            failures.append(error)

    thread = threading.Thread(target=joins)
    thread.start()
    worker.close()
    thread.join(PATIENCE_S)
    assert isinstance(failures[0], (chorus.Stopped, chorus.NotAssigned, chorus.NoCoordinator))


def test_the_group_of_init_ends_calls_of_other_threads_when_it_is_closed(
    library: Library, bare: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = {"CHORUS_COORDINATOR": bare.coordinator.url, "CHORUS_GROUP": "alone", "RANK": "0", "WORLD_SIZE": "1"}
    for name, value in place.items():
        monkeypatch.setenv(name, value)
    group = chorus.init(timeout=PATIENCE_S)
    failures: list[chorus.ChorusError] = []

    def receives() -> None:
        try:
            group.recv(bytearray(1), 0, timeout=PATIENCE_S)  # which nobody sends
        except chorus.ChorusError as error:
            failures.append(error)

    thread = threading.Thread(target=receives)
    thread.start()
    until(lambda: group._handle._users, "the receive is under way")
    group.close()
    thread.join()
    assert isinstance(failures[0], chorus.Aborted)
    with pytest.raises(chorus.Stopped, match="group 'alone' is closed"):
        group.barrier()
    group.close()


def test_a_group_keeps_its_worker_and_both_end_with_their_last_reference(library: Library, bare: Fleet) -> None:
    worker = chorus.Worker(bare.coordinator.url, "kept")
    bare.client.wait_for_workers(["kept"], timeout=PATIENCE_S)
    bare.client.create_group("kept", ["kept"])
    group = worker.join("kept", PATIENCE_S)
    del worker
    gc.collect()
    assert group.all_reduce(bytearray(b"x")) == b"x"
    del group
    gc.collect()
    until(lambda: "kept" not in {one.id for one in bare.client.workers() if one.state == "ready"}, "it has left")
