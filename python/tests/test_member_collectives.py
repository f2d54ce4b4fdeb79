"""Every collective of a worker in this process, in and out of place."""

import array
import gc
import threading
import time
import tracemalloc
import weakref
from typing import Any

import numpy
import pytest

import chorus
from chorus.native import options, tensors
from members import Pair
from services import Fleet

Group = chorus.Group


def of_rank(rank: int) -> Any:
    return numpy.array([1, 2, 3, 4], "f4") * 10**rank


def test_a_group_says_what_it_is(pair: Pair) -> None:
    pair.both(lambda group, rank: group.barrier())
    first, second = pair.groups
    assert (first.name, first.size, first.epoch) == ("pair", 2, 1)
    assert (first.rank, second.rank) == (0, 1)
    assert first.members == second.members == pair.ids
    assert first.path in ("shm", "links") and (first.why_not_shared() == "") == (first.path == "shm")
    assert [first.block(rank, 5) for rank in range(2)] == [(0, 3), (3, 2)]
    assert repr(second) == "Group('pair', rank 1 of 2, epoch 1)"


def everything(group: Group, rank: int, waits: Any) -> None:
    """Calls all collectives; `waits` gets what a call returns, and gives its result."""
    own, out = of_rank(rank), numpy.empty(4, "f4")
    asynchronous: Any = {"async_op": True} if waits is not None else {}

    def result(returned: Any) -> Any:
        return waits(returned) if waits is not None else returned

    x = own.copy()
    assert result(group.all_reduce(x, **asynchronous)) is x and x.tolist() == [11, 22, 33, 44]
    assert result(group.all_reduce(own, out, **asynchronous)) is out and out.tolist() == [11, 22, 33, 44]
    assert own.tolist() == of_rank(rank).tolist()
    for reduce, expected in (("max", [10, 20, 30, 40]), ("min", [1, 2, 3, 4]), ("prod", [10, 40, 90, 160])):
        assert result(group.all_reduce(own, out, reduce=reduce, **asynchronous)).tolist() == expected
    assert result(group.all_reduce(own, out, reduce="avg", **asynchronous)).tolist() == [5.5, 11, 16.5, 22]
    bits = numpy.array([3, 5], "u1") << rank
    for reduce, expected in (("band", [2, 0]), ("bor", [7, 15]), ("bxor", [5, 15])):
        assert result(group.all_reduce(bits.copy(), reduce=reduce, **asynchronous)).tolist() == expected

    x = own.copy()
    reduced = result(group.reduce(x, root=1, **asynchronous))
    assert (reduced is x and x.tolist() == [11, 22, 33, 44]) if rank == 1 else (reduced is None and (x == own).all())
    reduced = result(group.reduce(own, root=1, in_place=False, **asynchronous))
    assert reduced.tolist() == [11, 22, 33, 44] if rank == 1 else reduced is None
    assert result(group.reduce(own, out if rank == 0 else None, in_place=False, **asynchronous)) is (
        out if rank == 0 else None
    )

    x = own.copy()
    assert result(group.broadcast(x, root=1, **asynchronous)) is x and x.tolist() == [10, 20, 30, 40]

    assert result(group.all_gather(own.reshape(2, 2), **asynchronous)).tolist() == [[1, 2], [3, 4], [10, 20], [30, 40]]
    x = numpy.concatenate([own[:2], numpy.zeros(2, "f4")] if rank == 0 else [numpy.zeros(2, "f4"), own[2:]])
    assert result(group.all_gather(x, in_place=True, **asynchronous)) is x and x.tolist() == [1, 2, 30, 40]
    part = own[: 3 if rank == 0 else 1]
    assert result(group.all_gather(part, counts=[3, 1], **asynchronous)).tolist() == [1, 2, 3, 10]
    assert result(group.all_gather(part, out, counts=[3, 1], **asynchronous)) is out

    expected = [11, 22] if rank == 0 else [33, 44]
    assert result(group.reduce_scatter(own, **asynchronous)).tolist() == expected
    x = own.copy()
    assert result(group.reduce_scatter(x, in_place=True, **asynchronous)) is x
    assert x[2 * rank : 2 * rank + 2].tolist() == expected
    uneven = result(group.reduce_scatter(own, counts=[1, 3], reduce="max", **asynchronous))
    assert uneven.tolist() == ([10] if rank == 0 else [20, 30, 40])

    gathered = result(group.gather(own.reshape(2, 2), root=1, **asynchronous))
    assert gathered is None if rank == 0 else gathered.shape == (4, 2) and gathered[2].tolist() == [10, 20]
    gathered = result(group.gather(part, counts=[3, 1], **asynchronous))
    assert gathered.tolist() == [1, 2, 3, 10] if rank == 0 else gathered is None

    half = numpy.empty(2, "f4")
    scattered = result(group.scatter(own if rank == 1 else None, half if rank == 0 else None, root=1, **asynchronous))
    assert scattered.tolist() == ([10, 20] if rank == 0 else [30, 40])
    block = numpy.empty(3 if rank == 0 else 1, "f4")
    assert result(group.scatter(own, block, counts=[3, 1], **asynchronous)).tolist() == (
        [1, 2, 3] if rank == 0 else [4]
    )

    assert result(group.all_to_all(own, **asynchronous)).tolist() == ([1, 2, 10, 20] if rank == 0 else [3, 4, 30, 40])
    x = own.copy()
    result(group.all_to_all(x, in_place=True, **asynchronous))
    assert x.tolist() == ([1, 2, 10, 20] if rank == 0 else [3, 4, 30, 40])
    counts, back = ([1, 2], [1, 3]) if rank == 0 else ([3, 0], [2, 0])
    exchanged = result(group.all_to_all(own[:3], counts=counts, receive_counts=back, **asynchronous))
    assert exchanged.tolist() == ([1, 10, 20, 30] if rank == 0 else [2, 3])

    listed = [own.copy(), numpy.zeros((0, 2), "u1"), numpy.full((1, 1), 1.5 * (rank + 1))]
    assert result(group.all_reduce(listed, **asynchronous)) is listed
    assert listed[0].tolist() == [11, 22, 33, 44] and listed[2].tolist() == [[4.5]]
    at_root = result(group.reduce(listed, root=1, **asynchronous))
    assert at_root is listed and listed[2].tolist() == [[9]] if rank == 1 else at_root is None
    result(group.broadcast(listed, root=1, **asynchronous))
    assert listed[0].tolist() == [22, 44, 66, 88] and listed[2].tolist() == [[9]]

    byte = numpy.full((1, 3), rank, "u1")
    wholes = result(group.all_gather([own.reshape(2, 2), byte], **asynchronous))
    assert wholes[0].tolist() == [[1, 2], [3, 4], [10, 20], [30, 40]] and wholes[1].tolist() == [[0] * 3, [1] * 3]
    outs = [numpy.zeros(8, "f4"), numpy.zeros(6, "u1")]
    assert result(group.all_gather((own, byte), outs, **asynchronous)) is outs
    assert outs[0].tolist() == [1, 2, 3, 4, 10, 20, 30, 40] and outs[1].tolist() == [0, 0, 0, 1, 1, 1]
    sums = result(group.reduce_scatter([own, numpy.arange(3)], **asynchronous))
    assert sums[0].tolist() == expected and sums[1].tolist() == ([0, 2] if rank == 0 else [4])
    swapped = result(group.all_to_all([own, numpy.arange(2) + 10 * rank], **asynchronous))
    assert swapped[0].tolist() == ([1, 2, 10, 20] if rank == 0 else [3, 4, 30, 40])
    assert swapped[1].tolist() == ([0, 10] if rank == 0 else [1, 11])
    inside = [own.copy()]
    assert result(group.all_to_all(inside, in_place=True, **asynchronous)) is inside
    assert inside[0].tolist() == swapped[0].tolist()
    assert result(group.all_gather([], **asynchronous)) == []
    assert result(group.barrier(**asynchronous)) is None


