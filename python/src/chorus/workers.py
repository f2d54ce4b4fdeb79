"""One worker over REST: its tensors, members' calls and progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import buffers, dtypes
from .base import BYTES_PER_S, Caller
from .codec import body, decode
from .connections import Reader
from .deadline import Deadline
from .messages import CallReport, GroupInfo, RunProgress, TensorInfo
from .transport import Origins, Transport, new_key, quoted

LONGEST_MS = 600_000  # what a worker gives a call without timeout_ms, at most
SLACK_S = 10.0  # how much later its answer may come


def shape_of(text: str) -> tuple[int, ...]:
    """Returns the shape of a Tensor-Shape field, which is empty for a scalar."""
    return tuple(int(extent) for extent in text.split(",") if extent.strip())


class RemoteWorker(Caller):
    """A worker that is asked over REST: `chorus.Client.worker` makes it.

    Attributes
    ----------
    id : str
        The worker's id; empty where only its URL is known.
    """

    def __init__(self, transport: Transport, origins: Origins, timeout: float | None, id: str = "") -> None:
        super().__init__(transport, origins, timeout)
        self.id = id

    def __repr__(self) -> str:
        return f"RemoteWorker({self.id!r}, {self.url!r})"

    def put(
        self,
        name: str,
        array: Any,
        *,
        dtype: str | None = None,
        device: str | None = None,
        timeout: float | None = None,
    ) -> TensorInfo:
        """Uploads a tensor: a new one, or the next version of one that is there.

        Parameters
        ----------
        name : str
            The tensor's name; may have slashes.
        array : array
            A numpy array, a buffer, or a tensor that has ``__dlpack__``. It is sent from where it lies; one that is not
            contiguous, or is on a GPU of CUDA, is copied first.
        dtype : str, optional
            What the elements are, where the array cannot say it: ``"bf16"`` for an array of uint16.
        device : str, optional
            Where it is to lie: ``"cpu"``, or a GPU of the worker, ``"cuda:0"``.
        timeout : float, optional
            Seconds for the whole call.

        Returns
        -------
        TensorInfo
            With the version that the bytes became.
        """
        content = buffers.to_send(array, dtype)
        fields = {
            "Content-Type": "application/octet-stream",
            "Tensor-Dtype": content.dtype,
            "Tensor-Shape": ",".join(str(extent) for extent in content.shape),
        }
        if device is not None:
            fields["Tensor-Device"] = device
        answer = self._transport.json(
            "PUT",
            f"/v1/tensors/{quoted(name, '/')}",
            to=self._origins,
            deadline=self._deadline(timeout, content.view.nbytes),
            headers=fields,
            content=[content.view],
        )
        return decode(TensorInfo, answer)

    def get(self, name: str, out: Any = None, *, timeout: float | None = None) -> Any:
        """Downloads a tensor.

        Parameters
        ----------
        name : str
            The tensor's name.
        out : array, optional
            Where the bytes shall lie: contiguous, writable, of the tensor's dtype and size, on the CPU or a GPU of
            CUDA. What it has after an exception is undefined.
        timeout : float, optional
            Seconds for the whole call.

        Returns
        -------
        array
            `out`, or a new numpy array; without numpy a memoryview. Elements of bf16 are ml_dtypes' if that is
            installed, else their bits as uint16.
        """

        def read(reader: Reader) -> Any:
            dtype, shape = reader.headers["Tensor-Dtype"], shape_of(reader.headers["Tensor-Shape"])
            if timeout is None:
                reader.deadline.extend(dtypes.nbytes(dtype, shape) / BYTES_PER_S)
            if out is None:
                array, view = buffers.new(dtype, shape)
                reader.into(view)
                return array
            content = buffers.to_fill(out, dtype, shape)
            reader.into(content.view)
            content.store()
            return out

        if out is not None:
            buffers.writable(out)
        return self._transport.call(
            "GET", f"/v1/tensors/{quoted(name, '/')}", to=self._origins, deadline=self._deadline(timeout), read=read
        )

    def delete(self, name: str, *, timeout: float | None = None) -> None:
        """Deletes a tensor."""
        path = f"/v1/tensors/{quoted(name, '/')}"
        self._transport.delete(path, to=self._origins, deadline=self._deadline(timeout))

    def tensors(self, prefix: str | None = None, *, timeout: float | None = None) -> list[TensorInfo]:
        """Returns the worker's tensors whose names begin with `prefix`."""
        return self._list(TensorInfo, "/v1/tensors", timeout, {"prefix": prefix})

    def call(
        self,
        op: str,
        group: str,
        tensor: str | Sequence[str] | None = None,
        *,
        sequence: int | None = None,
        epoch: int | None = None,
        output: str | None = None,
        reduce: str | None = None,
        root: int | None = None,
        counts: Sequence[int] | None = None,
        receive_counts: Sequence[int] | None = None,
        dtype: str | None = None,
        shape: Sequence[int] | None = None,
        compression: str | Mapping[str, Any] | None = None,
        error_feedback: bool | None = None,
        in_place: bool | None = None,
        algorithm: str | None = None,
        local_algorithm: str | None = None,
        contributions: int | None = None,
        timeout_ms: int | None = None,
        schedule: Mapping[str, int] | None = None,
        key: str | None = None,
        timeout: float | None = None,
    ) -> CallReport:
        """Takes this worker's part in an operation of its group, without the coordinator: every member has to call it.

        The fields are those of members' calls (docs/guides/member_calls.md). A repeated request is not a second call,
        because every call has an Idempotency-Key.

        Parameters
        ----------
        op : str
            ``"all_reduce"`` and its like.
        group : str
            The group's name.
        tensor : str or list of str, optional
            The tensor on this worker, or the list of tensors.
        key : str, optional
            The Idempotency-Key; drawn anew unless given.
        timeout : float, optional
            Seconds until the answer; unless given a little more than `timeout_ms`, within which the worker answers.
        """
        listed = None if tensor is None or isinstance(tensor, str) else list(tensor)
        message = body(
            sequence=sequence,
            epoch=epoch,
            tensor=tensor if isinstance(tensor, str) else None,
            tensors=listed,
            output=output,
            reduce=reduce,
            root=root,
            counts=counts,
            receive_counts=receive_counts,
            dtype=dtype,
            shape=shape,
            compression=compression,
            error_feedback=error_feedback,
            in_place=in_place,
            algorithm=algorithm,
            local_algorithm=local_algorithm,
            contributions=contributions,
            timeout_ms=timeout_ms,
            schedule=schedule,
        )
        path = f"/v1/groups/{quoted(group)}/{quoted(op)}"
        answer = self._transport.json(
            "POST",
            path,
            message,
            to=self._origins,
            deadline=Deadline((timeout_ms or LONGEST_MS) / 1000 + SLACK_S if timeout is None else timeout),
            headers={"Idempotency-Key": key or new_key()},
        )
        return decode(CallReport, answer)

    def group(self, name: str, *, timeout: float | None = None) -> GroupInfo:
        """Returns a group as this member sees it, with the `next_sequence` of its calls."""
        return decode(GroupInfo, self._ask("GET", f"/v1/groups/{quoted(name)}", timeout=timeout))

    def progress(self, *, timeout: float | None = None) -> list[RunProgress]:
        """Returns where the runs stand that are under way on this worker."""
        return [decode(RunProgress, item) for item in self._ask("GET", "/v1/progress", timeout=timeout)["items"]]

    def flight(self, limit: int = 100, *, timeout: float | None = None) -> list[dict[str, Any]]:
        """Returns the last runs of this worker, the latest first, as the REST interface has them."""
        items: list[dict[str, Any]] = self._ask("GET", "/v1/flight", timeout=timeout, query={"limit": limit})["items"]
        return items
