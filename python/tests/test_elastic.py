"""`chorus.torch.Elastic`: training goes on when ranks are lost, and they come back."""

import json
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest

import torch_ranks
from chorus.programs import LocalCoordinator
from services import ROOT

torch_ranks.require_torch()

from chorus.torch import elastic  # noqa: E402

PROGRAM = pathlib.Path(__file__).parent / "elastic_training.py"


def launched(*arguments: str, status: int = 0) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python/src"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("CHORUS_COORDINATOR", None)
    ran = subprocess.run(
        [sys.executable, "-m", "chorus.launch", *arguments],
        env=environment | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=3 * torch_ranks.PATIENCE_S,
    )
    assert ran.returncode == status, ran.stderr
    return ran


def trained(*fates: str) -> tuple[list[dict[str, Any]], str]:
    """Trains with three ranks, each of which is started again once; returns what they print, and standard error."""
    ran = launched("--nproc", "3", "--restarts", "1", str(PROGRAM), *fates)
    found: list[dict[str, Any]] = [json.loads(line) for line in ran.stdout.splitlines()]
    return sorted(found, key=lambda one: int(one["place"])), ran.stderr


def expected_weights(steps: int) -> list[float]:
    """Those of rank 0 after so many steps, each done once."""
    weight = velocity = 0
    for step in range(steps):
        velocity += 6 * (step + 1)
        weight -= velocity
    return [float(weight)] * 2


def check(found: list[dict[str, Any]], lost: list[int], at: int) -> None:
    """All have the same weights, of which each step is a part once; those of `lost` have not begun at the beginning."""
    ends = {one["steps"][-1] + 1 for one in found}
    assert len(found) == 3 and len(ends) == 1
    (end,) = ends
    for one in found:
        assert one["weights"] == expected_weights(end)
        assert (one["scheduled"], one["total"]) == (end, 3)
        # A step that others had done when this rank's call failed comes with their state: the rank goes on behind it.
        assert one["steps"][-1] == end - 1
        for before, step in zip(one["steps"], one["steps"][1:]):
            assert step == before + 1 or (step > before and step in one["began"]), "steps are counted on"
        assert (one["began"][0] >= at) == (one["place"] in lost)
    # Those that are lost together may come back in one epoch, or in one after the other.
    assert {one["began"][-1] for one in found} == {end - min(len(found[place]["steps"]) for place in lost)}


def test_a_rank_is_killed_which_had_the_store_and_comes_back(extension: None) -> None:
    found, errors = trained("0:is_killed:5")
    check(found, [0], 5)
    assert "local rank 0 ended with signal SIGKILL" in errors
    survivors = [one["began"] for one in found[1:]]
    assert survivors[0] == survivors[1] and survivors[0][:2] == [0, 5]  # the step that was interrupted is done again


def test_two_ranks_end_at_once_one_by_its_own_exception(extension: None) -> None:
    found, errors = trained("1:divides:5", "2:is_killed:5")
    check(found, [1, 2], 5)
    assert "ZeroDivisionError" in errors and "local rank 2 ended with signal SIGKILL" in errors


def test_a_rank_that_others_are_ahead_of_is_caught_up(extension: None) -> None:
    found, _ = trained("2:misses_the_end:4")
    assert [(one["weights"], one["scheduled"]) for one in found] == [(expected_weights(10), 10)] * 3
    assert found[2]["began"] in ([0, 5], [0, 4])  # 4 if the new epoch has kept the others from ending the step
    assert set().union(*(one["steps"] for one in found)) == set(range(10))


def test_a_rank_that_is_lost_while_the_process_group_is_made_holds_up_the_others_for_a_moment(extension: None) -> None:
    found, errors = trained("2:dies_entering:0")
    assert re.findall("local rank . ended", errors) == ["local rank 2 ended"]
    assert len({one["steps"][-1] for one in found}) == 1 and len(found) == 3


@pytest.mark.parametrize("place", ["0", "2"])
def test_a_rank_that_comes_back_when_the_others_have_ended_says_so(extension: None, place: str) -> None:
    ran = launched("--nproc", "3", "--restarts", "1", str(PROGRAM), f"{place}:comes_late:5", status=1)
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert sorted(one["place"] for one in found) == [one for one in range(3) if one != int(place)]
    (end,) = {one["steps"][-1] + 1 for one in found}
    assert f"TooLate: the other ranks of group 'launch-" in ran.stderr and f"have ended with step {end}" in ran.stderr


def test_a_rank_that_fails_to_begin_is_not_told_of_an_earlier_launch_with_its_group(extension: None) -> None:
    with LocalCoordinator() as coordinator:
        common = "--nproc", "2", "--restarts", "1", "--coordinator", coordinator.url, "--group", "train"
        for fate in ("0:fails_to_begin:1", "0:fails_to_begin:0"):  # the first means nothing
            ran = launched(*common, str(PROGRAM), fate)
            found = [json.loads(line) for line in ran.stdout.splitlines()]
            assert [one["began"] for one in found] == [[0]] * 2  # neither has trained without the other
            assert [one["steps"] for one in found] == [list(range(10))] * 2


def test_programs_of_the_page_run_as_written(extension: None, tmp_path: pathlib.Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/guides/torch.md").read_text(), re.M | re.S)
    programs = [block for block in blocks if "Client(" not in block]  # test_embedding.py has the other
    assert len(programs) == 2
    for number, block in enumerate(programs):
        program = tmp_path / f"{number}.py"
        program.write_text(block)
        assert launched("--nproc", "2", str(program)).stdout == ""


def test_failures_of_the_program_are_not_the_groups() -> None:
    import chorus

    for error in (chorus.PeerLost("x"), chorus.EpochFenced("x"), RuntimeError("chorus: all_reduce, call 1: peer_lost")):
        assert elastic._ends_epoch(error)
    for error in (chorus.BadArgument("x"), chorus.Fenced("x"), RuntimeError("shapes differ"), ValueError("chorus: x")):
        assert not elastic._ends_epoch(error)


def test_the_wrapper_is_short() -> None:
    assert len(pathlib.Path(elastic.__file__).read_text().splitlines()) <= 200
