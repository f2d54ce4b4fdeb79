"""What members may not do with arrays on GPUs, calls that nobody waits for, and copies that fail."""

from __future__ import annotations

import gc
import os
import signal
import weakref
from typing import Any

import numpy

import chorus
import cuda_arrays
from chorus import buffers
from chorus.cuda import staging
from cuda_arrays import ELEMENTS, Array, array, fail, filled, same
from cuda_members import Group, both, raised
from members import Pair


def refuses_other_arrays(pair: Pair) -> None:
    def story(group: Group, rank: int) -> None:
        raised(ValueError, "read-only", lambda: group.all_reduce(array(1, read_only=True)))
        raised(ValueError, "not contiguous", lambda: group.all_reduce(array(1, 3, 2, transposed=True)))
        raised(
            TypeError, "the tensor is on rocm:0, expected the CPU or cuda", lambda: group.all_reduce(array(1, kind=10))
        )
        failed = raised(chorus.DeviceFailed, "cuda:5: CUDA_ERROR_INVALID_DEVICE", lambda: group.send(_of_device(5), 0))
        assert isinstance(failed, chorus.DeviceFailed) and failed.code == "device_failed"
        raised(TypeError, "expected memory of the host", lambda: pair.workers[rank].register(array(1)))
        raised(chorus.BadArgument, "root 2 in a group of 2", lambda: group.broadcast(array(1), root=2))
        same(group.all_reduce(array(rank)), 1)

    both(pair, story)


def _of_device(number: int) -> Array:
    made = array(1)
    made.device = number
    return made


def refuses_an_array_that_belongs_to_a_call(pair: Pair) -> None:
    first, second = pair.groups
    x, y, out = array(1), array(2), array(9)
    begun = first.all_reduce(x, out, async_op=True)
    text = "the array on cuda:0 is the result of a call that nobody has waited for"
    raised(ValueError, text, lambda: first.all_reduce(out))
    raised(ValueError, text, lambda: first.all_gather(out))
    raised(ValueError, text, lambda: first.send(out, 1))
    raised(ValueError, text, lambda: second.broadcast([array(1), out]))
    raised(ValueError, text, lambda: second.recv(out))
    again = first.broadcast(x, async_op=True)  # the first call only reads it
    late = [second.all_reduce(y, array(9), async_op=True), second.broadcast(y, async_op=True)]
    for one in (begun, again, *late):
        one.wait()
    same(out, 3)
    same(y, 1)
    ended = [first.all_reduce(out, async_op=True), second.all_reduce(y, async_op=True)]
    for one in ended:
        one.wait()
    same(out, 4)


def sum_once_more(pair: Pair, x: Any, y: Any) -> None:
    """Sums `x` of the first member and `y` of the second one, in place."""
    sums = [group.all_reduce(one, async_op=True) for group, one in zip(pair.groups, (x, y))]
    for one in sums:
        one.wait()


def drops_calls(pair: Pair) -> None:
    first, second = pair.groups
    x, y = array(1), array(2)
    first.all_reduce(x, async_op=True)
    second.all_reduce(y, async_op=True)
    for met in (first.barrier(async_op=True), second.barrier(async_op=True)):
        met.wait()
    same(x, 1)
    x.fill(5)
    sum_once_more(pair, x, y)
    same(x, 7)
    same(y, 7)


def keeps_memory_alive(pair: Pair) -> None:
    first, second = pair.groups
    x = array(1)
    memory = weakref.ref(x._memory)
    first.all_reduce(x, async_op=True)
    del x
    gc.collect()
    assert memory() is not None
    second.all_reduce(filled(2), async_op=True)
    for met in (first.barrier(async_op=True), second.barrier(async_op=True)):
        met.wait()
    first.send(array(1), 0)  # lets go of calls that have ended
    gc.collect()
    assert memory() is None
    out = array(9)
    first.recv(out, 0)
    same(out, 1)
    del out
    staged = buffers.to_write(array(1)).staged
    gc.collect()
    assert staged is not None
    staging.store([staged])
    del staged
    pair.close()
    gc.collect()
    assert not cuda_arrays._lent


