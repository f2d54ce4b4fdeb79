"""What ranks of torch.distributed do with tensors of a device; ``torch_device.cpp`` stands for a GPU.

A story's thread queues in a stream of its own: whoever reads a tensor without waiting for that stream finds what the
memory held before.
"""

from __future__ import annotations

import threading
from typing import Any

import torch
import torch.distributed as dist

from torch_stories import OP, same

ELEMENTS = 1000


def enter(library: str) -> None:
    torch.ops.load_library(library)
    torch.ops.chorus_test.use_stream(1)


def queued(value: float, *shape: int) -> torch.Tensor:
    """A tensor that will have this value; until its stream is waited for it has another one."""
    return torch.full(shape or (ELEMENTS,), -7.0).to("privateuseone").fill_(value)


def filled(value: float, *shape: int) -> torch.Tensor:
    return torch.full(shape or (ELEMENTS,), float(value))


def calls_every_collective(rank: int, size: int, library: str) -> Any:
    enter(library)
    total = size * (size + 1) / 2
    x = queued(rank + 1)
    dist.all_reduce(x)
    assert x.device.type == "privateuseone"
    same(x.cpu(), filled(total))
    x = queued(rank + 1)
    dist.all_reduce(x, dist._make_nccl_premul_sum(2.0))
    same(x.cpu(), filled(2 * total))
    x = queued(rank)
    dist.broadcast(x, 1)
    same(x.cpu(), filled(1))
    x = queued(rank + 1)
    dist.reduce(x, 0)
    same(x.cpu(), filled(total if rank == 0 else rank + 1))
    gathered = [queued(-1) for _ in range(size)]
    dist.all_gather(gathered, queued(rank))
    same(torch.stack([one.cpu() for one in gathered]), torch.stack([filled(each) for each in range(size)]))
    whole = queued(-1, size * ELEMENTS)
    dist._all_gather_base(whole, queued(rank))
    same(whole.cpu(), torch.cat([filled(each) for each in range(size)]))
    block = queued(-1)
    dist.reduce_scatter(block, [queued(rank + each) for each in range(size)])
    same(block.cpu(), filled(sum(each + rank for each in range(size))))
    dist.scatter(block, [queued(each) for each in range(size)] if rank == 0 else None, 0)
    same(block.cpu(), filled(rank))
    gathered = [queued(-1) for _ in range(size)]
    dist.gather(queued(rank), gathered if rank == 0 else None, 0)
    same(gathered[-1].cpu(), filled(size - 1 if rank == 0 else -1))
    received = [queued(-1) for _ in range(size)]
    dist.all_to_all(received, [queued(10 * rank + each) for each in range(size)])
    same(torch.stack([one.cpu() for one in received]), torch.stack([filled(10 * each + rank) for each in range(size)]))
    several = [queued(rank), queued(2 * rank, 3)]
    dist.all_reduce_coalesced(several)
    same(several[1].cpu(), filled(2 * (total - size), 3))


def takes_every_form(rank: int, size: int, library: str) -> Any:
    enter(library)
    x = queued(1, 4, 6)
    dist.all_reduce(x[:, ::2])
    expected = filled(1, 4, 6)
    expected[:, ::2] = size
    same(x.cpu(), expected)
    dist.all_reduce(queued(1, 0))
    mixed = [queued(-1), filled(-1)]
    dist.all_gather(mixed, queued(rank))
    same(torch.stack([one.cpu() for one in mixed]), torch.stack([filled(0), filled(1)]))


def sends_messages(rank: int, size: int, library: str) -> Any:
    enter(library)
    received = queued(-1)
    if rank == 0:
        dist.send(queued(5), 1)
        dist.recv(received, 1)
        same(received.cpu(), filled(6))
    else:
        request = dist.irecv(received, 0)
        waiter = threading.Thread(target=request.wait)  # its stream is another one
        waiter.start()
        waiter.join()
        same(received.cpu(), filled(5))
        dist.isend(queued(6), 0).wait()


def waits_by_futures(rank: int, size: int, library: str) -> Any:
    enter(library)
    works = [dist.all_reduce(queued(number), async_op=True) for number in range(20)]
    for number, work in enumerate(works):
        same(work.get_future().wait()[0].cpu(), filled(number * size))
    late = dist.all_reduce(queued(1), async_op=True)
    late.wait()
    same(late.get_future().then(lambda future: future.value()[0].cpu()).wait(), filled(size))
    x = queued(1)
    dist.all_reduce(x, OP.MAX)
    same(x.cpu(), filled(1))
