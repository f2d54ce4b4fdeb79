"""Collectives that move blocks: each rank has its own part of a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import abi, options, tensors
from .calls import Caller
from .tensors import Operand


class Blocks(Caller):
    """The part of `chorus.Group` about blocks.

    `all_gather`, `reduce_scatter` and `all_to_all` take a list of arrays of any sizes and dtypes, and a list for `out`:
    each result is as from a call with that array alone, and many small ones are several times as fast. They take no
    `counts`.

    A result without `out` is a new array. It has whole rows of the tensor's shape; where its elements are no whole
    rows it has one dimension. It is numpy's, also for a tensor on a GPU: pass `out` there for a result on the GPU.
    `Worker.empty` saves a copy between workers of a host.
    """

    def all_gather(
        self,
        tensor: Any,
        out: Any = None,
        *,
        in_place: bool = False,
        counts: Sequence[int] | None = None,
        dtype: str | None = None,
        algorithm: str | None = None,
        arity: int | None = None,
        algorithm_shape: Sequence[int] | None = None,
        timeout: float | None = None,
        compression: options.Compression | None = None,
        error_feedback: str | None = None,
        async_op: bool = False,
    ) -> Any:
        """Collects the blocks of all members, in rank order, at every member.

        Parameters
        ----------
        tensor : array of shape (n, ...), or list of arrays
            This member's block. In place: the whole, with this member's block where it belongs.
        out : array of the whole's elements, or list of arrays, optional
            Takes the whole. A new one is of shape (size n, ...), or of the rows that `counts` sum up to; where blocks
            are of unequal sizes without `counts`, `out` has to be given.

        Returns
        -------
        array or list of arrays
            The whole.
        """
        how = options.collective(
            counts=counts,
            algorithm=algorithm,
            arity=arity,
            algorithm_shape=algorithm_shape,
            timeout=timeout,
            compression=compression,
            error_feedback=error_feedback,
        )
        if tensors.is_list(tensor):
            return self._lists("all_gather", tensor, out, in_place, dtype, how, self._whole, async_op)
        if in_place:
            return self._inside("all_gather", tensor, out, dtype, how, async_op)
        read = tensors.read(tensor, dtype)
        to = self._whole(read, counts) if out is None else tensors.filled(out, dtype)
        return self._collective("all_gather", [read, to], how, to.array, async_op)

    def reduce_scatter(
        self,
        tensor: Any,
        out: Any = None,
        *,
        in_place: bool = False,
        reduce: str = "sum",
        counts: Sequence[int] | None = None,
        dtype: str | None = None,
        algorithm: str | None = None,
        arity: int | None = None,
        algorithm_shape: Sequence[int] | None = None,
        timeout: float | None = None,
        compression: options.Compression | None = None,
        error_feedback: str | None = None,
        async_op: bool = False,
    ) -> Any:
        """Reduces the tensors of all members, and leaves to each its own block.

        Parameters
        ----------
        tensor : array of shape (n, ...), or list of arrays
            The whole. In place this member's block is left where it belongs; the rest is unspecified.
        out : array of the block's elements, or list of arrays, optional
            Takes this member's block.

        Returns
        -------
        array or list of arrays
            `out`, a new array, or in place `tensor`.
        """
        how = options.collective(
            reduce=reduce,
            counts=counts,
            algorithm=algorithm,
            arity=arity,
            algorithm_shape=algorithm_shape,
            timeout=timeout,
            compression=compression,
            error_feedback=error_feedback,
        )
        if tensors.is_list(tensor):
            return self._lists("reduce_scatter", tensor, out, in_place, dtype, how, self._own, async_op)
        if in_place:
            return self._inside("reduce_scatter", tensor, out, dtype, how, async_op)
        read = tensors.read(tensor, dtype)
        to = self._own(read, counts) if out is None else tensors.filled(out, dtype)
        return self._collective("reduce_scatter", [read, to], how, to.array, async_op)

    def gather(
        self,
        tensor: Any,
        out: Any = None,
        *,
        root: int = 0,
        counts: Sequence[int] | None = None,
        dtype: str | None = None,
        algorithm: str | None = None,
        arity: int | None = None,
        timeout: float | None = None,
        async_op: bool = False,
    ) -> Any:
        """Collects the blocks of all members, in rank order, at the root. Without counts all are of one size.

        Parameters
        ----------
        tensor : array of shape (n, ...)
            This member's block.
        out : array of the whole's elements, optional
            Takes the whole at the root; ignored elsewhere.

        Returns
        -------
        array or None
            The whole at the root; None elsewhere.
        """
        how = options.collective(root=root, counts=counts, algorithm=algorithm, arity=arity, timeout=timeout)
        read = tensors.read(tensor, dtype)
        if self.rank != root:
            return self._collective("gather", [read, None], how, None, async_op)
        to = self._whole(read, counts) if out is None else tensors.filled(out, dtype)
        return self._collective("gather", [read, to], how, to.array, async_op)

    def scatter(
        self,
        tensor: Any = None,
        out: Any = None,
        *,
        root: int = 0,
        counts: Sequence[int] | None = None,
        dtype: str | None = None,
        algorithm: str | None = None,
        arity: int | None = None,
        timeout: float | None = None,
        async_op: bool = False,
    ) -> Any:
        """Sends each member its block of the root's tensor. Without counts all are of one size.

        Parameters
        ----------
        tensor : array of shape (n, ...)
            The whole, at the root; ignored elsewhere.
        out : array of the block's elements
            Takes this member's block; may be left out at the root, which then makes a new array.

        Returns
        -------
        array
            This member's block.
        """
        how = options.collective(root=root, counts=counts, algorithm=algorithm, arity=arity, timeout=timeout)
        if self.rank != root:
            if out is None:
                raise TypeError(f"scatter: rank {self.rank} is not the root, and needs out")
            to = tensors.filled(out, dtype)
            return self._collective("scatter", [None, to], how, to.array, async_op)
        if tensor is None:
            raise TypeError(f"scatter: rank {root} is the root, and needs a tensor")
        read = tensors.read(tensor, dtype)
        to = self._own(read, counts) if out is None else tensors.filled(out, dtype)
        return self._collective("scatter", [read, to], how, to.array, async_op)

    def all_to_all(
        self,
        tensor: Any,
        out: Any = None,
        *,
        in_place: bool = False,
        counts: Sequence[int] | None = None,
        receive_counts: Sequence[int] | None = None,
        dtype: str | None = None,
        algorithm: str | None = None,
        timeout: float | None = None,
        async_op: bool = False,
    ) -> Any:
        """Sends block d of the tensor to rank d, and gets block s of the result from rank s.

        Parameters
        ----------
        tensor : array of shape (n, ...), or list of arrays
            Blocks for all ranks.
        out : array, or list of arrays, optional
            Takes the blocks of all ranks. A new one has the shape of `tensor`, or the rows that `receive_counts` sum
            up to.
        in_place : bool
            `tensor` is input and output, of equal blocks.
        counts, receive_counts : sequence of int, optional
            Elements to and from each rank, both or neither; they may differ from member to member.

        Returns
        -------
        array or list of arrays
            The blocks of all ranks.
        """
        how = options.collective(counts=counts, receive_counts=receive_counts, algorithm=algorithm, timeout=timeout)
        if tensors.is_list(tensor):
            return self._lists("all_to_all", tensor, out, in_place, dtype, how, self._exchanged, async_op)
        if in_place:
            return self._inside("all_to_all", tensor, out, dtype, how, async_op)
        read = tensors.read(tensor, dtype)
        if out is not None:
            to = tensors.filled(out, dtype)
        elif receive_counts is not None:
            to = tensors.new(read.dtype, tensors.shape_of(sum(receive_counts), read.shape))
        else:
            to = self._exchanged(read)
        return self._collective("all_to_all", [read, to], how, to.array, async_op)

    def _inside(self, name: str, tensor: Any, out: Any, dtype: str | None, how: Any, async_op: bool) -> Any:
        if out is not None:
            raise TypeError(f"{name} in place takes no out")
        return self._collective(name, [None, tensors.written(tensor, dtype)], how, tensor, async_op)

    def _lists(
        self,
        name: str,
        listed: Sequence[Any],
        out: Any,
        in_place: bool,
        dtype: str | None,
        how: abi.CollectiveOptions,
        new: Callable[[Operand], Operand],
        async_op: bool,
    ) -> Any:
        """Calls an operation on a list; `new` makes the array of a result."""
        if in_place:
            if out is not None:
                raise TypeError(f"{name} in place takes no out")
            inside = [tensors.written(one, dtype) for one in listed]
            return self._collective_of_lists(name, None, inside, how, listed, async_op)
        read = [tensors.read(one, dtype) for one in listed]
        if out is None:
            made = [new(one) for one in read]
            return self._collective_of_lists(name, read, made, how, [one.array for one in made], async_op)
        if not tensors.is_list(out) or len(out) != len(read):
            raise TypeError(f"{name} of a list of {len(read)} takes a list of as many for out")
        to = [tensors.filled(one, dtype) for one in out]
        return self._collective_of_lists(name, read, to, how, out, async_op)

    def _exchanged(self, read: Operand) -> Operand:
        """A new array for what all_to_all without counts gives."""
        length = self.block(self.rank, read.elements)[1] * self.size
        return tensors.new(read.dtype, read.shape if length == read.elements else (length,))

    def _whole(self, block: Operand, counts: Sequence[int] | None = None) -> Operand:
        """A new array for the blocks of all ranks."""
        if counts is not None:
            return tensors.new(block.dtype, tensors.shape_of(sum(counts), block.shape))
        shape = (self.size * block.shape[0], *block.shape[1:]) if block.shape else (self.size,)
        return tensors.new(block.dtype, shape)

    def _own(self, whole: Operand, counts: Sequence[int] | None = None) -> Operand:
        """A new array for this rank's block of a whole."""
        if counts is None:
            length = self.block(self.rank, whole.elements)[1]
        else:
            length = counts[self.rank] if self.rank < len(counts) else 0  # the library says what is wrong
        return tensors.new(whole.dtype, tensors.shape_of(length, whole.shape))
