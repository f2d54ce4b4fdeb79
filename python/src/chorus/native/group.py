"""A group that this process is a member of, and its collectives."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

from ..errors import from_problem
from . import abi, options, tensors
from .blocks import Blocks
from .messages import Messages


class Group(Blocks, Messages):
    """A membership in one epoch of a group, made by `Worker.join` or `chorus.init`.

    Every member calls the same collectives in the same order, with the same dtype and options, in place or not alike.
    Calls of one membership run one after the other, in the order in which they were issued, from any thread; no thread
    touches their arrays meanwhile.

    Arrays are numpy's, anything with a buffer, and tensors that have ``__dlpack__``, such as torch's. One that is
    contiguous is used where it lies. One that is not, and a scalar of numpy, is copied once where the call reads it,
    and refused where the call writes to it. One on a GPU of CUDA is copied to pinned memory of the host before the
    call, after what its library has queued, and has its result when the call returns; new arrays are numpy's.

    Arguments of every collective:

    =============== ====================================================================================================
    dtype           what the elements are, where the array cannot say it: ``"bf16"`` or ``"f16"`` for their bits as
                    uint16
    reduce          ``"sum"``, ``"avg"``, ``"min"``, ``"max"``, ``"prod"``, ``"band"``, ``"bor"``, ``"bxor"``
    counts          elements per rank's block, one for each rank; without it blocks as equal as can be
    algorithm       a name from docs/reference/algorithms.md, with `arity` and `algorithm_shape` where it takes one
    compression     ``"bf16"``, ``"f16"``, ``"int8"``, ``"fp8_e4m3"``: send codes of floats, which lose precision; not
                    in all collectives (docs/reference/compressed_collectives.md). ``{"format": "int8", "between":
                    "rack"}``: only between two racks (or ``"host"``, ``"zone"``, ``"region"``). ``{"format": "auto",
                    "allow": ["bf16", "int8"]}``: the fastest of these, or none where elements are faster; ``"auto"``
                    allows bf16 alone
    error_feedback  a name, with `compression` of one array: what the codes lack of it is kept under the name, and added
                    to the next array of that name and size; members may differ
    timeout         seconds from when the call begins, which is when those before it have ended; 30 unless given
    async_op        return a `Work` at once; the result is what its `wait` returns
    =============== ====================================================================================================

    `chorus.BadArgument` (a ValueError), TypeError and ValueError: nothing was sent, and the call has no place in the
    order; a corrected one fits. Any other failure ends the epoch: `chorus.PeerLost`, `chorus.Mismatch` (the members
    called different things), `chorus.DeadlineExceeded`, with `ranks`; every later call says why, and `Worker.join`
    gives the next epoch. What a failed call was to write to is unspecified.

    Attributes
    ----------
    name : str
    rank, size, epoch : int
        Of this member, 0 to ``size - 1``; the number of members; from 1.
    """

    _ends_worker = False  # the worker is the group's own
    _meets = True  # its members meet before that

    def __repr__(self) -> str:
        return f"Group({self.name!r}, rank {self.rank} of {self.size}, epoch {self.epoch})"

    def __enter__(self) -> Group:
        return self

    def __exit__(self, _: object, error: object, *__: object) -> None:
        if self._ends_worker and self._meets and ends_well(error) and not self._handle.closed:
            self.barrier(timeout=options.LONGEST_S)  # a slower member would lose this one
        self.close()

    def close(self) -> None:
        """Refuses further calls, and waits for those of other threads. To close again is no error.

        The worker stays a member until it is closed. The group of `chorus.init` closes it, which ends calls of other
        threads with `chorus.Aborted`.
        """
        if self._ends_worker:
            self._worker.close()  # first: this ends what the handle would wait for
        self._handle.close()

    @functools.cached_property
    def members(self) -> list[str]:
        """Ids of the workers, in the order of ranks; asked once, of this worker over REST."""
        with self._handle:  # is open, and of this process
            pass
        found = self._worker.remote.group(self.name)
        if found.epoch != self.epoch:
            raise from_problem(
                {"code": "epoch_fenced", "detail": f"group {self.name!r} is in epoch {found.epoch}, not {self.epoch}"}
            )
        return [member.worker for member in sorted(found.members, key=lambda member: member.rank)]

    def subgroup(self, ranks: Sequence[int], timeout: float = 60.0) -> Group:
        """Makes a group of some members: rank ``ranks[r]`` of this group has rank r in the new one.

        Exactly these members call it, with the same list. Several groups of one list are several groups;
        `Worker.delete_group` takes the `name` of one.

        Raises
        ------
        BadArgument
            A rank that the group does not have, one twice, or not the caller's.
        NotAssigned, NoCoordinator
            The first of `ranks` has not called within `timeout`, or the coordinator does not answer.
        """
        numbers, count = options.whole_numbers("ranks", ranks)
        pointer = ctypes.c_void_p()
        with self._handle as group:
            self._library.call(
                "chorus_group_subgroup",
                group,
                numbers,
                count,
                options.milliseconds("timeout", timeout),
                ctypes.byref(pointer),
            )
        made: Group = self._worker._member(pointer, f"a subgroup of {self.name!r}")
        return made

    @property
    def path(self) -> str:
        """How members reach each other: ``"shm"``, ``"links"``, or ``"unknown"`` before the first call.

        Waits for the calls that were issued before.
        """
        path = ctypes.c_char_p()
        with self._handle as group:
            self._library.call("chorus_group_path", group, ctypes.byref(path))
        return (path.value or b"").decode()

    def why_not_shared(self) -> str:
        """Returns why `path` is ``"links"``: which member shares no memory; empty otherwise."""
        text, length = ctypes.create_string_buffer(4096), ctypes.c_size_t()
        with self._handle as group:
            self._library.call("chorus_group_why_not_shared", group, text, len(text), ctypes.byref(length))
        return text.value.decode("utf-8", "replace")

    def all_reduce(
        self,
        tensor: Any,
        out: Any = None,
        *,
        reduce: str = "sum",
        dtype: str | None = None,
        algorithm: str | None = None,
        arity: int | None = None,
        algorithm_shape: Sequence[int] | None = None,
        timeout: float | None = None,
        compression: options.Compression | None = None,
        error_feedback: str | None = None,
        async_op: bool = False,
    ) -> Any:
        """Reduces the tensors of all members, element by element, to every member.

        Parameters
        ----------
        tensor : array of any shape, or list of arrays
            A list, of any sizes and dtypes, is several times as fast as a call for each.
        out : array of as many elements, optional
            Takes the result. Without it the call is in place; a list always is.

        Returns
        -------
        array or list of arrays
            `out`, or `tensor`.
        """
        how = options.collective(
            reduce=reduce,
            algorithm=algorithm,
            arity=arity,
            algorithm_shape=algorithm_shape,
            timeout=timeout,
            compression=compression,
            error_feedback=error_feedback,
        )
        if _is_list(tensor, out):
            return self._list("all_reduce", tensor, tensors.written, dtype, how, async_op)
        return self._reduced("all_reduce", tensor, out, out is None, dtype, how, True, async_op)

    def reduce(
        self,
        tensor: Any,
        out: Any = None,
        *,
        root: int = 0,
        in_place: bool | None = None,
        reduce: str = "sum",
        dtype: str | None = None,
        algorithm: str | None = None,
        arity: int | None = None,
        timeout: float | None = None,
        compression: options.Compression | None = None,
        error_feedback: str | None = None,
        async_op: bool = False,
    ) -> Any:
        """Reduces the tensors of all members, only to the root.

        Parameters
        ----------
        tensor : array of any shape, or list of arrays
            In place the tensors of the others stay as they are; a list always is.
        out : array of as many elements, optional
            Takes the result at the root; ignored elsewhere.
        in_place : bool, optional
            Alike on all members; whether `out` is None unless given. False without `out`: the root makes a new array.

        Returns
        -------
        array, list of arrays or None
            The result at the root; None elsewhere.
        """
        how = options.collective(
            reduce=reduce,
            root=root,
            algorithm=algorithm,
            arity=arity,
            timeout=timeout,
            compression=compression,
            error_feedback=error_feedback,
        )
        at_root = self.rank == root
        if _is_list(tensor, out):
            operand = functools.partial(tensors.written, has_result=at_root)
            return self._list("reduce", tensor, operand, dtype, how, async_op, at_root)
        inside = out is None if in_place is None else in_place
        return self._reduced("reduce", tensor, out, inside, dtype, how, at_root, async_op)

    def broadcast(
        self,
        tensor: Any,
        *,
        root: int = 0,
        dtype: str | None = None,
        algorithm: str | None = None,
        arity: int | None = None,
        timeout: float | None = None,
        compression: options.Compression | None = None,
        error_feedback: str | None = None,
        async_op: bool = False,
    ) -> Any:
        """Copies the root's tensor to the tensors of all members.

        Parameters
        ----------
        tensor : array, or list of arrays
            Of as many elements on every member; the root's may be read-only, unless there is a `compression`.

        Returns
        -------
        array or list of arrays
            `tensor`.
        """
        how = options.collective(
            root=root,
            algorithm=algorithm,
            arity=arity,
            timeout=timeout,
            compression=compression,
            error_feedback=error_feedback,
        )
        operand: tensors.Maker = tensors.filled
        if self.rank == root and compression is None:
            operand = tensors.only_read
        elif self.rank == root:
            operand = tensors.written
        if _is_list(tensor, None):
            return self._list("broadcast", tensor, operand, dtype, how, async_op)
        return self._collective("broadcast", [operand(tensor, dtype)], how, tensor, async_op)

    def barrier(self, *, algorithm: str | None = None, timeout: float | None = None, async_op: bool = False) -> Any:
        """Returns when every member has called it."""
        return self._collective("barrier", [], options.collective(algorithm=algorithm, timeout=timeout), None, async_op)

    def _reduced(
        self,
        name: str,
        tensor: Any,
        out: Any,
        in_place: bool,
        dtype: str | None,
        how: abi.CollectiveOptions,
        has_result: bool,
        async_op: bool,
    ) -> Any:
        """Calls all_reduce or reduce on one tensor."""
        if in_place:
            if out is not None:
                raise TypeError(f"{name} in place takes no out")
            operand = tensors.written(tensor, dtype, has_result)
            return self._collective(name, [None, operand], how, tensor if has_result else None, async_op)
        read = tensors.read(tensor, dtype)
        if not has_result:
            return self._collective(name, [read, None], how, None, async_op)
        to = tensors.new(read.dtype, read.shape) if out is None else tensors.filled(out, dtype)
        return self._collective(name, [read, to], how, to.array, async_op)

    def _list(
        self,
        name: str,
        listed: Sequence[Any],
        operand: tensors.Maker,
        dtype: str | None,
        how: abi.CollectiveOptions,
        async_op: bool,
        has_result: bool = True,
    ) -> Any:
        operands = [operand(one, dtype) for one in listed]
        return self._collective_of_list(name, operands, how, listed if has_result else None, async_op)


def ends_well(error: object) -> bool:
    """Whether a ``with`` that is left by `error`, or without one, is left in order."""
    return error is None or (isinstance(error, SystemExit) and error.code in (None, 0))


def _is_list(tensor: Any, out: Any) -> bool:
    if not tensors.is_list(tensor):
        return False
    if out is not None:
        raise TypeError("a list of tensors is reduced in place: out is not allowed")
    return True
