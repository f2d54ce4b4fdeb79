"""Bytes of arrays, from where they lie, and arrays that an answer is read into.

Arrays that are contiguous, little-endian and of one of the twelve dtypes are sent without a copy; others are copied
once. An answer is read from the socket into the array's own memory. An array on a GPU is copied by way of the host.
"""

from __future__ import annotations

import array as arrays
from collections.abc import Sequence
from typing import Any, NamedTuple

from . import dlpack, dtypes
from .cuda import staging

TO_SEND = "expected a numpy array, a buffer, or a tensor that has __dlpack__"


class Content(NamedTuple):
    """The bytes of an array; `keep` has to live as long as `view` is used.

    With `staged`, of an array on a GPU, `view` is memory of the host that is copied from and to the array.
    """

    view: memoryview
    dtype: str
    shape: tuple[int, ...]
    keep: Any
    staged: staging.Staged | None = None

    def fetch(self) -> Content:
        """Copies an array on a GPU into `view`."""
        if self.staged is not None:
            staging.fetch([self.staged])
        return self

    def store(self) -> None:
        """Copies `view` to an array on a GPU."""
        if self.staged is not None:
            staging.store([self.staged])


def _flat(view: memoryview) -> memoryview:
    # cast() refuses views without elements.
    return memoryview(bytearray()) if view.nbytes == 0 else view.cast("B")


def _is_numpy(array: Any) -> bool:
    return hasattr(array, "__array_interface__") and hasattr(array, "dtype") and hasattr(array, "tobytes")


def _no_dtype(what: str) -> TypeError:
    return TypeError(f"elements of {what} have no dtype here: expected one of {' '.join(dtypes.ITEMSIZE)}")


def _plain(array: Any, copies: bool) -> Any:
    """Returns what is like an array of numpy as one; unless `copies` in the same memory."""
    import numpy

    if isinstance(array, numpy.ma.MaskedArray) and numpy.any(array.mask):
        raise TypeError("elements of the array are masked: pass its .data, or what .filled() returns")
    plain = numpy.asarray(array)
    if not copies and plain.flags.owndata:
        raise ValueError(
            f"{type(array).__name__}: only a copy of it could be written to: pass an array, of shape () for a scalar"
        )
    return plain


def _of_numpy(array: Any, dtype: str | None, copies: bool) -> Content:
    import numpy

    if type(array) is not numpy.ndarray:
        array = _plain(array, copies)
    found = dtypes.of_numpy(array.dtype)
    if found is None and (dtype is None or not dtypes.may_hold(array.dtype, dtype)):
        raise _no_dtype(f"numpy's type {array.dtype}")
    shape = array.shape
    if not (array.flags.c_contiguous and array.dtype.isnative):
        if not copies:
            raise ValueError("the array is not contiguous, or not little-endian: its memory cannot be read into")
        array = numpy.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    if array.size == 0:
        return Content(memoryview(bytearray()), found or str(dtype), shape, None)
    return Content(_bytes_of(array), found or str(dtype), shape, array)


def _of_buffer(array: Any, dtype: str | None, copies: bool) -> Content:
    try:
        view = memoryview(array)
    except TypeError:
        raise TypeError(f"{type(array).__name__}: {TO_SEND}") from None
    found = dtypes.of_format(view.format)
    if found is None:
        raise _no_dtype(f"a buffer of format {view.format!r}")
    if (found, dtype) == ("u8", "i8"):
        found = "i8"  # bytes have no sign
    shape = tuple(view.shape or ())
    if view.c_contiguous:
        return Content(_flat(view), found, shape, array)
    if not copies:
        raise ValueError("the buffer is not contiguous: its memory cannot be read into")
    return Content(memoryview(view.tobytes()), found, shape, None)


def _content(array: Any, dtype: str | None, copies: bool) -> Content:
    if _is_numpy(array):
        content = _of_numpy(array, dtype, copies)
    elif hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__"):
        if hasattr(array, "detach"):
            array = array.detach()  # torch lends no tensor that requires a gradient
        if hasattr(array, "is_neg") and array.is_neg():  # torch, whose signs DLPack does not know
            if not copies:
                raise ValueError("the tensor has the negative of its memory: call .resolve_neg() first")
            array = array.resolve_neg()
        if copies and hasattr(array, "contiguous"):
            array = array.contiguous()
        lent = dlpack.borrow(array)
        if lent.dtype not in dtypes.ITEMSIZE:
            raise _no_dtype(f"{type(array).__name__} of {lent.dtype}")
        content = Content(lent.view, lent.dtype, lent.shape, lent.capsule, lent.staged)
    else:
        content = _of_buffer(array, dtype, copies)
    if dtype is None or dtype == content.dtype:
        return content
    if dtype not in dtypes.MEANT.get(content.dtype, ()):
        raise TypeError(
            f"elements of {content.dtype} cannot be meant as {dtype}: dtype says what the array cannot, such as bf16 of "
            "u16"
        )
    return content._replace(dtype=dtype)


def to_send(array: Any, dtype: str | None = None) -> Content:
    """Returns the bytes of an array.

    Parameters
    ----------
    array : object
        A numpy array, anything that has a buffer, or a tensor that has ``__dlpack__`` (torch, jax, cupy), on the CPU or
        a GPU of CUDA.
    dtype : str, optional
        What the elements are, where the array cannot say it: ``"bf16"`` or ``"f16"`` for their bits as uint16, and what
        is as large as elements of numpy that have no dtype here, of bool, of times, or of void.
    """
    return to_read(array, dtype).fetch()


