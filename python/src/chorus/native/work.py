"""Collectives that were begun, and what waits for them."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import itertools
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from ..cuda.results import NONE, Results
from ..deadline import Deadline
from ..errors import ChorusError, NoAnswer
from ..problems import Cancelled
from . import abi
from .library import Library

SLICE_S = 0.1  # how long a wait keeps the interpreter from running a signal's handler

_NULL = ctypes.c_void_p()  # of requests that were freed


class Request:
    """A request of the library, and the arrays that it uses until it has ended.

    Parameters
    ----------
    library : Library
        Makes the request.
    keep : object
        What has to live until it has ended.

    Attributes
    ----------
    pointer : ctypes.c_void_p
        Where the library puts the request; NULL before it has begun.
    """

    def __init__(self, library: Library, keep: Any) -> None:
        self.library, self._keep = library, keep
        self.pointer = ctypes.c_void_p()
        # The library takes one thread at a time. Recursive: a signal's handler looks at the request in the midst of a
        # look, and Ctrl-C between acquire() and `try` leaves it locked for the thread that closes the worker next.
        self._lock = threading.RLock()
        self._users = 0  # calls with the pointer: several where a signal's handler has interrupted one
        self._pid = os.getpid()
        self.error: ChorusError | None = None
        self.ended = False

    def check_process(self) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError(f"the call was begun by process {self._pid}, and this is its child by fork()")

    @contextlib.contextmanager
    def held(self, seconds: float = -1) -> Iterator[bool]:
        """Looks at the request alone; gives False where another thread does and goes on for `seconds`."""
        if not self._lock.acquire(timeout=seconds):
            yield False
            return
        try:
            yield True
        finally:
            self._lock.release()

    def test(self) -> bool:
        """Whether it has ended, without waiting: False as well while another thread looks at it."""
        if self.ended:
            return True
        with self.held(0) as alone:
            return alone and self._ended_by("chorus_request_test")

    def wait(self, seconds: float) -> bool:
        """Waits for at most `seconds`; returns whether it has ended."""
        with self.held(seconds) as alone:
            return alone and self._ended_by("chorus_request_wait_for", round(1000 * seconds))

    def cancel(self) -> bool:
        """Cancels the receive; returns whether it is cancelled, now or before."""
        with self.held():
            if self.ended or not self.pointer:
                return isinstance(self.error, Cancelled)
            status, error = self._call("chorus_request_cancel")
            if error is not None and status != abi.NOT_CANCELLABLE:
                raise error
            return error is None

    def finish(self) -> None:
        """Waits for the end, however long it takes."""
        with self.held():
            self._ended_by("chorus_request_wait")

    def _ended_by(self, function: str, *arguments: Any) -> bool:
        if self.ended or not self.pointer:
            return self.ended
        status, error = self._call(function, *arguments)
        if status != abi.PENDING and not self.ended:  # a handler may have seen the end already
            self.error, self.ended = error, True
        if self.ended and self._users == 0 and self.pointer:
            pointer, self.pointer = self.pointer, _NULL
            self.library.functions["chorus_request_free"](pointer)
            self._keep = None
        return self.ended

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Keeps the pointer, also where a signal's handler sees the end."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1

    def _call(self, function: str, *arguments: Any) -> tuple[int, ChorusError | None]:
        self._users += 1
        try:
            return self.library.status(function, self.pointer, *arguments)
        finally:
            self._users -= 1


class Requests:
    """The requests of a worker that have not ended: arrays of a `Work` that was dropped live until its call ends."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._open: collections.deque[Request] = collections.deque()

    def add(self, request: Request) -> None:
        """Keeps a request, and lets go of others that have ended: it looks at two of them, each in its turn."""
        with self._lock:
            for first in list(itertools.islice(self._open, 2)):
                if first.test():
                    self.drop(first)
                else:
                    self._open.rotate(-1)
            self._open.append(request)

    def drop(self, request: Request) -> None:
        """Lets go of a request that has ended, or has not begun."""
        with self._lock:
            if self._open and self._open[-1] is request:
                self._open.pop()
            elif request in self._open:
                self._open.remove(request)

    def finish(self) -> None:
        """Waits for the end of all; after the worker has stopped that is soon."""
        with self._lock:
            left, self._open = list(self._open), collections.deque()
        for request in left:
            request.finish()


