"""How a collective is called: begun where it may be left, and blocking where nothing interrupts it."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..workers import RemoteWorker
from . import abi, options
from .handles import Handle
from .library import Library
from .tensors import Operand, fetched
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
        return self._run(name, tensors, (*structs, ctypes.byref(how)), how, result, async_op)

    def _collective_of_list(
        self, name: str, tensors: Sequence[Operand], how: abi.CollectiveOptions, result: Any, async_op: bool
    ) -> Any:
        """The same of the form that takes a list of tensors."""
        listed = (abi.Tensor * len(tensors))()
        for place, one in enumerate(tensors):
            listed[place] = one.struct
        arguments = (listed, len(tensors), ctypes.byref(how))
        return self._run(f"{name}_list", tensors, arguments, (listed, how), result, async_op)

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
        arguments = (read, written, len(outputs), ctypes.byref(how))
        operands = (*(inputs or ()), *outputs)
        return self._run(f"{name}_list", operands, arguments, (read, written, how), result, async_op)

    def _run(
        self,
        name: str,
        operands: Sequence[Operand | None],
        arguments: tuple[Any, ...],
        keep: Any,
        result: Any,
        async_op: bool,
        nbytes: Callable[[], int] | None = None,
    ) -> Any:
        """Calls ``chorus_<name>`` with `arguments`, which are of `operands` and of `keep`.

        `nbytes` returns after the call how much of an array it has written, where that is not all.
        """
        results = fetched(operands, nbytes)
        # Only the main thread runs handlers of signals: it waits in slices, others in the library.
        waits = self._worker.interruptible and threading.current_thread() is threading.main_thread()
        if not async_op and not waits:
            with results, self._handle as group:
                self._library.call(f"chorus_{name}", group, *arguments)
            return result
        request = Request(self._library, (operands, keep))
        self._requests.add(request)  # before it begins: whatever interrupts this, the arrays live
        try:
            with self._handle as group:
                self._library.call(f"chorus_{name}_async", group, *arguments, ctypes.byref(request.pointer))
        except BaseException:
            results.finish(False)
            if not request.pointer:
                self._requests.drop(request)
            raise
        work = Work(request, self._requests, result, self, results)
        if async_op:
            return work
        with results:
            return work.wait()
