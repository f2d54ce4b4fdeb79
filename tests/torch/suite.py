"""PyTorch's own tests of torch.distributed, with the backend that BACKEND names: ``run`` calls this by unittest.

The suite starts WORLD_SIZE processes for each test. They are forks of a process that has imported this file and has
no threads: to import PyTorch in each of them takes longer than most tests.
"""

import dataclasses
import multiprocessing
import os
import pathlib
import sys
import types
import unittest
from collections.abc import Callable

BACKEND = os.environ["BACKEND"]
AS_GLOO = "CHORUS_AS_GLOO" in os.environ  # tests that ask for Gloo by name get the backend "chorus" for it


def disabled() -> dict[str, str]:
    """Returns the reason for each test that is left out, by disabled.txt."""
    lines = (pathlib.Path(__file__).parent / "disabled.txt").read_text().splitlines()
    pairs = [line.partition(" ")[::2] for line in lines if line and not line.startswith("#")]
    masked = "as-gloo:"
    return {name.removeprefix(masked): why for name, why in pairs if AS_GLOO or not name.startswith(masked)}


def stand_in_for_expecttest() -> None:
    """Debian has no expecttest, of which the suite uses one assertion."""

    class TestCase(unittest.TestCase):
        def assertExpectedInline(self, actual: str, expected: str, skip: int = 0) -> None:
            self.assertEqual(actual, expected)

    module = types.ModuleType("expecttest")
    module.TestCase, module.ACCEPT = TestCase, False  # type: ignore[attr-defined]
    sys.modules["expecttest"] = module


def allow_mutable_defaults() -> None:
    """Python 3.11 refuses dataclasses of torch.distributed._shard whose defaults have no hash."""
    original = dataclasses._get_field  # type: ignore[attr-defined]

    def get_field(cls: type, name: str, kind: object, *rest: object) -> object:
        given = getattr(cls, name, None)
        default = given.default if isinstance(given, dataclasses.Field) else given
        if type(default).__hash__ is None and type(default).__module__.startswith("torch."):
            setattr(cls, name, dataclasses.field(default_factory=lambda: default))
        return original(cls, name, kind, *rest)

    dataclasses._get_field = get_field  # type: ignore[attr-defined]


multiprocessing.set_forkserver_preload([__name__])
stand_in_for_expecttest()
allow_mutable_defaults()

from torch.testing._internal.common_distributed import DistTestCases  # noqa: E402

if BACKEND == "chorus":
    import chorus.torch  # noqa: F401

    for feature in ("plugin", "ddp", "subgroup"):
        DistTestCases.backend_feature[feature].add(BACKEND)

if AS_GLOO:
    import chorus.torch  # noqa: F811
    from torch.distributed import distributed_c10d

    def create_for_gloo(store: object, rank: int, size: int, timeout: object) -> object:
        return chorus.torch.create(store, rank, size, timeout)

    distributed_c10d.ProcessGroupGloo = create_for_gloo

from torch.testing._internal.distributed import distributed_test  # noqa: E402

for profiled in (distributed_test.PROFILING_SUPPORTED_BACKENDS, distributed_test.SEND_RECV_PROFILING_SUPPORTED_BACKENDS):
    if AS_GLOO:
        profiled.remove(BACKEND)  # its events have the backend's own name
    if BACKEND == "chorus":
        profiled.append(BACKEND)


def process(target: Callable[..., None], name: str, args: tuple[object, ...]) -> multiprocessing.Process:
    """A process as the suite makes them, with the environment of this moment: the suite sets folders for each test."""
    context = multiprocessing.get_context("forkserver")
    return context.Process(target=run_with, name=name, args=(dict(os.environ), target, *args))


def run_with(environment: dict[str, str], target: Callable[..., None], *args: object) -> None:
    os.environ.update(environment)
    target(*args)


class Suite(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    def setUp(self) -> None:
        super().setUp()
        self._start_processes(process)
        distributed_test.torch.backends.cudnn.flags(enabled=True, allow_tf32=False).__enter__()


if BACKEND == "chorus" or AS_GLOO:
    for name, reason in disabled().items():
        assert hasattr(Suite, name), f"disabled.txt: the suite of this PyTorch has no {name}"
        setattr(Suite, name, unittest.skip(f"disabled.txt: {reason}")(getattr(Suite, name)))