def tells_of_copies_that_fail(pair: Pair) -> None:
    def story(group: Group, rank: int) -> None:
        x = array(1) if rank == 0 else filled(2)
        if rank == 0:
            text = f"copy of {4 * ELEMENTS} bytes from cuda:0: "
            for function in ("cuMemcpyDtoHAsync", "cuStreamSynchronize"):
                fail(function)
                error = raised(chorus.DeviceFailed, f"{text}CUDA_ERROR_ILLEGAL_ADDRESS", lambda: group.all_reduce(x))
                assert "an illegal memory access was encountered" in str(error)
            fail("cuMemcpyDtoHAsync", 9999)
            raised(chorus.DeviceFailed, f"{text}error 9999", lambda: group.all_reduce(x, async_op=True))
            fail("cuCtxPushCurrent")
            raised(chorus.DeviceFailed, "CUDA_ERROR_ILLEGAL_ADDRESS", lambda: group.all_reduce(x))
            same(x, 1)
        same(group.all_reduce(x), 3)  # nothing was sent

    both(pair, story)


def tells_of_results_that_are_lost(pair: Pair) -> None:
    text = f"copy of {4 * ELEMENTS} bytes to cuda:0: CUDA_ERROR_ILLEGAL_ADDRESS"
    for failing in (0, 1):

        def story(group: Group, rank: int) -> None:
            x = array(1)
            if rank != failing:
                same(group.all_reduce(filled(2)), 3)
            else:
                fail("cuMemcpyHtoDAsync")
                raised(chorus.DeviceFailed, text, lambda: group.all_reduce(x))
                same(x, 1)
            same(group.all_reduce(x), 2)  # the epoch goes on

        both(pair, story)
    first, second = pair.groups
    x = array(1)
    begun, other = first.all_reduce(x, async_op=True), second.all_reduce(filled(2), async_op=True)
    other.wait()
    fail("cuStreamSynchronize")
    for _ in range(2):
        raised(chorus.DeviceFailed, text, begun.wait)
    assert begun.done()


def tells_of_a_group_that_fails(pair: Pair) -> None:
    def story(group: Group, rank: int) -> None:
        x, out = (Array([number] * ELEMENTS, "f4" if rank == 0 else "i4") for number in (1, 9))
        errors = [raised(chorus.Mismatch, "i32", lambda: group.all_reduce(x, out))]
        same(x, 1)
        same(out, 9)
        # Tracebacks have the failed calls. The arrays belong to nobody, or these were ValueErrors.
        for begun in (False, True, True):
            errors.append(raised(chorus.ChorusError, "", lambda: _waits(group, out, begun)))
        group.close()
        for begun in (False, True, True):
            errors.append(raised(chorus.Stopped, "is closed", lambda: group.all_reduce(out, async_op=begun)))
        assert all(one.__traceback__ is not None for one in errors)

    both(pair, story)


def _waits(group: Group, x: Array, begun: bool) -> Any:
    called = group.all_reduce(x, async_op=begun)
    return called.wait() if begun else called


def is_interrupted(pair: Pair) -> None:
    first, second = pair.groups
    x, y = array(1), array(2)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    interrupted = raised(KeyboardInterrupt, "", lambda: first.all_reduce(x))
    second.all_reduce(y, async_op=True).wait()
    same(y, 3)
    same(x, 1)
    x.fill(5)
    sum_once_more(pair, x, y)
    same(x, 8)
    del interrupted


def is_forked(pair: Pair) -> None:
    x = array(1)
    buffers.to_send(x)
    child = os.fork()
    if child == 0:
        try:
            buffers.to_send(x)
        except RuntimeError as error:
            os._exit(0 if "uses GPUs, and its child" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def finds_no_gpu() -> None:
    fail("cuInit", 100)
    raised(chorus.DeviceFailed, "the driver: CUDA_ERROR_NO_DEVICE", lambda: buffers.to_send(array(1)))
    same(numpy.frombuffer(buffers.to_send(array(1)).view, "f4"), 1)
