"""What ranks of torch.distributed do in stories of the backend "chorus"; each in a process of its own."""

from __future__ import annotations

import functools
import gc
import operator
import os
import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

import chorus
from chorus.torch import build, rendezvous

OP = dist.ReduceOp
FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
COMPLEX = [torch.complex64, torch.complex128]
DTYPES = [*FLOATS, *INTEGERS, *COMPLEX, torch.bool]


def values(rank: int, dtype: torch.dtype, elements: int = 6) -> torch.Tensor:
    """Small numbers, of which sums and products are exact in every dtype."""
    numbers = (torch.arange(elements) + rank) % 3
    return torch.complex(numbers.double(), numbers.double() + 1).to(dtype) if dtype.is_complex else numbers.to(dtype)


def combined(function: Callable[..., torch.Tensor], dtype: torch.dtype, size: int, elements: int = 6) -> torch.Tensor:
    return functools.reduce(function, (values(rank, dtype, elements) for rank in range(size)))


def reductions(dtype: torch.dtype, size: int, elements: int = 6) -> list[tuple[Any, torch.Tensor]]:
    """The reductions that a dtype has, and what they make of the values of all ranks."""
    if dtype is torch.bool:
        either, both = combined(operator.or_, dtype, size, elements), combined(operator.and_, dtype, size, elements)
        different = combined(operator.xor, dtype, size, elements)
        return [(OP.SUM, either), (OP.MAX, either), (OP.BOR, either), (OP.MIN, both), (OP.BXOR, different)]
    total = combined(operator.add, dtype, size, elements)
    found: list[tuple[Any, torch.Tensor]] = [(OP.SUM, total)]
    if dtype.is_floating_point or dtype.is_complex:
        found.append((OP.AVG, total / size))
    if not dtype.is_complex:
        extremes = [(OP.MIN, torch.minimum), (OP.MAX, torch.maximum), (OP.PRODUCT, operator.mul)]
        found += [(op, combined(function, dtype, size, elements)) for op, function in extremes]
    if dtype in INTEGERS:
        bits = [(OP.BAND, operator.and_), (OP.BOR, operator.or_), (OP.BXOR, operator.xor)]
        found += [(op, combined(function, dtype, size, elements)) for op, function in bits]
    return found


def same(found: Any, expected: Any) -> None:
    torch.testing.assert_close(found, expected, rtol=0.02 if expected.dtype in FLOATS[2:] else 1e-6, atol=0)


def reduces(rank: int, size: int) -> None:
    for dtype in DTYPES:
        for op, expected in reductions(dtype, size):
            x = values(rank, dtype)
            dist.all_reduce(x, op)
            same(x, expected)
            x = values(rank, dtype)
            dist.reduce(x, size - 1, op)
            same(x, expected if rank == size - 1 else values(rank, dtype))
            if not dtype.is_complex:
                block = torch.empty(6, dtype=dtype)
                dist.reduce_scatter(block, [values(rank, dtype) for _ in range(size)], op)
                same(block, expected)
                dist._reduce_scatter_base(block.zero_(), values(rank, dtype).repeat(size), op)
                same(block, expected)
        listed = [values(rank, dtype), values(rank, dtype, 4)]
        if dtype is not torch.bool:
            dist.all_reduce_coalesced(listed)
            same(listed[1], combined(operator.add, dtype, size, 4))


def moves(rank: int, size: int) -> None:
    for dtype in DTYPES:
        own, all_of_them = values(rank, dtype), [values(one, dtype) for one in range(size)]
        x = own.clone()
        dist.broadcast(x, 1)
        same(x, all_of_them[1])
        found = [torch.zeros(6, dtype=dtype) for _ in range(size)]
        dist.all_gather(found, own)
        same(torch.stack(found), torch.stack(all_of_them))
        whole = torch.zeros(6 * size, dtype=dtype)
        dist._all_gather_base(whole, own)
        same(whole, torch.cat(all_of_them))
        found = [torch.zeros(6, dtype=dtype) for _ in range(size)]
        dist.gather(own, found if rank == 0 else None, 0)
        if rank == 0:
            same(torch.stack(found), torch.stack(all_of_them))
        block = torch.zeros(6, dtype=dtype)
        dist.scatter(block, all_of_them if rank == 1 else None, 1)
        same(block, own)
        exchanged = torch.zeros(size, 6, dtype=dtype)
        dist.all_to_all_single(exchanged, own.repeat(size, 1))
        same(exchanged, torch.stack(all_of_them))
        found = [torch.zeros(6, dtype=dtype) for _ in range(size)]
        dist.all_to_all(found, [own] * size)
        same(torch.stack(found), torch.stack(all_of_them))
    dist.barrier()


