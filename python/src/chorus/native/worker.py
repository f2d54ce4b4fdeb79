"""A worker in this process."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import numbers
import os
import pathlib
import ssl
import weakref
from collections.abc import Sequence
from typing import Any

from ..client import DEFAULT_URL
from ..deadline import Deadline
from ..transport import Origins, Transport
from ..workers import RemoteWorker
from . import abi, memory, options
from .group import Group
from .handles import Handle
from .library import Library, load
from .problems import Stopped
from .work import SLICE_S, Requests


class _Running:
    """What ends with a worker: its handle, its calls, and its groups. Outlives the `Worker` object until `close`."""

    def __init__(self, library: Library, handle: Handle) -> None:
        self.library, self.handle, self.requests = library, handle, Requests()
        self.groups: weakref.WeakSet[Group] = weakref.WeakSet()
        self.stopping = False

    def close(self) -> None:
        """Stops the worker, which ends its calls, and frees all of it. Does nothing in a child of fork()."""
        if self.handle.foreign or self.handle.closed:
            return
        self.stopping = True
        with contextlib.suppress(Stopped), self.handle as pointer:
            self.library.call("chorus_worker_stop", pointer)
        for group in list(self.groups):
            group._handle.close()
        self.requests.finish()
        self.handle.close()


class Worker:
    """A member of groups in this process: its own HTTP service, lease at the coordinator, and two threads of C++.

    Any thread may call, on the worker and on its groups. A child of fork() cannot use it: every call raises
    RuntimeError there. Close it, by ``with`` or `close`, after the members have met in `Group.barrier`: a slower
    member loses this one otherwise.

    Options that are not listed are those of ``chorus_worker_options_t`` (docs/reference/c_api.md).

    Parameters
    ----------
    coordinator : str, optional
        URL of the coordinator, or several with commas. Without it the value of CHORUS_COORDINATOR, or
        ``http://127.0.0.1:7070``.
    id : str, optional
        The worker's id; ``"<host name>-<port>"`` unless given.
    host, port, advertise : optional
        Where it listens (127.0.0.1, a port of the system's choice), and ``HOST[:PORT]`` that others use.
    region, zone, rack, locality_host : str, optional
        Where the worker stands.
    private_memory : bool
        Share no memory with other workers of the host.
    log_level : str, optional
        What goes to standard error: ``"warn"`` unless given.
    token_file : str or path, optional
        The worker's own token; the file named by CHORUS_TOKEN_FILE unless given.
    interruptible : bool
        Handle signals, Ctrl-C among them, while the main thread waits for a collective: that costs a change of threads
        for each, which small tensors feel. If not, and in other threads, a call blocks in the library.

    Raises
    ------
    LibraryNotFound
        libchorus.so.0 is not installed, or has another version.
    BadArgument, BindFailed, BadSecurity
        The worker cannot be started as it is told.

    Examples
    --------
    >>> with chorus.Worker("http://127.0.0.1:7070", id="a") as worker:
    ...     group = worker.join("training")
    ...     group.all_reduce(gradient, reduce="avg")
    ...     group.barrier()
    """

    def __init__(
        self,
        coordinator: str | None = None,
        id: str | None = None,
        *,
        host: str | None = None,
        port: int = 0,
        advertise: str | None = None,
        region: str | None = None,
        zone: str | None = None,
        rack: str | None = None,
        locality_host: str | None = None,
        tensor_limit_bytes: int = 0,
        memory_limit_bytes: int = 0,
        private_memory: bool = False,
        insecure_no_auth: bool = False,
        link_checksum: str | None = None,
        spin_us: int = 0,
        drain_timeout_ms: int = 0,
        connections: int = 0,
        log_level: str | None = None,
        auth_tokens: str | os.PathLike[str] | None = None,
        token_file: str | os.PathLike[str] | None = None,
        audit_log: str | os.PathLike[str] | None = None,
        tls_certificate: str | os.PathLike[str] | None = None,
        tls_key: str | os.PathLike[str] | None = None,
        tls_authorities: str | os.PathLike[str] | None = None,
        tls_requires_client_certificate: bool = False,
        rate_limit: int = 0,
        allowed_hosts: Sequence[str] = (),
        cors_origins: Sequence[str] = (),
        interruptible: bool = True,
    ) -> None:
        library = load()
        self.interruptible = interruptible
        self._token_file = token_file or os.environ.get("CHORUS_TOKEN_FILE") or None
        self._authorities, self._certificate = tls_authorities, (tls_certificate, tls_key)
        given = abi.WorkerOptions(size=ctypes.sizeof(abi.WorkerOptions))
        texts: dict[str, str | os.PathLike[str] | None] = {
            "coordinator": coordinator or os.environ.get("CHORUS_COORDINATOR") or DEFAULT_URL,
            "id": id,
            "host": host,
            "advertise": advertise,
            "region": region,
            "zone": zone,
            "rack": rack,
            "locality_host": locality_host,
            "link_checksum": link_checksum,
            "log_level": log_level,
            "auth_tokens": auth_tokens,
            "token_file": self._token_file,
            "audit_log": audit_log,
            "tls_certificate": tls_certificate,
            "tls_key": tls_key,
            "tls_authorities": tls_authorities,
        }
        for name, value in texts.items():
            setattr(given, name, options.text(name, value))
        for name, number, bits in (
            ("port", port, 16),
            ("tensor_limit_bytes", tensor_limit_bytes, 64),
            ("memory_limit_bytes", memory_limit_bytes, 64),
            ("connections", connections, 64),
            ("rate_limit", rate_limit, 32),
        ):
            setattr(given, name, options.unsigned(name, number, bits))
        given.spin_us = options.whole("spin_us", spin_us)
        given.drain_timeout_ms = options.whole("drain_timeout_ms", drain_timeout_ms)
        given.private_memory, given.insecure_no_auth = bool(private_memory), bool(insecure_no_auth)
        given.tls_requires_client_certificate = bool(tls_requires_client_certificate)
        given.allowed_hosts, given.allowed_hosts_length = _texts("allowed_hosts", allowed_hosts)
        given.cors_origins, given.cors_origins_length = _texts("cors_origins", cors_origins)
        pointer = ctypes.c_void_p()
        library.call("chorus_worker_start", ctypes.byref(given), ctypes.byref(pointer))
        info = abi.WorkerInfo(size=ctypes.sizeof(abi.WorkerInfo))
        library.call("chorus_worker_describe", pointer, ctypes.byref(info))
        self.id: str = info.id.decode()
        self.url: str = info.url.decode()
        handle = Handle(pointer.value or 0, library.functions["chorus_worker_free"], f"worker {self.id!r}")
        self._running = _Running(library, handle)
        self._finalize = weakref.finalize(self, self._running.close)

    def __repr__(self) -> str:
        return f"Worker({self.id!r}, {self.url!r})"

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._running.handle.closed

    def close(self) -> None:
        """Ends calls that are under way with `chorus.Aborted`, leaves the coordinator, and ends the threads.

        Groups of the worker are closed with it; arrays of `empty` live on. To close again is no error.
        """
        if "_transport" in self.__dict__:
            self._transport.close()
        self._running.close()

    def join(self, group: str, timeout: float = 60.0) -> Group:
        """Waits until the coordinator has assigned this worker to a group, and returns the membership.

        After the end of an epoch, which a failed call is, this is the way into the next one. A worker may be a member
        of several groups at once. Joining the same epoch again gives the same order of calls.

        Parameters
        ----------
        group : str
            Its name; somebody makes it, by `Client.create_group` or otherwise.
        timeout : float
            Seconds.

        Raises
        ------
        NotAssigned, NoNewEpoch, NoCoordinator
            It is not so within `timeout`.
        Fenced
            A newer process has taken this worker's id.
        Stopped
            The worker was closed.
        """
        deadline, name = Deadline(options.milliseconds("timeout", timeout) / 1000), options.text("group", group)
        running, pointer = self._running, ctypes.c_void_p()
        patient = (abi.NOT_ASSIGNED, abi.NO_NEW_EPOCH, abi.NO_COORDINATOR)
        while True:
            with running.handle as worker:
                step = max(1, round(1000 * deadline.within(SLICE_S)))
                status, error = running.library.status("chorus_worker_join", worker, name, step, ctypes.byref(pointer))
            if error is None:
                break
            if status not in patient or deadline.passed() or running.stopping:
                raise error
        return self._member(pointer, f"group {group!r}")

    def create_group(
        self, name: str, workers: Sequence[str] | int, *, order: str | None = None, timeout: float = 60.0
    ) -> Group:
        """Makes a group at the coordinator, and joins it. Blocks in the library: signals are handled afterwards.

        Every worker of `workers` calls it, with the same arguments: the first one listed asks the coordinator, once all
        have joined that, and the others wait for the group. With a number of workers one calls it, and the others
        `join`.

        Parameters
        ----------
        name : str
            The group's name: a new one, or that of a group in which a call has failed.
        workers : list of str, or int
            Ids of the members; or how many, which takes the ready workers that stand closest together.
        order : str, optional
            ``"listed"``: rank r is ``workers[r]``, as without it if there are ids; ``"locality"``; ``"measured"``.
        timeout : float
            Seconds.

        Raises
        ------
        BadArgument
            An id is listed twice or not this worker's, or this worker is a member of that group already.
        NotAssigned, NoCoordinator
            A member is unknown or does not answer within `timeout`.
        """
        given = abi.GroupOptions(size=ctypes.sizeof(abi.GroupOptions))
        given.order = options.text("order", order)
        if isinstance(workers, (int, numbers.Integral)):
            given.ranks = options.unsigned("workers", workers)
        else:
            given.workers, given.workers_length = _texts("workers", workers)
        pointer = ctypes.c_void_p()
        with self._running.handle as worker:
            self._running.library.call(
                "chorus_worker_create_group",
                worker,
                options.text("name", name),
                ctypes.byref(given),
                options.milliseconds("timeout", timeout),
                ctypes.byref(pointer),
            )
        return self._member(pointer, f"group {name!r}")

    def delete_group(self, name: str, timeout: float = 60.0) -> None:
        """Deletes a group at the coordinator: one member calls it, after all have met in `Group.barrier`.

        Calls of the others end with `chorus.EpochFenced`. A group that is not there is no error.
        """
        with self._running.handle as worker:
            self._running.library.call(
                "chorus_worker_delete_group",
                worker,
                options.text("name", name),
                options.milliseconds("timeout", timeout),
            )

    def _member(self, pointer: ctypes.c_void_p, what: str) -> Group:
        running = self._running
        handle = Handle(pointer.value or 0, running.library.functions["chorus_group_free"], what)
        joined = Group(self, running.library, handle, running.requests)
        running.groups.add(joined)
        return joined

    def empty(self, shape: int | Sequence[int], dtype: str = "f32") -> Any:
        """Returns a new array, not initialized, in memory that other workers of the host see.

        Collectives use it where it lies; other arrays are copied once on their way. It is freed with its last view,
        and may outlive the worker.

        Parameters
        ----------
        shape : int or sequence of int
            Its extents.
        dtype : str
            One of the twelve: ``"f32"``, ``"bf16"``, ``"i64"``...

        Returns
        -------
        array of shape `shape`
            Of numpy; without numpy a memoryview.

        Raises
        ------
        OutOfMemory
            `memory_limit_bytes` or the system's limit is reached.
        """
        with self._running.handle as worker:
            return memory.allocate(self._running.library, worker, shape, dtype)

    def register(self, array: Any) -> memory.Registration:
        """Shows other workers of the host the memory of an array that the program has.

        Parameters
        ----------
        array : array
            Contiguous and writable; whole pages of 4096 bytes that are private to the process, such as those of an
            anonymous `mmap.mmap` with ``MAP_PRIVATE``. No thread uses them during this call.

        Returns
        -------
        Registration
            Ends by ``with``, or `Registration.close`.

        Raises
        ------
        BadArgument
            It is other memory than that.
        NotShared
            This worker shares no memory.
        """
        with self._running.handle as worker:
            return memory.register(self._running.library, worker, array)

    @functools.cached_property
    def remote(self) -> RemoteWorker:
        """This worker as its REST interface shows it: for its tensors, groups and progress."""
        return RemoteWorker(self._transport, Origins(self.url), 60.0, self.id)

    @functools.cached_property
    def _transport(self) -> Transport:
        token = None if self._token_file is None else pathlib.Path(self._token_file)
        context = ssl.create_default_context(cafile=self._authorities)
        certificate, key = self._certificate
        if certificate is not None:
            context.load_cert_chain(certificate, key)
        return Transport(token, context, retries=6)


def _texts(name: str, values: Sequence[str]) -> tuple[Any, int]:
    """Returns a list of strings as C takes it; None for an empty one."""
    if isinstance(values, str):
        raise TypeError(f"{name} is a string, expected a sequence of strings")
    made = (ctypes.c_char_p * len(values))(*(options.text(name, value) for value in values))
    return (ctypes.cast(made, ctypes.POINTER(ctypes.c_char_p)) if values else None), len(values)
