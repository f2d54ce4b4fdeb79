"""NVIDIA's driver, by ctypes: the few functions that copies need. Loaded at the first array on a GPU."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Iterator
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

from ..problems import DeviceFailed

LIBRARY = "libcuda.so.1"
LEGACY_STREAM = 1  # CU_STREAM_LEGACY; ``__dlpack__(stream=1)`` means the same stream

_CONTEXT_OF_POINTER = 1  # CU_POINTER_ATTRIBUTE_CONTEXT
_PORTABLE = 1  # CU_MEMHOSTALLOC_PORTABLE: pinned in every context

_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuPointerGetAttribute": (POINTER(c_void_p), c_int, c_uint64),
    "cuCtxPushCurrent_v2": (c_void_p,),
    "cuCtxPopCurrent_v2": (POINTER(c_void_p),),
    "cuMemHostAlloc": (POINTER(c_void_p), c_size_t, c_uint),
    "cuMemFreeHost": (c_void_p,),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, c_void_p),
    "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, c_void_p),
    "cuStreamSynchronize": (c_void_p,),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
}


class Driver:
    """The driver of this process; any thread calls. Contexts are addresses.

    Parameters
    ----------
    library : ctypes.CDLL
        libcuda.so.1. Its calls run without the interpreter's lock.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._functions: dict[str, Any] = {}
        for name, arguments in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = c_int, arguments
            self._functions[name] = function
        self._pid = os.getpid()
        self._primary: dict[int, int] = {}
        self._call("the driver", "cuInit", 0)

    def primary(self, device: int) -> int:
        """Returns the context that libraries of arrays use on a device, and keeps it until the process ends."""
        if device not in self._primary:
            number, context = c_int(), c_void_p()
            self._call(f"cuda:{device}", "cuDeviceGet", ctypes.byref(number), device)
            self._call(f"cuda:{device}", "cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
            self._primary[device] = context.value or 0
        return self._primary[device]

    def context_of(self, address: int, device: int) -> int:
        """Returns the context of memory on a device: its own, or the primary one of memory that belongs to none."""
        context = c_void_p()
        status = self._functions["cuPointerGetAttribute"](ctypes.byref(context), _CONTEXT_OF_POINTER, address)
        return context.value or self.primary(device) if status == 0 else self.primary(device)

    @contextlib.contextmanager
    def current(self, context: int) -> Iterator[None]:
        """Makes a context the calling thread's."""
        if os.getpid() != self._pid:
            raise RuntimeError(
                f"process {self._pid} uses GPUs, and its child {os.getpid()} by fork() cannot: use the start method "
                '"spawn" of multiprocessing'
            )
        self._call("a GPU", "cuCtxPushCurrent_v2", context)
        try:
            yield
        finally:
            self._functions["cuCtxPopCurrent_v2"](ctypes.byref(c_void_p()))

    def pin(self, context: int, size: int) -> int | None:
        """Returns the address of new pinned memory of the host; None if the driver gives none."""
        address = c_void_p()
        with self.current(context):
            status = self._functions["cuMemHostAlloc"](ctypes.byref(address), size, _PORTABLE)
        return address.value if status == 0 else None

    def unpin(self, context: int, address: int) -> None:
        """Frees pinned memory."""
        with self.current(context):
            self._functions["cuMemFreeHost"](address)

    def queue_fetch(self, what: str, to: int, address: int, nbytes: int) -> None:
        """Queues a copy from a device of the current context; `what` is its name in the text of a failure."""
        self._call(what, "cuMemcpyDtoHAsync_v2", to, address, nbytes, LEGACY_STREAM)

    def queue_store(self, what: str, address: int, source: int, nbytes: int) -> None:
        """Queues a copy to a device of the current context."""
        self._call(what, "cuMemcpyHtoDAsync_v2", address, source, nbytes, LEGACY_STREAM)

    @contextlib.contextmanager
    def ending(self, context: int, what: str) -> Iterator[None]:
        """Waits for the copies that are queued within it, also when it is left by an exception."""
        synchronize = self._functions["cuStreamSynchronize"]
        with self.current(context):
            try:
                yield
            finally:
                status = synchronize(LEGACY_STREAM)
            self._check(what, status)

    def _call(self, what: str, name: str, *arguments: Any) -> None:
        self._check(what, self._functions[name](*arguments))

    def _check(self, what: str, status: int) -> None:
        if status != 0:
            name, text = self._text("cuGetErrorName", status), self._text("cuGetErrorString", status)
            raise DeviceFailed(f"{what}: {name or f'error {status}'}: {text or 'the driver does not know it'}")

    def _text(self, function: str, status: int) -> str:
        text = c_char_p()
        self._functions[function](status, ctypes.byref(text))
        return (text.value or b"").decode("utf-8", "replace")


@functools.lru_cache(maxsize=None)
def load() -> Driver:
    """Returns the driver, which is loaded once.

    Raises
    ------
    DeviceFailed
        It is not installed, or finds no GPU.
    """
    try:
        return Driver(ctypes.CDLL(LIBRARY))
    except (OSError, AttributeError) as error:
        raise DeviceFailed(f"NVIDIA's driver cannot be loaded: {error}. Pass an array on the CPU") from None
