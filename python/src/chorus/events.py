"""The coordinator's events, followed over lost connections."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterator
from typing import Any

from . import deadline as deadlines, errors
from .base import Caller
from .codec import decode
from .connections import Broken, Origin, Reader, Request
from .deadline import Deadline
from .messages import Event
from .transport import FIRST_PAUSE_S, LONGEST_PAUSE_S, Origins, Transport, target

log = logging.getLogger("chorus")
SILENCE_S = 45.0  # the coordinator sends a bookmark at least every 15 seconds


class EventStream(Iterator[Event]):
    """An iterator over events. One thread reads it; any thread may `close` it.

    Attributes
    ----------
    position : str or None
        The id of the last event that was read: `since` of a stream that goes on from here.
    """

    def __init__(
        self,
        transport: Transport,
        origins: Origins,
        since: str | None,
        types: Collection[str] | None,
        timeout: float | None,
        retries: int,
    ) -> None:
        if isinstance(types, str):
            raise TypeError(f"types is {types!r}, expected a collection of strings")
        self.position: str | None = None
        self._transport, self._origins, self._since, self._types = transport, origins, since, types
        self._deadline, self._retries = Deadline(timeout), retries
        self.interrupt = deadlines.Interrupt()
        self._events = self._follow()

    def __iter__(self) -> EventStream:
        return self

    def __next__(self) -> Event:
        token = deadlines.enter(self.interrupt)
        try:
            return next(self._events)
        except deadlines.Interrupted:
            raise StopIteration from None
        finally:
            deadlines.leave(token)

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the stream, also while another thread waits for the next event."""
        self.interrupt.set()

    def _follow(self) -> Iterator[Event]:
        failures = 0
        passed: list[Origin] = []  # that have redirected, and then the one that does not answer
        while not self._deadline.passed():
            origin = self._origins.first()
            try:
                for event in self._stream(origin):
                    failures = 0
                    passed.clear()
                    if event is not None and (self._types is None or event.type in (*self._types, "reset")):
                        yield event
                failure = f"{origin}: the stream of events ended"
            except errors.ChorusError as error:
                if not error.retryable and error.status != 503:
                    raise
                failure = str(error)
            except TimeoutError:
                if self._deadline.passed():
                    return
                failure = f"{origin}: silent for {SILENCE_S:g} s"
            except Broken as broken:
                if broken.final:
                    raise errors.ConnectionFailed(str(broken)) from None
                failure = str(broken)
            failures += 1
            if failures > self._retries:
                raise errors.ConnectionFailed(failure, retryable=True)
            log.debug("%s; followed again from %s", failure, self.position)
            passed.append(origin)
            if self._origins.first() in passed:
                self._origins.pass_over(passed)
                passed.clear()
            deadlines.pause(self._deadline.within(min(FIRST_PAUSE_S * 2**failures, LONGEST_PAUSE_S)))

    def _stream(self, origin: Origin) -> Iterator[Event | None]:
        """Gives the events of one connection; None for a bookmark."""
        headers = {"Accept": "text/event-stream"}
        if self.position is not None:
            headers["Last-Event-ID"] = self.position
        query = {"since": self._since if self.position is None else None}
        request = Request("GET", target("/v1/events", query), headers, None)
        deadline = Deadline(SILENCE_S if self._deadline.left() is None else self._deadline.within(SILENCE_S))
        with self._transport.exchange(origin, request, deadline) as reader:
            if reader.status in (307, 308):
                self._origins.redirected(origin, reader.headers.get("Location", ""))
                return
            if reader.status != 200:
                raise errors.from_answer(reader.status, reader.reason, reader.media_type, reader.all(), str(origin))
            for fields in _fields(reader, self._deadline):
                self.position = fields.get("id", self.position)
                yield _event(fields)


def _fields(reader: Reader, deadline: Deadline) -> Iterator[dict[str, str]]:
    """Gives the fields of one event after the other."""
    rest, fields = b"", dict[str, str]()
    while True:
        reader.deadline = Deadline(SILENCE_S if deadline.left() is None else deadline.within(SILENCE_S))
        part = reader.some()
        if not part:
            return
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            name, _, value = line.decode().rstrip("\r").partition(":")
            value = value.removeprefix(" ")
            if name:
                fields[name] = f"{fields[name]}\n{value}" if name == "data" and name in fields else value
            elif fields:
                yield fields
                fields = {}


def _event(fields: dict[str, str]) -> Event | None:
    kind = fields.get("event", "")
    if kind == "bookmark":
        return None
    data: dict[str, Any] = json.loads(fields.get("data") or "{}")
    return decode(Event, {"type": kind, "at": "", "sequence": 0, **data})


class Events(Caller):
    """The part of `chorus.Client` about events."""

    _retries: int

    def events(
        self,
        since: str | int | None = None,
        *,
        types: Collection[str] | None = None,
        timeout: float | None = None,
    ) -> EventStream:
        """Follows what happens to workers, groups and collectives, also over restarts of the coordinator.

        Parameters
        ----------
        since : str or int, optional
            The position after which to begin; 0 is the beginning. Without it with what comes next.
        types : collection of str, optional
            Only events of these types, such as ``{"worker.lost"}``.
        timeout : float, optional
            Seconds after which the iteration ends; never unless given.

        Returns
        -------
        EventStream
            An iterator. An event of the type ``"reset"`` says that events were missed.

        Raises
        ------
        Compacted
            While iterating: events after `since` are no longer kept.
        ConnectionFailed
            While iterating: the coordinator could not be reached, several times in a row.
        """
        begin = None if since is None else str(since)
        return EventStream(self._transport, self._origins, begin, types, timeout, self._retries)