def moves_unequal_blocks(rank: int, size: int) -> None:
    lengths = list(range(size))  # the first is empty
    found = [torch.zeros(length) for length in lengths]
    dist.all_gather(found, torch.full((rank,), float(rank)))
    for one, tensor in enumerate(found):
        same(tensor, torch.full((one,), float(one)))
    block = torch.zeros(rank)
    dist.reduce_scatter(block, [torch.ones(length) for length in lengths])
    same(block, torch.full((rank,), float(size)))
    received = torch.zeros(size * rank, 2)
    dist.all_to_all_single(received, torch.full((sum(lengths), 2), float(rank)), [rank] * size, lengths)
    same(received, torch.arange(size).float().repeat_interleave(rank).repeat(2, 1).t())


def takes_every_tensor(rank: int, size: int) -> None:
    x = torch.zeros(4, 6)
    x[:, ::2] = rank + 1
    dist.all_reduce(x[:, ::2])
    same(x[:, ::2], torch.full((4, 3), size * (size + 1) / 2))
    same(x[:, 1::2], torch.zeros(4, 3))
    transposed = torch.full((3, 2), float(rank)).t()
    dist.broadcast(transposed, 1)
    same(transposed, torch.ones(2, 3))
    dist.all_reduce(torch.empty(0))
    scalar = torch.tensor(2.0)
    dist.all_reduce(scalar, OP.PRODUCT)
    same(scalar, torch.tensor(2.0**size))
    weight = torch.nn.Parameter(torch.full((3,), float(rank)))
    dist.broadcast(weight, 1)
    same(weight.detach(), torch.ones(3))
    conjugate = torch.complex(torch.ones(2), torch.full((2,), 2.0)).conj()
    dist.broadcast(conjugate, 0)
    same(conjugate, torch.complex(torch.ones(2), torch.full((2,), -2.0)))


def sends_objects(rank: int, size: int) -> Any:
    everybody: list[Any] = [None] * size
    dist.all_gather_object(everybody, {"rank": rank, "text": "x" * (1000 * rank)})
    assert [one["rank"] for one in everybody] == list(range(size))
    one = [("hello", rank)]
    dist.broadcast_object_list(one, 1)
    own: list[Any] = [None]
    dist.scatter_object_list(own, [f"for {each}" for each in range(size)] if rank == 0 else None, 0)
    gathered: list[Any] = [None] * size
    dist.gather_object(rank, gathered if rank == 0 else None, 0)
    return one, own, gathered if rank == 0 else None


def does_more_at_once(rank: int, size: int) -> Any:
    works = [dist.all_reduce(torch.full((1000,), float(number)), async_op=True) for number in range(20)]
    gc.collect()  # nobody but the calls has these tensors
    for number, work in reversed(list(enumerate(works))):
        work.wait()
        assert work.is_completed() and work.is_success()
        same(work.result()[0], torch.full((1000,), float(number * size)))
    dist.all_reduce(torch.ones(1_000_000), async_op=True)  # nobody waits for it
    x = torch.ones(3)
    doubled = dist.all_reduce(x, async_op=True).get_future().then(lambda future: future.value()[0] * 2)
    return doubled.wait().tolist()


def makes_groups(rank: int, size: int) -> Any:
    found = []
    for ranks in ([0, 2], [1, 2], [1], None):
        group = dist.new_group(ranks)
        if group is not dist.GroupMember.NON_GROUP_MEMBER:
            x = torch.tensor([10.0**rank])
            dist.all_reduce(x, group=group)
            found.append((dist.get_rank(group), x.item()))
    return found


def ends_groups(rank: int, size: int) -> Any:
    """Makes groups and destroys them, and returns the groups that the coordinator knows before and after."""
    session = rendezvous._session_of_default(build.load())
    assert session is not None
    url = session.url

    def known() -> int:
        dist.barrier()
        with chorus.Client(url) as client:
            return len(client.groups())

    groups = [dist.new_group(ranks) for ranks in ([0, 2], [1, 2], None, None)]
    before = known()
    while groups:
        if (group := groups.pop(0)) is not dist.GroupMember.NON_GROUP_MEMBER:
            dist.all_reduce(torch.ones(3), group=group)
            if len(groups) > 0 or rank != 1:  # the last group stays, as one of its ranks does not end it
                dist.destroy_process_group(group)
    del group
    after = known()
    dist.barrier()  # the last group goes with the default one
    return before, after


def begins_again(rank: int, size: int, folder: str) -> Any:
    found = []
    for number in range(2):
        dist.destroy_process_group()
        dist.init_process_group("chorus", init_method=f"file://{folder}/{number}", rank=rank, world_size=size)
        x = torch.ones(1)
        dist.all_reduce(x)
        found.append(x.item())
    return found


