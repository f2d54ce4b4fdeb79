"""``python -m chorus.launch --nproc 4 train.py``: starts a program as the ranks of a group.

Each process gets CHORUS_COORDINATOR, CHORUS_GROUP, RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE; `chorus.init`
reads them. On one host it gets MASTER_ADDR and MASTER_PORT as well, which are on several hosts what they are in the
launcher's environment. The first that fails ends the others, and its status is that of the launcher.
With ``--restarts`` it is started again instead, and the others go on, as for `chorus.torch.Elastic`: CHORUS_RESTART is 0
at first, and then counts. What an earlier launch has left at the coordinator in the name of the group is deleted before.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from . import programs, ranks
from .client import Client
from .deadline import Deadline
from .errors import ChorusError

POLL_S = 0.02
UNCAUGHT = 1  # Python's status after an exception: that of the rank that fails, and of those that lose it
FORGET_S = 10.0  # what the coordinator may take for what an earlier launch has left
CAUSE_S = 1.0  # how much later than these the rank that has failed may end


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chorus.launch", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("--nproc", type=_positive, default=1, help="processes on this host (1)")
    parser.add_argument("--nnodes", type=_positive, default=1, help="hosts; needs --coordinator and --group (1)")
    parser.add_argument("--node-rank", type=int, default=0, help="number of this host, from 0 (0)")
    parser.add_argument(
        "--coordinator", default=os.environ.get("CHORUS_COORDINATOR"), help="URL; one is started without"
    )
    parser.add_argument("--group", help="the group's name; a new one without")
    parser.add_argument(
        "--restarts", type=_natural, default=0, help="how often each process that fails is started again (0)"
    )
    parser.add_argument("-m", dest="module", action="store_true", help="PROGRAM is a module, as of python -m")
    parser.add_argument("program", metavar="PROGRAM", help="a Python script")
    parser.add_argument("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="of the program")
    given = parser.parse_args(arguments)
    if not 0 <= given.node_rank < given.nnodes:
        parser.error(f"--node-rank is {given.node_rank}, expected 0 to {given.nnodes - 1}")
    if given.nnodes > 1 and not (given.coordinator and given.group):
        parser.error("several hosts need --coordinator and --group, alike on all")
    return given


def _positive(text: str) -> int:
    return _at_least(1, text)


def _natural(text: str) -> int:
    return _at_least(0, text)


def _at_least(least: int, text: str) -> int:
    number = int(text)
    if number < least:
        raise argparse.ArgumentTypeError(f"{number} is less than {least}")
    return number


def environment(
    given: argparse.Namespace, coordinator: str, group: str, port: int, local_rank: int, restart: int
) -> dict[str, str]:
    """Returns what a process finds in its environment."""
    alone = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)} if given.nnodes == 1 else {}
    return {
        **alone,
        **os.environ,
        "CHORUS_COORDINATOR": coordinator,
        "CHORUS_GROUP": group,
        "CHORUS_RESTART": str(restart),
        "RANK": str(given.node_rank * given.nproc + local_rank),
        "WORLD_SIZE": str(given.nnodes * given.nproc),
        "LOCAL_RANK": str(local_rank),
        "LOCAL_WORLD_SIZE": str(given.nproc),
    }


class Ranks:
    """The processes of this host. ``with`` ends those that run.

    Parameters
    ----------
    start : callable
        Starts the process of a local rank, given how often it was started before.
    count, restarts : int
        How many processes; how often each may be started again.
    """

    def __init__(self, start: Callable[[int, int], subprocess.Popen[str]], count: int, restarts: int) -> None:
        self._start, self._count, self._restarts = start, count, restarts
        self._running: dict[int, subprocess.Popen[str]] = {}

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *_: object) -> None:
        programs.end(list(self._running.values()))

    def status(self) -> int:
        """Starts all; returns 0 when all have ended well, or the status of the first to fail: 128 and more by a signal."""
        starts = [0] * self._count
        for rank in range(self._count):
            self._running[rank] = self._start(rank, 0)
        while self._running:
            failed = self._failed()
            if any(starts[rank] == self._restarts for rank in failed):
                return _told(self._causes(failed))
            for rank, status in failed.items():
                _told({rank: status})
                starts[rank] += 1
                self._running[rank] = self._start(rank, starts[rank])
            time.sleep(POLL_S)
        return 0

    def _failed(self) -> dict[int, int]:
        """Lets go of the processes that have ended, and returns the status of those that have failed."""
        ended = {rank: status for rank, one in self._running.items() if (status := one.poll()) is not None}
        for rank in ended:
            del self._running[rank]
        return {rank: status for rank, status in ended.items() if status != 0}

    def _causes(self, failed: dict[int, int]) -> dict[int, int]:
        """Returns those of `failed`, and of what ends soon after, that can have failed first.

        A rank that raises an exception leaves the group before its process ends, and may so end after those that have
        lost it. A signal, or another status than that of an exception, is no consequence of a loss.
        """
        deadline = Deadline(CAUSE_S)
        while True:
            causes = {rank: status for rank, status in failed.items() if status != UNCAUGHT}
            if causes or not self._running or deadline.passed():
                return dict(sorted((causes or failed).items()))
            time.sleep(POLL_S)
            failed |= self._failed()


def _told(failed: dict[int, int]) -> int:
    """Says which ranks have failed, and returns the status of the first."""
    for rank, status in failed.items():
        print(f"chorus.launch: local rank {rank} ended with {programs.described(status)}", file=sys.stderr)
    if len(failed) > 1:
        print("chorus.launch: which of these has failed first is not known: see what they say", file=sys.stderr)
    status = next(iter(failed.values()))
    return status if status > 0 else 128 - status


def forget(given: argparse.Namespace) -> None:
    """Deletes what a process that is started again could take for something of this launch.

    Rank 0 makes the group when the ranks of all hosts are there, and so when all launchers have been here; that of rank
    0 deletes the group of an earlier launch. Without the coordinator nothing is deleted: the programs say what it lacks.
    """
    if given.coordinator and given.group and given.restarts:
        with contextlib.suppress(ChorusError), Client(given.coordinator, timeout=FORGET_S) as client:
            ranks.forget(client, given.group, with_itself=given.node_rank == 0)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _stop(number: int, _: Any) -> None:
    sys.exit(128 + number)


def main(arguments: Sequence[str] | None = None) -> int:
    given = parsed(arguments)
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    command = [sys.executable, *(["-m"] if given.module else []), given.program, *given.arguments]
    with contextlib.ExitStack() as stack:
        coordinator = given.coordinator or stack.enter_context(programs.LocalCoordinator()).url
        forget(given)
        group, port = given.group or f"launch-{uuid.uuid4().hex[:12]}", _free_port()

        def start(local_rank: int, restart: int) -> subprocess.Popen[str]:
            own = environment(given, coordinator, group, port, local_rank, restart)
            return subprocess.Popen(command, env=own, text=True, preexec_fn=programs.end_with_parent)

        status = stack.enter_context(Ranks(start, given.nproc, given.restarts)).status()
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ChorusError as error:
        sys.exit(f"chorus.launch: {error}")
