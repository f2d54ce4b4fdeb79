"""What all parts of a client share: the coordinator, the transport and the default deadline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from .codec import decode
from .deadline import Deadline
from .transport import Origins, Transport, target

T = TypeVar("T")
BYTES_PER_S = 10_000_000  # the slowest transfer that a default deadline allows
PAGE = 1000


class Caller:
    """Asks the coordinator, or one worker.

    Parameters
    ----------
    transport : Transport
        Sends the requests.
    origins : Origins
        Who answers them.
    timeout : float or None
        The default of every call's `timeout`, in seconds.
    """

    def __init__(self, transport: Transport, origins: Origins, timeout: float | None) -> None:
        self._transport, self._origins, self._timeout = transport, origins, timeout

    @property
    def url(self) -> str:
        """Where the service listens that is asked first."""
        return str(self._origins.first())

    def _deadline(self, timeout: float | None, nbytes: int = 0) -> Deadline:
        """`timeout` as it is given; the default is longer for calls that move bytes."""
        if timeout is not None or self._timeout is None:
            return Deadline(timeout)
        deadline = Deadline(self._timeout)
        deadline.extend(nbytes / BYTES_PER_S)
        return deadline

    def _ask(
        self,
        method: str,
        path: str,
        message: Any = None,
        *,
        timeout: float | None = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        to: Origins | None = None,
        patient: bool = True,
    ) -> Any:
        return self._transport.json(
            method,
            target(path, query),
            message,
            to=to or self._origins,
            deadline=self._deadline(timeout),
            headers=headers,
            patient=patient,
        )

    def _pages(self, path: str, timeout: float | None, query: Mapping[str, Any] | None = None) -> Iterator[Any]:
        """Gives the items of a list, page by page, within one deadline."""
        deadline = self._deadline(timeout)
        cursor: str | None = None
        while True:
            page = self._transport.json(
                "GET",
                target(path, {**(query or {}), "limit": PAGE, "cursor": cursor}),
                to=self._origins,
                deadline=deadline,
            )
            yield from page["items"]
            cursor = page.get("next_cursor")
            if not cursor:
                return

    def _list(self, kind: type[T], path: str, timeout: float | None, query: Mapping[str, Any] | None = None) -> list[T]:
        return [decode(kind, item) for item in self._pages(path, timeout, query)]