def test_lists_of_blocks_as_codes(pair: Pair) -> None:
    def story(group: Group, rank: int) -> None:
        x, y = of_rank(rank), numpy.full(3, 0.5 * (rank + 1))  # which bf16 has exactly
        wholes = group.all_gather([x, y], compression="bf16")
        assert wholes[0].tolist() == [*of_rank(0), *of_rank(1)] and wholes[1].tolist() == [0.5] * 3 + [1] * 3
        own = group.reduce_scatter([x, y], compression="bf16")
        assert own[0].tolist() == ([11, 22] if rank == 0 else [33, 44])
        assert own[1].tolist() == ([1.5] * 2 if rank == 0 else [1.5])
        with pytest.raises(chorus.BadArgument, match="i32 has no codes of bf16"):
            group.all_gather([x, numpy.zeros(2, "i4")], compression="bf16")

    pair.both(story)


def test_lists_that_cannot_be_are_refused(pair: Pair) -> None:
    group, x = pair.groups[0], numpy.zeros(4)
    with pytest.raises(TypeError, match="takes a list of as many for out"):
        group.all_gather([x, x], [numpy.zeros(8)])
    with pytest.raises(TypeError, match="takes a list of as many for out"):
        group.reduce_scatter([x], numpy.zeros(2))
    with pytest.raises(TypeError, match="in place takes no out"):
        group.all_to_all([x], [x], in_place=True)
    with pytest.raises(chorus.BadArgument, match="all_gather of a list takes no counts"):
        group.all_gather([x], counts=[4, 4])
    with pytest.raises(chorus.BadArgument, match="tensor 1: all_gather at rank 0 of 2 needs an input of 3 elements"):
        group.all_gather([x, x], [numpy.zeros(8), numpy.zeros(6)])
    pair.both(lambda group, rank: group.barrier())


