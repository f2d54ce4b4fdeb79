"""Requests that are repeated where that is safe: over broken connections, redirections, and where a service says when.

Every request of this package may be repeated: it is idempotent by its method (RFC 9110, 9.2.2), or carries an
Idempotency-Key or a sequence number.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pathlib
import ssl
import threading
import urllib.parse
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from . import connections, deadline as deadlines, errors
from .connections import Broken, Origin, Reader, Request
from .deadline import Deadline
from .native.options import whole

T = TypeVar("T")
Token = str | os.PathLike[str] | Callable[[], str] | None

log = logging.getLogger("chorus")
REDIRECTIONS = 5
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0


class Origins:
    """The services that may answer, the one that answered last first: one worker, or a coordinator and its standbys."""

    def __init__(self, urls: str | Sequence[str]) -> None:
        if not isinstance(urls, Sequence):
            raise TypeError(f"url is {urls!r}, expected a string or a sequence of strings")
        listed = urls.split(",") if isinstance(urls, str) else urls
        self._origins = [Origin.of(url) for url in listed]
        if not self._origins:
            raise ValueError("no URL is given")
        self._lock = threading.Lock()

    def first(self) -> Origin:
        return self._origins[0]

    def several(self) -> bool:
        return len(self._origins) > 1

    def __len__(self) -> int:
        return len(self._origins)

    def prefer(self, origin: Origin) -> None:
        with self._lock:
            self._origins = [origin, *(one for one in self._origins if one != origin)]

    def redirected(self, origin: Origin, location: str) -> Origin:
        """Prefers where `origin` redirects to, and returns that."""
        try:
            parts = urllib.parse.urlsplit(urllib.parse.urljoin(str(origin), location))
            other = Origin.of(f"{parts.scheme}://{parts.netloc}")
        except ValueError:
            raise errors.ConnectionFailed(f"{origin} redirects to {location!r}, which is no URL") from None
        if origin.scheme == "https" and other.scheme != "https":
            raise errors.ConnectionFailed(f"{origin} redirects to {other}, which is not encrypted")
        self.prefer(other)
        return other

    def pass_over(self, passed: Sequence[Origin]) -> None:
        """Moves these to the end, in this order, if one of them is still the first."""
        with self._lock:
            if self._origins[0] in passed:
                self._origins = [*(one for one in self._origins if one not in passed), *dict.fromkeys(passed)]

    def __str__(self) -> str:
        return ", ".join(str(origin) for origin in self._origins)


def target(path: str, query: Mapping[str, Any] | None = None) -> str:
    """Returns path and query, without the query's fields that are None."""
    given = {name: value for name, value in (query or {}).items() if value is not None}
    return f"{path}?{urllib.parse.urlencode(given)}" if given else path


def quoted(name: str, keep: str = "") -> str:
    """Returns `name` as one segment of a path; as several, where slashes are kept."""
    if name in ("", ".", ".."):
        raise ValueError(f"{name!r} is no name")
    return urllib.parse.quote(name, safe=keep)


def new_key() -> str:
    """Returns an Idempotency-Key."""
    return uuid.uuid4().hex


def json_of(reader: Reader) -> Any:
    """Reads an answer that is JSON; None where there is no body."""
    body = reader.all()
    if not body:
        return None
    try:
        return json.loads(body)
    except ValueError as wrong:
        raise errors.ChorusError(f"the answer is not JSON: {wrong}", status=reader.status) from None


