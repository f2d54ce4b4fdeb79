"""HTTP/1.1 connections that are used again, and one exchange over such a connection.

A connection belongs to one thread from request to answer, and waits in a pool in between, so that threads that come and
go (those of asyncio do) find connections that stand.
"""

from __future__ import annotations

import contextlib
import http.client
import select
import socket
import ssl
import threading
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from . import deadline as deadlines, forks
from .deadline import Deadline
from .errors import ChorusError

SLICE_BYTES = 1 << 20  # a deadline is looked at once for so many bytes
CONNECT_S = 10.0
IDLE_LIMIT = 16  # connections that wait for each origin
ERROR_BYTES = 1 << 20
KEEPALIVE = [(socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 6)]


class Origin(NamedTuple):
    """Where a service listens."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> Origin:
        parts = urllib.parse.urlsplit(url.strip() if "://" in url else f"http://{url.strip()}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"URL {url!r}: expected http://HOST:PORT or https://HOST:PORT")
        if parts.username is not None or parts.path not in ("", "/") or parts.query or parts.fragment:
            raise ValueError(f"URL of {parts.hostname}: expected scheme, host and port alone; give a token as token=")
        try:
            port = parts.port
        except ValueError as wrong:
            raise ValueError(f"URL {url!r}: {wrong}") from None
        return cls(parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class Broken(Exception):
    """A connection that could not be made, or that ended before the answer was complete."""

    def __init__(self, text: str, reused: bool = False, final: bool = False) -> None:
        super().__init__(text)
        self.reused = reused  # the service may have closed an idle connection: no sign of trouble
        self.final = final  # another attempt would end in the same way


def _readable(waited_on: socket.socket) -> bool:
    poll = select.poll()
    poll.register(waited_on, select.POLLIN)
    return bool(poll.poll(0))


class Pool:
    """Idle connections by origin; the one used last is taken first. Any thread may call."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._idle: dict[Origin, list[http.client.HTTPConnection]] = {}
        self._closed = False
        forks.watch(self)

    def _in_child(self) -> None:
        """Lets go of connections, which are the parent's."""
        self._lock, self._idle = threading.Lock(), {}

    def take(self, origin: Origin, deadline: Deadline) -> tuple[http.client.HTTPConnection, bool]:
        """Returns a connection, and whether it has been used before."""
        with self._lock:
            if self._closed:
                raise ValueError("the client is closed")
            idle = self._idle.get(origin, [])
            while idle:
                connection = idle.pop()
                if connection.sock is not None and not _readable(connection.sock):
                    return connection, True
                connection.close()
        return self._connect(origin, deadline), False

    def _connect(self, origin: Origin, deadline: Deadline) -> http.client.HTTPConnection:
        seconds = deadline.within(CONNECT_S)
        if seconds <= 0:
            raise TimeoutError
        connection: http.client.HTTPConnection
        if origin.scheme == "https":
            connection = http.client.HTTPSConnection(origin.host, origin.port, timeout=seconds, context=self._context)
        else:
            connection = http.client.HTTPConnection(origin.host, origin.port, timeout=seconds)
        connection.connect()
        # A peer that is gone without a word ends calls that have no deadline, too.
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEPALIVE:
            connection.sock.setsockopt(socket.IPPROTO_TCP, option, value)
        return connection

    def give(self, origin: Origin, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            idle = self._idle.setdefault(origin, [])
            if not self._closed and connection.sock is not None and len(idle) < IDLE_LIMIT:
                idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()


class Reader:
    """The answer to a request, read within the call's deadline."""

    def __init__(self, response: http.client.HTTPResponse, waited_on: socket.socket, deadline: Deadline) -> None:
        self._response, self._socket, self.deadline = response, waited_on, deadline
        self.status, self.reason, self.headers = response.status, response.reason, response.headers
        self.media_type = response.headers.get_content_type()
        self.length = response.length  # None: the body is chunked

    def into(self, view: memoryview) -> None:
        """Reads the body, which has to be as long as `view`, to where it shall lie."""
        if self.length is not None and self.length != len(view):
            raise Broken(f"the answer has {self.length} bytes, expected {len(view)}", final=True)
        done = 0
        while done < len(view):
            self._arm()
            count = self._response.readinto(view[done : done + SLICE_BYTES])
            if count == 0:
                raise http.client.IncompleteRead(b"", len(view) - done)
            done += count
        if self.some():
            raise Broken(f"the answer has more than the {len(view)} bytes expected", final=True)

    def all(self, limit: int | None = None) -> bytes:
        parts, count = [], 0
        while part := self.some():
            parts.append(part)
            count += len(part)
            if limit is not None and count >= limit:
                break
        return b"".join(parts)

    def some(self) -> bytes:
        """Returns what comes next; nothing at the end."""
        if self._response.isclosed():
            return b""
        self._arm()
        part = self._response.read1(SLICE_BYTES)
        if not part and self._response.length:
            raise http.client.IncompleteRead(b"", self._response.length)
        if self._response.length == 0:
            self._response.close()  # read1 leaves that to the next call; the connection stays
        return part

    def complete(self) -> bool:
        if self._response.length == 0:
            self._response.close()
        return self._response.isclosed() and not self._response.will_close

    def _arm(self) -> None:
        _arm(self._socket, self.deadline)


def _arm(waited_on: socket.socket, deadline: Deadline) -> None:
    left = deadline.left()
    if left is not None and left <= 0:
        raise TimeoutError
    waited_on.settimeout(left)


def _send(connection: http.client.HTTPConnection, content: Sequence[memoryview], deadline: Deadline) -> bool:
    """Sends a body from where it lies. Returns whether it was sent; not if the service has answered before."""
    waited_on = connection.sock
    try:
        for part in content:
            for start in range(0, len(part), SLICE_BYTES):
                # Over TLS there may be bytes that are no answer.
                if start and not isinstance(waited_on, ssl.SSLSocket) and _readable(waited_on):
                    return False
                _arm(waited_on, deadline)
                waited_on.sendall(part[start : start + SLICE_BYTES])
    except (BrokenPipeError, ConnectionResetError):
        return False  # a refusal may lie in the socket
    return True


class Request(NamedTuple):
    """What is asked of a service, whichever it is."""

    method: str
    target: str
    headers: Mapping[str, str]
    content: Sequence[memoryview] | None


@contextlib.contextmanager
def exchange(pool: Pool, origin: Origin, request: Request, deadline: Deadline) -> Iterator[Reader]:
    """Sends `request` and gives the answer. The connection goes back to the pool if all of the answer was read.

    Raises
    ------
    Broken
        No connection, or one that ended.
    TimeoutError
        The deadline has passed.
    """
    interrupt = deadlines.current()
    connection: http.client.HTTPConnection | None = None
    reused, begun, keep = False, False, False
    try:
        with interrupt.watching(None):
            connection, reused = pool.take(origin, deadline)
        waited_on = connection.sock
        with interrupt.watching(waited_on):
            _arm(waited_on, deadline)
            connection.putrequest(request.method, request.target)
            for name, value in request.headers.items():
                connection.putheader(name, value)
            if request.content is not None:
                connection.putheader("Content-Length", str(sum(len(part) for part in request.content)))
            connection.endheaders()
            sent = request.content is None or _send(connection, request.content, deadline)
            _arm(waited_on, deadline)
            response = connection.getresponse()
            begun = True
            reader = Reader(response, waited_on, deadline)
            yield reader
        keep = sent and reader.complete()
    except ChorusError:
        raise  # of whoever reads the answer; some are TimeoutErrors or OSErrors
    except ssl.SSLCertVerificationError as error:
        raise Broken(
            f"{origin}: the certificate is not trusted: {error.verify_message}; ca= names the authority", final=True
        ) from None
    except TimeoutError:
        _raise_if(interrupt)
        if connection is None and not deadline.passed():
            raise Broken(f"{origin}: no connection within {CONNECT_S:g} s") from None
        raise
    except (OSError, http.client.HTTPException) as error:
        _raise_if(interrupt)
        what = "the connection ended" if connection is not None else "no connection"
        raise Broken(f"{origin}: {what}: {error or type(error).__name__}", reused and not begun) from None
    finally:
        if connection is not None:
            pool.give(origin, connection) if keep else connection.close()


def _raise_if(interrupt: deadlines.Interrupt) -> None:
    if interrupt.interrupted:
        raise deadlines.Interrupted from None
