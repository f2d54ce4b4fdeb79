"""Forks, signals, and the end of the interpreter."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy
import pytest

from chorus import Client, EpochFenced
from chorus.native.library import Library
from chorus.programs import LocalCoordinator
from services import PATIENCE_S, ROOT, Fleet, alive, until

ENVIRONMENT = {"PYTHONPATH": str(ROOT / "python/src"), "PYTHONDONTWRITEBYTECODE": "1"}


def test_a_forked_process_has_connections_of_its_own(client: Client) -> None:
    assert len(client.workers()) == 2  # a connection stands
    child = os.fork()
    if child == 0:
        os._exit(0 if all(len(client.workers()) == 2 for _ in range(50)) else 1)
    assert all(len(client.workers()) == 2 for _ in range(50))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_pushes_of_a_forked_process_count_beside_those_of_its_parent(client: Client) -> None:
    one = numpy.ones(1, "f4")
    for name in (None, "trainer-0"):
        w = client.create_parameter("forked", "all", [1], client=name)
        w.push(one)
        w._lock.acquire()  # as a thread does that pushes; there is none in the child
        child = os.fork()
        if child == 0:
            signal.alarm(PATIENCE_S)
            os._exit(0 if not w.push(one).duplicate else 1)
        w._lock.release()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        if name is None:
            assert not w.push(one).duplicate and w.pull().tolist() == [3]
        else:  # the child has taken the name, as a process does that is started again
            with pytest.raises(EpochFenced):
                w.push(one)
        client.delete_parameter("forked")


def test_control_c_ends_a_call_that_waits(fleet: Fleet) -> None:
    client = fleet.client
    client.create_parameter("interrupted", "all", [1])
    story = """
import sys, chorus
w = chorus.Client(sys.argv[1]).parameter("interrupted")
print("waiting", flush=True)
try:
    w.pull(min_version=1)
except KeyboardInterrupt:
    print("interrupted", w.pull().tolist())
"""
    waiting = subprocess.Popen(
        [sys.executable, "-c", story, fleet.coordinator.url], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    )
    assert waiting.stdout is not None and waiting.stdout.readline() == "waiting\n"
    time.sleep(0.3)
    begun = time.monotonic()
    waiting.send_signal(signal.SIGINT)
    assert waiting.communicate(timeout=20)[0] == "interrupted [0.0]\n"
    assert time.monotonic() - begun < 20
    client.delete_parameter("interrupted")


def test_the_interpreter_ends_with_work_in_flight(fleet: Fleet) -> None:
    story = """
import sys, threading, chorus
client = chorus.Client(sys.argv[1])
threading.Thread(target=lambda: list(client.events()), daemon=True).start()
client.workers()
"""
    ran = subprocess.run(
        [sys.executable, "-c", story, fleet.coordinator.url], env=ENVIRONMENT, capture_output=True, timeout=20
    )
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_a_coordinator_outlives_the_thread_that_has_started_it(library: Library) -> None:
    made: list[LocalCoordinator] = []
    thread = threading.Thread(target=lambda: made.append(LocalCoordinator()))
    thread.start()
    thread.join()
    with made[0] as coordinator, Client(coordinator.url) as client:
        # The kernel has signalled the program before the thread's task is gone.
        until(lambda: str(thread.native_id) not in os.listdir("/proc/self/task"), "the thread is gone")
        assert client.workers() == []


@pytest.mark.parametrize("blocked", ["", "signal.SIGTERM, signal.SIGINT"])
def test_a_coordinator_ends_with_a_process_that_is_killed(library: Library, blocked: str) -> None:
    story = f"""
import signal
from chorus.programs import LocalCoordinator
signal.pthread_sigmask(signal.SIG_BLOCK, [{blocked}])
print(LocalCoordinator()._process.pid, flush=True)
signal.pause()
"""
    own = {"CHORUS_BIN": os.environ["CHORUS_BIN"]}
    owner = subprocess.Popen([sys.executable, "-c", story], env=ENVIRONMENT | own, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    coordinator = int(owner.stdout.readline())
    owner.kill()
    owner.wait()
    until(lambda: not alive(coordinator), "the coordinator has ended")


def test_a_worker_whose_coordinator_is_gone_says_once_that_nobody_takes_its_shards(library: Library) -> None:
    story = """
import chorus
from chorus.programs import LocalCoordinator
with LocalCoordinator() as coordinator, chorus.Client(coordinator.url) as client:
    worker = chorus.Worker(coordinator.url, "alone", drain_timeout_ms=1000)
    worker.create_group("g", ["alone"])
    client.create_parameter("w", "g", [4])
worker.close()
"""
    own = {name: os.environ[name] for name in ("CHORUS_BIN", "CHORUS_LIBRARY")}
    ran = subprocess.run([sys.executable, "-c", story], env=ENVIRONMENT | own, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("could not be asked to hand shards over") == 1, ran.stderr
