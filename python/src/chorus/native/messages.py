"""Messages between two members of a group."""

from __future__ import annotations

import ctypes
from typing import Any

from .. import dtypes
from . import abi, options, tensors
from .calls import Caller
from .tensors import Operand

ANY_SOURCE = None


class Received:
    """What a receive has got.

    Attributes
    ----------
    tensor : array
        The one that the message was received into; it may be larger.
    source : int
        Rank of the sender.
    bytes, elements : int
        Size of the message; in elements of `tensor`, rounded down.
    """

    def __init__(self, into: Operand) -> None:
        self.tensor = into.array
        self._itemsize = dtypes.ITEMSIZE[into.dtype]
        self._struct = abi.Received()

    def __repr__(self) -> str:
        return f"Received({self.bytes} bytes from rank {self.source})"

    @property
    def source(self) -> int:
        return int(self._struct.source)

    @property
    def bytes(self) -> int:
        return int(self._struct.bytes)

    @property
    def elements(self) -> int:
        return self.bytes // self._itemsize


class Messages(Caller):
    """The part of `chorus.Group` about messages.

    They are in no order with the collectives, and any number may be under way at a time, in any threads. A receive
    takes the first message of its source and tag in the order in which they were sent. A message is bytes: the arrays
    of both sides may differ in dtype, and the receiver's may be larger.

    A send ends when its array may change: a message of up to about 256 KiB may wait at the receiver, a larger one is
    sent when its receive has been called. Members that both send before they receive use `sendrecv` or ``async_op``.

    `chorus.DeadlineExceeded` of a receive that no message has met has no effect. Any other failure ends the epoch on
    both members, as that of a collective does: `chorus.Mismatch` if the message is larger than the receiver's array,
    into which nothing is written then; `chorus.Aborted` if more messages of one sender wait at a receiver than it keeps
    (1024, and 32 MiB).
    """

    def send(
        self,
        tensor: Any,
        peer: int,
        *,
        tag: int = 0,
        dtype: str | None = None,
        timeout: float | None = None,
        async_op: bool = False,
    ) -> Any:
        """Sends an array to another member.

        Parameters
        ----------
        tensor : array of any shape
        peer : int
            Rank of the receiver.
        tag : int
            0 to 2147483647.
        timeout : float, optional
            Seconds from the call on; 30 unless given.
        async_op : bool
            Return a `Work` at once.
        """
        read = tensors.read(tensor, dtype)
        how = options.message(tag=tag, timeout=timeout)
        arguments = (ctypes.byref(read.struct), options.unsigned("peer", peer), ctypes.byref(how))
        return self._run("send", (read,), arguments, how, None, async_op)

    def recv(
        self,
        tensor: Any,
        source: int | None = ANY_SOURCE,
        *,
        tag: int = 0,
        dtype: str | None = None,
        timeout: float | None = None,
        async_op: bool = False,
    ) -> Any:
        """Receives a message at the beginning of an array.

        Parameters
        ----------
        tensor : array of any shape
            Contiguous and writable.
        source : int, optional
            Rank of the sender. None: the message of this tag that has arrived first, from any member.
        tag, timeout, async_op
            As of `send`.

        Returns
        -------
        Received
        """
        into = tensors.filled(tensor, dtype)
        how, received = options.message(tag=tag, timeout=timeout), Received(into)
        arguments = (ctypes.byref(into.struct), _source(source), ctypes.byref(how), ctypes.byref(received._struct))
        return self._run("recv", (into,), arguments, (how, received), received, async_op, lambda: received.bytes)

    def sendrecv(
        self,
        tensor: Any,
        peer: int,
        out: Any,
        source: int | None = ANY_SOURCE,
        *,
        tag: int = 0,
        dtype: str | None = None,
        timeout: float | None = None,
        async_op: bool = False,
    ) -> Any:
        """Sends `tensor` to `peer` and receives into `out` from `source` at the same time, with the same tag.

        Returns
        -------
        Received
        """
        read, into = tensors.read(tensor, dtype), tensors.filled(out, dtype)
        how, received = options.message(tag=tag, timeout=timeout), Received(into)
        arguments = (
            ctypes.byref(read.struct),
            options.unsigned("peer", peer),
            ctypes.byref(into.struct),
            _source(source),
            ctypes.byref(how),
            ctypes.byref(received._struct),
        )
        keep = (how, received)
        return self._run("sendrecv", (read, into), arguments, keep, received, async_op, lambda: received.bytes)


def _source(source: int | None) -> int:
    return abi.ANY_SOURCE if source is None else options.unsigned("source", source)
