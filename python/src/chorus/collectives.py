"""Collectives that the coordinator launches, their records, and dry runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .base import Caller
from .codec import body, decode, encode
from .deadline import Deadline
from .errors import ChorusError, NoAnswer, from_problem
from .messages import CollectiveRecord, PlanAnswer, RunProgress, SimulationAnswer
from .transport import Origins, new_key, quoted, target

WAIT_S = 30.0  # how long one request waits for the end of a collective
SLACK_S = 10.0  # and how much later its answer may come
PROGRESS_S = 2.0  # how long each worker is waited for
ENDED = ("succeeded", "failed", "cancelled")


class Collectives(Caller):
    """The part of `chorus.Client` about collectives."""

    def run(
        self,
        op: str,
        group: str,
        tensor: str | None = None,
        *,
        output: str | None = None,
        reduce: str | None = None,
        root: int | None = None,
        counts: Sequence[int] | None = None,
        algorithm: str | None = None,
        algorithm_shape: Sequence[int] | None = None,
        local_algorithm: str | None = None,
        arity: int | None = None,
        epoch: int | None = None,
        timeout_ms: int | None = None,
        in_place: bool | None = None,
        on_failure: str | None = None,
        reproducible: bool | None = None,
        compression: str | Mapping[str, Any] | None = None,
        error_feedback: bool | None = None,
        schedule: Mapping[str, int] | None = None,
        validate_only: bool = False,
        wait: bool = True,
        key: str | None = None,
        on_progress: Callable[[CollectiveRecord], None] | None = None,
        timeout: float | None = None,
    ) -> CollectiveRecord:
        """Launches a collective on every rank of a group, and waits for its end.

        Fields that are not listed are those of a launch (docs/guides/collectives.md).

        Parameters
        ----------
        op : str
            ``"all_reduce"``, ``"reduce"``, ``"broadcast"``, ``"all_gather"``, ``"reduce_scatter"``, ``"gather"``,
            ``"scatter"``, ``"all_to_all"`` or ``"barrier"``.
        group, tensor : str
            The group, and the name that the tensor has on every rank's worker.
        timeout_ms : int, optional
            By when the collective has to have ended; what the group has shown to need unless given.
        validate_only : bool
            Admit and plan it, run nothing, leave no trace.
        wait : bool
            Whether to wait for its end; if not, the record says how it stands, and `wait` waits.
        key : str, optional
            The Idempotency-Key; drawn anew unless given. The same key is the same collective.
        on_progress : callable, optional
            Called with the record about twice a second while it runs.
        timeout : float, optional
            Seconds to wait for its end; without it until it ends, which `timeout_ms` bounds.

        Returns
        -------
        CollectiveRecord
            Algorithm, reason, prediction, and times and bytes of every rank.

        Raises
        ------
        ChorusError
            It was refused or has failed: the exception of the problem's code, such as `chorus.Mismatch` or
            `chorus.PeerLost`, with `ranks`; of one that ran with its `record`.
        NoAnswer
            It has not ended within `timeout`, and goes on.
        """
        deadline = Deadline(timeout)
        message = body(
            group=group,
            op=op,
            tensor=tensor,
            output=output,
            reduce=reduce,
            counts=counts,
            local_algorithm=local_algorithm,
            algorithm=algorithm,
            root=root,
            arity=arity,
            algorithm_shape=algorithm_shape,
            epoch=epoch,
            timeout_ms=timeout_ms,
            in_place=in_place,
            on_failure=on_failure,
            reproducible=reproducible,
            compression=compression,
            error_feedback=error_feedback,
            schedule=schedule,
        )
        waits = wait and not validate_only
        wait_s = _step(deadline, on_progress) if waits else 0.0
        query = {"validate_only": "true" if validate_only else None, "wait": _wait(wait_s)}
        answer = self._transport.json(
            "POST",
            target("/v1/collectives", query),
            message,
            to=self._origins,
            deadline=self._deadline(timeout if not waits else wait_s + SLACK_S),
            headers={"Idempotency-Key": key or new_key()},
        )
        record = decode(CollectiveRecord, answer)
        return self._ended(record, deadline, on_progress, answer) if waits else record

    def wait(
        self,
        id: str,
        *,
        on_progress: Callable[[CollectiveRecord], None] | None = None,
        timeout: float | None = None,
    ) -> CollectiveRecord:
        """Waits for the end of a collective, and returns or raises as `run` does."""
        deadline = Deadline(timeout)
        answer = self._record(id, _step(deadline, on_progress))
        return self._ended(decode(CollectiveRecord, answer), deadline, on_progress, answer)

    def record(self, id: str, *, timeout: float | None = None) -> CollectiveRecord:
        """Returns the record of one collective, however it stands."""
        return decode(CollectiveRecord, self._ask("GET", f"/v1/collectives/{quoted(id)}", timeout=timeout))

    def records(self, *, timeout: float | None = None) -> list[CollectiveRecord]:
        """Returns the records that the coordinator has, the latest first."""
        return self._list(CollectiveRecord, "/v1/collectives", timeout)

    def cancel(self, id: str, *, timeout: float | None = None) -> CollectiveRecord:
        """Cancels a collective; tensors stay as they were. Returns its record as it stands now."""
        return decode(CollectiveRecord, self._ask("DELETE", f"/v1/collectives/{quoted(id)}", timeout=timeout))

    def trace(self, id: str, *, timeout: float | None = None) -> Any:
        """Returns what every rank did when, in Chrome's trace event format."""
        return self._ask("GET", f"/v1/collectives/{quoted(id)}/trace", timeout=timeout)

    def progress(self, id: str, *, timeout: float | None = None) -> list[RunProgress]:
        """Returns where every rank of a running collective stands, asked of its worker.

        Ranks whose worker does not answer within `timeout` (2 s), or has ended its part, are left out.
        """
        record = self.record(id, timeout=timeout)
        if record.state != "running":
            return []
        found = []
        for member in _urls(self._ask("GET", f"/v1/groups/{quoted(record.request.group)}", timeout=timeout)):
            path = f"/v1/runs/{record.run}/progress"
            try:
                answer = self._ask("GET", path, to=Origins(member), timeout=timeout or PROGRESS_S, patient=False)
                found.append(decode(RunProgress, answer))
            except ChorusError:
                continue
        return sorted(found, key=lambda one: one.rank)

    def plan(self, *, timeout: float | None = None, **fields: Any) -> PlanAnswer:
        """Returns what would be chosen, why, and every move of it. Nothing runs.

        Parameters
        ----------
        **fields
            Those of a plan request: `group`, or `ranks` with `topology`, `localities` or `links`; `op`, `bytes`,
            `dtype`, `algorithm`, `root`, `arity`, `algorithm_shape`, `reproducible`, `compression`.
        """
        return decode(PlanAnswer, self._ask("POST", "/v1/plans", encode(fields), timeout=timeout))

    def simulate(self, *, timeout: float | None = None, **fields: Any) -> SimulationAnswer:
        """Returns what algorithms would take on a network that is described; `fields` are those of the request."""
        return decode(SimulationAnswer, self._ask("POST", "/v1/simulations", encode(fields), timeout=timeout))

    def _record(self, id: str, wait_s: float) -> Any:
        path = target(f"/v1/collectives/{quoted(id)}", {"wait": _wait(wait_s)})
        return self._transport.json("GET", path, to=self._origins, deadline=self._deadline(wait_s + SLACK_S))

    def _ended(
        self,
        record: CollectiveRecord,
        deadline: Deadline,
        on_progress: Callable[[CollectiveRecord], None] | None,
        answer: Any,
    ) -> CollectiveRecord:
        while record.state not in ENDED:
            if on_progress is not None:
                on_progress(record)
            if deadline.passed():
                raise NoAnswer(
                    f"collective {record.id} is {record.state} and has not ended within {deadline.seconds:g} s",
                    record=record,
                )
            answer = self._record(record.id, _step(deadline, on_progress))
            record = decode(CollectiveRecord, answer)
        if record.state == "succeeded":
            return record
        problem = answer.get("error") or {"code": "cancelled", "detail": f"collective {record.id} was cancelled"}
        raise from_problem(problem, record)


def _urls(group: Any) -> list[str]:
    return [member["url"] for member in group["members"]]


def _step(deadline: Deadline, on_progress: object) -> float:
    return deadline.within(WAIT_S if on_progress is None else 0.5)


def _wait(seconds: float) -> str | None:
    return f"{max(1, round(1000 * seconds))}ms" if seconds > 0 else None
