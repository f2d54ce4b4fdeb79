"""One of two ranks that train models over a slow network. `run` starts it on a host, and reads what rank 0 prints.

    train.py COORDINATOR ADDRESS RANK STEPS MODELS METHODS

Models and methods are lists with commas. A method is how the ranks agree:

    f32         the mean of the gradients in every step
    int8        the same in int8, with error feedback
    local-H     the mean of the weights after H steps of each rank
    diloco-H    the mean of the changes of H steps is a gradient, by which Nesterov's method steps the weights

The last two leave the outer step to a parameter server: docs/guides/slow_networks.md. Rank 0 prints a line of JSON for each
model and method: the bytes that both hosts have sent, and some twenty times the loss of what was held out and the
seconds until then, without those of looking at the loss.
"""

from __future__ import annotations

import json
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy
from models import MODELS, Adam

import chorus

RANKS, POINTS = 2, 20
PATIENCE_S = 120.0
OUTER = {
    "local": {"name": "sgd", "learning_rate": 1},
    "diloco": {"name": "nesterov", "learning_rate": 0.8, "momentum": 0.2},
}
Agree = Callable[[int], None]  # after this many steps


def sent_bytes() -> int:
    """Bytes of the packets that this host has sent, with their IP and TCP headers."""
    return int(pathlib.Path("/sys/class/net/wan0/statistics/tx_bytes").read_text(encoding="ascii"))


def all_reduces(group: chorus.Group, gradient: numpy.ndarray, compresses: bool) -> Agree:
    """Makes the gradients of all ranks their mean, in every step."""
    wire = {"compression": "int8", "error_feedback": "gradient"} if compresses else {}
    return lambda step: group.all_reduce(gradient, reduce="avg", timeout=PATIENCE_S, **wire)


def outer_steps(client: chorus.Client, name: str, rank: int, kind: str, inner: int, vector: numpy.ndarray) -> Agree:
    """Every `inner` steps pushes by how much the weights have changed, and takes those of the server.

    A push at clock k waits for those of all clients: one step of the server for all of them (staleness 0).
    """
    parameter = client.create_parameter(
        name,
        "servers",
        vector.shape,
        optimizer=OUTER[kind],
        reduce="avg",
        staleness=0,
        clients=[f"rank-{number}" for number in range(RANKS)],
        client=f"rank-{rank}",
    )
    # All ranks begin with the same weights, so the server has to know only changes of them.
    begin, change = vector.copy(), numpy.zeros_like(vector)

    def agree(step: int) -> None:
        if step % inner != 0:
            return
        moved = begin + change - vector
        parameter.push_pull(moved, change, clock=step // inner - 1, timeout=PATIENCE_S)
        numpy.add(begin, change, out=vector)

    return agree


def train(model_name: str, method: str, steps: int, rank: int, group: chorus.Group, client: chorus.Client) -> dict[str, Any]:
    model = MODELS[model_name]()
    optimizer = Adam(len(model.vector), model.rate)
    kind, _, inner = method.partition("-")
    averages = kind in ("f32", "int8")
    if averages:
        agree = all_reduces(group, model.gradient, kind == "int8")
    else:
        agree = outer_steps(client, f"{model_name}-{method}", rank, kind, int(inner), model.vector)
    points = []
    group.barrier()
    begin, sent = time.perf_counter(), sent_bytes()
    for step in range(steps):
        optimizer.rate = model.rate * (1 - step / steps)
        model.step(step, rank)
        if averages:
            agree(step + 1)
        optimizer.step(model.vector, model.gradient)
        if not averages:
            agree(step + 1)
        if (step + 1) % max(1, steps // POINTS) == 0 or step + 1 == steps:
            now = time.perf_counter()
            tokens = (step + 1) * model.batch * RANKS
            points.append({"tokens": tokens, "seconds": now - begin, "loss": model.held_out_loss()})
            begin += time.perf_counter() - now
    both = group.all_reduce(numpy.array([sent_bytes() - sent], "f8"), timeout=PATIENCE_S)
    return {"model": model_name, "method": method, "bytes": int(both[0]), "points": points}


def main() -> None:
    coordinator, address, rank, steps, models, methods = sys.argv[1:]
    with chorus.Client(coordinator) as client:
        place = {"host": address, "advertise": address, "locality_host": f"host-{rank}", "private_memory": True}
        with chorus.Worker(coordinator, id=f"rank-{rank}", insecure_no_auth=True, **place) as worker:
            group = worker.create_group("ranks", [f"rank-{number}" for number in range(RANKS)])
            for model in models.split(","):
                for method in methods.split(","):
                    found = train(model, method, int(steps), int(rank), group, client)
                    if rank == "0":
                        print(json.dumps(found), flush=True)
            group.barrier()


if __name__ == "__main__":
    main()
