"""How the ranks of a process group become a group of a coordinator: they meet in the store of torch.distributed."""

from __future__ import annotations

import contextlib
import contextvars
import json
import uuid
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import torch
from torch.distributed import TCPStore, distributed_c10d

from ..client import Client
from ..deadline import Deadline
from ..errors import ChorusError, NoAnswer
from . import build
from .session import Guest, Lent, Session

ASK_S = 2.0  # what a request may take, also when less is left
_ENTER_S = 15.0  # what ranks that have just met may take to make a process group, before one is taken for lost
_EARLY_S = 0.1  # how much too early a wait of a store may end
_ADDRESS_BYTES = 320  # a host's name, and a port

_lent: contextvars.ContextVar[Lent | None] = contextvars.ContextVar("chorus_lent", default=None)


def enter(lent: Lent, timeout: float) -> None:
    """Makes a group's epoch the default process group of torch.distributed, with a store at rank 0.

    Parameters
    ----------
    timeout : float
        Seconds: of the store, and of each call.

    Raises
    ------
    ChorusError
        A member is lost, or late; the epoch is over.
    """
    group, limit = lent.group, timedelta(seconds=timeout)
    lent.timeout = limit
    host, address = urlsplit(lent.worker.url).hostname, bytearray(_ADDRESS_BYTES)
    try:
        if group.rank == 0:
            store = TCPStore(host, 0, group.size, True, limit, wait_for_workers=False)
            address[:] = f"{host} {store.port}".encode().ljust(_ADDRESS_BYTES)
        group.broadcast(address, timeout=timeout)
        if group.rank != 0:
            host, port = address.decode().split()
            store = TCPStore(host, int(port), group.size, False, limit, wait_for_workers=False)
        token = _lent.set(lent)  # init_process_group calls create() in this thread
        try:
            # It waits in the store for all ranks, where nobody notices that one is lost.
            distributed_c10d.init_process_group(
                "chorus",
                store=store,
                rank=group.rank,
                world_size=group.size,
                timeout=min(limit, timedelta(seconds=_ENTER_S)),
            )
        finally:
            _lent.reset(token)
    except RuntimeError as error:
        raise ChorusError(f"epoch {group.epoch} of group {group.name!r} is no process group: {error}") from error


def create(store: Any, rank: int | None, size: int, timeout: timedelta) -> Any:
    """Makes the process group of this rank: what torch.distributed calls for the backend "chorus".

    Parameters
    ----------
    store : torch.distributed.Store
        Of this process group alone.
    rank, size : int
        Of this process in the group, 0 to ``size - 1``; the number of ranks.
    timeout : timedelta
        Within which all ranks have to come, and what each call may take.

    Raises
    ------
    ValueError
        The process group has no ranks.
    NoAnswer
        Ranks have not come within `timeout`; ``ranks`` names them.
    ChorusError
        Another rank has failed, or the store; or no coordinator can be reached or started.
    """
    if rank is None or not 0 <= rank < size:  # new_group([]) comes so far, and would wait for a rank 0
        raise ValueError(f"a process group of {size} ranks, in which this process has rank {rank}")
    if lent := _lent.get():
        return _made(build.load(), store, rank, size, lent.timeout, lent.group.name, lent, lent.group.epoch)
    meeting = Meeting(store, rank, size, Deadline(timeout.total_seconds()))
    member: Session | Guest | None = None
    try:
        extension = build.load()
        shared = _session_of_default(extension)
        member = Guest(shared, store, size) if shared else Session(meeting.start, rank)
        name = meeting.make_group(member.session)
        member.join(name, _left(meeting.deadline))
        return _made(extension, store, rank, size, timeout, name, member)
    except BaseException as error:
        if member is None:
            meeting.give_up(error)
        else:
            member.abandon()
        raise


