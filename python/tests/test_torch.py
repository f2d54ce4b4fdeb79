"""The backend "chorus" of torch.distributed, on processes of their own."""

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import torch_ranks
from chorus.launch import _free_port
from chorus.native.library import Library
from services import ROOT

torch_ranks.require_torch()

import torch_stories as stories  # noqa: E402

from chorus.torch import build  # noqa: E402


@pytest.fixture(scope="module")
def extension(library: Library) -> None:
    build.build()


@pytest.fixture
def ranks(extension: None, tmp_path: pathlib.Path) -> Callable[..., list[Any]]:
    def run(size: int, story: Callable[..., Any], *args: Any, **options: Any) -> list[Any]:
        return torch_ranks.run(size, story, str(tmp_path), *args, **options)

    return run


@pytest.mark.parametrize("size", [2, 3, 4])
def test_reductions_of_every_dtype(ranks: Any, size: int) -> None:
    ranks(size, stories.reduces)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_moves_of_every_dtype(ranks: Any, size: int) -> None:
    ranks(size, stories.moves)


def test_blocks_of_unequal_sizes(ranks: Any) -> None:
    ranks(3, stories.moves_unequal_blocks)


def test_tensors_of_every_form(ranks: Any) -> None:
    ranks(2, stories.takes_every_tensor)


def test_objects(ranks: Any) -> None:
    hello = [("hello", 1)]
    assert ranks(3, stories.sends_objects) == [
        (hello, ["for 0"], [0, 1, 2]),
        (hello, ["for 1"], None),
        (hello, ["for 2"], None),
    ]


def test_messages_of_two_ranks(ranks: Any) -> None:
    assert ranks(2, stories.sends_messages)[0] == (1, 7.0)


def test_calls_that_are_not_waited_for_at_once(ranks: Any) -> None:
    assert ranks(2, stories.does_more_at_once) == [[4.0, 4.0, 4.0]] * 2


def test_groups_of_some_ranks(ranks: Any) -> None:
    assert ranks(3, stories.makes_groups) == [
        [(0, 101.0), (0, 111.0)],
        [(0, 110.0), (0, 10.0), (1, 111.0)],
        [(1, 101.0), (1, 110.0), (2, 111.0)],
    ]


def test_process_groups_that_are_made_anew(ranks: Any, tmp_path: pathlib.Path) -> None:
    assert ranks(2, stories.begins_again, str(tmp_path)) == [[2.0, 2.0]] * 2


def test_a_model_learns_what_it_learns_with_gloo(ranks: Any, tmp_path: pathlib.Path) -> None:
    for difference, alike in ranks(2, stories.trains, str(tmp_path)):
        assert difference == 0 and alike


def test_a_rank_that_is_killed_is_named(ranks: Any) -> None:
    first, killed, last = ranks(3, stories.loses_a_rank, ends=False)
    assert killed is None
    for rank, results in ((0, first), (2, last)):
        for _, text in results:
            assert f"of rank {rank} of 3 in group 'torch-" in text and "(rank 1)" in text, text
        assert "all_reduce, call 1 " in results[0][1]


def test_ranks_that_call_different_things_are_told_both(ranks: Any) -> None:
    for rank, (_, text) in enumerate(ranks(2, stories.calls_different_things)):
        assert ("all_reduce" if rank == 0 else "barrier") in text and "plan_mismatch" in text, text


def test_a_timeout_names_the_rank_that_was_waited_for(ranks: Any) -> None:
    _, text = ranks(2, stories.waits_in_vain)[0]
    assert "deadline_exceeded" in text and "(rank 1)" in text, text


def test_a_monitored_barrier_names_all_that_are_missing(ranks: Any) -> None:
    first, *_, last = ranks(4, stories.monitors)
    for rank, (_, text) in ((0, first), (3, last)):
        assert (
            f"Rank {rank} timed out in monitoredBarrier: Ranks 1, 2 failed to pass monitoredBarrier in 1000 ms" in text
        ), text


def test_what_cannot_be_is_told_before_anything_is_sent(ranks: Any) -> None:
    expected = ["BAND of Float", "layout Sparse", "a whole of 3 elements", "", "0 rows, expected 2 of 2"]
    for found in ranks(2, stories.passes_what_cannot_be):
        for (kind, text), part in zip(found, expected):
            assert kind in ("ValueError", "RuntimeError") and part in text, (kind, text)


def test_a_child_of_fork_is_no_rank(ranks: Any) -> None:
    assert ranks(2, stories.forks) == [(0, 2.0)] * 2


PROGRAM = """
import sys, torch, torch.distributed as dist, chorus.torch
dist.init_process_group("chorus", **eval(sys.argv[1]))
x = torch.full((2,), dist.get_rank() + 1.0)
dist.all_reduce(x)
print(dist.get_rank(), dist.get_world_size(), dist.get_backend(), x.tolist())
if sys.argv[2] == "raise" and dist.get_rank() == 1:
    raise ZeroDivisionError("rank 1 divides")
if sys.argv[2] == "raise":
    dist.all_reduce(x)
"""


def ended(how: str, *arguments: str) -> list[tuple[int, str, str]]:
    """Runs PROGRAM as two ranks that meet as `how` says; returns their status, output and errors."""
    port = _free_port()
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python/src"), "MASTER_ADDR": "127.0.0.1", "WORLD_SIZE": "2"}
    environment |= {"MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    environment.pop("CHORUS_COORDINATOR", None)
    programs = []
    for rank in range(2):
        options = {
            "env": "{}",
            "tcp": f"dict(init_method='tcp://127.0.0.1:{port}', rank={rank}, world_size=2)",
            "store": f"dict(store=dist.TCPStore('127.0.0.1', {port}, 2, {rank == 0}), rank={rank}, world_size=2)",
        }[how]
        programs.append(
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, options, *arguments],
                env=environment | {"RANK": str(rank)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    found = []
    for one in programs:
        output, errors = one.communicate(timeout=torch_ranks.PATIENCE_S)
        found.append((one.returncode, output, errors))
    return found


@pytest.mark.parametrize("how", ["env", "tcp", "store"])
def test_programs_meet_as_torch_has_it_and_just_end(extension: None, how: str) -> None:
    for rank, (status, output, errors) in enumerate(ended(how, "end")):
        assert (status, output) == (0, f"{rank} 2 chorus [3.0, 3.0]\n"), errors


def test_a_program_that_ends_by_an_exception_keeps_nobody_waiting(extension: None) -> None:
    (first, _, told), (second, _, raised) = ended("env", "raise")
    assert first == second == 1 and "ZeroDivisionError: rank 1 divides" in raised
    assert "all_reduce, call 1 of rank 0 of 2" in told and "(rank 1)" in told, told


def test_ranks_that_do_not_come_are_named(extension: None, tmp_path: pathlib.Path) -> None:
    from datetime import timedelta

    import torch.distributed as dist

    import chorus
    from chorus.torch import create

    with pytest.raises(chorus.NoAnswer, match="ranks 1, 2 have not come within 1 s") as caught:
        create(dist.FileStore(str(tmp_path / "store"), 3), 0, 3, timedelta(seconds=1))
    assert caught.value.ranks == [1, 2]
