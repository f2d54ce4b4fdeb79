"""One parameter: pulls, and pushes that count once."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Sequence
from typing import Any

from . import buffers, deadline as deadlines, dtypes, forks
from .base import Caller
from .codec import decode
from .connections import Reader
from .errors import ChorusError, ConnectionFailed, PushInDoubt
from .messages import ParameterInfo, PushAnswer
from .problems import Misdirected, OutOfOrder, ParameterLost
from .transport import FIRST_PAUSE_S, LONGEST_PAUSE_S, Origins, json_of, quoted, target

TURNS = 3  # how often a push that a moving shard has refused is repeated


class Parameter:
    """A parameter for one client that pulls and pushes: `chorus.Client.parameter` makes it.

    Pushes go to one worker, which passes them on to the owners of all shards; if that worker is lost, the same push
    goes to another one. Threads may share the object; their pushes are done one after the other. A child of fork() is
    another client: it pushes under a name of its own, or as a client that was named, with a higher incarnation.

    Attributes
    ----------
    info : ParameterInfo
        Dtype, shape, optimizer and owners, as last read.
    client, incarnation : str
        Who pushes.
    sequence : int
        The number of the next push.
    in_doubt : bool
        Whether the last push may have been applied, in part or whole, although it has failed: it has to be repeated,
        with `repeat=True` and the same bytes, before the next one. A client that does not want to takes another object.
    version : int
        How often the values had changed at the last pull or push.
    """

    def __init__(
        self,
        caller: Caller,
        info: ParameterInfo,
        client: str | None = None,
        incarnation: str | int | None = None,
        sequence: int = 0,
    ) -> None:
        self._caller = caller
        self.info = info
        self._is_named = bool(client)
        self.client = client or _new_name()
        if incarnation is None:  # a name that comes again needs a higher one than before
            incarnation = time.time_ns() if client else 0
        self.incarnation = f"{incarnation:016x}" if isinstance(incarnation, int) else incarnation
        self.sequence, self.in_doubt, self.version = sequence, False, 0
        self._etag: str | None = None
        self._lock = threading.Lock()
        self._workers = self._endpoints()
        forks.watch(self)

    def _in_child(self) -> None:
        """Becomes another client: the parent goes on with the numbers of its pushes."""
        if self._is_named:
            self.incarnation = f"{max(time.time_ns(), int(self.incarnation, 16) + 1):016x}"
        else:
            self.client = _new_name()
        self.sequence, self.in_doubt = 0, False
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Parameter({self.name!r}, {self.dtype}, {self.shape}, client={self.client!r})"

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def dtype(self) -> str:
        return self.info.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.info.shape)

    def refresh(self, *, timeout: float | None = None) -> ParameterInfo:
        """Reads `info` again: state, and who owns the shards."""
        return self._refresh(timeout, {})

    def _refresh(self, timeout: float | None, suspicion: dict[str, str | None]) -> ParameterInfo:
        path = f"/v1/parameters/{quoted(self.name)}"
        self.info = decode(ParameterInfo, self._caller._ask("GET", path, query=suspicion, timeout=timeout))
        self._workers = self._endpoints()
        return self.info

    def pull(
        self,
        out: Any = None,
        *,
        min_version: int | None = None,
        clock: int | None = None,
        if_changed: bool = False,
        timeout: float | None = None,
    ) -> Any:
        """Returns the values.

        Parameters
        ----------
        out : array, optional
            Where they shall lie: contiguous, writable, of the parameter's dtype and size.
        min_version : int, optional
            Waits for this version.
        clock : int, optional
            Waits for what a reader at this clock is to see.
        if_changed : bool
            Returns None if nothing has changed since the last pull of this object; `out` is as it was then.
        """
        content, array = self._place(out, self.shape)

        def read(reader: Reader) -> bool:
            if reader.status != 304:
                reader.into(content.view)
                content.store()
                self._etag = reader.headers.get("ETag")
            self.version = int(reader.headers.get("Parameter-Version", 0))
            return reader.status != 304

        headers = {} if clock is None else {"Chorus-Clock": str(clock)}
        if if_changed and self._etag is not None:
            headers["If-None-Match"] = self._etag
        query = {"min_version": min_version}
        return array if self._call("GET", "value", query, headers, None, content.view.nbytes, read, timeout) else None

    def pull_rows(
        self,
        rows: Any,
        out: Any = None,
        *,
        min_version: int | None = None,
        clock: int | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Returns selected rows, in the order of `rows`: an array of shape ``(len(rows), *shape[1:])``.

        Parameters
        ----------
        rows : sequence of int, or array
            Their numbers, ascending; with numpy in any order, which copies what is returned once more.
        out : array, optional
            Where the rows shall lie.
        """
        numbers, inverse = buffers.row_numbers(rows)
        content, array = self._place(None if inverse is not None else out, (len(numbers) // 8, *self.shape[1:]))
        headers = {"Chorus-Rows": str(len(numbers) // 8)}
        if clock is not None:
            headers["Chorus-Clock"] = str(clock)

        def read(reader: Reader) -> None:
            reader.into(content.view)
            content.store()
            self.version = int(reader.headers.get("Parameter-Version", 0))

        nbytes = content.view.nbytes
        self._call("POST", "rows", {"min_version": min_version}, headers, [numbers], nbytes, read, timeout)
        if inverse is None:
            return array
        if out is None:
            return array[inverse]
        buffers.assign(out, array[inverse], self.dtype)
        return out

    def push(
        self,
        gradient: Any,
        *,
        clock: int | None = None,
        dtype: str | None = None,
        repeat: bool = False,
        timeout: float | None = None,
    ) -> PushAnswer:
        """Pushes a gradient for all elements; it is applied exactly once, however often it has to be sent.

        Parameters
        ----------
        gradient : array
            As many elements as the parameter has, of its dtype; for f16 and bf16 also of f32.
        clock : int, optional
            The client's clock, where `staleness` counts it.
        dtype : str, optional
            What the elements are, where the array cannot say it.
        repeat : bool
            This is the push again that is `in_doubt`.

        Raises
        ------
        PushInDoubt
            The push before may have been applied, and this one is not its repetition.
        """
        return self._push("POST", "gradient", gradient, clock, dtype, repeat, timeout)

    def set(
        self,
        values: Any,
        *,
        clock: int | None = None,
        dtype: str | None = None,
        repeat: bool = False,
        timeout: float | None = None,
    ) -> PushAnswer:
        """Sets all values. This is a push like others: it has a sequence number, and counts once."""
        return self._push("PUT", "value", values, clock, dtype, repeat, timeout)

    def push_pull(
        self,
        gradient: Any,
        out: Any = None,
        *,
        clock: int | None = None,
        dtype: str | None = None,
        repeat: bool = False,
        timeout: float | None = None,
    ) -> Any:
        """Pushes a gradient, and returns the values after it."""
        content = self._gradient(gradient, dtype, self.shape)
        values, array = self._place(out, self.shape)

        def read(reader: Reader) -> PushAnswer:
            reader.into(values.view)
            values.store()
            fields = reader.headers
            return PushAnswer(
                version=int(fields.get("Parameter-Version", 0)),
                epoch=int(fields.get("Parameter-Epoch", 0)),
                next_sequence=int(fields.get("Chorus-Next-Sequence", self.sequence + 1)),
                duplicate=fields.get("Chorus-Duplicate", "") == "true",
            )

        fields = {"Tensor-Dtype": content.dtype}
        nbytes = 2 * values.view.nbytes
        self._numbered("POST", "push_pull", fields, [content.view], clock, repeat, timeout, read, nbytes)
        return array

    def push_rows(
        self,
        rows: Any,
        gradients: Any,
        *,
        clock: int | None = None,
        dtype: str | None = None,
        repeat: bool = False,
        timeout: float | None = None,
    ) -> PushAnswer:
        """Pushes the gradients of selected rows. Only these rows move; those of repeated numbers are summed first.

        Parameters
        ----------
        rows : sequence of int, or array
            Their numbers, ascending; with numpy in any order, which copies the gradients.
        gradients : array
            As many rows, of shape ``(len(rows), *shape[1:])``.
        """
        numbers = buffers.as_numbers(rows)
        content = self._gradient(gradients, dtype, (len(numbers) // 8, *self.shape[1:]))
        fields = {"Tensor-Dtype": content.dtype, "Chorus-Rows": str(len(numbers) // 8)}
        parts = buffers.in_order(numbers, content.view)
        return self._numbered("POST", "rows/gradient", fields, parts, clock, repeat, timeout)

    def _push(
        self,
        method: str,
        where: str,
        array: Any,
        clock: int | None,
        dtype: str | None,
        repeat: bool,
        timeout: float | None,
    ) -> PushAnswer:
        content = self._gradient(array, dtype, self.shape)
        return self._numbered(method, where, {"Tensor-Dtype": content.dtype}, [content.view], clock, repeat, timeout)

    def _gradient(self, array: Any, dtype: str | None, shape: Sequence[int]) -> buffers.Content:
        content = buffers.to_send(array, dtype)
        if content.dtype == "u16" and self.dtype == "bf16":
            content = content._replace(dtype="bf16")
        expected = dtypes.nbytes(content.dtype, shape)
        if len(content.view) != expected:
            raise ValueError(f"parameter {self.name!r}: the array has shape {content.shape}, expected {tuple(shape)}")
        return content

    def _numbered(
        self,
        method: str,
        where: str,
        headers: dict[str, str],
        parts: Sequence[memoryview],
        clock: int | None,
        repeat: bool,
        timeout: float | None,
        read: Any = None,
        nbytes: int = 0,
    ) -> PushAnswer:
        if clock is not None:
            headers["Chorus-Clock"] = str(clock)
        read = read or (lambda reader: decode(PushAnswer, json_of(reader)))
        with self._lock:
            if self.in_doubt != repeat:
                raise PushInDoubt(self._doubt() if self.in_doubt else f"push {self.sequence - 1} has had its answer")
            headers |= {"Chorus-Client": self.client, "Chorus-Sequence": str(self.sequence)}
            headers["Chorus-Incarnation"] = self.incarnation
            self.in_doubt = True
            try:
                nbytes = nbytes or sum(len(part) for part in parts)
                answer: PushAnswer = self._call(method, where, {}, headers, parts, nbytes, read, timeout)
            except ChorusError as error:
                self.in_doubt = repeat or self._may_have_been_applied(error)
                raise
            self.in_doubt = False
            self.sequence += 1
            self.version = answer.version
            return answer

    def _may_have_been_applied(self, error: ChorusError) -> bool:
        if error.code == "rows_exhausted":  # shards that have room have applied their part, and have taken the number
            return len({endpoint.shard for endpoint in self.info.endpoints}) > 1
        return error.status == 0 or (error.status >= 500 and error.code != "unsupported")

    def _doubt(self) -> str:
        return (
            f"push {self.sequence} of client {self.client!r} to parameter {self.name!r} may have been applied in part: "
            "push the same bytes again with repeat=True"
        )

    def _call(
        self,
        method: str,
        where: str,
        query: dict[str, Any],
        headers: dict[str, str],
        content: Sequence[memoryview] | None,
        nbytes: int,
        read: Any,
        timeout: float | None,
    ) -> Any:
        """Asks one of the workers that have shards, and whoever has them now, until one answers."""
        deadline = self._caller._deadline(timeout, nbytes)
        turns, unreachable = TURNS, 0
        while True:
            left = deadline.left()
            if left is not None:  # the worker ends its wait a little earlier, and says what is missing
                query["timeout_ms"] = max(1, min(600_000, int(1000 * (left - min(0.1 * left, 0.5)))))
            path = target(f"/v1/parameters/{quoted(self.name)}/{where}", query)
            how: dict[str, Any] = {"headers": headers, "content": content, "retries": len(self._workers)}
            try:
                return self._caller._transport.call(method, path, to=self._workers, deadline=deadline, read=read, **how)
            except (Misdirected, OutOfOrder):
                turns -= 1
                if turns == 0 or deadline.passed():
                    raise
                self._refresh(deadline.left(), {})
            except ConnectionFailed as error:
                if deadline.passed() or not error.retryable:
                    raise
                suspect = self.info.endpoints[unreachable % len(self.info.endpoints)]
                self._refresh(deadline.left(), {"suspect": suspect.worker, "incarnation": suspect.incarnation})
                if self.info.state == "lost":
                    raise ParameterLost(f"parameter {self.name!r} is lost: {self.info.why}") from error
                unreachable += 1
                deadlines.pause(deadline.within(min(FIRST_PAUSE_S * 2**unreachable, LONGEST_PAUSE_S)))

    def _place(self, out: Any, shape: Sequence[int]) -> tuple[buffers.Content, Any]:
        if out is None:
            array, view = buffers.new(self.dtype, shape)
            return buffers.Content(view, self.dtype, tuple(shape), array), array
        return buffers.to_fill(out, self.dtype, shape), out

    def _endpoints(self) -> Origins:
        owners_first = sorted(self.info.endpoints, key=lambda endpoint: endpoint.role != "owner")
        urls = list(dict.fromkeys(endpoint.url for endpoint in owners_first if endpoint.url))
        if not urls:
            raise ParameterLost(f"no worker has parameter {self.name!r}: {self.info.why or self.info.state}")
        return Origins(urls)


def _new_name() -> str:
    return f"python-{uuid.uuid4().hex[:16]}"
