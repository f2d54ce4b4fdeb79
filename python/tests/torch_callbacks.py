"""What callbacks of futures do on ranks of torch.distributed, with the backend "chorus"."""

from __future__ import annotations

import random
import threading
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist


def waits_for_further_calls(rank: int, size: int) -> Any:
    """Callbacks issue calls, and wait for them by a call, a work, a future, and a callback of their own."""

    def follows(future: Any) -> Any:
        x = future.value()[0]
        dist.all_reduce(x)
        dist.all_reduce(x, async_op=True).wait()
        dist.all_reduce(x, async_op=True).get_future().wait()

        def follows_that(inner: Any) -> Any:
            return dist.all_reduce(inner.value()[0], async_op=True).get_future().wait()[0]

        return dist.all_reduce(x, async_op=True).get_future().then(follows_that).wait()

    future = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(follows)
    return future.wait().tolist()


def issues_more_before_callbacks_run(rank: int, size: int) -> Any:
    """A rank issues its next calls before callbacks run, and the other afterwards: both have the same order."""
    others_are_issued = threading.Event()

    def follows(future: Any) -> Any:
        others_are_issued.wait()
        y = torch.full((3,), 10.0)
        dist.all_reduce(y)
        dist.all_reduce(y)
        return future.value()[0] + y

    if rank == 1:
        dist.recv(torch.empty(1), 0)
    future = dist.all_reduce(torch.ones(3), async_op=True).get_future()
    if rank == 1:
        future.wait()  # the callback runs where it is added
        others_are_issued.set()
    future = future.then(follows)
    if rank == 0:
        dist.send(torch.ones(1), 1)  # which has not come, so that the callback runs elsewhere
    works = [dist.all_reduce(torch.full((3,), 100.0 * number), async_op=True) for number in (1, 2)]
    others_are_issued.set()
    return [future.wait()[0].item(), *(work.get_future().wait()[0][0].item() for work in works)]


def waits_for_calls_of_others(rank: int, size: int) -> Any:
    """A callback waits for a call that was issued elsewhere: by its work, by its future, and by one that it had."""
    group = dist.new_group(timeout=timedelta(seconds=2))
    found = []
    for how in ("work", "future", "former future"):
        issued: list[Any] = []
        is_issued = threading.Event()

        def follows(_: Any) -> Any:
            is_issued.wait()
            work, future = issued
            return work.result() if how == "work" and work.wait() else (future or work.get_future()).wait()

        if rank == 1:
            dist.recv(torch.empty(1), 0)
        first = dist.all_reduce(torch.ones(3), group=group, async_op=True).get_future()
        if rank == 0:
            first = first.then(follows)
            dist.send(torch.ones(1), 1)
        work = dist.all_reduce(torch.full((3,), 5.0), group=group, async_op=True)
        issued += [work, work.get_future() if how == "former future" else None]
        is_issued.set()
        found.append(first.wait()[0].tolist())
        work.wait()
    return found


def trains_by_a_hook(rank: int, size: int) -> Any:
    """A hook of PyTorch whose callbacks call on, on a model of several buckets."""
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    torch.manual_seed(1)
    layers = [torch.nn.Linear(64, 64) for _ in range(4)]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=0.02)
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    for _ in range(6):
        optimizer.zero_grad()
        model(torch.randn(8, 64)).square().mean().backward()
        optimizer.step()
    own = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    others = [torch.empty_like(own) for _ in range(size)]
    dist.all_gather(others, own)
    return all(torch.equal(own, other) for other in others)


def ends_the_group_in_a_callback(rank: int, size: int) -> Any:
    """The last that has a group is a callback, while another call of it has not begun."""
    group = [dist.new_group()]
    is_issued = threading.Event()
    found: list[Any] = []

    def ends(_: Any) -> None:
        is_issued.wait()
        dist.destroy_process_group(group.pop())
        found.append(work.is_completed())

    if rank == 1:
        dist.recv(torch.empty(1), 0)
    future = dist.all_reduce(torch.ones(3), group=group[0], async_op=True).get_future()
    if rank == 0:
        future = future.then(ends)
        dist.send(torch.ones(1), 1)
    work = dist.all_reduce(torch.full((3,), 7.0), group=group[0], async_op=True)
    is_issued.set()
    future.wait()
    work.wait()
    return found, work.result()[0].tolist()


def draws_a_program(seed: Any, depth: int = 2) -> list[Any]:
    """Calls, callbacks of any of them with a program of their own, and calls to wait for."""
    draw = random.Random(seed)
    program: list[Any] = [("call", f"{seed}.0")]
    for number in range(1, 6):
        earlier = draw.choice([name for what, name, *_ in program if what == "call"])
        if depth > 0 and draw.random() < 0.5:
            program.append(("then", earlier, draws_a_program(f"{seed}.{number}", depth - 1)))
        elif depth < 2 and draw.random() < 0.3:
            program.append(("wait", earlier))
        else:
            program.append(("call", f"{seed}.{number}"))
    return program


def orders_calls_alike(rank: int, size: int) -> Any:
    """Programs whose callbacks run behind other calls on one rank, and where they are added on another."""
    wrong = []
    for seed in range(40):
        leader = seed % size
        draw = random.Random(f"{seed} {rank}")
        calls: dict[str, Any] = {}
        futures: list[Any] = []

        def follows(program: list[Any], is_within: bool = True) -> None:
            for what, name, *rest in program:
                if what == "call":
                    value = float(random.Random(name).randrange(1 << 20))
                    x = torch.full((3,), value)
                    calls[name] = dist.all_reduce(x, async_op=True), x, value * size
                elif what == "wait":
                    calls[name][0].wait()
                else:
                    if not is_within and rank != leader and draw.random() < 0.7:
                        calls[draw.choice([earlier for earlier in calls if earlier.count(".") == 1])][0].wait()
                        calls[name][0].wait()
                    future = calls[name][0].get_future()
                    futures.append(future.then(lambda _, rest=rest: follows(rest[0])))

        if rank != leader:
            dist.recv(torch.empty(1), leader)  # until then the leader's calls cannot end
        follows(draws_a_program(seed), is_within=False)
        if rank == leader:
            for other in range(size):
                if other != leader:
                    dist.send(torch.ones(1), other)
        for future in futures:  # callbacks append to them
            future.wait()
        for name, (work, x, expected) in calls.items():
            work.wait()
            if x[0].item() != expected:
                wrong.append((name, x[0].item(), expected))
    return wrong


def adds_a_callback_once_later_calls_have_begun(rank: int, size: int) -> Any:
    """A rank adds a callback while the first of two calls runs, the other when both have ended."""
    if rank == 1:
        dist.recv(torch.empty(1), 0)
    first, second, third = torch.ones(3), torch.full((3,), 100.0), torch.full((3,), 10.0)
    works = [dist.all_reduce(x, async_op=True) for x in (first, second)]
    if rank == 1:
        for work in works:
            work.wait()
    future = works[0].get_future().then(lambda _: dist.all_reduce(third))
    if rank == 0:
        dist.send(torch.ones(1), 1)
    works[1].wait()
    future.wait()
    return [x[0].item() for x in (first, second, third)]