def test_every_collective_blocking(pair: Pair) -> None:
    pair.both(lambda group, rank: everything(group, rank, None))


def test_every_collective_begun_and_waited_for(pair: Pair) -> None:
    pair.both(lambda group, rank: everything(group, rank, lambda work: work.wait(20)))


def test_every_collective_over_links(own_pair: Pair, bare: Fleet) -> None:
    linked = Pair(bare.client, f"{own_pair.name}-links", private_memory=True)
    linked.both(lambda group, rank: everything(group, rank, None))
    assert linked.groups[0].path == "links" and linked.groups[0].why_not_shared() != ""
    linked.close()


def test_a_call_in_the_main_thread(pair: Pair) -> None:
    other = threading.Thread(target=lambda: pair.groups[1].all_reduce(of_rank(1)))
    other.start()
    assert pair.groups[0].all_reduce(of_rank(0)).tolist() == [11, 22, 33, 44]
    other.join()


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1"])
def test_every_dtype(pair: Pair, dtype: str) -> None:
    def story(group: Group, rank: int) -> Any:
        return group.all_reduce(numpy.array([[1, 2], [3, rank]], dtype))

    for result in pair.both(story):
        assert result.dtype == dtype and result.tolist() == [[2, 4], [6, 1]]


def test_bf16_as_bits_and_of_ml_dtypes(pair: Pair) -> None:
    def story(group: Group, rank: int) -> Any:
        return group.all_reduce(numpy.array([0x3FC0 if rank == 0 else 0x4000], "u2"), dtype="bf16")

    assert [result.tolist() for result in pair.both(story)] == [[0x4060], [0x4060]]  # 1.5 + 2 = 3.5
    bfloat16 = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed").bfloat16
    sums = pair.both(lambda group, rank: group.all_reduce(numpy.array([1.5, 2], bfloat16)))
    assert [result.tolist() for result in sums] == [[3, 4], [3, 4]]


