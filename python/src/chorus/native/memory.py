"""Memory that the other workers of the host see: collectives use it without the copy that other memory costs."""

from __future__ import annotations

import ctypes
import math
import numbers
import weakref
from collections.abc import Sequence
from typing import Any

from .. import dtypes
from . import options, tensors
from .handles import Handle
from .library import Library


def allocate(library: Library, worker: int, shape: int | Sequence[int], dtype: str) -> Any:
    """Returns a new array in memory of a worker, which is freed with the array's last view."""
    given = (shape,) if isinstance(shape, (int, numbers.Integral)) else shape
    extents = tuple(options.unsigned("shape", extent, 63) for extent in given)
    size = dtypes.ITEMSIZE[dtypes.check(dtype)] * math.prod(extents)
    if size == 0:
        return tensors.new(dtype, extents).array
    pointer = ctypes.c_void_p()
    library.call("chorus_memory_allocate", worker, options.unsigned("bytes", size, 63), ctypes.byref(pointer))
    memory = pointer.value or 0
    handle = Handle(memory, library.functions["chorus_memory_free"], "memory of a worker")
    data = (ctypes.c_uint8 * size).from_address(library.functions["chorus_memory_data"](memory))
    # Views refer to `data`. The process's end frees what lives until then.
    weakref.finalize(data, handle.close).atexit = False
    view = memoryview(data).cast("B")
    try:
        import numpy
    except ImportError:
        flat = view.cast(dtypes.view_format(dtype))
        return flat.cast("B").cast(flat.format, list(extents)) if len(extents) > 1 else flat
    return numpy.frombuffer(view, numpy.uint8).view(dtypes.numpy_dtype(dtype)).reshape(extents)


class Registration:
    """Memory of the program that other workers see until `close`; made by `Worker.register`. A context manager.

    No thread uses the memory during `Worker.register` and `close`.
    """

    def __init__(self, handle: Handle, operand: tensors.Operand) -> None:
        self._finalize = weakref.finalize(self, _end, handle, operand)
        self._finalize.atexit = False

    def __enter__(self) -> Registration:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the registration; addresses and contents stay. To close again is no error."""
        self._finalize()


def _end(handle: Handle, operand: tensors.Operand) -> None:
    """Ends a registration; `operand` keeps the memory until then."""
    handle.close()


def register(library: Library, worker: int, array: Any) -> Registration:
    """Registers the pages of an array."""
    operand = tensors.written(array, None)
    if operand.staged is not None:
        raise TypeError(f"the array is on {operand.staged.name}, expected memory of the host")
    pointer = ctypes.c_void_p()
    size = operand.elements * dtypes.ITEMSIZE[operand.dtype]
    library.call("chorus_memory_register", worker, operand.struct.data, size, ctypes.byref(pointer))
    handle = Handle(pointer.value or 0, library.functions["chorus_memory_free"], "registered memory")
    return Registration(handle, operand)
