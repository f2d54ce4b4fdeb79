"""Arrays as the C interface takes them: address, number of elements, dtype. Memory that is contiguous is not copied."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import buffers, dtypes
from ..buffers import Content
from ..cuda import staging
from ..cuda.results import NONE, Results
from . import abi

_DTYPE = {name: number for number, name in enumerate(abi.DTYPES)}


class _PyBuffer(ctypes.Structure):
    """``Py_buffer`` of the interpreter."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int]
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes, _release_buffer.restype = [ctypes.POINTER(_PyBuffer)], None


def address(view: memoryview) -> int:
    """Returns where the bytes of a contiguous view lie, also of one that is read-only."""
    lent = _PyBuffer()
    _get_buffer(view, ctypes.byref(lent), 0)
    try:
        return int(lent.buf or 0)
    finally:
        _release_buffer(ctypes.byref(lent))


class Operand:
    """One tensor of a call. Alive, it keeps the memory that `struct` refers to.

    Parameters
    ----------
    array : object
        What the program passed, or what the package made for it.
    content : Content
        Its memory.
    struct : type
        `abi.Tensor` or `abi.ConstTensor`.
    fetches, stores : bool
        Whether the call reads the array before it writes to it, and writes to it: which copies one on a GPU needs.
    """

    def __init__(
        self,
        array: Any,
        content: Content,
        struct: type[ctypes.Structure],
        fetches: bool = False,
        stores: bool = False,
    ) -> None:
        self.array, self.dtype, self.shape = array, content.dtype, content.shape
        self.staged, self.fetches, self.stores = content.staged, fetches, stores
        self.elements = content.view.nbytes // dtypes.ITEMSIZE[content.dtype]
        self._keep = content
        where = address(content.view) if content.view.nbytes else None
        self.struct: Any = struct(where, self.elements, _DTYPE[content.dtype], 0)


def is_list(tensor: Any) -> bool:
    """Whether a call is given several tensors."""
    return isinstance(tensor, (list, tuple))


def read(array: Any, dtype: str | None) -> Operand:
    """Returns an array that a call only reads; one that is not contiguous is copied once."""
    return Operand(array, buffers.to_read(array, dtype), abi.ConstTensor, fetches=True)


def written(array: Any, dtype: str | None, has_result: bool = True) -> Operand:
    """Returns an array that a call reads and writes to; without `has_result` it has the same elements afterwards.

    Raises
    ------
    ValueError
        It is read-only or not contiguous.
    """
    return Operand(array, buffers.to_write(array, dtype), abi.Tensor, fetches=True, stores=has_result)


def filled(array: Any, dtype: str | None) -> Operand:
    """Returns an array whose elements a call writes without reading them.

    Raises
    ------
    ValueError
        It is read-only or not contiguous.
    """
    return Operand(array, buffers.to_write(array, dtype), abi.Tensor, stores=True)


def only_read(array: Any, dtype: str | None) -> Operand:
    """Returns an array that is only read by a function whose argument is one that others write to."""
    return Operand(array, buffers.to_read(array, dtype), abi.Tensor, fetches=True)


def new(dtype: str, shape: Sequence[int]) -> Operand:
    """Returns a new array that a call writes to."""
    array, view = buffers.new(dtype, shape)
    return Operand(array, Content(view, dtype, tuple(shape), array), abi.Tensor)


Maker = Callable[[Any, str | None], Operand]  # `read`, `written`, ...


def fetched(operands: Iterable[Operand | None], nbytes: Callable[[], int] | None) -> Results:
    """Copies what a call reads of arrays on GPUs, and returns those that it writes to.

    Parameters
    ----------
    nbytes : callable, optional
        As of `Results`.

    Raises
    ------
    DeviceFailed
        A copy failed.
    ValueError
        One of the arrays belongs to a call that nobody has waited for.
    """
    for one in operands:
        if one is not None and one.staged is not None:
            break
    else:
        return NONE
    on_gpus = [one for one in operands if one is not None and one.staged is not None]
    read = [one.staged for one in on_gpus if one.staged is not None and one.fetches]
    results = Results([one.staged for one in on_gpus if one.staged is not None and one.stores], nbytes)
    results.claim(read)
    try:
        staging.fetch(read)
    except BaseException:
        results.finish(False)
        raise
    return results


def shape_of(elements: int, like: Sequence[int]) -> tuple[int, ...]:
    """Returns the shape of so many elements in whole rows of `like`; one dimension where they are no whole rows."""
    row = math.prod(like[1:]) if like else 1
    if row == 0 or elements % row:
        return (elements,)
    return (elements // row, *like[1:])
