"""Deadlines, and calls that another thread may interrupt."""

from __future__ import annotations

import contextlib
import contextvars
import numbers
import random
import socket
import threading
import time
from collections.abc import Iterator

_current: contextvars.ContextVar[Interrupt | None] = contextvars.ContextVar("chorus_interrupt", default=None)


class Deadline:
    """A time point by which a call has to have ended; passed down, never armed again.

    Parameters
    ----------
    seconds : float or None
        From now on; None: no deadline.
    """

    def __init__(self, seconds: float | None) -> None:
        if seconds is not None and not isinstance(seconds, (int, float, numbers.Real)):
            raise TypeError(f"timeout is {seconds!r}, expected seconds")
        self.seconds = seconds
        self._at = None if seconds is None else time.monotonic() + seconds

    def extend(self, seconds: float) -> None:
        """Moves the deadline, by the time that so many bytes more may take."""
        if self._at is not None and self.seconds is not None:
            self._at += seconds
            self.seconds += seconds

    def left(self) -> float | None:
        """Seconds that are left, at least 0; None without a deadline."""
        return None if self._at is None else max(0.0, self._at - time.monotonic())

    def passed(self) -> bool:
        return self._at is not None and time.monotonic() >= self._at

    def within(self, seconds: float) -> float:
        """`seconds`, or what is left if it is less."""
        left = self.left()
        return seconds if left is None else min(seconds, left)


class Interrupted(BaseException):
    """The call was ended by its `Interrupt`. No Exception, so that nothing on the way takes it for a failure."""


class Interrupt:
    """Ends a call that waits in another thread. The transport registers the socket on which the call waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._event = threading.Event()

    @property
    def interrupted(self) -> bool:
        return self._event.is_set()

    def set(self) -> None:
        with self._lock:
            self._event.set()
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    @contextlib.contextmanager
    def watching(self, waited_on: socket.socket | None) -> Iterator[None]:
        with self._lock:
            if self._event.is_set():
                raise Interrupted
            self._socket = waited_on
        try:
            yield
        finally:
            with self._lock:
                self._socket = None

    def sleep(self, seconds: float) -> None:
        if self._event.wait(seconds):
            raise Interrupted


def current() -> Interrupt:
    """The interrupt of the call that this thread executes; one that nobody sets where there is none."""
    return _current.get() or Interrupt()


def enter(interrupt: Interrupt) -> contextvars.Token[Interrupt | None]:
    """Makes `interrupt` that of every call in the present context, until `leave`."""
    return _current.set(interrupt)


def leave(token: contextvars.Token[Interrupt | None]) -> None:
    _current.reset(token)


def pause(seconds: float) -> None:
    """Sleeps for about `seconds`, between three quarters and all of it, so that clients do not come back together."""
    current().sleep(seconds * random.uniform(0.75, 1.0))
