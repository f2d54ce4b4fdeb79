"""A worker of the recommender: numpy or torch. `run` starts it, and says on standard input when it begins.

    worker.py COORDINATOR NUMBER numpy|torch STEPS BATCH

It pulls the rows of its batch, computes their gradients, and pushes them, without waiting for the other workers. Tables
`users` and `items` have a vector for each number; `counts` counts how often an item was in a batch.
"""

from __future__ import annotations

import sys

import numpy
from clicks import Batch, Clicks

import chorus


class OnNumpy:
    """Gradients by hand: the loss is the logarithmic one of a click's probability, sigmoid(user . item)."""

    def __init__(self, client: chorus.Client) -> None:
        self.tables = [client.parameter(name) for name in ("users", "items")]

    def step(self, batch: Batch) -> None:
        users, items = (table.pull_rows(rows) for table, rows in zip(self.tables, batch))
        error = 1 / (1 + numpy.exp(-(users * items).sum(axis=1, keepdims=True))) - batch.clicked[:, None]
        for table, rows, gradients in zip(self.tables, batch, (error * items, error * users)):
            table.push_rows(rows, gradients.astype("f4"))  # those of an item that is there twice are summed


class OnTorch:
    """Gradients by autograd, through `chorus.torch.Embedding`."""

    def __init__(self, client: chorus.Client) -> None:
        import torch

        import chorus.torch

        torch.set_num_threads(1)
        self.torch = torch
        self.users, self.items = (chorus.torch.Embedding(client.parameter(name)) for name in ("users", "items"))

    def step(self, batch: Batch) -> None:
        users, items, clicked = (self.torch.from_numpy(part) for part in batch)
        logits = (self.users(users) * self.items(items)).sum(dim=1)
        self.torch.nn.functional.binary_cross_entropy_with_logits(logits, clicked, reduction="sum").backward()
        self.users.push()
        self.items.push()


def main() -> None:
    coordinator, number, kind, steps, size = sys.argv[1:]
    clicks = Clicks()
    with chorus.Client(coordinator) as client:
        learner = {"numpy": OnNumpy, "torch": OnTorch}[kind](client)
        counts = client.parameter("counts")
        print("ready", flush=True)
        sys.stdin.readline()
        for step in range(int(steps)):
            batch = clicks.batch(int(number), step, int(size))
            learner.step(batch)
            counts.push_rows(batch.items, numpy.ones((len(batch.items), 1), "i8"))
            print(f"step {step}", flush=True)


if __name__ == "__main__":
    main()