class Transport:
    """Sends requests for a client. Any thread may call.

    Parameters
    ----------
    token : str, path, callable or None
        The token; a file whose first line is the token, or a function, is read again for every request.
    context : ssl.SSLContext
        Of connections to https.
    retries : int
        How often a request whose connection breaks, or whose proxy has no service, is sent again.
    """

    def __init__(self, token: Token, context: ssl.SSLContext, retries: int) -> None:
        if whole("retries", retries) < 0:
            raise ValueError(f"retries is {retries}, expected 0 or more")
        self._token = token
        self._pool = connections.Pool(context)
        self._retries = retries

    def close(self) -> None:
        self._pool.close()

    def json(self, method: str, path: str, message: Any = None, **how: Any) -> Any:
        """Sends a message and returns the answer's JSON."""
        if message is not None:
            how["content"] = [memoryview(json.dumps(message).encode())]
            how["headers"] = {"Content-Type": "application/json", **(how.get("headers") or {})}
        return self.call(method, path, read=json_of, **how)

    def call(
        self,
        method: str,
        path: str,
        *,
        to: Origins,
        deadline: Deadline,
        read: Callable[[Reader], T],
        headers: Mapping[str, str] | None = None,
        content: Sequence[memoryview] | None = None,
        patient: bool = True,
        retries: int | None = None,
    ) -> T:
        """Sends a request until it is answered, and returns what `read` makes of the answer.

        Parameters
        ----------
        method, path : str
            The request; the path with its query.
        to : Origins
            Who may answer.
        deadline : Deadline
            Of all attempts together.
        read : callable
            Reads an answer of status 2xx or 304; called again where the connection broke meanwhile.
        headers, content
            The request's fields, and its body from where it lies.
        patient : bool
            Whether to wait where the answer says when to ask again (`Retry-After`).
        retries : int, optional
            As of the transport.
        """
        if method in ("PUT", "POST") and content is None:
            content = []
        request = Request(method, path, headers or {}, content)
        repetitions = _Repetitions(self._retries if retries is None else retries, to, deadline)
        while True:
            origin = repetitions.origin
            try:
                with self.exchange(origin, request, deadline) as reader:
                    if reader.status < 300 or reader.status == 304:
                        return read(reader)
                    status, fields, body = reader.status, reader.headers, reader.all(connections.ERROR_BYTES)
            except Broken as broken:
                repetitions.failed(broken)
                continue
            except errors.ChorusError:
                raise
            except TimeoutError:
                within = "" if deadline.seconds is None else f" within {deadline.seconds:g} s"
                raise errors.NoAnswer(f"{method} {path}: no answer of {origin}{within}") from None
            if status in (307, 308):
                repetitions.redirected(fields.get("Location", ""), patient)
                continue
            error = errors.from_answer(status, reader.reason, reader.media_type, body, str(origin))
            after = fields.get("Retry-After", "")
            if error.retry_after_s is None and after.isdigit():
                error.retry_after_s = int(after)
            if method == "DELETE" and status == 404 and repetitions.broken:
                raise _Gone from error
            repetitions.refused(error, patient)

    def delete(self, path: str, **how: Any) -> None:
        """Deletes; what is gone when a broken DELETE is repeated was deleted by it."""
        with contextlib.suppress(_Gone):
            self.call("DELETE", path, read=lambda reader: reader.all(), **how)

    @contextlib.contextmanager
    def exchange(self, origin: Origin, request: Request, deadline: Deadline) -> Iterator[Reader]:
        """Sends a request once. Errors are those of `connections.exchange`."""
        token = self._read_token()
        if token:
            request = request._replace(headers={"Authorization": f"Bearer {token}", **request.headers})
        with connections.exchange(self._pool, origin, request, deadline) as reader:
            yield reader

    def _read_token(self) -> str | None:
        if self._token is None or isinstance(self._token, str):
            return self._token
        if callable(self._token):
            return self._token()
        return pathlib.Path(self._token).read_text().split("\n", 1)[0].strip()


class _Gone(Exception):
    pass


class _Repetitions:
    """Decides whether, when and where one request is sent again."""

    def __init__(self, retries: int, to: Origins, deadline: Deadline) -> None:
        self.origin = to.first()
        self.broken = False
        self._left, self._to, self._deadline = retries, to, deadline
        self._redirecting: list[Origin] = []  # since the last pause
        self._pause_s = FIRST_PAUSE_S

    def redirected(self, location: str, patient: bool) -> None:
        """Turns to where the service redirects to. If that has redirected as well, none leads: waits, or raises it."""
        here = self.origin
        self._redirecting.append(here)
        self.origin = self._to.redirected(here, location)
        if self.origin in self._redirecting or len(self._redirecting) > REDIRECTIONS:
            where = "itself" if self.origin == here else f"{self.origin}, which redirects as well"
            why = f"no coordinator leads at present: {here} redirects to {where}"
            problem = {"code": "unavailable", "status": 503, "detail": why, "retryable": True, "retry_after_s": 1}
            self.refused(errors.from_problem(problem), patient)

    def refused(self, error: errors.ChorusError, patient: bool) -> None:
        """Waits as long as the answer says, or raises it. A proxy without its service is a broken connection."""
        after = error.retry_after_s
        if not error.code and error.retryable and after is None:
            return self.failed(Broken(error.detail))
        left = self._deadline.left()
        if not patient or error.status not in (429, 503) or after is None or (left is not None and left <= after):
            raise error
        log.debug("%s: %s; asked again in %d s", self.origin, error, after)
        self._turn()
        deadlines.pause(max(after, FIRST_PAUSE_S) / 0.75)

    def failed(self, broken: Broken) -> None:
        """Waits a little, and turns to the next service if there are several; raises if it was tried often enough."""
        self.broken = True
        if broken.reused:
            return
        if broken.final or self._left == 0 or self._deadline.passed():
            raise errors.ConnectionFailed(str(broken), retryable=not broken.final) from None
        log.debug("%s; sent again", broken)
        self._left -= 1
        self._turn()
        deadlines.pause(self._deadline.within(self._pause_s))
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def _turn(self) -> None:
        """Turns to a service that is neither this one nor one that has redirected to it, if there is one."""
        self._to.pass_over([*self._redirecting, self.origin])
        self._redirecting.clear()
        self.origin = self._to.first()
