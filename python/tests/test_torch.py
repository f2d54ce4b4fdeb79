"""The backend "chorus" of torch.distributed, on processes of their own."""

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import torch_ranks
from chorus.native.library import Library
from services import ROOT
from stand_ins import HeldPort

torch_ranks.require_torch()

import torch_callbacks as callbacks  # noqa: E402
import torch_devices as devices  # noqa: E402
import torch_messages as messages  # noqa: E402
import torch_misuse as misuse  # noqa: E402
import torch_stories as stories  # noqa: E402
from chorus.torch import build  # noqa: E402


def test_a_header_that_is_not_there_is_named(
    library: Library, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_folders", lambda: [tmp_path / "include"])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(
        "CXX", f"{sys.executable} {tmp_path}/compiler"
    )  # where the system has the header it is not missed
    (tmp_path / "compiler").write_text(
        "import sys; sys.exit('base.hpp:4:10: fatal error: chorus/chorus.h: No such file or directory')"
    )
    with pytest.raises(build.BuildFailed, match=f"chorus.h is neither in {tmp_path}/include nor .* libchorus-dev"):
        build.build()


@pytest.mark.parametrize("size", [2, 3, 4])
def test_reductions_of_every_dtype(ranks: Any, size: int) -> None:
    ranks(size, stories.reduces)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_moves_of_every_dtype(ranks: Any, size: int) -> None:
    ranks(size, stories.moves)


def test_blocks_of_unequal_sizes(ranks: Any) -> None:
    ranks(3, stories.moves_unequal_blocks)


@pytest.mark.parametrize("size", [2, 3])
def test_blocks_within_their_whole(ranks: Any, size: int) -> None:
    ranks(size, stories.moves_blocks_within_their_whole)


def test_tensors_of_every_form(ranks: Any) -> None:
    ranks(2, stories.takes_every_tensor)


