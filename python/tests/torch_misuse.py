"""What ranks of torch.distributed do wrong, or do in the midst of other things, with the backend "chorus"."""

from __future__ import annotations

import gc
import os
import threading
from typing import Any

import torch
import torch.distributed as dist

import chorus.torch  # noqa: F401
from torch_stories import failure, same


def works_in_two_groups_at_once(rank: int, size: int) -> Any:
    """A call of one group waits for a rank, and those of another go on; then both are used by threads at once."""
    first, second = dist.new_group(), dist.new_group()
    waiting = dist.all_reduce(torch.ones(3), group=first, async_op=True) if rank == 0 else None
    x = torch.ones(3)
    for _ in range(10):
        dist.all_reduce(x, group=second)
    had_ended = waiting is not None and waiting.is_completed()
    dist.barrier(group=second)
    waiting = waiting or dist.all_reduce(torch.ones(3), group=first, async_op=True)
    waiting.wait()
    found: dict[int, float] = {}

    def many(number: int, group: Any) -> None:
        total = torch.zeros(())
        for step in range(20):
            one = torch.full((1000,), float(number + step))
            dist.all_reduce(one, group=group)
            total += one.sum()
        found[number] = total.item()

    threads = [threading.Thread(target=many, args=pair) for pair in enumerate((first, second, dist.group.WORLD))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return had_ended, x[0].item(), [found[number] for number in range(3)]


def raises_in_callbacks(rank: int, size: int) -> Any:
    def divides(future: Any) -> Any:
        raise ZeroDivisionError("a callback divides")

    work = dist.all_reduce(torch.ones(3), async_op=True)
    chained = failure(work.get_future().then(divides).wait)
    work.get_future().add_done_callback(divides)  # torch prints what it raises
    work.wait()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    model.register_comm_hook(
        None, lambda _, bucket: dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(divides)
    )
    hooked = failure(lambda: model(torch.ones(1, 2)).sum().backward())
    x = torch.ones(3)
    dist.all_reduce(x)  # the group is as it was
    return chained, hooked, x.tolist()


def lets_go_of_tensors(rank: int, size: int) -> Any:
    """Tensors of calls that are under way are freed, and their memory is asked for again."""
    results = []
    for number in range(15):
        x = torch.full((10_000,), float(number))
        future = dist.all_reduce(x, async_op=True).get_future()
        sent = torch.full((10_000,), float(number))
        dist.isend(sent, (rank + 1) % size)
        del x, sent
        gc.collect()
        torch.full((10_000,), -1.0), torch.full((10_000,), -2.0)
        received = torch.empty(10_000)
        dist.recv(received, (rank - 1) % size)
        same(received, torch.full((10_000,), float(number)))
        results.append(future)
    for number, future in enumerate(results):
        same(future.wait()[0], torch.full((10_000,), float(number * size)))


def passes_tensors_that_cannot_be(rank: int, size: int) -> Any:
    found = [
        failure(lambda: dist.send(torch.ones(3).to_sparse(), 1 - rank)),
        failure(lambda: dist.all_gather([torch.ones(3), torch.ones(3)], torch.ones(3, dtype=torch.float64))),
    ]
    repeated = torch.ones(1).expand(3)  # three elements in one place
    found.append(failure(lambda: dist.broadcast(repeated, 0) if rank != 0 else dist.broadcast(torch.ones(3), 0)))
    x = torch.ones(3)
    dist.all_reduce(x)  # the order goes on
    return found, x.tolist()


def differs_in_size(rank: int, size: int) -> Any:
    return failure(lambda: dist.all_reduce(torch.ones(3 + rank)))


def forks_with_work_under_way(rank: int, size: int) -> Any:
    waiting = dist.all_reduce(torch.ones(3), async_op=True) if rank == 0 else None
    request = dist.irecv(torch.empty(2), 1 - rank)
    child = os.fork()
    if child == 0:
        kinds = [failure(lambda: dist.send(torch.ones(1), 1 - rank)), failure(lambda: dist.barrier())]
        del waiting, request
        gc.collect()
        os._exit(0 if all(kind == "RuntimeError" and "fork" in text for kind, text in kinds) else 1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    dist.send(torch.ones(2), 1 - rank)
    request.wait()
    (waiting or dist.all_reduce(torch.ones(3), async_op=True)).wait()
    return status


def raises_while_another_waits(rank: int, folder: str) -> None:
    """For torch.multiprocessing.spawn."""
    init_method = f"file://{folder}/ranks"
    dist.init_process_group("chorus", init_method=init_method, rank=rank, world_size=2)
    if rank == 1:
        raise ZeroDivisionError("rank 1 divides")
    dist.recv(torch.empty(1), 1)


# A program of which one rank ends by sys.exit, while the other waits for its message.
EXITS = """
import sys, torch, torch.distributed as dist, chorus.torch
dist.init_process_group("chorus")
if dist.get_rank() == 1:
    sys.exit("rank 1 gives up")
dist.recv(torch.empty(1), 1)
"""

# A program that ends in the midst of its calls.
ENDS = """
import sys, torch, torch.distributed as dist, chorus.torch
dist.init_process_group("chorus")
rank = dist.get_rank()
dist.all_reduce(torch.ones(1_000_000), async_op=True)
dist.isend(torch.ones(1_000_000), 1 - rank)
dist.irecv(torch.ones(5), 1 - rank, tag=3)
future = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(lambda future: future.value()[0])
sys.stdout.write("ends\\n")
"""

# A program of which one rank, that of the argument, cannot start its worker. Its process stays, as does that of a store.
STARTS_NO_WORKER = """
import os, sys, time, torch.distributed as dist, chorus.torch
rank, wrong = int(os.environ["RANK"]), int(sys.argv[2])
if rank == wrong:
    os.environ["CHORUS_LINK_CHECKSUM"] = "perhaps"
store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), 2, rank == 0)
try:
    dist.init_process_group("chorus", store=store, rank=rank, world_size=2)
finally:
    store.add("told", 1)
    while store.add("told", 0) < 2:
        time.sleep(0.01)
"""

# A program that ends while threads of its own, which are daemons, wait for messages.
LISTENS = """
import sys, threading, torch, torch.distributed as dist, chorus.torch
dist.init_process_group("chorus")
rank, waiting = dist.get_rank(), threading.Barrier(9)

def listens(tag):
    request = dist.irecv(torch.empty(1), 1 - rank, tag=tag)
    waiting.wait()
    request.wait()

for tag in range(8):
    threading.Thread(target=listens, args=(tag,), daemon=True).start()
waiting.wait()
dist.barrier()
sys.stdout.write("ends\\n")
"""
