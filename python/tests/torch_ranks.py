"""Processes that are ranks of torch.distributed, for stories of the backend "chorus"."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import pathlib
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

import pytest

TIMEOUT_S = 30.0  # of process groups
PATIENCE_S = 60.0


def require_torch() -> None:
    """Skips a whole file where PyTorch or its headers are missing."""
    torch = importlib.util.find_spec("torch")
    if torch is None or torch.origin is None:
        pytest.skip("python3-torch is not installed; docker/install-deps torch installs it", allow_module_level=True)
    headers = [pathlib.Path(torch.origin).parent / "include", pathlib.Path("/usr/include")]
    for name in ("torch/extension.h", "pybind11/pybind11.h"):
        if not any((folder / name).exists() for folder in headers):
            pytest.skip(f"{name} is not installed; docker/install-deps torch installs it", allow_module_level=True)


class Failed(Exception):
    """A rank's function raised; the text has where."""


def run(
    size: int, story: Callable[..., Any], folder: str, *args: Any, ends: bool = True, patience: float = PATIENCE_S
) -> list[Any]:
    """Calls ``story(rank, size, *args)`` on so many ranks, and returns their results; None for a rank that was killed.

    The ranks find each other by a file in `folder`. With `ends` each destroys its process groups at the end. They have
    `patience` seconds.
    """
    context = multiprocessing.get_context("spawn")
    pipes: list[Connection] = []
    processes = []
    for rank in range(size):
        mine, theirs = context.Pipe()
        pipes.append(mine)
        processes.append(context.Process(target=_main, args=(theirs, rank, size, story, folder, args, ends)))
        with theirs:
            processes[-1].start()
    try:
        results = [_result(pipe, patience) for pipe in pipes]
        for process in processes:
            process.join(PATIENCE_S)
        assert all(process.exitcode is not None for process in processes), "ranks have not ended"
    finally:
        for process in processes:
            process.kill()
            process.join()
    for rank, (result, process) in enumerate(zip(results, processes)):
        if isinstance(result, Failed):
            raise result
        assert result is None or process.exitcode == 0, f"rank {rank} has ended with {process.exitcode}"
    return results


def _result(pipe: Connection, patience: float) -> Any:
    if not pipe.poll(patience):
        return Failed(f"no result within {patience:g} s")
    try:
        return pipe.recv()
    except EOFError:
        return None


def _main(
    pipe: Connection, rank: int, size: int, story: Callable[..., Any], folder: str, args: tuple[Any, ...], ends: bool
) -> None:
    import torch
    import torch.distributed as dist

    import chorus.torch  # noqa: F401

    torch.set_num_threads(1)
    os.environ.pop("CHORUS_COORDINATOR", None)
    try:
        timeout = timedelta(seconds=TIMEOUT_S)
        dist.init_process_group(
            "chorus", init_method=f"file://{folder}/ranks", rank=rank, world_size=size, timeout=timeout
        )
        result = story(rank, size, *args)
        if ends:
            dist.destroy_process_group()
        pipe.send(result)
    except BaseException as error:
        pipe.send(Failed(f"rank {rank}: {type(error).__name__}: {error}\n{traceback.format_exc()}"))