def to_read(array: Any, dtype: str | None = None) -> Content:
    """Returns what `to_send` does, but does not copy from a GPU: `Content.fetch` or `cuda.staging` does later."""
    if dtype is not None:
        dtypes.check(dtype)
    return _content(array, dtype, copies=True)


def to_fill(array: Any, dtype: str, shape: Sequence[int] | None) -> Content:
    """Returns the memory of an array that takes elements of `dtype`, and as many as `shape` has.

    `Content.store` after they are there, for an array on a GPU.

    Raises
    ------
    TypeError
        Its elements are of another dtype. Those of bf16 may be read into an array of uint16.
    ValueError
        It is read-only, not contiguous, or of another size.
    """
    writable(array)
    content = _content(array, None, copies=False)
    if content.dtype != dtype and (content.dtype, dtype) != ("u16", "bf16"):
        raise TypeError(f"the array has elements of {content.dtype}, expected {dtype}")
    if shape is not None and len(content.view) != dtypes.nbytes(dtype, shape):
        raise ValueError(f"the array has shape {content.shape}, expected {tuple(shape)}")
    return content


def to_write(array: Any, dtype: str | None = None) -> Content:
    """Returns the memory of an array that is written in place. It is copied from and to a GPU as of `to_read`.

    Parameters
    ----------
    array : object
        As of `to_send`.
    dtype : str, optional
        As of `to_send`.

    Raises
    ------
    ValueError
        It is read-only, not contiguous, or a scalar.
    """
    if dtype is not None:
        dtypes.check(dtype)
    content = _content(array, dtype, copies=False)
    if content.view.readonly:
        raise ValueError("the array is read-only: nothing can be read into it")
    return content


def writable(array: Any) -> None:
    """Raises what `to_fill` would raise whatever is to be read, so that nothing is asked for in vain."""
    to_write(array)


def new(dtype: str, shape: Sequence[int]) -> tuple[Any, memoryview]:
    """Returns a new array and its bytes: of numpy, or where that is not installed a memoryview."""
    dtypes.check(dtype)
    try:
        import numpy
    except ImportError:
        memory = bytearray(dtypes.nbytes(dtype, shape))
        flat = memoryview(memory).cast(dtypes.view_format(dtype))
        return (flat.cast("B").cast(flat.format, list(shape)) if memory and len(shape) > 1 else flat), memoryview(
            memory
        )
    array = numpy.empty(tuple(shape), dtype=dtypes.numpy_dtype(dtype))
    if array.size == 0:
        return array, memoryview(bytearray())
    return array, _bytes_of(array)


def assign(out: Any, array: Any, dtype: str) -> None:
    """Copies a numpy array of a dtype to another array."""
    if _is_numpy(out):
        out[...] = array
        return
    content = to_fill(out, dtype, array.shape)
    content.view[:] = _bytes_of(array)
    content.store()


def _bytes_of(array: Any) -> memoryview:
    """The memory of a contiguous numpy array. Types that numpy does not know itself have no buffer: bytes have."""
    return memoryview(array.reshape(-1).view("u1"))


def as_numbers(rows: Any) -> memoryview:
    """Returns numbers of rows as u64; from where they lie, if they are that."""
    if not isinstance(rows, (list, tuple, range)):
        content = to_send(rows)
        if content.dtype == "u64":
            return content.view
        if content.dtype[0] == "i" or content.dtype[0] == "u":
            rows = content.view.cast(dtypes.view_format(content.dtype)) if content.view else ()
        else:
            raise TypeError(f"rows are numbered by integers, and not by {content.dtype}")
    try:
        numbers = arrays.array("Q", rows)
    except OverflowError:
        wrong = next(row for row in rows if not 0 <= row < 1 << 64)
        raise ValueError(f"a row has the number {wrong}, expected 0 to {(1 << 64) - 1}") from None
    return _flat(memoryview(numbers))


def ascending(numbers: memoryview) -> bool:
    """Whether numbers of rows are in order, as services expect them."""
    if not numbers:
        return True
    try:
        import numpy
    except ImportError:
        listed = numbers.cast("Q")
        return all(one <= other for one, other in zip(listed, listed[1:]))
    array = numpy.frombuffer(numbers, "<u8")
    return bool((array[1:] >= array[:-1]).all())


def row_numbers(rows: Any) -> tuple[memoryview, Any]:
    """Returns the numbers in order; and where each is among them, if they were not."""
    numbers = as_numbers(rows)
    if ascending(numbers):
        return numbers, None
    unique, inverse = _numpy().unique(_numpy().frombuffer(numbers, "<u8"), return_inverse=True)
    return _bytes_of(unique), inverse


def in_order(numbers: memoryview, gradients: memoryview) -> tuple[memoryview, memoryview]:
    """Returns numbers in order, and the gradients that go with them: a copy, if they were not."""
    if ascending(numbers):
        return numbers, gradients
    array = _numpy().frombuffer(numbers, "<u8")
    order = array.argsort(kind="stable")
    rows = _numpy().frombuffer(gradients, "u1").reshape(len(array), -1)
    return _bytes_of(array[order]), _bytes_of(rows[order])


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise ValueError("rows are not in ascending order; where numpy is installed they may be in any") from None
    return numpy