@pytest.fixture(scope="session")
def device(extension: None, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library that has the device of ``torch_device.cpp``."""
    library = tmp_path_factory.mktemp("device") / "torch_device.so"
    source = str(pathlib.Path(__file__).parent / "torch_device.cpp")
    command = [source if part.endswith("extension.cpp") else part for part in build._command()]
    subprocess.run([*command, "-o", str(library)], check=True, timeout=300)
    return str(library)


@pytest.mark.parametrize(
    "story",
    [devices.calls_every_collective, devices.takes_every_form, devices.sends_messages, devices.waits_by_futures],
)
def test_tensors_of_a_device(ranks: Any, device: str, story: Callable[..., Any]) -> None:
    ranks(2, story, device)


def test_objects(ranks: Any) -> None:
    hello = [("hello", 1)]
    assert ranks(3, stories.sends_objects) == [
        (hello, ["for 0"], [0, 1, 2]),
        (hello, ["for 1"], None),
        (hello, ["for 2"], None),
    ]


def test_messages_of_two_ranks(ranks: Any) -> None:
    assert ranks(2, messages.sends_messages)[0] == (1, 7.0)


@pytest.mark.parametrize("size", [2, 3])
def test_messages_around_a_ring_and_from_any_rank(ranks: Any, size: int) -> None:
    ranks(size, messages.sends_around)


def test_messages_that_nobody_waits_for(ranks: Any) -> None:
    assert ranks(2, messages.drops_messages) == [None, [float(number) for number in range(200)]]


def test_messages_that_do_not_fit_are_told(ranks: Any) -> None:
    sender, found = ranks(2, messages.sends_what_does_not_fit, ends=False)
    expected = [
        ("ValueError", "recv of rank 1 of 2 in group"),  # the message is shorter: the group goes on
        ("ValueError", "a tag of -1, expected 0 to 2147483647"),
        ("ValueError", "to rank 2: bad_argument"),
        ("RuntimeError", "plan_mismatch"),  # it is longer: the group is over, on both sides
        ("RuntimeError", "chorus: all_reduce"),
    ]
    for (kind, text), (expected_kind, part) in zip(found, expected):
        assert kind == expected_kind and part in text, (kind, text)
    assert ", from rank 0: a message of 8 bytes, expected 12" in found[0][1]
    assert sender[0] == "RuntimeError"


def test_a_message_that_does_not_come_leaves_the_group_as_it_is(ranks: Any) -> None:
    ((kind, text), first), (_, second) = ranks(2, messages.waits_for_no_message)
    assert (first, second) == (2.0, 2.0)
    assert kind == "RuntimeError" and "deadline_exceeded" in text and ", from rank 1" in text


def test_calls_that_are_not_waited_for_at_once(ranks: Any) -> None:
    assert ranks(2, stories.does_more_at_once) == [[4.0, 4.0, 4.0]] * 2


def test_groups_of_some_ranks(ranks: Any) -> None:
    assert ranks(3, stories.makes_groups) == [
        [(0, 101.0), (0, 111.0)],
        [(0, 110.0), (0, 10.0), (1, 111.0)],
        [(1, 101.0), (1, 110.0), (2, 111.0)],
    ]


def test_groups_that_all_ranks_have_destroyed_are_deleted(ranks: Any) -> None:
    assert ranks(3, stories.ends_groups) == [(5, 2)] * 3


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
    for how, (_, text) in (("Rank 0 timed out in", first), ("Rank 3 successfully reached", last)):
        assert how in text and ": Ranks 1, 2 failed to pass monitoredBarrier in 1000 ms" in text, text


def test_what_cannot_be_is_told_before_anything_is_sent(ranks: Any) -> None:
    expected = ["BAND of Float", "layout Sparse", "a whole of 3 elements", "", "0 rows, expected 2 of 2", "of 0 ranks"]
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


def ended(how: str, *arguments: str, program: str = PROGRAM) -> list[tuple[int, str, str]]:
    """Runs a program as two ranks that meet as `how` says; returns their status, output and errors."""
    held = HeldPort()
    port = held.number
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
                [sys.executable, "-c", program, options, *arguments],
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
    held.close()
    return found


@pytest.mark.parametrize("how", ["env", "tcp", "store"])
def test_programs_meet_as_torch_has_it_and_just_end(extension: None, how: str) -> None:
    for rank, (status, output, errors) in enumerate(ended(how, "end")):
        assert (status, output) == (0, f"{rank} 2 chorus [3.0, 3.0]\n"), errors


def test_a_program_that_ends_by_an_exception_keeps_nobody_waiting(extension: None) -> None:
    (first, _, told), (second, _, raised) = ended("env", "raise")
    assert first == second == 1 and "ZeroDivisionError: rank 1 divides" in raised
    assert "all_reduce, call 1 of rank 0 of 2" in told and "(rank 1)" in told, told


@pytest.mark.parametrize("way", ["sys.exit", "exit"])
def test_a_program_that_ends_by_exit_keeps_nobody_waiting(extension: None, way: str) -> None:
    (first, _, told), (second, _, said) = ended("env", program=misuse.EXITS.replace("sys.exit", way))
    assert first == second == 1 and said == "rank 1 gives up\n"
    assert "recv of rank 0 of 2" in told and "(rank 1)" in told, told


def test_an_exception_of_spawned_ranks_keeps_nobody_waiting(
    extension: None, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch.multiprocessing

    monkeypatch.delenv("CHORUS_COORDINATOR", raising=False)
    spawned = torch.multiprocessing.spawn(misuse.raises_while_another_waits, (str(tmp_path),), 2, join=False)
    try:
        with pytest.raises(torch.multiprocessing.ProcessRaisedException) as caught:
            assert not spawned.join(torch_ranks.PATIENCE_S), "a rank has ended well"
    finally:
        for process in spawned.processes:
            process.kill()
    assert "rank 1 divides" in str(caught.value) or "(rank 1)" in str(caught.value)


def test_a_program_that_ends_in_the_midst_of_its_calls(extension: None) -> None:
    for status, output, errors in ended("env", program=misuse.ENDS):
        assert (status, output) == (0, "ends\n"), errors


def test_a_program_that_ends_while_its_threads_wait_for_messages(extension: None) -> None:
    for found in ended("env", program=misuse.LISTENS):
        assert found == (0, "ends\n", "")


def test_two_groups_at_once(ranks: Any) -> None:
    sums = [sum(3000.0 * (number + step) for step in range(20)) for number in range(3)]
    assert ranks(3, misuse.works_in_two_groups_at_once) == [(False, 3.0**10, sums)] * 3


def test_exceptions_of_callbacks_are_raised_and_leave_the_group_as_it_is(ranks: Any) -> None:
    for chained, hooked, x in ranks(2, misuse.raises_in_callbacks):
        for kind, text in (chained, hooked):
            assert kind in ("RuntimeError", "ZeroDivisionError") and "a callback divides" in text, (kind, text)
        assert x == [2.0] * 3


def test_callbacks_wait_for_further_calls(ranks: Any) -> None:
    assert ranks(2, callbacks.waits_for_further_calls) == [[2.0**6] * 3] * 2


def test_calls_of_callbacks_have_the_same_place_on_every_rank(ranks: Any) -> None:
    assert ranks(2, callbacks.issues_more_before_callbacks_run) == [[42.0, 200.0, 400.0]] * 2


def test_callbacks_come_behind_calls_that_were_issued_before_them(ranks: Any) -> None:
    assert ranks(2, callbacks.adds_a_callback_once_later_calls_have_begun) == [[2.0, 200.0, 20.0]] * 2


@pytest.mark.parametrize("size", [2, 3])
def test_calls_of_nested_callbacks_have_the_same_place_on_every_rank(ranks: Any, size: int) -> None:
    assert ranks(size, callbacks.orders_calls_alike) == [[]] * size


def test_callbacks_wait_for_calls_that_were_issued_elsewhere(ranks: Any) -> None:
    assert ranks(2, callbacks.waits_for_calls_of_others) == [[[10.0] * 3] * 3, [[2.0] * 3] * 3]


def test_a_hook_whose_callbacks_call_on(ranks: Any) -> None:
    assert ranks(2, callbacks.trains_by_a_hook) == [True, True]


def test_a_callback_ends_its_group(ranks: Any) -> None:
    assert ranks(2, callbacks.ends_the_group_in_a_callback) == [([True], [14.0] * 3), ([], [14.0] * 3)]


def test_tensors_live_until_their_calls_have_ended(ranks: Any) -> None:
    ranks(2, misuse.lets_go_of_tensors)


def test_tensors_that_cannot_be_leave_the_group_as_it_is(ranks: Any) -> None:
    for rank, (found, x) in enumerate(ranks(2, misuse.passes_tensors_that_cannot_be)):
        expected = ["layout Sparse", "float64", "single memory location" if rank else ""]
        for (kind, text), part in zip(found, expected):
            assert part in text, (kind, text)
        assert x == [2.0] * 3


def test_tensors_that_differ_in_size_are_named(ranks: Any) -> None:
    for kind, text in ranks(2, misuse.differs_in_size, ends=False):
        assert kind == "RuntimeError" and "plan_mismatch" in text and "3" in text and "4" in text, text


def test_a_child_of_fork_leaves_the_calls_of_its_parent_alone(ranks: Any) -> None:
    assert ranks(2, misuse.forks_with_work_under_way) == [0, 0]


def test_ranks_that_do_not_come_are_named(extension: None, tmp_path: pathlib.Path) -> None:
    from datetime import timedelta

    import torch.distributed as dist

    import chorus
    from chorus.torch import create

    with pytest.raises(chorus.NoAnswer, match="ranks 1, 2 have not come within 1 s") as caught:
        create(dist.FileStore(str(tmp_path / "store"), 3), 0, 3, timedelta(seconds=1))
    assert caught.value.ranks == [1, 2]


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_has_no_worker_is_told_to_the_others(extension: None, rank: int) -> None:
    found = ended("env", str(rank), program=misuse.STARTS_NO_WORKER)
    (status, _, own), (other_status, _, told) = found[rank], found[1 - rank]
    assert status == other_status == 1 and "link_checksum" in own
    assert "BadArgument: " in told and "link_checksum" in told, told


def test_a_store_that_fails_is_told_as_that(extension: None) -> None:
    from datetime import timedelta

    import torch.distributed as dist

    import chorus
    from chorus.torch import create

    story = """
import signal, torch.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, None, True)
print(store.port, flush=True)
signal.pause()
"""
    with subprocess.Popen([sys.executable, "-c", story], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        store = dist.TCPStore("127.0.0.1", int(owner.stdout.readline()), None, False)
        for _ in range(3):  # PyTorch's own thread aborts when a connection is reset that the owner has not accepted yet
            store.set("key", "value")
            store.get("key")
        owner.kill()
    for rank in range(2):
        with pytest.raises(chorus.ChorusError, match=f"rank {rank}: the store of torch.distributed has failed: ."):
            create(store, rank, 2, timedelta(seconds=600))


@pytest.mark.parametrize(
    "version, standard",
    [
        ("1.13.1", "c++17"),
        ("2.9.1+cpu", "c++17"),
        ("2.12.0", "c++20"),
        ("2.14.0a0+git1c2d3e4", "c++20"),
        ("3.0", "c++20"),
    ],
)
def test_the_extension_is_of_the_standard_that_the_headers_need(version: str, standard: str) -> None:
    assert build.standard(version) == standard
