"""Processes that are ranks: chorus.run, python -m chorus.launch, and chorus.init in what they start."""

import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import pytest

import chorus
import ranks_of_stories as stories
from chorus import launch
from chorus.deadline import Deadline
from chorus.native.library import Library
from chorus.programs import PATIENCE_S
from chorus.ranks import Place, place_of
from chorus.running import _Ranks
from services import ROOT, Fleet, alive, until


def test_results_come_in_the_order_of_ranks_with_a_coordinator_of_its_own(library: Library) -> None:
    assert chorus.run(3, stories.sums, 0.5) == [(rank, [3.0, 3.0, 3.0]) for rank in range(3)]


def test_ranks_are_a_group_of_the_coordinator_that_is_named(library: Library, bare: Fleet) -> None:
    (members,) = {tuple(found) for found in chorus.run(2, stories.members, coordinator=bare.coordinator.url)}
    assert [member.rsplit(".", 1)[1] for member in members] == ["0", "1"]
    until(lambda: not set(members) & {one.id for one in bare.client.workers() if one.state == "ready"}, "all have left")


def test_the_first_failure_is_raised_with_its_rank(library: Library, bare: Fleet) -> None:
    with pytest.raises(chorus.RankFailed, match="rank 1 failed.*rank 1 divides") as caught:
        chorus.run(2, stories.fails_on_one, coordinator=bare.coordinator.url)
    assert caught.value.ranks == [1] and isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "in fails_on_one" in str(caught.value)  # where it was


@pytest.mark.parametrize(
    "how, told",
    [
        ("raise SystemExit", "rank 1 failed: SystemExit: 3"),
        ("exit of a text", "rank 1 failed: SystemExit: no data"),
        ("exit of 0", "rank 1 failed: SystemExit: 0"),
        ("_exit", "process of rank 1 ended with status 4"),
        ("kill", "process of rank 1 ended with signal SIGKILL"),
        ("kill with a child", "process of rank 1 ended with signal SIGKILL"),
    ],
)
def test_a_rank_that_ends_is_named_and_not_those_that_lost_it(
    library: Library, bare: Fleet, how: str, told: str
) -> None:
    with pytest.raises(chorus.RankFailed, match=told) as caught:
        chorus.run(2, stories.ends_on_one, how, coordinator=bare.coordinator.url, timeout=20)
    assert caught.value.ranks == [1]


def test_a_rank_that_ends_while_it_sends_its_result_is_named() -> None:
    class Killed:
        exitcode = -signal.SIGRTMIN - 1  # a signal without a name

        def join(self, timeout: float) -> None:
            ...

    ranks = _Ranks()
    mine, theirs = multiprocessing.Pipe()
    os.write(theirs.fileno(), (1000).to_bytes(4, "big") + b"some of 1000 bytes")
    theirs.close()
    ranks._pipes.append(mine)
    ranks._processes.append(Killed())  # type: ignore[arg-type]
    with pytest.raises(chorus.RankFailed, match="process of rank 0 ended with signal 35"):
        ranks.results(Deadline(None))


def test_ranks_hear_signals_that_the_caller_blocks(library: Library, bare: Fleet) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        begun = time.monotonic()
        with pytest.raises(chorus.NoAnswer):
            chorus.run(2, stories.waits_for_ever, coordinator=bare.coordinator.url, timeout=2)
        assert time.monotonic() - begun < PATIENCE_S  # they did not have to be killed
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_a_cause_is_preferred_to_what_others_saw_of_it() -> None:
    seen, cause = chorus.PeerLost("lost rank 1", ranks=[1]), ZeroDivisionError("rank 1 divides")
    for failures, expected in (((seen, cause), 1), ((cause, seen), 0), ((seen, seen), 0), ((cause, cause), 0)):
        ranks = _Ranks()
        for failure in failures:
            mine, theirs = multiprocessing.Pipe()
            theirs.send((False, failure, ""))
            ranks._pipes.append(mine)
        with pytest.raises(chorus.RankFailed) as caught:
            ranks.results(Deadline(None))
        assert caught.value.ranks == [expected]


def test_all_processes_have_ended_after_a_failure(library: Library, bare: Fleet, tmp_path: pathlib.Path) -> None:
    with pytest.raises(chorus.RankFailed, match="ended"):
        chorus.run(2, stories.own_pids, str(tmp_path), coordinator=bare.coordinator.url)
    assert not any(alive(int(path.read_text())) for path in tmp_path.iterdir())


