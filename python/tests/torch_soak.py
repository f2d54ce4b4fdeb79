"""What ranks of torch.distributed do in a soak of the backend "chorus": random calls, whose results are checked."""

from __future__ import annotations

import gc
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from torch_stories import DTYPES, reductions, same, values

CALLS = 20  # of one thread in a round
LARGE = 200_000  # elements: more than a message that waits at its receiver

Begun = tuple[Any, Callable[[], None]]  # a work, and what checks its result


def soaks(rank: int, size: int, seed: int, seconds: float) -> int:
    """Goes through rounds until rank 0 finds that the time is over; returns how many. The last calls are left alone."""
    until, rounds = time.monotonic() + seconds, 0
    while goes_on(rank, time.monotonic() < until):
        round_of(rank, size, f"{seed}.{rounds}")
        rounds += 1
    for _ in range(5):
        dist.all_reduce(torch.ones(LARGE), async_op=True)
    return rounds


def goes_on(rank: int, wanted: bool) -> bool:
    flag = torch.tensor([wanted])
    dist.broadcast(flag, 0)
    return bool(flag)


def round_of(rank: int, size: int, seed: str) -> None:
    """Calls of two process groups and messages, each in a thread of its own; one of the groups ends with calls left."""
    passing = dist.new_group()
    failures: list[BaseException] = []

    def in_thread(function: Callable[..., None], name: str, group: Any) -> threading.Thread:
        def run() -> None:
            try:
                function(group, random.Random(f"{seed}.{name}"), rank, size)
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    threads = [
        in_thread(calls, "calls of all", dist.group.WORLD),
        in_thread(calls, "calls of a group", passing),
        in_thread(messages, "messages", dist.group.WORLD),
    ]
    for thread in threads:
        thread.join()
    for failure in failures:
        raise failure
    dist.destroy_process_group(passing)


def calls(group: Any, chance: random.Random, rank: int, size: int) -> None:
    """The same calls on every rank; each rank waits for what it likes, and forgets the rest."""
    mine = random.Random(f"{chance.random()}.{rank}")
    begun: list[Begun] = []
    for _ in range(CALLS):
        begun.append(call(group, chance, rank, size))
        if mine.random() < 0.3:
            gc.collect()
        if mine.random() < 0.5:
            work, check = begun.pop(mine.randrange(len(begun)))
            if mine.random() < 0.8:
                work.wait()
                check()


def elements_of(chance: random.Random) -> int:
    return chance.choice([0, 1, 3, 6, 100, 1000, 30_000, LARGE])


def spread(tensor: torch.Tensor, apart: bool) -> torch.Tensor:
    """The same values, where asked for in memory that is not contiguous."""
    if not apart:
        return tensor.clone()
    wide = torch.zeros(2 * tensor.numel(), dtype=tensor.dtype)
    wide[::2] = tensor
    return wide[::2]


def call(group: Any, chance: random.Random, rank: int, size: int) -> Begun:
    """Begins one call."""
    dtype, elements, root = chance.choice(DTYPES), elements_of(chance), chance.randrange(size)
    apart = chance.random() < 0.3
    name = chance.choice(["all_reduce", "broadcast", "all_gather", "gather", "scatter", "all_to_all", "reduce_scatter"])
    all_of_them = [values(one, dtype, elements) for one in range(size)]
    x = spread(all_of_them[rank], apart)
    if name == "all_reduce" or dtype.is_complex and name == "reduce_scatter":
        op, expected = chance.choice(reductions(dtype, size, elements))
        return dist.all_reduce(x, op, group, async_op=True), lambda: same(x, expected)
    if name == "reduce_scatter":
        op, expected = chance.choice(reductions(dtype, size, elements))
        block = spread(torch.zeros_like(all_of_them[rank]), apart)
        work = dist.reduce_scatter(block, [all_of_them[rank]] * size, op, group, async_op=True)
        return work, lambda: same(block, expected)
    if name == "broadcast":
        return dist.broadcast(x, root, group, async_op=True), lambda: same(x, all_of_them[root])
    if name == "scatter":
        block = spread(torch.zeros_like(all_of_them[rank]), apart)
        work = dist.scatter(block, all_of_them if rank == root else None, root, group, async_op=True)
        return work, lambda: same(block, all_of_them[rank])
    found = [spread(torch.zeros_like(one), apart) for one in all_of_them]
    if name == "gather":
        work = dist.gather(x, found if rank == root else None, root, group, async_op=True)
        return work, lambda: same_lists(found, all_of_them if rank == root else [])
    if name == "all_to_all":
        work = dist.all_to_all(found, [x] * size, group, async_op=True)
    else:
        work = dist.all_gather(found, x, group, async_op=True)
    return work, lambda: same_lists(found, all_of_them)


def same_lists(found: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    for one, other in zip(found, expected):
        same(one, other)


def messages(group: Any, chance: random.Random, rank: int, size: int) -> None:
    """Every rank sends to the next one; sends are forgotten at once, receives are waited for in any order."""
    mine = random.Random(f"{chance.random()}.{rank}")
    following, previous = (rank + 1) % size, (rank - 1) % size
    received = []
    for tag in range(CALLS):
        dtype, elements = chance.choice(DTYPES), elements_of(chance)
        into = torch.zeros(elements, dtype=dtype)
        work = dist.irecv(into, previous, group, tag)
        received.append((work, into, values(previous, dtype, elements)))
        dist.isend(values(rank, dtype, elements), following, group, tag)
    mine.shuffle(received)
    for work, into, expected in received:
        work.wait()
        same(into, expected)
