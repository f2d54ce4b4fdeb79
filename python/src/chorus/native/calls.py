"""How a collective is called: begun where it may be left, and blocking where nothing interrupts it."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Sequence
from typing import Any, Protocol

from ..workers import RemoteWorker
from . import abi, options
from .handles import Handle
from .library import Library
from .tensors import Operand
from .work import Request, Requests, Work


class Owner(Protocol):
    """What a group needs of its `chorus.Worker`, whose module imports that of groups."""

    interruptible: bool

    @property
    def remote(self) -> RemoteWorker:
        ...

    def close(self) -> None:
        ...

    def _member(self, pointer: ctypes.c_void_p, what: str) -> Any:
        """Returns a membership that the library has made as a `chorus.Group` of this worker."""


class Caller:
    """What `chorus.Group` is made of: its handle, and calls of the library's collectives.

    Parameters
    ----------
    worker : Owner
        Kept alive by its groups.
    library, handle, requests
        The library, the membership, and where calls are kept until they have ended.
    """

    def __init__(self, worker: Owner, library: Library, handle: Handle, requests: Requests) -> None:
        self._worker, self._library, self._handle, self._requests = worker, library, handle, requests
        weakref.finalize(self, handle.close).atexit = False  # the worker, which ends last, closes it then
        info = abi.GroupInfo(size=ctypes.sizeof(abi.GroupInfo))
        with handle as group:
            library.call("chorus_group_describe", group, ctypes.byref(info))
            self.name: str = info.name.decode()
        self.rank: int = info.rank
        self.size: int = info.ranks
        self.epoch: int = info.epoch

    def block(self, rank: int, elements: int) -> tuple[int, int]:
        """Returns where the block of a rank begins, and its length, in a vector of so many elements without counts."""
        begin, length = ctypes.c_uint64(), ctypes.c_uint64()
        numbers = options.unsigned("rank", rank), options.unsigned("elements", elements, 64)
        with self._handle as group:
            self._library.call("chorus_group_block", group, *numbers, ctypes.byref(begin), ctypes.byref(length))
        return begin.value, length.value

    def _collective(
        self,
        name: str,
        tensors: Sequence[Operand | None],
        how: abi.CollectiveOptions,
        result: Any,
        async_op: bool,
    ) -> Any:
        """Calls ``chorus_<name>`` with tensors as they are declared, None for NULL."""
        structs = [None if one is None else ctypes.byref(one.struct) for one in tensors]
        return self._run(name, (*structs, ctypes.byref(how)), (tensors, how), result, async_op)

    def _collective_of_list(
        self, name: str, tensors: Sequence[Operand], how: abi.CollectiveOptions, result: Any, async_op: bool
    ) -> Any:
        """The same of the form that takes a list of tensors."""
        listed = (abi.Tensor * len(tensors))()
        for place, one in enumerate(tensors):
            listed[place] = one.struct
        keep = (tensors, listed, how)
        return self._run(f"{name}_list", (listed, len(tensors), ctypes.byref(how)), keep, result, async_op)

    def _collective_of_lists(
        self,
        name: str,
        inputs: Sequence[Operand] | None,
        outputs: Sequence[Operand],
        how: abi.CollectiveOptions,
        result: Any,
        async_op: bool,
    ) -> Any:
        """The same of the form that takes a list of inputs, None in place, and one of as many outputs."""
        read = None if inputs is None else (abi.ConstTensor * len(inputs))(*(one.struct for one in inputs))
        written = (abi.Tensor * len(outputs))(*(one.struct for one in outputs))
        keep = (inputs, outputs, read, written, how)
        arguments = (read, written, len(outputs), ctypes.byref(how))
        return self._run(f"{name}_list", arguments, keep, result, async_op)

    def _run(self, name: str, arguments: tuple[Any, ...], keep: Any, result: Any, async_op: bool) -> Any:
        # Only the main thread runs handlers of signals: it waits in slices, others in the library.
        waits = self._worker.interruptible and threading.current_thread() is threading.main_thread()
        if not async_op and not waits:
            with self._handle as group:
                self._library.call(f"chorus_{name}", group, *arguments)
            return result
        request = Request(self._library, keep)
        self._requests.add(request)  # before it begins: whatever interrupts this, the arrays live
        try:
            with self._handle as group:
                self._library.call(f"chorus_{name}_async", group, *arguments, ctypes.byref(request.pointer))
        except BaseException:
            if not request.pointer:
                self._requests.drop(request)
            raise
        work = Work(request, self._requests, result, self)
        return work if async_op else work.wait()
