"""Arrays of a library that uses the GPUs of ``cuda_double.cpp``, and tells of them by DLPack alone.

The library queues in a stream of its own: whoever reads an array without waiting for that stream finds -7.
"""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_size_t, c_uint64, c_void_p
from typing import Any

import numpy

from chorus import dlpack

STREAM = 7
ELEMENTS = 5000
STALE = -7

_double = ctypes.CDLL("libcuda.so.1")
_prototypes: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "double_allocate": (c_uint64, (c_int, c_size_t, c_int, c_int)),
    "double_free": (None, (c_uint64,)),
    "double_peek": (c_int, (c_void_p, c_uint64, c_size_t)),
    "double_poke": (c_int, (c_uint64, c_void_p, c_size_t)),
    "double_queue": (None, (c_int, c_uint64, c_uint64, c_void_p, c_size_t)),
    "double_wait": (None, (c_int, c_uint64, c_uint64)),
    "double_current": (c_int, ()),
    "double_fail": (None, (c_char_p, c_int)),
}
for _name, (_result, _arguments) in _prototypes.items():
    getattr(_double, _name).restype, getattr(_double, _name).argtypes = _result, _arguments

_new = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_lent: dict[int, Any] = {}  # what each capsule keeps, by the address of its tensor


class Counts(ctypes.Structure):
    _fields_ = [
        (name, c_uint64) for name in ("fetched_bytes", "stored_bytes", "pinned_blocks", "pinned_bytes", "synchronized")
    ]


_double.double_counts.restype = Counts


def _forget(capsule: int) -> None:
    for name in (b"dltensor", b"dltensor_versioned"):
        try:
            del _lent[_pointer(capsule, name)]
        except ValueError:  # it has the other name
            pass


_deleter = ctypes.PYFUNCTYPE(None, c_void_p)(_forget)


def counts() -> Counts:
    """Numbers of all copies so far."""
    found: Counts = _double.double_counts()
    return found


def copied(since: Counts) -> tuple[int, int]:
    """Bytes from and to GPUs since then."""
    now = counts()
    return now.fetched_bytes - since.fetched_bytes, now.stored_bytes - since.stored_bytes


def fail(function: str, status: int = 700) -> None:
    """Lets the next call of a function of the driver fail."""
    _double.double_fail(function.encode(), status)


class _Memory:
    """Memory of a GPU, freed with its last user: copies from and to it fail then."""

    def __init__(self, device: int, nbytes: int, of_a_pool: bool, managed: bool) -> None:
        self.address: int = _double.double_allocate(device, nbytes, of_a_pool, managed)

    def __del__(self) -> None:
        _double.double_free(self.address)


class Array:
    """An array on a GPU, whose values are queued and not yet there.

    Parameters
    ----------
    values : array-like
        As of numpy.
    device : int
        0 or 1.
    versioned : bool
        Speak DLPack 1; before that nothing is read-only.
    of_a_pool : bool
        Its memory belongs to no context.
    """

    def __init__(
        self,
        values: Any,
        dtype: str = "f4",
        device: int = 0,
        *,
        versioned: bool = True,
        read_only: bool = False,
        transposed: bool = False,
        of_a_pool: bool = False,
        kind: int = dlpack.CUDA,
    ) -> None:
        values = numpy.ascontiguousarray(values, dtype)
        self.shape, self.dtype, self.nbytes, self.device, self.kind = (
            values.shape,
            values.dtype,
            values.nbytes,
            device,
            kind,
        )
        self.versioned, self.flags, self.transposed = versioned, dlpack.READ_ONLY if read_only else 0, transposed
        managed = kind == dlpack.CUDA_MANAGED
        self._memory = _Memory(device, max(1, values.nbytes), of_a_pool, managed) if values.nbytes else None
        if self._memory is not None:
            stale = numpy.full(values.shape, STALE % 256 if dtype[0] == "u" else STALE, dtype)
            _double.double_poke(self._memory.address, stale.ctypes.data, values.nbytes)
            _double.double_queue(device, STREAM, self._memory.address, values.ctypes.data, values.nbytes)

    def fill(self, value: float) -> None:
        """Queues that all elements get a value."""
        values = numpy.full(self.shape, value, self.dtype)
        assert self._memory is not None
        _double.double_queue(self.device, STREAM, self._memory.address, values.ctypes.data, values.nbytes)

    @property
    def now(self) -> Any:
        """The elements at this moment, whatever is queued."""
        values = numpy.empty(self.shape, self.dtype)
        if self._memory is not None:
            assert _double.double_peek(values.ctypes.data, self._memory.address, values.nbytes) == 0
        return values

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.kind, self.device)

    def __dlpack__(self, *, stream: int | None = None, **more: Any) -> Any:
        if more and not self.versioned:
            raise TypeError("a library from before DLPack 1 knows no max_version")
        assert stream == 1, f"expected the legacy default stream, got {stream!r}"
        assert _double.double_current() == self.device, "an array is exported from its device"
        _double.double_wait(self.device, stream, STREAM)
        shape = (ctypes.c_int64 * len(self.shape))(*self.shape)
        strides = (ctypes.c_int64 * len(self.shape))(1, *self.shape[:-1]) if self.transposed else None
        code = {"i": 0, "u": 1, "f": 2}[self.dtype.kind]
        address = 0 if self._memory is None else self._memory.address
        bits = 8 * self.dtype.itemsize
        lent = dlpack._Tensor(address, self.kind, self.device, len(self.shape), code, bits, 1, shape, strides, 0)
        made: Any = dlpack._ManagedTensor(lent, None, None)
        if more:
            made = dlpack._VersionedTensor(1, 0, None, None, self.flags, lent)
        _lent[ctypes.addressof(made)] = (made, shape, strides, self._memory)
        name = b"dltensor_versioned" if more else b"dltensor"
        return _new(ctypes.addressof(made), name, ctypes.cast(_deleter, c_void_p))


def filled(value: float, *shape: int) -> Any:
    return numpy.full(shape or (ELEMENTS,), value, "f4")


def array(value: float, *shape: int, **how: Any) -> Array:
    return Array(filled(value, *shape), **how)


def same(found: Any, expected: Any) -> None:
    """Compares what a GPU or the host has at this moment."""
    found = found.now if isinstance(found, Array) else found
    assert isinstance(found, numpy.ndarray) and (found == expected).all(), f"{found}, expected {expected}"