def trains(rank: int, size: int, folder: str) -> Any:
    """Trains with this backend and with Gloo; returns how far the weights are apart, and whether ranks have the same."""

    def trained() -> torch.Tensor:
        torch.manual_seed(1)
        layers = [torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.BatchNorm1d(32), torch.nn.Linear(32, 2)]
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        torch.manual_seed(rank)
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.randn(16, 8)).square().mean().backward()
            optimizer.step()
        return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])

    own = trained()
    others = [torch.empty_like(own) for _ in range(size)]
    dist.all_gather(others, own)
    dist.destroy_process_group()
    gc.collect()
    dist.init_process_group("gloo", init_method=f"file://{folder}/gloo", rank=rank, world_size=size)
    difference = (own - trained()).abs().max().item()
    return difference, all(torch.equal(own, other) for other in others)


def failure(function: Callable[[], Any]) -> tuple[str, str]:
    try:
        function()
    except Exception as error:
        return type(error).__name__, str(error)
    return "", "nothing was raised"


def loses_a_rank(rank: int, size: int) -> Any:
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    first = failure(lambda: dist.all_reduce(torch.ones(1_000_000)))
    work = failure(lambda: dist.all_reduce(torch.ones(3), async_op=True).get_future().wait())
    return first, work


def calls_different_things(rank: int, size: int) -> Any:
    return failure(lambda: dist.all_reduce(torch.ones(3)) if rank == 0 else dist.barrier())


def waits_in_vain(rank: int, size: int) -> Any:
    group = dist.new_group(timeout=timedelta(seconds=2))
    found = failure(lambda: dist.all_reduce(torch.ones(3), group=group)) if rank == 0 else None
    dist.barrier()  # of another group, which goes on
    return found


def monitors(rank: int, size: int) -> Any:
    dist.group.WORLD.monitored_barrier(timedelta(seconds=20), True)
    if rank in (1, 2):
        return None
    return failure(lambda: dist.group.WORLD.monitored_barrier(timedelta(seconds=1), True))


def passes_what_cannot_be(rank: int, size: int) -> Any:
    found = [
        failure(lambda: dist.all_reduce(torch.ones(3), OP.BAND)),
        failure(lambda: dist.all_reduce(torch.ones(3).to_sparse())),
        failure(lambda: dist._all_gather_base(torch.ones(3), torch.ones(2))),
        failure(lambda: dist.broadcast(torch.ones(3), size)),
        failure(lambda: dist.all_to_all_single(torch.ones(size), torch.ones(size), [0] * size, [1] * size)),
        failure(lambda: dist.new_group([], timeout=timedelta(seconds=1))),
    ]
    dist.all_reduce(torch.ones(3))  # nothing was sent: the order goes on
    return found


def forks(rank: int, size: int) -> Any:
    child = os.fork()
    if child == 0:
        kind, text = failure(lambda: dist.all_reduce(torch.ones(1)))
        dist.destroy_process_group()
        os._exit(0 if kind == "RuntimeError" and "fork" in text else 1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    x = torch.ones(1)
    dist.all_reduce(x)
    return status, x.item()


def moves_blocks_within_their_whole(rank: int, size: int) -> None:
    """The own block of a whole is the other tensor of a call, as FSDP and Megatron have it."""
    numbers = torch.arange(2.0 * size)

    def whole() -> tuple[torch.Tensor, torch.Tensor]:
        """Returns zeros but for the own block, and that block in the same memory."""
        made = torch.zeros(2 * size)
        own = made[2 * rank : 2 * rank + 2]
        own.copy_(numbers[2 * rank : 2 * rank + 2])
        return made, own

    gathered, own = whole()
    dist._all_gather_base(gathered, own)
    same(gathered, numbers)
    gathered, own = whole()
    dist.all_gather(list(gathered.chunk(size)), own)
    same(gathered, numbers)
    gathered, own = whole()
    dist.all_gather_coalesced([[one] for one in gathered.chunk(size)], [own])
    same(gathered, numbers)
    gathered, own = whole()
    dist.gather(own, list(gathered.chunk(size)) if rank == 0 else None, 0)
    same(gathered, numbers if rank == 0 else whole()[0])
    for whole_as_list in (False, True):
        every = numbers.clone()
        own = every[2 * rank : 2 * rank + 2]
        if whole_as_list:
            dist.reduce_scatter(own, list(every.chunk(size)))
        else:
            dist._reduce_scatter_base(own, every)
        expected = numbers.clone()
        expected[2 * rank : 2 * rank + 2] *= size
        same(every, expected)  # the other blocks are as they were
    every = numbers.clone()
    block = every[:2] if rank == 0 else torch.empty(2)
    dist.scatter(block, list(every.chunk(size)) if rank == 0 else None, 0)
    same(block, numbers[2 * rank : 2 * rank + 2])
    elsewhere = torch.zeros(2 * size)
    kind, text = failure(lambda: dist._all_gather_base(elsewhere, elsewhere[1:3]))
    assert (kind, "overlap" in text) == ("ValueError", True), text
    dist.barrier()  # the order goes on
