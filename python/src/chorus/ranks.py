"""Processes that are ranks: each starts a worker, rank 0 makes the group, and all meet in it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from .client import Client
from .deadline import Deadline
from .errors import ChorusError
from .native.group import Group
from .native.problems import Aborted, NoNewEpoch
from .native.worker import Worker
from .problems import DeadlineExceeded, EpochFenced, PeerLost

# How a first barrier fails in an epoch of an earlier start of the same group.
_STALE = (Aborted, DeadlineExceeded, EpochFenced, NoNewEpoch, PeerLost)

ENDED = ".ended-"  # in names of groups that tell how ranks have ended, behind the name of theirs

ASK_S = 2.0  # what a request may take, also when less is left


class Place(NamedTuple):
    """Which rank of which group a process is."""

    coordinator: str
    group: str
    rank: int
    size: int

    def id(self, rank: int) -> str:
        """The worker's id of a rank."""
        return f"{self.group}.{rank}"


def init(timeout: float = 60.0, **options: Any) -> Group:
    """Makes this process the rank that its environment says, and returns when all ranks have met.

    `chorus.launch` sets the environment; so does torchrun, all but CHORUS_COORDINATOR. The group's `close` ends its
    worker as well; leaving ``with chorus.init() as group:`` waits for the other ranks first.

    =================== ================================================================================================
    CHORUS_COORDINATOR  URL of the coordinator
    RANK, WORLD_SIZE    the rank of this process, and the number of all
    CHORUS_GROUP        the group's name; without it one that is made of torchrun's TORCHELASTIC_RUN_ID,
                        TORCHELASTIC_RESTART_COUNT and MASTER_PORT
    =================== ================================================================================================

    Parameters
    ----------
    timeout : float
        Seconds within which all ranks have to come.
    **options
        Of `Worker`: ``host``, ``advertise``, ``token_file``...

    Returns
    -------
    Group
        Its ranks are those of the environment.

    Raises
    ------
    ValueError
        The environment lacks one of these, or has a value that cannot be.
    NoAnswer, NotAssigned, DeadlineExceeded
        Not all ranks came within `timeout`.

    Examples
    --------
    >>> with chorus.init() as group:
    ...     group.all_reduce(gradient, reduce="avg")
    """
    return join(place_of(os.environ), timeout, options)


def place_of(environment: Mapping[str, str]) -> Place:
    """Returns the place that an environment says."""
    missing = [name for name in ("CHORUS_COORDINATOR", "RANK", "WORLD_SIZE") if not environment.get(name)]
    if missing:
        raise ValueError(f"{', '.join(missing)} not set: start the program by python -m chorus.launch or torchrun")
    numbers = [environment[name] for name in ("RANK", "WORLD_SIZE")]
    if not all(number.isascii() and number.isdigit() for number in numbers):
        raise ValueError(f"RANK is {numbers[0]!r} and WORLD_SIZE {numbers[1]!r}, expected whole numbers")
    rank, size = (int(number) for number in numbers)
    if rank >= size:
        raise ValueError(f"RANK is {rank}, expected less than WORLD_SIZE, which is {size}")
    parts = ("TORCHELASTIC_RUN_ID", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT")
    known = [environment[name] for name in parts if environment.get(name)]
    group = environment.get("CHORUS_GROUP") or "-".join(["ranks", *known])
    return Place(environment["CHORUS_COORDINATOR"], group, rank, size)


def join(place: Place, timeout: float, options: Mapping[str, Any]) -> Group:
    """Starts the worker of a place, and returns its group when all ranks have met in a barrier."""
    deadline = Deadline(timeout)
    worker = Worker(place.coordinator, place.id(place.rank), **options)
    try:
        while True:
            if place.rank == 0:
                _make_group(place, deadline)
            try:
                group = worker.join(place.group, _left(deadline))
                group.barrier(timeout=_left(deadline))
                break
            except _STALE:
                if deadline.passed():
                    raise
        if (group.rank, group.size) != (place.rank, place.size):
            raise ChorusError(
                f"group {place.group!r} has {group.size} ranks, and this process is {group.rank} of them: expected "
                f"rank {place.rank} of {place.size}"
            )
    except BaseException:
        worker.close()
        raise
    group._ends_worker = True
    return group


def forget(client: Client, group: str, with_itself: bool = False) -> None:
    """Deletes what an earlier program with the same group has left: how its ranks ended and, if asked, the group."""
    for name in [one.name for one in client.groups()]:
        if name.startswith(group + ENDED) or (with_itself and name == group):
            with contextlib.suppress(ChorusError):
                client.delete_group(name)


def _left(deadline: Deadline) -> float:
    return max(0.001, deadline.within(86_400))


def _make_group(place: Place, deadline: Deadline) -> None:
    ids = [place.id(rank) for rank in range(place.size)]
    with Client(place.coordinator) as client:
        client.wait_for_workers(ids, timeout=_left(deadline))
        client.create_group(place.group, ids, order="listed", timeout=max(ASK_S, _left(deadline)))
