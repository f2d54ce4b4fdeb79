"""What ranks of torch.distributed do in stories of messages by the backend "chorus"; each in a process of its own."""

from __future__ import annotations

import gc
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from torch_stories import failure


def sends_messages(rank: int, size: int) -> Any:
    if rank == 0:
        first = dist.isend(torch.arange(3.0), 1)
        second = dist.isend(torch.ones(2, 2).t(), 1, tag=7)
        first.wait(), second.wait()
        answer = torch.empty(1)
        return dist.recv(answer), answer.item()
    if rank == 1:
        tagged, plain = torch.zeros(2, 2), torch.zeros(3)
        later = dist.irecv(tagged, 0, tag=7)
        dist.recv(plain, 0)
        later.wait()
        dist.send(torch.tensor([plain.sum() + tagged.sum()]), 0)
    return None


def sends_around(rank: int, size: int) -> None:
    """Large messages around a ring, each rank both ways at once; then small ones to rank 0, which takes them as they come."""
    after, before = (rank + 1) % size, (rank - 1) % size
    for elements in (1, 1_000_000):
        forth, back = torch.empty(elements), torch.empty(elements, dtype=torch.int64)
        own = torch.full((elements,), float(rank))
        requests = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, own, after),
                dist.P2POp(dist.irecv, forth, before),
                dist.P2POp(dist.isend, own.long(), before, tag=1),
                dist.P2POp(dist.irecv, back, after, tag=1),
            ]
        )
        for request in requests:
            request.wait()
            assert request.is_completed() and request.is_success()
        assert (forth == before).all() and (back == after).all()
    if rank == 0:
        found = [torch.empty(2) for _ in range(1, size)]
        assert sorted(dist.recv(one) for one in found) == list(range(1, size))
        assert sorted(one[0].item() for one in found) == list(range(1, size))
    else:
        dist.send(torch.full((2,), float(rank)), 0)


def drops_messages(rank: int, size: int) -> Any:
    """Messages that nobody waits for: they arrive, and those that never come keep nobody from ending."""
    if rank == 0:
        for number in range(200):
            dist.isend(torch.full((100,), float(number)), 1)
        gc.collect()
        dist.irecv(torch.empty(5), 1, tag=9)
        return None
    received = torch.empty(100)
    found = []
    for _ in range(200):
        dist.recv(received, 0)
        found.append(received[0].item())
    return found


def sends_what_does_not_fit(rank: int, size: int) -> Any:
    if rank == 0:
        dist.send(torch.ones(2), 1)
        dist.send(torch.ones(4), 1)
        return failure(lambda: dist.all_reduce(torch.ones(1)))
    return [
        failure(lambda: dist.recv(torch.empty(3), 0)),
        failure(lambda: dist.send(torch.ones(1), 0, tag=-1)),
        failure(lambda: dist.send(torch.ones(1), size)),
        failure(lambda: dist.recv(torch.empty(3), 0)),
        failure(lambda: dist.all_reduce(torch.ones(1))),
    ]


def waits_for_no_message(rank: int, size: int) -> Any:
    group = dist.new_group(timeout=timedelta(seconds=5))
    found = failure(lambda: dist.recv(torch.empty(3), 1, group=group)) if rank == 0 else None
    dist.barrier()
    x = torch.ones(1)
    dist.all_reduce(x, group=group)
    return found, x.item()