def test_what_cannot_be_pickled_is_told(library: Library, bare: Fleet) -> None:
    url = bare.coordinator.url
    with pytest.raises(chorus.RankFailed, match="rank 0 failed.*pickle"):
        chorus.run(1, stories.cannot_be_sent, coordinator=url)
    with pytest.raises(chorus.RankFailed, match="Unpicklable: 1 and 2") as caught:
        chorus.run(1, stories.raises_what_cannot_be_sent, coordinator=url)
    assert isinstance(caught.value.__cause__, chorus.ChorusError)
    with pytest.raises((AttributeError, TypeError), match="pickle"):
        chorus.run(1, lambda group: None, coordinator=url)
    with pytest.raises(ValueError, match="n is 0, expected at least 1"):
        chorus.run(0, stories.sums, coordinator=url)


def test_a_run_ends_at_its_timeout(library: Library, bare: Fleet) -> None:
    with pytest.raises(chorus.NoAnswer, match=r"ranks 0, 1 have not ended within 2 s") as caught:
        chorus.run(2, stories.waits_for_ever, coordinator=bare.coordinator.url, timeout=2)
    assert caught.value.ranks == [0, 1]


PROGRAM = """
import os, sys, chorus
with chorus.init() as group:
    total = group.all_reduce(bytearray([group.rank + 1]))
    names = ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR")
    sys.stdout.write(" ".join([str(group.rank), str(group.size), str(total[0])] + [os.environ.get(n, "none") for n in names]) + "\\n")
    sys.stdout.flush()
    if sys.argv[1:] == ["fail"] and group.rank == 1:
        sys.exit(7)
    if sys.argv[1:] == ["exit"] and group.rank == 0:
        sys.exit(0)
    if sys.argv[1:] == ["wait"]:
        group.barrier() if group.rank == 1 else sys.stdin.read()
"""


