"""Objects of the library that are freed once, when no call uses them any more."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from .problems import Stopped


class Handle:
    """A pointer of the library. ``with handle as pointer`` is a call that uses it.

    Parameters
    ----------
    pointer : int
        What the library returned.
    free : callable
        Frees it.
    what : str
        Its name in messages: ``"worker 'a'"``.
    """

    def __init__(self, pointer: int, free: Callable[[int], None], what: str) -> None:
        self._pointer: int | None = pointer
        self._free, self._what = free, what
        self._users: list[int] = []  # threads with a call under way
        self._pid = os.getpid()
        self._unused = threading.Condition()

    @property
    def closed(self) -> bool:
        return self._pointer is None

    @property
    def foreign(self) -> bool:
        """Whether this process is a child, by fork(), of the one that made the object."""
        return os.getpid() != self._pid

    def check_process(self) -> None:
        """Raises RuntimeError in a child of fork(): threads and connections stayed with the parent."""
        if self.foreign:
            raise RuntimeError(
                f"{self._what} belongs to process {self._pid}, and this is its child {os.getpid()} by fork(): start a "
                'worker in the child, and use the start method "spawn" of multiprocessing'
            )

    def __enter__(self) -> int:
        self.check_process()
        own = threading.get_ident()
        with self._unused:
            self._users.append(own)  # before the look: a signal's handler that closes between the two frees nothing
            pointer = self._pointer
            if pointer is None:
                self._users.remove(own)
                raise Stopped(f"{self._what} is closed")
            return pointer

    def __exit__(self, *_: object) -> None:
        with self._unused:
            self._users.remove(threading.get_ident())
            self._unused.notify_all()

    def close(self) -> None:
        """Refuses further calls, waits for those under way, and frees the object. Does nothing in a child of fork().

        A signal's handler that closes during a call of its own thread frees nothing: the call goes on behind it.
        """
        if self.foreign:
            return
        with self._unused:
            pointer, self._pointer = self._pointer, None
            own = threading.get_ident()
            while any(user != own for user in self._users):
                self._unused.wait()
            interrupted = own in self._users
        if pointer is not None and not interrupted:
            self._free(pointer)
