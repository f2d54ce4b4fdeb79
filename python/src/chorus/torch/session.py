"""What a process has behind its process groups: a worker, and on rank 0 perhaps a coordinator of its own."""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import uuid
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from ..client import Client
from ..deadline import Deadline, pause
from ..errors import ChorusError
from ..native.group import Group
from ..native.worker import Worker
from ..programs import LocalCoordinator
from . import build, ending

_LEAVE_S = 2.0  # how long others may take to leave, once all have met
_POLL_S = 0.005
_DELETE_S = 2.0  # what the deletion of a group may take
_LOOK_S = 0.001

# Options of `chorus.Worker`, by the variables that chorus-worker reads as well.
_TEXTS = {
    "CHORUS_HOST": "host",
    "CHORUS_ADVERTISE": "advertise",
    "CHORUS_LINK_CHECKSUM": "link_checksum",
    "CHORUS_LOG_LEVEL": "log_level",
    "CHORUS_AUTH_TOKENS": "auth_tokens",
    "CHORUS_AUDIT_LOG": "audit_log",
    "CHORUS_TLS_CERT": "tls_certificate",
    "CHORUS_TLS_KEY": "tls_key",
    "CHORUS_TLS_CA": "tls_authorities",
}
_FLAGS = {
    "CHORUS_INSECURE_NO_AUTH": "insecure_no_auth",
    "CHORUS_TLS_REQUIRE_CLIENT_CERT": "tls_requires_client_certificate",
}


class Session:
    """The worker of this process, which ends with the process group that it was started for.

    That is the default process group, or one of this backend where the default is of another.

    Parameters
    ----------
    agree : callable
        Returns on every rank what the function that it is handed returns on rank 0.
    rank : int
        Of this process in the process group.

    Attributes
    ----------
    drains : list of callable
        Each waits for the end of the calls that one process group has issued.
    """

    def __init__(self, agree: Callable[[Callable[[], Mapping[str, str]]], Mapping[str, str]], rank: int) -> None:
        self._coordinator: LocalCoordinator | None = None
        self._group: Group | None = None
        self._process, self._timeout_s = os.getpid(), 0.0
        self._ended = self._ends_interpreter = False
        self.drains: list[Callable[[], None]] = []
        try:
            told = agree(self._begin)
            self.url = told["url"]
            if told["host"] not in ("", socket.gethostname()):
                raise ChorusError(
                    f"rank {rank} is on host {socket.gethostname()!r}, and the coordinator that rank 0 has started "
                    f"listens on 127.0.0.1 of host {told['host']!r}: set CHORUS_COORDINATOR, CHORUS_HOST and "
                    "CHORUS_ADVERTISE for ranks on several hosts"
                )
            self.worker = Worker(self.url, f"{told['job']}.{rank}", interruptible=False, **worker_options())
        except BaseException:
            self._close_coordinator()
            raise
        ending.watch()
        atexit.register(self._end_with_interpreter)

    @property
    def session(self) -> Session:
        return self

    @property
    def group_name(self) -> str:
        return "" if self._group is None else self._group.name

    def _begin(self) -> Mapping[str, str]:
        """On rank 0: says where the coordinator is, and on which host alone it is reached."""
        job = f"torch-{uuid.uuid4().hex[:12]}"
        if named := os.environ.get("CHORUS_COORDINATOR"):
            return {"url": named, "host": "", "job": job}
        self._coordinator = LocalCoordinator()
        return {"url": self._coordinator.url, "host": socket.gethostname(), "job": job}

    def join(self, group: str, timeout: float) -> None:
        """Waits for the group; its members meet when they end, at most as long as this may take."""
        self._group, self._timeout_s = self.worker.join(group, timeout), timeout

    def _end_with_interpreter(self) -> None:
        self._ends_interpreter = True
        self.end()

    def end(self) -> None:
        """Waits until the other ranks end as well, and ends the worker: a slower rank would lose this one otherwise.

        A group that has failed waits for nothing, nor does a program that ends by an exception or with a status that is not 0.
        """
        if self._ended or os.getpid() != self._process:
            return
        have_met = False
        if self._group is not None and not ending.by_exception():
            self._drain()
            with contextlib.suppress(ChorusError):
                self._group.barrier(timeout=self._timeout_s)
                have_met = True
        if self._ends_interpreter:
            build.load().begin_interpreter_end()
        self.worker.close()
        self._drain()  # callbacks in Python cannot run when the interpreter has ended
        if have_met and self._coordinator is not None:
            self._wait_for_others()
        self.abandon()

    def _drain(self) -> None:
        for drain in self.drains:
            drain()

    def _wait_for_others(self) -> None:
        """Waits until no worker is left at the coordinator of this process, which they tell that they leave."""
        deadline = Deadline(_LEAVE_S)
        with contextlib.suppress(ChorusError), Client(self.url, timeout=_LEAVE_S) as client:
            while any(worker.state == "ready" for worker in client.workers()) and not deadline.passed():
                pause(_POLL_S)

    def abandon(self) -> None:
        """Ends the worker at once."""
        self._ended = True
        atexit.unregister(self._end_with_interpreter)
        self.worker.close()
        self._close_coordinator()

    def _close_coordinator(self) -> None:
        if self._coordinator is not None:
            self._coordinator.close()


class Lent:
    """A worker that somebody else ends, and the epoch of a group that a process group is to be.

    Parameters
    ----------
    url : str
        The coordinator.
    group : Group
        A membership of `worker`.

    Attributes
    ----------
    timeout : timedelta
        Of each call.
    """

    def __init__(self, url: str, worker: Worker, group: Group) -> None:
        self.url, self.worker, self.group = url, worker, group
        self.timeout = timedelta()
        self.drains: list[Callable[[], None]] = []

    @property
    def session(self) -> Lent:
        return self

    @property
    def group_name(self) -> str:
        return self.group.name

    def end(self) -> None:
        """Does nothing."""


class Guest:
    """A process group that uses the worker of the default process group, and leaves it as it is.

    Parameters
    ----------
    session : Session or Lent
        Has the worker.
    store : torch.distributed.Store
        Of this process group alone.
    size : int
        The number of its ranks.
    """

    def __init__(self, session: Session | Lent, store: Any, size: int) -> None:
        self.session, self._store, self._size = session, store, size
        self._group: str | None = None

    def join(self, group: str, timeout: float) -> None:
        """Does not wait: no members meet when this process group ends."""
        self._group = group

    def end(self) -> None:
        """The last rank deletes the group: workers and coordinator would keep it as long as the default process group."""
        worker = self.session.worker
        if self._group is None or worker.closed:
            return
        with contextlib.suppress(ChorusError, RuntimeError):  # the store may have ended
            for group in (self._group, self.session.group_name):
                worker.join(group, _LOOK_S).close()  # where a rank is lost the store may be, and would not answer
            if self._store.add("chorus/ended", 1) == self._size:
                worker.delete_group(self._group, _DELETE_S)

    def abandon(self) -> None:
        """Does nothing."""


def worker_options() -> dict[str, Any]:
    """Returns the options of `chorus.Worker` that the environment says."""
    found: dict[str, Any] = {option: os.environ[name] for name, option in _TEXTS.items() if os.environ.get(name)}
    found |= {option: True for name, option in _FLAGS.items() if os.environ.get(name) in ("1", "true")}
    if os.environ.get("CHORUS_SHM") == "off":
        found["private_memory"] = True
    if locality := os.environ.get("CHORUS_LOCALITY"):
        parts = dict(part.partition("=")[::2] for part in locality.split(","))
        found |= {"locality_host" if name == "host" else name: value for name, value in parts.items()}
    return found