def test_scalars_of_numpy_are_read(pair: Pair) -> None:
    def story(group: Group, rank: int) -> Any:
        own, out = numpy.float32(rank + 1), numpy.zeros((), "f4")
        assert group.all_reduce(own, out) is out
        sent = group.broadcast(own if rank == 0 else numpy.zeros((), "f4"))
        reduced = group.reduce(own, in_place=False)
        assert (reduced.shape, reduced.tolist()) == ((), 3) if rank == 0 else reduced is None
        received = numpy.zeros(())
        group.sendrecv(numpy.float64(rank), 1 - rank, received, 1 - rank)
        return out.tolist(), sent.tolist(), received.tolist(), group.all_gather(own).tolist()

    assert pair.both(story) == [(3, 1, 1, [1, 2]), (3, 1, 0, [1, 2])]


class OnlyDlpack:
    """An array that says no more than DLPack does, as torch's."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __dlpack__(self, **_: Any) -> Any:
        return self.inner.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_buffers_and_tensors_of_other_libraries(pair: Pair) -> None:
    def story(group: Group, rank: int) -> Any:
        plain, inner = array.array("f", of_rank(rank)), of_rank(rank)
        group.all_reduce(plain)
        lent = OnlyDlpack(inner)
        assert group.all_reduce(lent) is lent
        return plain.tolist(), inner.tolist()

    assert pair.both(story) == [([11, 22, 33, 44], [11, 22, 33, 44])] * 2


def test_torch_tensors(pair: Pair) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")

    def story(group: Group, rank: int) -> Any:
        x = torch.full((2, 2), rank + 1.0, dtype=torch.bfloat16)
        parameter = torch.nn.Parameter(torch.ones(3))
        group.all_reduce([x, parameter])
        return x.tolist(), parameter.tolist()

    assert pair.both(story) == [([[3, 3], [3, 3]], [2, 2, 2])] * 2


def test_empty_tensors(pair: Pair) -> None:
    def story(group: Group, rank: int) -> Any:
        group.all_reduce(numpy.zeros((0, 3), "f4"))
        group.broadcast(b"") if rank == 0 else group.broadcast(bytearray())
        return group.all_gather(numpy.zeros((0, 3), "f4")).shape, group.all_reduce([])

    assert pair.both(story) == [((0, 3), [])] * 2


def test_only_reading_copies_what_is_not_contiguous_and_nothing_else_is_copied(pair: Pair) -> None:
    size = 1 << 20
    whole, out = numpy.ones((2, 2 * size), "f4"), [numpy.empty(size, "f4") for _ in range(2)]

    def copied(inputs: list[Any]) -> int:
        tracemalloc.start()
        pair.both(lambda group, rank: group.all_reduce(inputs[rank], out[rank]))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak // (4 * size)

    assert copied([whole[0, :size], whole[1, :size]]) == 0
    strided = [whole[0, ::2], whole[1, :size]]
    assert copied(strided) == 1 and out[0].tolist() == out[1].tolist() == [2.0] * size
    x = whole[0, :size]
    assert tensors.written(x, None).struct.data == x.__array_interface__["data"][0]


def test_arrays_live_until_their_call_has_ended(pair: Pair) -> None:
    x = of_rank(0).view(Alive)
    alive = weakref.ref(x)
    pair.groups[0].all_reduce(x, async_op=True)
    del x
    gc.collect()
    assert alive() is not None
    pair.groups[1].all_reduce(of_rank(1))
    pair.both(lambda group, rank: group.barrier())  # by then the call before has ended
    pair.both(lambda group, rank: group.barrier(async_op=True).wait())  # which a call that begins notices
    gc.collect()
    assert alive() is None


class Alive(numpy.ndarray[Any, Any]):
    """An array that can be asked whether it lives."""


def test_a_work_is_pending_until_the_others_have_called(pair: Pair) -> None:
    first, second = pair.groups
    x, before = of_rank(0), time.monotonic()
    work, barrier = first.all_reduce(x, async_op=True), first.barrier(async_op=True)
    assert not work.done() and not barrier.done()
    with pytest.raises(chorus.NoAnswer, match="has not ended within 0.05 s"):
        work.wait(0.05)
    with pytest.raises(chorus.NoAnswer, match="has not ended"):
        work.result
    with pytest.raises(TimeoutError):
        chorus.wait_any([work, barrier], 0)
    assert time.monotonic() - before < 10
    second.all_reduce(of_rank(1))
    assert chorus.wait_any([barrier, work], 20) == 1
    assert work.done() and work.result is x and work.wait() is x and x.tolist() == [11, 22, 33, 44]
    assert not barrier.done()
    second.barrier()
    assert barrier.wait(20) is None and chorus.wait_any([barrier]) == 0


def test_error_feedback_adds_what_the_codes_lack_under_a_name(pair: Pair) -> None:
    def gather(group: Group, rank: int) -> list[float]:
        own = numpy.array([127, 0.25], "f4")  # in int8 a step is 1
        names = ["a", "a", "b", "a"]
        return [float(group.all_gather(own, compression="int8", error_feedback=name)[1]) for name in names]

    assert pair.both(gather) == [[0.0, 0.0, 0.0, 1.0]] * 2


def test_memory_of_the_worker(pair: Pair) -> None:
    def story(group: Group, rank: int) -> Any:
        x = pair.workers[rank].empty((2, 3))
        x[:] = rank + 1
        view = group.all_reduce(x)[1:]
        del x
        gc.collect()  # a view keeps the memory
        return view.tolist()

    assert pair.both(story) == [[[3.0, 3.0, 3.0]]] * 2
    worker = pair.workers[0]
    assert (
        worker.empty(5).shape == (5,) and worker.empty((), "f64").shape == () and worker.empty((0, 2)).shape == (0, 2)
    )
    assert worker.empty(1).__array_interface__["data"][0] % 64 == 0


@pytest.mark.parametrize(
    ("compression", "error"), [("bf16", 0.004), ("f16", 0.001), ("int8", 0.008), ("fp8_e4m3", 0.08)]
)
def test_compressed_collectives_are_near_and_alike(pair: Pair, compression: str, error: float) -> None:
    whole = numpy.linspace(-1, 1, 1000, dtype="f4")
    results: dict[int, Any] = {}

    def call(group: Group, rank: int) -> None:
        results[rank] = group.all_reduce(whole * (rank + 1), reduce="avg", compression=compression)
        tensor = whole.copy() if rank == 0 else numpy.zeros(1000, "f4")
        group.broadcast(tensor, compression=compression)
        assert abs(tensor - whole).max() <= error
        own = group.reduce_scatter(whole, compression=compression)
        assert abs(own - 2 * whole[rank * 500 : rank * 500 + 500]).max() <= 4 * error
        assert abs(group.all_gather(whole[:500], compression=compression)[500:] - whole[:500]).max() <= error
        reduced = group.reduce(whole.copy(), compression=compression)
        assert rank != 0 or abs(reduced - 2 * whole).max() <= 4 * error

    pair.both(call)
    assert (results[0] == results[1]).all()
    assert abs(results[0] - 1.5 * whole).max() <= 4 * error


def test_codes_between_hosts_change_nothing_on_one_host(pair: Pair) -> None:
    whole = numpy.linspace(-1, 1, 1000, dtype="f4")
    between_hosts = {"format": "int8", "between": "host"}
    for result in pair.both(lambda group, rank: group.all_reduce(whole * (rank + 1), compression=between_hosts)):
        assert (result == 3 * whole).all()


def test_auto_compresses_nothing_on_one_host(pair: Pair) -> None:
    whole = numpy.linspace(-1, 1, 1000, dtype="f4")
    wishes: list[options.Compression] = ["auto", {"format": "auto", "allow": ["bf16", "int8"]}]
    for compression in wishes:
        for result in pair.both(lambda group, rank: group.all_reduce(whole * (rank + 1), compression=compression)):
            assert (result == 3 * whole).all()