class Meeting:
    """The ranks of one process group, by what they write to its store.

    Parameters
    ----------
    store : torch.distributed.Store
        Of the process group.
    rank, size : int
        Of this process; the number of ranks.
    deadline : Deadline
        Of all that is waited for.
    """

    def __init__(self, store: Any, rank: int, size: int, deadline: Deadline) -> None:
        self.rank, self.size, self.deadline = rank, size, deadline
        self._store = store

    def start(self, begin: Callable[[], Mapping[str, str]]) -> dict[str, str]:
        """Returns what `begin` returned on rank 0."""
        if self.rank == 0:
            self._tell("start", begin)
        return self._told("start", "rank 0")

    def give_up(self, error: BaseException) -> None:
        """Tells the ranks that wait for this one why it has no worker: rank 0 waits for workers, others for the group."""
        self._write_error("group" if self.rank == 0 else f"worker/{self.rank}", error)

    def make_group(self, session: Session | Lent) -> str:
        """Makes a group of the workers of all ranks, in the order of ranks; returns its name."""
        self._tell(f"worker/{self.rank}", lambda: {"id": session.worker.id})
        if self.rank == 0:
            self._tell("group", lambda: {"name": self._make(session.url)})
        return self._told("group", "the group of rank 0")["name"]

    def _make(self, url: str) -> str:
        missing = [rank for rank in range(self.size) if not self._appears(f"worker/{rank}")]
        if missing:
            listed = f"rank {missing[0]} has" if len(missing) == 1 else f"ranks {', '.join(map(str, missing))} have"
            raise NoAnswer(f"{listed} not come within {self.deadline.seconds:g} s", ranks=missing)
        ids = [self._told(f"worker/{rank}", f"rank {rank}")["id"] for rank in range(self.size)]
        name = f"torch-{uuid.uuid4().hex[:12]}"
        with Client(url) as client:
            client.wait_for_workers(ids, timeout=_left(self.deadline))
            client.create_group(name, ids, order="listed", on_failure="fail", timeout=max(ASK_S, _left(self.deadline)))
        return name

    def _tell(self, key: str, what: Callable[[], Mapping[str, str]]) -> None:
        """Writes what `what` returns for the others, or why it could not."""
        try:
            told = dict(what())
        except Exception as error:
            self._write_error(key, error)
            raise
        self._write(key, told)

    def _write_error(self, key: str, error: BaseException) -> None:
        with contextlib.suppress(ChorusError):  # the store may be what has failed
            self._write(key, {"error": f"{type(error).__name__}: {error}"})

    def _write(self, key: str, told: Mapping[str, str]) -> None:
        try:
            self._store.set(f"chorus/{key}", json.dumps(told))
        except RuntimeError as error:
            raise self._failure(error) from error

    def _told(self, key: str, what: str) -> dict[str, str]:
        if not self._appears(key):
            raise NoAnswer(f"rank {self.rank} has waited {self.deadline.seconds:g} s for {what}", ranks=[0])
        told: dict[str, str] = json.loads(self._store.get(f"chorus/{key}"))
        if "error" in told:
            raise ChorusError(f"{what} failed: {told['error']}")
        return told

    def _appears(self, key: str) -> bool:
        left = min(max(0.01, self.deadline.within(86_400)), 86_400)
        try:
            self._store.wait([f"chorus/{key}"], timedelta(seconds=left))
        except (RuntimeError, LookupError, TimeoutError) as error:
            if self.deadline.within(_EARLY_S) < _EARLY_S:
                return False
            raise self._failure(error) from error
        return True

    def _failure(self, error: Exception) -> ChorusError:
        return ChorusError(f"rank {self.rank}: the store of torch.distributed has failed: {error}")


def _made(
    extension: Any,
    store: Any,
    rank: int,
    size: int,
    timeout: timedelta,
    group: str,
    member: Session | Guest | Lent,
    epoch: int = 0,
) -> Any:
    """Returns a process group that is `group`, in any epoch unless one is given."""
    with member.session.worker._running.handle as worker:
        made, drain = extension.make(store, rank, size, timeout.total_seconds(), worker, group, epoch, member)
    member.session.drains.append(drain)
    return made


def _session_of_default(extension: Any) -> Session | Lent | None:
    if not distributed_c10d.is_initialized():
        return None
    group = distributed_c10d._get_default_group()
    if hasattr(group, "_get_backend"):  # PyTorch 2: a process group has a backend for each device
        try:
            group = group._get_backend(torch.device("cpu"))
        except RuntimeError:
            return None
    member = extension.member_of(group)
    return None if member is None else member.session


def _left(deadline: Deadline) -> float:
    return max(0.001, deadline.within(86_400))
