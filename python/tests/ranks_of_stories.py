"""Functions that `chorus.run` calls in other processes."""

import os
import signal
import sys
from typing import Any

import numpy

import chorus


def sums(group: chorus.Group, factor: float) -> tuple[int, list[float]]:
    return group.rank, group.all_reduce(numpy.full(3, factor * (group.rank + 1))).tolist()


def members(group: chorus.Group) -> list[str]:
    return group.members


def fails_on_one(group: chorus.Group) -> None:
    group.barrier()
    if group.rank == 1:
        raise ZeroDivisionError("rank 1 divides")
    group.all_reduce(numpy.ones(3))  # has no partner any more


def cannot_be_sent(group: chorus.Group) -> Any:
    return lambda: None


class Unpicklable(Exception):
    """An exception that pickle makes of too few arguments."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def raises_what_cannot_be_sent(group: chorus.Group) -> None:
    raise Unpicklable(1, 2)


def waits_for_ever(group: chorus.Group) -> None:
    if group.rank == 0:
        group.barrier(timeout=600)
    signal.pause()


def own_pids(group: chorus.Group, path: str) -> None:
    with open(f"{path}/{group.rank}", "w") as file:
        file.write(str(os.getpid()))
    group.barrier()
    if group.rank == 1:
        raise RuntimeError("ended")
    group.barrier(timeout=600)


def ends_on_one(group: chorus.Group, how: str) -> None:
    group.barrier()
    if group.rank == 1:
        match how:
            case "raise SystemExit":
                raise SystemExit(3)
            case "exit of a text":
                sys.exit("no data")
            case "exit of 0":
                sys.exit(0)
            case "_exit":
                os._exit(4)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "kill with a child":
                if os.fork() == 0:  # has the rank's end of the pipe as well
                    signal.alarm(30)
                    signal.pause()
                os.kill(os.getpid(), signal.SIGKILL)
    group.barrier()
