#!/usr/bin/python3
"""Trains a small transformer on the documentation of this repository: DistributedDataParallel on Chorus.

    python -m chorus.launch --nproc 3 --restarts 1 examples/torch_ddp/train.py [--kill RANK:STEP] [--plot FILE]

With --kill a rank is killed in that step. The others go on from there, it is started again and is caught up, and
training ends some steps later. With --backend gloo the same model is trained by Gloo, for comparison.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pathlib
import signal
import sys
import time
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACE, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
CONTEXT, BATCH, WIDTH, HEADS, LAYERS = 32, 4, 64, 4, 2
STEPS_TOGETHER = 10  # that a rank which has come back trains at least


class Transformer(torch.nn.Module):
    """Predicts the next byte of a text."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = torch.nn.Embedding(256, WIDTH)
        self.places = torch.nn.Embedding(CONTEXT, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, 0.0, "relu", batch_first=True, norm_first=True
        )
        self.layers = torch.nn.TransformerEncoder(layer, LAYERS, torch.nn.LayerNorm(WIDTH))
        self.next = torch.nn.Linear(WIDTH, 256)
        self.register_buffer("later", torch.full((CONTEXT, CONTEXT), float("-inf")).triu(1), persistent=False)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        return self.next(self.layers(self.bytes(text) + self.places.weight, self.later))


def text_of_the_repository() -> torch.Tensor:
    pages = sorted((ROOT / "docs").rglob("*.md"))
    return torch.frombuffer(bytearray(b"\n".join(page.read_bytes() for page in pages)), dtype=torch.uint8)


def batch(text: torch.Tensor, step: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The part of a rank in a step: the same for everybody who asks."""
    chosen = torch.Generator().manual_seed(1000 * step + rank)
    begins = torch.randint(len(text) - CONTEXT, (BATCH,), generator=chosen).tolist()
    rows = torch.stack([text[begin : begin + CONTEXT + 1] for begin in begins]).long()
    return rows[:, :-1], rows[:, 1:]


def loss_of(model: Any, text: torch.Tensor, step: int, rank: int) -> torch.Tensor:
    before, after = batch(text, step, rank)
    return torch.nn.functional.cross_entropy(model(before).flatten(0, 1), after.flatten())


class Step(NamedTuple):
    """A step that was done: its number, by how many ranks, their mean loss, and when."""

    number: int
    ranks: int
    loss: float
    at: float


def with_chorus(model: Any, optimizer: Any, text: torch.Tensor, given: argparse.Namespace) -> tuple[list[Step], int]:
    import chorus.torch

    fate = given.kill if os.environ["CHORUS_RESTART"] == "0" else None
    history: list[Step] = []
    with chorus.torch.Elastic(model, optimizer, timeout=60) as elastic:
        print(f"rank {PLACE} begins with step {elastic.step}", flush=True)

        def gradients(model: Any) -> float:
            loss = loss_of(model, text, elastic.step, elastic.rank)
            if (PLACE, elastic.step) == fate:
                os.kill(os.getpid(), signal.SIGKILL)
            loss.backward()
            mean = loss.detach()
            dist.all_reduce(mean, dist.ReduceOp.AVG)
            return float(mean)

        while elastic.step < max(given.steps, elastic.began + STEPS_TOGETHER) or elastic.size < SIZE:
            loss = elastic.train(gradients)
            if loss is None:
                print(f"rank {PLACE} goes on with step {elastic.step} as one of {elastic.size} ranks", flush=True)
            else:
                history.append(Step(elastic.step - 1, elastic.size, loss, time.perf_counter()))
        return history, elastic.rank


def with_gloo(model: Any, optimizer: Any, text: torch.Tensor, given: argparse.Namespace) -> tuple[list[Step], int]:
    dist.init_process_group("gloo")
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    history: list[Step] = []
    for step in range(given.steps):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(parallel, text, step, PLACE)
        loss.backward()
        mean = loss.detach()
        dist.all_reduce(mean)
        optimizer.step()
        history.append(Step(step, SIZE, float(mean) / SIZE, time.perf_counter()))
    dist.destroy_process_group()
    return history, PLACE


def plot(history: list[Step], file: str) -> None:
    try:
        import matplotlib
    except ImportError:
        print("no plot: python3-matplotlib is not installed", flush=True)
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (losses, ranks) = pyplot.subplots(2, 1, sharex=True, height_ratios=[4, 1], figsize=(8, 5))
    numbers = [step.number for step in history]
    losses.plot(numbers, [step.loss for step in history])
    losses.set_ylabel("loss, nats per byte")
    ranks.step(numbers, [step.ranks for step in history], where="post")
    ranks.set_ylabel("ranks")
    ranks.set_ylim(0, SIZE + 0.5)
    ranks.set_xlabel("step")
    figure.savefig(file)


def rank_and_step(text: str) -> tuple[int, int]:
    rank, step = text.split(":")
    return int(rank), int(step)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--backend", choices=["chorus", "gloo"], default="chorus")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--kill", type=rank_and_step, metavar="RANK:STEP")
    parser.add_argument("--plot", help="PNG of the loss")
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1 + PLACE)  # ranks begin with the weights of one of them, not with the same ones
    model = Transformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    text = text_of_the_repository()
    history, rank = {"chorus": with_chorus, "gloo": with_gloo}[given.backend](model, optimizer, text, given)
    weights = b"".join(tensor.numpy().tobytes() for tensor in model.state_dict().values())
    tokens = sum(step.ranks for step in history[1:]) * BATCH * CONTEXT
    found: dict[str, Any] = {"place": PLACE, "steps": [step.number for step in history], "loss": history[-1].loss}
    found |= {"first_loss": history[0].loss, "tokens_per_s": round(tokens / (history[-1].at - history[0].at))}
    found["weights"] = hashlib.sha256(weights).hexdigest()
    sys.stdout.write(json.dumps(found) + "\n")
    if given.plot and rank == 0:  # of those that are there the first, which has done all steps
        plot(history, given.plot)


if __name__ == "__main__":
    main()
