"""The client of a coordinator and its workers."""

from __future__ import annotations

import os
import pathlib
import ssl
from collections.abc import Sequence
from typing import Any

from .collectives import Collectives
from .events import Events
from .groups import Groups
from .parameters import Parameters
from .transport import Origins, Token, Transport

DEFAULT_URL = "http://127.0.0.1:7070"


class Client(Groups, Collectives, Events, Parameters):
    """Everything that a coordinator and its workers do, over REST. Any thread may call.

    Problems that a service answers are raised as exceptions of their own, such as `chorus.Mismatch`.

    Parameters
    ----------
    url : str or sequence of str, optional
        Where the coordinator listens, or its several processes, separated by commas. Without it the value of
        CHORUS_COORDINATOR, or ``http://127.0.0.1:7070``.
    token : str, path or callable, optional
        The token for coordinator and workers. A file (`pathlib.Path`) whose first line is the token, and a function,
        are read again for every request. Without it the file named by CHORUS_TOKEN_FILE.
    ca : str or path, optional
        A PEM file of authorities whose certificates are trusted; the system's unless given, or that named by
        CHORUS_TLS_CA.
    certificate : tuple of two paths, optional
        PEM files of this client's certificate and key, for services that ask for one.
    timeout : float or None
        Seconds after which a call that was given no `timeout` ends with `chorus.NoAnswer`, all repetitions included; a
        second more for each 10 MB that the call moves. None: never. Calls that wait for a collective end with it.
    retries : int
        How often a request whose connection breaks is sent again: six times take about five seconds.

    Examples
    --------
    >>> client = chorus.Client("http://127.0.0.1:7070")
    >>> client.create_group("g", ["a", "b"])
    >>> client.worker("a").put("x", numpy.ones(4, "f4"))
    >>> client.worker("b").put("x", numpy.ones(4, "f4"))
    >>> client.run("all_reduce", "g", "x").algorithm
    'mesh'
    """

    def __init__(
        self,
        url: str | Sequence[str] | None = None,
        *,
        token: Token = None,
        ca: str | os.PathLike[str] | None = None,
        certificate: tuple[str, str] | None = None,
        timeout: float | None = 60.0,
        retries: int = 6,
    ) -> None:
        origins = Origins(url if url is not None else os.environ.get("CHORUS_COORDINATOR") or DEFAULT_URL)
        if token is None and (file := os.environ.get("CHORUS_TOKEN_FILE")):
            token = pathlib.Path(file)
        authorities = ca or os.environ.get("CHORUS_TLS_CA") or None
        if isinstance(certificate, (str, os.PathLike)):
            raise TypeError(f"certificate is {certificate!r}, expected the paths of certificate and key")
        for path in (*([authorities] if authorities else []), *(certificate or ())):
            with open(path, "rb"):  # ssl does not say which file is not there
                pass
        context = ssl.create_default_context(cafile=authorities)
        if certificate is not None:
            context.load_cert_chain(*certificate)
        super().__init__(Transport(token, context, retries), origins, timeout)
        self._retries = retries

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes connections that wait for the next call."""
        self._transport.close()

    def version(self, *, timeout: float | None = None) -> dict[str, Any]:
        """Returns what the coordinator is: name, version, build and routes."""
        answer: dict[str, Any] = self._ask("GET", "/v1", timeout=timeout)
        return answer

    def status(self, *, timeout: float | None = None) -> dict[str, Any]:
        """Returns the coordinator's verdict with its reasons, as the REST interface has it."""
        answer: dict[str, Any] = self._ask("GET", "/v1/status", timeout=timeout)
        return answer
