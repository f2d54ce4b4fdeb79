"""What every call of the package may raise."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from .messages import CollectiveRecord, FieldError

_by_code: dict[str, type[ChorusError]] = {}


class ChorusError(Exception):
    """A problem that a service or this package tells of; the base of all exceptions of the package.

    Attributes
    ----------
    code : str
        The problem's code, such as ``"mismatch"``; empty where no service has answered. Each code has an exception of
        its own (``mismatch``: `chorus.Mismatch`); a code that this release does not know is a plain `ChorusError`.
    status : int
        The HTTP status, or 0.
    title, detail : str
        What the code means, and what is wrong here.
    retryable : bool
        Whether the same request may succeed later.
    retry_after_s : int or None
        When to ask again.
    ranks : list of int
        The ranks to blame.
    errors : list of FieldError
        The fields that are wrong, as JSON pointers into the request.
    instance : str
        The path of the request, where the service gives it.
    record : CollectiveRecord or None
        Of a collective that ran and failed: its record.
    """

    _code: ClassVar[str] = ""

    def __init_subclass__(cls, code: str = "", **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if code:
            cls._code = code
            _by_code[code] = cls

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        status: int = 0,
        title: str = "",
        retryable: bool = False,
        retry_after_s: int | None = None,
        ranks: list[int] | None = None,
        errors: list[FieldError] | None = None,
        instance: str = "",
        record: CollectiveRecord | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = self._code if code is None else code
        self.status = status
        self.title = title
        self.detail = detail
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.ranks = ranks or []
        self.errors = errors or []
        self.instance = instance
        self.record = record

    def __str__(self) -> str:
        text = f"{self.title}: {self.detail}" if self.title else self.detail
        return f"{text} ({self.code})" if self.code else text

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (type(self), self.detail, self.__dict__))


def _restored(kind: type[ChorusError], detail: str, attributes: dict[str, Any]) -> ChorusError:
    error = kind(detail)
    error.__dict__.update(attributes)
    return error


class ConnectionFailed(ChorusError, ConnectionError):
    """No service could be reached, or the connection broke before the answer had arrived."""


class NoAnswer(ChorusError, TimeoutError):
    """The deadline of a call passed before the answer had arrived. What was asked for may have been done."""


class PushInDoubt(ChorusError):
    """An earlier push of this handle may have been applied: it has to be repeated before the next one."""


def from_problem(problem: dict[str, Any], record: CollectiveRecord | None = None) -> ChorusError:
    """Returns the exception of a problem+json document."""
    code = str(problem.get("code", ""))
    retry_after = problem.get("retry_after_s")
    return _by_code.get(code, ChorusError)(
        str(problem.get("detail", "")),
        code=code,
        status=int(problem.get("status", 0)),
        title=str(problem.get("title", "")),
        retryable=bool(problem.get("retryable", False)),
        retry_after_s=None if retry_after is None else int(retry_after),
        ranks=[int(rank) for rank in problem.get("ranks", [])],
        errors=[FieldError(str(e.get("pointer", "")), str(e.get("detail", ""))) for e in problem.get("errors", [])],
        instance=str(problem.get("instance", "")),
        record=record,
    )


def from_answer(status: int, reason: str, media_type: str, body: bytes, origin: str) -> ChorusError:
    """Returns the exception of an answer that is no success, also of one that no service of Chorus has sent.

    The latter is retryable if a proxy says that the service is away.
    """
    if media_type == "application/problem+json":
        try:
            problem = json.loads(body)
        except ValueError:
            problem = None
        if isinstance(problem, dict):
            return from_problem(problem)
    text = body[:200].decode("utf-8", "replace").strip()
    detail = f"{origin} answered {status} {reason}, which is no answer of Chorus: {text}"
    return ChorusError(detail, status=status, retryable=status in (502, 503, 504))
