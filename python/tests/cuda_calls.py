"""What members do with arrays on GPUs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy

import chorus
from chorus import dlpack
from chorus.cuda import pool
from cuda_arrays import ELEMENTS, Array, array, copied, counts, fail, filled, same
from cuda_members import Group, both, raised
from members import Pair


def calls_every_collective(pair: Pair) -> None:
    def story(group: Group, rank: int) -> None:
        x = array(rank + 1)
        assert group.all_reduce(x) is x
        same(x, 3)
        x, out = array(rank + 1), array(9)
        assert group.all_reduce(x, out, reduce="prod") is out
        same(out, 2)
        same(x, rank + 1)

        x = array(rank + 1)
        assert group.reduce(x, root=1) is (x if rank == 1 else None)
        same(x, 3 if rank == 1 else 1)
        out = array(9)
        group.reduce(array(rank + 1), out, root=1, in_place=False)
        same(out, 3 if rank == 1 else 9)
        made = group.reduce(array(rank + 1), root=0, in_place=False)
        assert rank == 1 or (type(made) is numpy.ndarray and (made == 3).all())

        x = array(5, read_only=True) if rank == 0 else array(6)
        assert group.broadcast(x) is x
        same(x, 5)
        same(group.broadcast(array(rank + 7), compression="bf16"), 7)

        whole = numpy.repeat([0, 1], ELEMENTS)
        made, out = group.all_gather(array(rank)), array(9, 2 * ELEMENTS)
        same(made, whole)
        assert group.all_gather(array(rank, read_only=True), out) is out
        same(out, whole)
        x = Array(numpy.where(numpy.arange(2 * ELEMENTS) // ELEMENTS == rank, rank, 9))
        same(group.all_gather(x, in_place=True), whole)

        x = Array(whole + rank)
        same(group.reduce_scatter(x), 1 + 2 * rank)
        out = array(9)
        assert group.reduce_scatter(x, out) is out
        same(out, 1 + 2 * rank)
        group.reduce_scatter(x, in_place=True)
        same(x.now[rank * ELEMENTS : (rank + 1) * ELEMENTS], 1 + 2 * rank)

        out = array(9, 2 * ELEMENTS)
        group.gather(array(rank), out, root=1)
        same(out, whole if rank == 1 else 9)
        out = array(9)
        assert group.scatter(Array(whole) if rank == 0 else None, out) is out
        same(out, rank)

        x, out = Array(whole + 2 * rank), array(9, 2 * ELEMENTS)
        assert group.all_to_all(x, out) is out
        same(out, 2 * whole + rank)
        same(group.all_to_all(x), 2 * whole + rank)
        same(group.all_to_all(x, in_place=True), 2 * whole + rank)
        out = array(9, 3 if rank == 0 else 1)
        group.all_to_all(
            array(rank, 2), out, counts=[2, 0] if rank == 0 else [1, 1], receive_counts=[2, 1] if rank == 0 else [0, 1]
        )
        same(out, [0, 0, 1] if rank == 0 else [1])
        group.barrier()

        raised(chorus.BadArgument, "", lambda: group.all_reduce(array(1), array(1, ELEMENTS + 1)))
        raised(chorus.BadArgument, "", lambda: group.reduce_scatter(array(1, 4), array(1, 3)))
        raised(chorus.BadArgument, "", lambda: group.all_to_all(array(1, 4), array(1, 5)))

    both(pair, story)


def calls_with_lists(pair: Pair) -> None:
    def story(group: Group, rank: int) -> None:
        mixed = [array(rank + 1), filled(rank + 2, 3), array(rank + 3, 2, 2), Array([rank] * 7, "i8", 1), array(0, 0)]
        assert group.all_reduce(mixed) is mixed
        for one, expected in zip(mixed, [3, 5, 7, 1, 0]):
            same(one, expected)
        pair = [array(rank + 1), array(rank + 2, 3)]
        group.reduce(pair, root=1)
        same(pair[0], 3 if rank == 1 else 1)
        same(pair[1], 5 if rank == 1 else 2)
        group.broadcast(pair, root=1)
        same(pair[0], 3)
        same(pair[1], 5)
        blocks, out = [array(rank, 1), array(rank + 5, 2)], [array(9, 2), array(9, 4)]
        assert group.all_gather(blocks, out) is out
        same(out[0], [0, 1])
        same(out[1], [5, 5, 6, 6])
        made = group.reduce_scatter(out)
        same(made[0], 2 * rank)
        same(made[1], 10 + 2 * rank)
        group.all_to_all(out, in_place=True)
        same(out[1], 5 + rank)
        x = array(1)
        raised(ValueError, "two arrays that the call writes to overlap", lambda: group.all_reduce([x, x]))

    both(pair, story)


def takes_every_kind_of_array(pair: Pair) -> None:
    def story(group: Group, rank: int) -> None:
        for dtype in ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1"):
            x = Array([[1, 2], [3, rank]], dtype, 1)
            group.all_reduce(x)
            same(x, [[2, 4], [6, 1]])
        same(group.all_reduce(array(rank, versioned=False)), 1)
        same(group.all_reduce(array(rank, of_a_pool=True, device=1)), 1)
        same(group.all_reduce(array(rank, kind=dlpack.CUDA_MANAGED, device=1)), 1)  # the CPU reads it in place
        x = Array([0x3FC0 if rank == 0 else 0x4000], "u2")
        same(group.all_reduce(x, dtype="bf16"), 0x4060)  # 1.5 + 2 = 3.5
        assert group.all_reduce(array(0, 0, 3)).shape == (0, 3)
        same(group.all_reduce(filled(rank), array(9)), 1)
        out = filled(9)
        same(group.all_reduce(array(rank), out), 1)

    both(pair, story)


def begins_calls_and_waits(pair: Pair) -> None:
    def story(group: Group, rank: int) -> None:
        arrays = [array(rank + number) for number in range(6)]
        begun = [group.all_reduce(one, async_op=True) for one in arrays]
        assert begun[0].wait() is arrays[0] and begun[0].wait() is arrays[0]
        same(arrays[0], 1)
        while not begun[1].done():
            time.sleep(0.001)
        same(arrays[1], 3)
        assert chorus.wait_any([begun[2]]) == 0
        same(arrays[2], 5)
        assert begun[3].wait(20) is arrays[3]
        same(arrays[3], 7)
        listed = group.all_reduce(arrays[:2], async_op=True)
        for late in (listed, *begun[4:]):
            late.wait()
        for one, expected in zip(arrays, [2, 6, 5, 7, 9, 11]):
            same(one, expected)
        waits = group.all_gather(array(rank, 2), async_op=True)
        same(waits.wait(), [0, 0, 1, 1])

    both(pair, story)


def sends_messages(pair: Pair) -> None:
    def story(group: Group, rank: int) -> None:
        other, out = 1 - rank, array(9, 6)
        if rank == 0:
            group.send(array(4, 4), other, tag=3)
        got = group.recv(out, tag=3)
        if rank == 1:
            group.send(array(4, 4), other, tag=3)
        assert got.tensor is out and (got.source, got.bytes, got.elements) == (other, 16, 4)
        same(out, [4, 4, 4, 4, 9, 9])
        got = group.sendrecv(array(rank, 2), other, out, other)
        assert got.elements == 2
        same(out, [other, other, 4, 4, 9, 9])

        large = array(9, 1_000_000)
        receiving = group.recv(large, other, async_op=True)
        sending = group.send(array(rank + 1, 1_000_000, device=1), other, async_op=True)
        assert sending.wait() is None and receiving.wait().elements == 1_000_000
        same(large, other + 1)

        cancelled = group.recv(out, other, tag=8, async_op=True)
        assert cancelled.cancel() and group.recv(out, other, tag=8, async_op=True).cancel()
        raised(chorus.Cancelled, "the receive was cancelled", cancelled.wait)
        same(out, [other, other, 4, 4, 9, 9])
        group.send(b"", other)
        assert group.recv(out, other).bytes == 0
        same(out, [other, other, 4, 4, 9, 9])

    both(pair, story)


def copies_each_byte_once(pair: Pair) -> None:
    size = 4 * ELEMENTS

    def expect(fetched: int, stored: int, story: Callable[[Group, int], Any]) -> None:
        before = counts()
        both(pair, story)
        assert copied(before) == (fetched, stored), f"{copied(before)}, expected {(fetched, stored)}"

    expect(2 * size, 2 * size, lambda group, rank: group.all_reduce(array(1)))
    expect(2 * size, 2 * size, lambda group, rank: group.all_reduce(array(1), array(9)))
    expect(2 * size, size, lambda group, rank: group.reduce(array(1)))
    expect(2 * size, size, lambda group, rank: group.reduce([array(1)]))
    expect(size, size, lambda group, rank: group.broadcast(array(1)))
    expect(size, size, lambda group, rank: group.broadcast([array(1, 100), array(1, ELEMENTS - 100)]))
    expect(2 * size, 0, lambda group, rank: group.all_gather(array(1)))
    expect(2 * size, 4 * size, lambda group, rank: group.all_gather(array(1), array(1, 2 * ELEMENTS)))
    expect(8, 8, lambda group, rank: group.send(array(1, 2), 1) if rank == 0 else group.recv(array(9)))
    expect(0, 0, lambda group, rank: group.barrier())

    before = counts().synchronized
    both(pair, lambda group, rank: group.all_reduce([array(1, 10) for _ in range(100)]))
    assert counts().synchronized - before == 4  # a wait for each direction and rank


def reuses_pinned_memory(pair: Pair) -> None:
    def story(group: Group, rank: int) -> None:
        for elements in (10, ELEMENTS, ELEMENTS - 100):
            group.all_reduce(array(1, elements))
        group.barrier()

    both(pair, story)
    before = counts().pinned_blocks
    for _ in range(20):
        both(pair, story)
    assert counts().pinned_blocks == before
    pool.KEPT_BYTES = 1 << 20
    for elements in range(100_000, 1_000_000, 50_000):
        both(pair, lambda group, rank: group.all_reduce(array(1, elements)))
    assert counts().pinned_bytes < 2 * 4_000_000 * 1.25 + pool.KEPT_BYTES


def works_without_pinned_memory(pair: Pair) -> None:
    group, out = pair.groups[0], array(9, 2 * ELEMENTS)
    before = counts().pinned_blocks
    fail("cuMemHostAlloc", 2)
    group.send(array(3), 0)
    fail("cuMemHostAlloc", 2)
    assert group.recv(out, 0).elements == ELEMENTS
    same(out, numpy.repeat([3, 9], ELEMENTS))
    assert counts().pinned_blocks == before


def asks_over_rest(client: chorus.Client) -> None:
    a = client.worker("a")
    info = a.put("on-gpu", Array([[1, 2], [3, 4]], "i4", 1, read_only=True))
    assert (info.dtype, list(info.shape)) == ("i32", [2, 2])
    same(a.get("on-gpu"), [[1, 2], [3, 4]])
    out = Array([[0, 0], [0, 0]], "i4")
    assert a.get("on-gpu", out) is out
    same(out, [[1, 2], [3, 4]])
    raised(ValueError, "read-only", lambda: a.get("on-gpu", Array([[0, 0], [0, 0]], "i4", read_only=True)))
    raised(TypeError, "elements of f32, expected i32", lambda: a.get("on-gpu", array(0, 2, 2)))
    a.delete("on-gpu")

    w = client.create_parameter("on-gpu", "all", [4, 2])
    w.push(array(1, 4, 2))
    out = array(9, 4, 2)
    assert w.pull(out) is out
    same(out, 1)
    assert w.push_pull(array(1, 4, 2), out) is out
    same(out, 2)
    w.push_rows(Array([3, 1], "i8"), Array([[3, 3], [1, 1]]))
    rows = array(9, 2, 2)
    w.pull_rows([1, 3], rows)
    same(rows, [[3, 3], [5, 5]])
    w.pull_rows([3, 1], rows)
    same(rows, [[5, 5], [3, 3]])
    client.delete_parameter("on-gpu")
