"""Arrays on GPUs; ``cuda_double.cpp`` stands for the driver, in processes of its own."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from chorus.native.library import Library
from services import ROOT, Fleet

TESTS = ROOT / "python/tests"


@pytest.fixture(scope="session")
def double(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Where the double of the driver is."""
    if shutil.which("c++") is None:
        pytest.skip("there is no compiler for the double of the driver")
    folder = tmp_path_factory.mktemp("driver")
    command = ["c++", "-std=c++20", "-O1", "-shared", "-fPIC", "-o", str(folder / "libcuda.so.1")]
    subprocess.run([*command, str(TESTS / "cuda_double.cpp")], check=True, timeout=120)
    return folder


def environment(drivers: pathlib.Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": f"{ROOT / 'python/src'}:{TESTS}", "LD_LIBRARY_PATH": str(drivers)}


def run(story: str, drivers: pathlib.Path, url: str) -> None:
    """Tells ``MODULE.STORY`` where the loader finds the drivers of a folder."""
    module, name = story.split(".")
    ran = subprocess.run(
        [sys.executable, "-c", f"import cuda_members; cuda_members.tell({module!r}, {name!r}, {url!r})"],
        env=environment(drivers),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (ran.returncode, ran.stdout) == (0, f"{name} has ended\n"), ran.stderr


@pytest.mark.parametrize(
    "story",
    [
        "cuda_calls.calls_every_collective",
        "cuda_calls.calls_with_lists",
        "cuda_calls.takes_every_kind_of_array",
        "cuda_failures.refuses_other_arrays",
        "cuda_calls.begins_calls_and_waits",
        "cuda_failures.refuses_an_array_that_belongs_to_a_call",
        "cuda_failures.drops_calls",
        "cuda_failures.keeps_memory_alive",
        "cuda_calls.sends_messages",
        "cuda_calls.copies_each_byte_once",
        "cuda_calls.reuses_pinned_memory",
        "cuda_calls.works_without_pinned_memory",
        "cuda_failures.tells_of_copies_that_fail",
        "cuda_failures.tells_of_results_that_are_lost",
        "cuda_failures.tells_of_a_group_that_fails",
        "cuda_failures.is_interrupted",
        "cuda_failures.is_forked",
    ],
)
def test_arrays_of_gpus_in_groups(library: Library, bare: Fleet, double: pathlib.Path, story: str) -> None:
    run(story, double, bare.coordinator.url)


def test_arrays_of_gpus_on_workers_and_parameters(fleet: Fleet, double: pathlib.Path) -> None:
    run("cuda_calls.asks_over_rest", double, fleet.coordinator.url)


def test_a_driver_without_gpus(double: pathlib.Path) -> None:
    run("cuda_failures.finds_no_gpu", double, "")


def test_no_driver(tmp_path: pathlib.Path) -> None:
    (tmp_path / "libcuda.so.1").write_text("no library")
    story = """
import chorus
from chorus.buffers import to_send

class Elsewhere:
    def __dlpack__(self, **_):
        raise AssertionError("not exported without a driver")
    def __dlpack_device__(self):
        return (2, 1)

for _ in range(2):
    try:
        to_send(Elsewhere())
    except chorus.DeviceFailed as error:
        print(error)
"""
    ran = subprocess.run([sys.executable, "-c", story], env=environment(tmp_path), stdout=subprocess.PIPE, text=True)
    assert ran.stdout.count("NVIDIA's driver cannot be loaded: ") == 2 and ran.stdout.count("libcuda.so.1") == 2
    assert ran.stdout.count("Pass an array on the CPU (device_failed)") == 2


def test_sizes_of_pinned_memory() -> None:
    from chorus.cuda.pool import rounded

    assert [rounded(size) for size in (1, 4096, 4097, 1 << 20)] == [4096, 4096, 8192, 1 << 20]
    assert len({rounded(size) for size in range(1 << 20, 1 << 21, 1000)}) <= 5
    assert all(size <= rounded(size) <= max(4096, size + 4096, 1.25 * size) for size in range(1, 1 << 22, 1009))
