"""A rank of `chorus.torch.Elastic` for test_elastic.py: trains, meets what its arguments say, and prints what it has.

Arguments: PLACE:WHAT:STEP each. A process that was started again meets nothing, but for "comes late": it begins when
the others have ended.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

import torch
import torch.distributed as dist

import chorus
import chorus.torch

PLACE, SIZE, RESTART = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "CHORUS_RESTART"))
STEPS, STEPS_TOGETHER = 10, 3


def fate(step: int) -> str:
    """What this rank meets in a step."""
    for one in sys.argv[1:]:
        place, what, at = one.split(":")
        if RESTART == 0 and (int(place), int(at)) == (PLACE, step):
            return what
    return ""


def gradients(model: Any, step: int) -> bool:
    loss = model(torch.full((1, 2), 6.0 * (step + 1), dtype=torch.float64)).sum()
    if fate(step) in ("is_killed", "comes_late"):
        os.kill(os.getpid(), signal.SIGKILL)
    if fate(step) == "divides":
        return bool(1 / 0)
    loss.backward()
    if fate(step) == "misses_the_end":
        del sys.argv[1:]  # once
        raise RuntimeError("chorus: the other ranks do this step, and this one does not")
    return True


def dies_while_it_enters(*_: object, **__: object) -> None:
    """In place of torch's function: the others have met this rank, and wait for it in the store."""
    os.kill(os.getpid(), signal.SIGKILL)


def await_end_of_others() -> None:
    """Returns when the worker of no other rank is ready, as a process does whose start has taken so long."""
    with chorus.Client(os.environ["CHORUS_COORDINATOR"]) as client:
        while any(worker.state == "ready" for worker in client.workers()):
            time.sleep(0.02)


def main() -> None:
    torch.set_num_threads(1)
    if RESTART == 0 and f"{PLACE}:fails_to_begin:0" in sys.argv[1:]:
        sys.exit(3)
    if RESTART == 0 and f"{PLACE}:dies_entering:0" in sys.argv[1:]:
        dist.distributed_c10d.init_process_group = dies_while_it_enters
    late = any(one.startswith(f"{PLACE}:comes_late:") for one in sys.argv[1:])
    if late and RESTART > 0:
        await_end_of_others()
    # Gradients of all ranks are the same, and all sums exact: a step that is left out or done twice changes the result.
    model = torch.nn.Linear(2, 1, bias=False).double()
    torch.nn.init.constant_(model.weight, float(PLACE))  # ranks begin with different weights
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1 << 30)
    steps = []
    with chorus.torch.Elastic(model, optimizer, scheduler, timeout=60) as elastic:
        began = [elastic.began]
        size = SIZE - any(":comes_late:" in one for one in sys.argv[1:])
        while elastic.step < max(STEPS, elastic.began + STEPS_TOGETHER) or elastic.size < size:
            step = elastic.step
            if elastic.train(lambda model: gradients(model, step)):
                scheduler.step()
                steps.append(step)
            else:
                began.append(elastic.began)
        total = torch.tensor(PLACE)
        dist.all_reduce(total)  # torch.distributed has the ranks that are there
    found = {"place": PLACE, "began": began, "steps": steps, "weights": model.weight.tolist()[0]}
    found |= {"scheduled": scheduler.last_epoch, "total": int(total)}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
