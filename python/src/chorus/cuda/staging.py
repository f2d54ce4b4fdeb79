"""Arrays on GPUs with the memory of the host that stands for them in a call, and the copies between both."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any

from . import driver, pool


class Staged:
    """An array on a GPU. Alive, it keeps the array's memory.

    Parameters
    ----------
    device : int
        Number of the GPU.
    address, nbytes : int
        Where the array lies there, and its size, which is not 0.
    keep : object
        Keeps that memory.

    Attributes
    ----------
    view : memoryview
        Memory of the host, of the same size; has the elements after `fetch`.
    """

    def __init__(self, device: int, address: int, nbytes: int, keep: Any) -> None:
        self.device, self.address, self.nbytes, self._keep = device, address, nbytes, keep
        self.context = driver.load().context_of(address, device)
        self.view = pool.load().take(self.context, nbytes)
        self.host = ctypes.addressof(ctypes.c_uint8.from_buffer(self.view))

    @property
    def name(self) -> str:
        return f"cuda:{self.device}"


def fetch(arrays: Sequence[Staged]) -> None:
    """Copies arrays from their GPUs, after all that their legacy default streams have to do before.

    Raises
    ------
    DeviceFailed
        A copy failed.
    """
    for context, some in _by_context((one, one.nbytes) for one in arrays):
        what = _what("from", some)
        with driver.load().ending(context, what):
            for one, nbytes in some:
                driver.load().queue_fetch(what, one.host, one.address, nbytes)


def store(arrays: Sequence[Staged], nbytes: int | None = None) -> None:
    """Copies to arrays on GPUs, of each the first `nbytes` if it is so large; all of it is there on return.

    Raises
    ------
    DeviceFailed
        A copy failed.
    """
    sizes = (one.nbytes if nbytes is None else min(nbytes, one.nbytes) for one in arrays)
    for context, some in _by_context(zip(arrays, sizes)):
        what = _what("to", some)
        with driver.load().ending(context, what):
            for one, size in some:
                if size > 0:
                    driver.load().queue_store(what, one.address, one.host, size)


def _by_context(arrays: Iterable[tuple[Staged, int]]) -> Iterable[tuple[int, list[tuple[Staged, int]]]]:
    found: dict[int, list[tuple[Staged, int]]] = {}
    for one, nbytes in arrays:
        found.setdefault(one.context, []).append((one, nbytes))
    return found.items()


def _what(direction: str, arrays: Sequence[tuple[Staged, int]]) -> str:
    """What a failure is to be told of."""
    return f"copy of {sum(nbytes for _, nbytes in arrays)} bytes {direction} {arrays[0][0].name}"