def launched(*arguments: str, **options: Any) -> "subprocess.Popen[str]":
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python/src")}
    environment.pop("CHORUS_COORDINATOR", None)
    return subprocess.Popen(
        [sys.executable, "-m", "chorus.launch", *arguments],
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


@pytest.fixture
def program(tmp_path: pathlib.Path) -> str:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    return str(path)


def test_launched_programs_are_ranks(library: Library, program: str) -> None:
    one = launched("--nproc", "3", program)
    output, errors = one.communicate()
    assert sorted(output.splitlines()) == [f"{rank} 3 6 {rank} 3 127.0.0.1" for rank in range(3)], errors
    assert one.returncode == 0


def test_two_launchers_are_one_group(
    library: Library, program: str, bare: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    common = ("--nnodes", "2", "--coordinator", bare.coordinator.url, "--group", "two-hosts")
    both = [launched(*common, "--node-rank", str(number), program) for number in range(2)]
    assert sorted(one.communicate()[0] for one in both) == ["0 2 3 0 1 none\n", "1 2 3 0 1 none\n"]
    monkeypatch.setenv("MASTER_ADDR", "node-0")  # as one says to both; the group's name comes once more
    again = [launched(*common, "--node-rank", str(number), program) for number in range(2)]
    assert sorted(one.communicate()[0] for one in again) == ["0 2 3 0 1 node-0\n", "1 2 3 0 1 node-0\n"]


def test_a_launched_program_that_fails_ends_the_others(library: Library, program: str) -> None:
    one = launched("--nproc", "2", program, "fail")
    _, errors = one.communicate()
    assert one.returncode == 7 and "local rank 1 ended with status 7" in errors


def test_a_launched_program_that_ends_by_exit_of_0_is_not_lost_by_the_others(library: Library, program: str) -> None:
    one = launched("--nproc", "2", program, "exit")
    _, errors = one.communicate()
    assert (one.returncode, errors) == (0, "")


class Ends:
    """A process that runs for so many looks and ends then."""

    def __init__(self, looks: int, status: int) -> None:
        self.looks, self.status = looks, status

    def poll(self) -> int | None:
        self.looks -= 1
        return None if self.looks >= 0 else self.status


@pytest.mark.parametrize(
    "ends, status, told",
    [
        ([(0, 1), (1, 7)], 7, "local rank 1 ended with status 7"),  # rank 0 has lost rank 1
        ([(0, 1), (0, -9)], 137, "local rank 1 ended with signal SIGKILL"),
        ([(0, -40)], 168, "local rank 0 ended with signal 40"),  # which has no name
        ([(0, 7), (1, 1)], 7, "local rank 0 ended with status 7"),
        ([(0, 1)], 1, "local rank 0 ended with status 1"),
        (
            [(1, 1), (0, 1), (2, 0)],
            1,
            "local rank 0 ended with status 1\nlocal rank 1 ended with status 1\n"
            "which of these has failed first is not known: see what they say",
        ),
    ],
)
def test_a_launcher_names_the_rank_that_has_failed_first_or_all_that_may_have(
    ends: list[tuple[int, int]], status: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def start(rank: int, _: int) -> Any:
        return Ends(*ends[rank])

    assert launch.Ranks(start, len(ends), 0).status() == status
    assert capsys.readouterr().err.replace("chorus.launch: ", "") == f"{told}\n"


def test_a_launched_program_that_fails_may_be_started_again(library: Library, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "fails.py"
    path.write_text(
        """
import os, sys
os.write(1, f"{os.environ['RANK']} {os.environ['CHORUS_RESTART']}\\n".encode())  # at once: both write to this pipe
sys.exit(7 if os.environ["RANK"] == "1" and int(os.environ["CHORUS_RESTART"]) < int(sys.argv[1]) else 0)
"""
    )
    for failures, status in ((2, 0), (3, 7)):
        one = launched("--nproc", "2", "--restarts", "2", str(path), str(failures))
        output, errors = one.communicate()
        lines = sorted(output.splitlines())  # without rank 0 if it is ended before it has begun
        assert lines in (["0 0", "1 0", "1 1", "1 2"], ["1 0", "1 1", "1 2"] if status else [])
        assert (one.returncode, errors.count("local rank 1 ended with status 7")) == (status, failures)


def children_of(pid: int) -> list[int]:
    found = pathlib.Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for of_thread in found for child in of_thread.read_text().split()]


def test_a_launcher_that_is_ended_ends_its_programs(library: Library, program: str) -> None:
    one = launched("--nproc", "2", program, "wait")
    assert one.stdout is not None
    one.stdout.readline(), one.stdout.readline()  # both run
    children = children_of(one.pid)
    assert len(children) == 3  # the coordinator as well
    one.send_signal(signal.SIGTERM)
    assert one.wait() == 128 + signal.SIGTERM and not any(alive(pid) for pid in children)
    one.communicate()


def test_programs_end_with_a_launcher_that_is_killed(library: Library, program: str) -> None:
    one = launched("--nproc", "2", program, "wait")
    assert one.stdout is not None
    one.stdout.readline(), one.stdout.readline()
    children = children_of(one.pid)
    one.kill()
    until(lambda: not any(alive(pid) for pid in children), "all have ended")
    one.communicate()


def test_flags_that_cannot_be() -> None:
    for flags, text in (
        (["--nproc", "0", "x.py"], "0 is less than 1"),
        (["--nnodes", "2", "x.py"], "several hosts need --coordinator and --group"),
        (["--nnodes", "2", "--node-rank", "2", "x.py"], "--node-rank is 2, expected 0 to 1"),
    ):
        one = launched(*flags)
        assert text in one.communicate()[1] and one.returncode == 2


def test_the_place_of_an_environment() -> None:
    known = {"CHORUS_COORDINATOR": "http://h:1", "RANK": "1", "WORLD_SIZE": "4"}
    assert place_of(known | {"CHORUS_GROUP": "g"}) == Place("http://h:1", "g", 1, 4)
    torchrun = {"TORCHELASTIC_RUN_ID": "job", "MASTER_PORT": "29500", "TORCHELASTIC_RESTART_COUNT": "2"}
    assert place_of(known | torchrun).group == "ranks-job-29500-2"
    wrong: list[tuple[Mapping[str, str], str]] = [
        ({}, "CHORUS_COORDINATOR, RANK, WORLD_SIZE not set: start the program by python -m chorus.launch"),
        (known | {"RANK": "-1"}, "RANK is '-1'"),
        (known | {"RANK": "4"}, "RANK is 4, expected less than WORLD_SIZE, which is 4"),
    ]
    for environment, text in wrong:
        with pytest.raises(ValueError, match=text):
            place_of(environment)


def test_ranks_that_do_not_come_are_named(library: Library, bare: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "RANK": "0",
        "WORLD_SIZE": "3",
        "CHORUS_GROUP": "few",
        "CHORUS_COORDINATOR": bare.coordinator.url,
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(chorus.NoAnswer, match="until workers .*few.1, few.2 are ready, "):
        chorus.init(timeout=0.5)
    until(lambda: "few.0" not in {one.id for one in bare.client.workers() if one.state == "ready"}, "it has left")
