"""Workers and groups, as the coordinator knows them."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import TypeVar

from .base import Caller
from .codec import body, decode
from .deadline import Deadline, pause
from .errors import ChorusError, NoAnswer
from .messages import GroupInfo, WorkerInfo
from .transport import Origins, new_key, quoted
from .workers import RemoteWorker

T = TypeVar("T")
POLL_S = 0.1


class Groups(Caller):
    """The part of `chorus.Client` about workers and groups."""

    def workers(self, *, timeout: float | None = None) -> list[WorkerInfo]:
        """Returns the workers that the coordinator knows, lost ones among them."""
        return self._list(WorkerInfo, "/v1/workers", timeout)

    def worker(self, id: str, *, url: str | None = None, timeout: float | None = None) -> RemoteWorker:
        """Returns one worker, to put and get its tensors.

        Parameters
        ----------
        id : str
            The worker's id.
        url : str, optional
            Where it is reached; what it advertises unless given.
        """
        where = url or decode(WorkerInfo, self._ask("GET", f"/v1/workers/{quoted(id)}", timeout=timeout)).url
        return RemoteWorker(self._transport, Origins(where), self._timeout, id)

    def wait_for_workers(self, workers: int | Sequence[str], *, timeout: float | None = None) -> list[WorkerInfo]:
        """Waits until workers are ready, and returns all that are.

        Parameters
        ----------
        workers : int or list of str
            How many, or which.

        Raises
        ------
        NoAnswer
            They are not within `timeout`.
        """
        missing: list[str] = []
        count, names = _count_or_names(workers)

        def ready() -> list[WorkerInfo] | None:
            nonlocal missing
            found = [worker for worker in self.workers() if worker.state == "ready"]
            if count is not None:
                return found if len(found) >= count else None
            missing = sorted(set(names) - {worker.id for worker in found}, key=names.index)
            return None if missing else found

        def what() -> str:
            if count is not None:
                return f"{count} workers are ready"
            return f"workers {', '.join(missing[:8])} are ready, {len(missing)} of {len(names)}"

        return _until(ready, self._deadline(timeout), what)

    def groups(self, *, timeout: float | None = None) -> list[GroupInfo]:
        """Returns the groups."""
        return self._list(GroupInfo, "/v1/groups", timeout)

    def group(self, name: str, *, timeout: float | None = None) -> GroupInfo:
        """Returns one group: its epoch, members in the order of their ranks, and choice of algorithms."""
        return decode(GroupInfo, self._ask("GET", f"/v1/groups/{quoted(name)}", timeout=timeout))

    def create_group(
        self,
        name: str,
        workers: Sequence[str] | int,
        *,
        order: str | None = None,
        on_failure: str | None = None,
        min_ranks: int | None = None,
        timeout: float | None = None,
    ) -> GroupInfo:
        """Makes a group, or the next epoch of one that is there.

        Parameters
        ----------
        name : str
            The group's name.
        workers : list of str, or int
            Its members; or how many, which takes the ready workers that stand closest together.
        order : str, optional
            ``"locality"``, ``"measured"`` or ``"listed"``: how ranks are given. Listed, rank r is ``workers[r]``.
        on_failure : str, optional
            ``"shrink"``: the group goes on without a member that is lost; ``"fail"``.
        min_ranks : int, optional
            The fewest members to which the group may shrink.
        """
        count, names = _count_or_names(workers)
        message = body(
            workers=names if count is None else None,
            size=count,
            order=order,
            on_failure=on_failure,
            min_ranks=min_ranks,
        )
        path = f"/v1/groups/{quoted(name)}"
        headers = {"Idempotency-Key": new_key()}
        return decode(GroupInfo, self._ask("PUT", path, message, headers=headers, timeout=timeout))

    def delete_group(self, name: str, *, timeout: float | None = None) -> None:
        """Deletes a group."""
        self._transport.delete(f"/v1/groups/{quoted(name)}", to=self._origins, deadline=self._deadline(timeout))

    def wait_for_group(self, name: str, *, after_epoch: int = 0, timeout: float | None = None) -> GroupInfo:
        """Waits until a group stands: every member has taken its epoch, and none is lost.

        Parameters
        ----------
        after_epoch : int
            An epoch that is over: waits for a later one, as of a group that shrinks.
        """
        seen = "no group has that name"

        def stands() -> GroupInfo | None:
            nonlocal seen
            try:
                group = self.group(name)
            except ChorusError as error:
                if error.code != "unknown_group":
                    raise
                return None
            seen = f"it is {group.state} in epoch {group.epoch}"
            return group if group.state == "ready" and group.epoch > after_epoch else None

        return _until(stands, self._deadline(timeout), lambda: f"group {name!r} stands: {seen}")


def _count_or_names(workers: Sequence[str] | int) -> tuple[int | None, list[str]]:
    """Returns how many workers are meant; or None, and which."""
    if isinstance(workers, (int, numbers.Integral)):
        return int(workers), []
    if isinstance(workers, str):
        raise TypeError("workers is a string, expected a sequence of strings")
    return None, list(workers)


def _until(condition: Callable[[], T | None], deadline: Deadline, what: Callable[[], str]) -> T:
    while True:
        value = condition()
        if value is not None:
            return value
        if deadline.passed():
            raise NoAnswer(f"waited {deadline.seconds:g} s in vain until {what()}")
        pause(deadline.within(POLL_S))
