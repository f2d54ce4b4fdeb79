"""Memory of objects that speak DLPack, without a library that knows their type. That of the CPU is lent without a copy.

Structures are those of DLPack 1 (capsules named "dltensor_versioned") and of what came before ("dltensor").
"""

from __future__ import annotations

import ctypes
import math
from typing import Any, NamedTuple

from .cuda import driver, staging

CPU, CUDA_HOST, CUDA_MANAGED = 1, 3, 13  # devices whose memory the CPU reads in place
CUDA = 2  # a GPU, whose memory is copied to the host's
DEVICES = {8: "metal", 10: "rocm"}
CODES = {0: "i", 1: "u", 2: "f", 4: "bf"}


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _ManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _VersionedTensor(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
READ_ONLY, COPIED = 1, 2


class Memory(NamedTuple):
    """What a tensor's owner lends. `capsule` has to live as long as `view` is used.

    `staged` is of a tensor on a GPU: `view` is memory of the host, which `cuda.staging` copies from and to the tensor.
    """

    view: memoryview
    dtype: str
    shape: tuple[int, ...]
    capsule: Any
    staged: staging.Staged | None = None


def borrow(tensor: Any) -> Memory:
    """Returns the memory of `tensor`; a view that is read-only where the owner says so, or has made a copy.

    Raises
    ------
    TypeError
        The tensor is on a device that is neither the CPU nor a GPU of CUDA, or its elements have no dtype here.
    ValueError
        The tensor is not contiguous.
    DeviceFailed
        The tensor is on a GPU, and NVIDIA's driver is not there or fails.
    """
    device, number = (int(one) for one in tensor.__dlpack_device__())
    if device not in (CPU, CUDA, CUDA_HOST, CUDA_MANAGED):
        name = DEVICES.get(device, f"device {device}")
        raise TypeError(f"the tensor is on {name}:{number}, expected the CPU or cuda: copy it to the CPU first")
    if device in (CUDA, CUDA_MANAGED):
        loaded = driver.load()
        context = loaded.primary(number)
        with loaded.current(context):  # some libraries export only from the current device
            capsule, lent, flags = _export(tensor, stream=driver.LEGACY_STREAM)
        if device == CUDA_MANAGED:  # read in place, and not by a copy that would be queued behind what the GPU does
            with loaded.ending(context, f"cuda:{number}"):
                pass
    else:
        capsule, lent, flags = _export(tensor)
    shape = tuple(lent.shape[i] for i in range(lent.ndim))
    dtype = f"{CODES.get(lent.code, '?')}{lent.bits}"
    if lent.lanes != 1 or "?" in dtype:
        raise TypeError(
            f"elements of DLPack's type {lent.code}, {lent.bits} bits, {lent.lanes} lanes have no dtype here"
        )
    if not _contiguous(lent, shape):
        raise ValueError("the tensor is not contiguous: call .contiguous() first")
    count = lent.bits // 8 * math.prod(shape)
    if count == 0:
        return Memory(memoryview(bytearray()), dtype, shape, capsule)
    address, staged = lent.data + lent.byte_offset, None
    if device == CUDA:
        staged = staging.Staged(number, address, count, capsule)
        view = staged.view
    else:
        view = memoryview((ctypes.c_uint8 * count).from_address(address)).cast("B")
    return Memory(view.toreadonly() if flags & (READ_ONLY | COPIED) else view, dtype, shape, capsule, staged)


def _export(tensor: Any, **stream: int) -> tuple[Any, _Tensor, int]:
    """Returns capsule, tensor and flags. The capsule keeps its name, so that its maker frees it when it is collected.

    The tensor's owner lets `stream` wait for what it has queued. Libraries of the CPU know no streams.
    """
    try:
        capsule = tensor.__dlpack__(max_version=(1, 0), **stream)
    except TypeError:  # a library from before DLPack 1
        capsule = tensor.__dlpack__(**stream)
    if _is_valid(capsule, b"dltensor_versioned"):
        versioned = _VersionedTensor.from_address(_get_pointer(capsule, b"dltensor_versioned"))
        return capsule, versioned.tensor, versioned.flags
    return capsule, _ManagedTensor.from_address(_get_pointer(capsule, b"dltensor")).tensor, 0


def _contiguous(lent: _Tensor, shape: tuple[int, ...]) -> bool:
    if not lent.strides or 0 in shape:
        return True
    expected = 1
    for extent, stride in zip(reversed(shape), reversed([lent.strides[i] for i in range(lent.ndim)])):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True