class Work:
    """A collective or message that was begun with ``async_op=True``. Any thread may ask.

    Its arrays are used until it has ended: do not read what it writes, nor write what it reads, before then. Its
    timeout ends it, and the worker's close; a receive also `cancel`. A `Work` that is dropped goes on.

    Arrays on GPUs have their results when `wait` has returned, or `done` has returned True, and not if the `Work` is
    dropped before. Other calls do not take them until then.
    """

    def __init__(
        self, request: Request, requests: Requests, result: Any, owner: object, results: Results = NONE
    ) -> None:
        self._request, self._requests, self._result = request, requests, result
        self._owner = owner  # the group, and by it the worker
        self._results = results  # on GPUs

    def __repr__(self) -> str:
        return f"Work({'ended' if self._request.ended else 'not known to have ended'})"

    def done(self) -> bool:
        """Whether it has ended, well or not; never waits for that."""
        self._request.check_process()
        return self._ended(self._request.test())

    def wait(self, timeout: float | None = None) -> Any:
        """Waits for the end. Signals are handled meanwhile: Ctrl-C leaves the wait, and the collective goes on.

        Parameters
        ----------
        timeout : float, optional
            Seconds; without it until the collective ends, which its own timeout bounds.

        Returns
        -------
        array, list of arrays or None
            What the blocking call returns.

        Raises
        ------
        ChorusError
            The collective failed: `chorus.PeerLost`, `chorus.Mismatch` and others, with `ranks`. Or its result could
            not be copied to a GPU: `chorus.DeviceFailed`.
        NoAnswer
            It has not ended within `timeout`, and goes on.
        """
        self._request.check_process()
        deadline = Deadline(timeout)
        while not self._request.wait(deadline.within(SLICE_S)):
            if deadline.passed():
                raise NoAnswer(f"the collective has not ended within {timeout:g} s, and goes on")
        self._ended(True)
        return self.result

    def cancel(self) -> bool:
        """Cancels a receive that no message has met; a message that arrives later goes to the next receive.

        Collectives, sends and `sendrecv` are never cancelled: other members count on them.

        Returns
        -------
        bool
            True if it is cancelled, now or before: `wait` raises `chorus.Cancelled`, and the array is free. False: it
            has ended, or has met its message, or is no receive; it goes on.
        """
        self._request.check_process()
        cancelled = self._request.cancel()
        if cancelled:
            self._results.finish(False)
        return cancelled

    @property
    def result(self) -> Any:
        """What `wait` returns; raises `chorus.NoAnswer` before the end."""
        if not self.done():
            raise NoAnswer("the collective has not ended, and goes on")
        error = self._request.error or self._results.error
        if error is not None:
            raise error.with_traceback(None)
        return self._result

    def _ended(self, ended: bool) -> bool:
        if ended:
            self._requests.drop(self._request)
            self._results.finish(self._request.error is None)
        return ended


def wait_any(works: Sequence[Work], timeout: float | None = None) -> int:
    """Waits until one of several collectives has ended, well or not; they may be of several groups and workers.

    Parameters
    ----------
    works : sequence of Work
        At least one.
    timeout : float, optional
        Seconds.

    Returns
    -------
    int
        The position of the first in the list that has ended; its `result` is there, or raises.

    Raises
    ------
    NoAnswer
        None has ended within `timeout`.
    """
    if not works:
        raise ValueError("there are no collectives to wait for")
    deadline = Deadline(timeout)
    while True:
        for position, work in enumerate(works):
            if work.done():
                return position
        if deadline.passed():
            raise NoAnswer(f"no collective has ended within {timeout:g} s")
        _wait_any([work._request for work in works], deadline.within(SLICE_S))


def _wait_any(requests: Sequence[Request], seconds: float) -> None:
    """Waits until a request has ended, or for about `seconds`."""
    with contextlib.ExitStack() as stack:
        unlike = list(dict.fromkeys(requests))
        for request in unlike:
            if not stack.enter_context(request.held(seconds)) or request.ended:
                return
            stack.enter_context(request.kept())
        pointers = (ctypes.c_void_p * len(unlike))(*(request.pointer.value for request in unlike))
        index, milliseconds = ctypes.c_size_t(), round(1000 * seconds)
        unlike[0].library.status("chorus_request_wait_any", pointers, len(unlike), milliseconds, ctypes.byref(index))
