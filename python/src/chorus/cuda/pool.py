"""Memory of the host for arrays on GPUs: pinned, which GPUs copy from and to several times as fast, and reused."""

from __future__ import annotations

import ctypes
import functools
import mmap
import weakref
from typing import Any, NamedTuple

from . import driver

SMALLEST = 4096
KEPT_BYTES = 256 << 20  # unused memory beyond this is freed when the next is made


class _Block(NamedTuple):
    address: int
    size: int
    context: int
    pages: Any  # of memory that is not pinned; None of pinned memory


def rounded(nbytes: int) -> int:
    """Returns the size of the block for so many bytes: at most a quarter more, so that few sizes serve many arrays."""
    if nbytes <= SMALLEST:
        return SMALLEST
    step = 1 << max(12, (nbytes - 1).bit_length() - 3)
    return -(-nbytes // step) * step


class Pool:
    """Blocks of host memory. Any thread takes and gives; only single steps that the interpreter does not divide.

    Parameters
    ----------
    driver : Driver
        Gives pinned memory.
    """

    def __init__(self, driver: driver.Driver) -> None:
        self._driver = driver
        self._unused: dict[int, list[_Block]] = {}

    def take(self, context: int, nbytes: int) -> memoryview:
        """Returns memory of so many bytes, with any contents. It is given back with its last view."""
        size = rounded(nbytes)
        block = self._pop(size) or self._new(context, size)
        data = (ctypes.c_uint8 * nbytes).from_address(block.address)
        # Views refer to `data`.
        weakref.finalize(data, self._unused.setdefault(size, []).append, block).atexit = False
        return memoryview(data).cast("B")

    @property
    def unused_bytes(self) -> int:
        return sum(size * len(blocks) for size, blocks in list(self._unused.items()))

    def _pop(self, size: int) -> _Block | None:
        try:
            return self._unused[size].pop()
        except (KeyError, IndexError):
            return None

    def _new(self, context: int, size: int) -> _Block:
        for other in sorted(self._unused, reverse=True):
            while self.unused_bytes > KEPT_BYTES and (block := self._pop(other)) is not None:
                if block.pages is None:
                    self._driver.unpin(block.context, block.address)
        address = self._driver.pin(context, size)
        if address is not None:
            return _Block(address, size, context, None)
        pages = mmap.mmap(-1, size)
        return _Block(ctypes.addressof(ctypes.c_char.from_buffer(pages)), size, context, pages)


@functools.lru_cache(maxsize=None)
def load() -> Pool:
    """Returns the pool of this process."""
    return Pool(driver.load())
