"""Workers in this process, each called by a thread of its own."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

import chorus
from services import PATIENCE_S, program

SANITIZED = ("asan", "tsan", "ubsan", "sanitizer")


def library() -> pathlib.Path:
    """Where the built library is: CHORUS_LIBRARY, or beside the programs."""
    if named := os.environ.get("CHORUS_LIBRARY"):
        return pathlib.Path(named)
    return program("chorus-worker").parents[1] / "library/libchorus.so.0"


def require_library() -> None:
    """Skips where no library can be loaded into this interpreter: it is not built, or built with a sanitizer."""
    if not library().exists():
        pytest.skip(f"{library()} is not built")
    tried = subprocess.run(
        [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(library())!r})"], capture_output=True, text=True
    )
    if tried.returncode != 0 and any(name in tried.stderr.lower() for name in SANITIZED):
        pytest.skip(f"{library()} is built with a sanitizer, which python3 does not start with")
    assert tried.returncode == 0, tried.stderr


class Pair:
    """Two workers of this process in one group."""

    def __init__(self, client: chorus.Client, name: str, **options: Any) -> None:
        self.client, self.name = client, name
        self.workers = [chorus.Worker(client.url, f"{name}.{rank}", **options) for rank in range(2)]
        self.ids = [worker.id for worker in self.workers]
        self.make()
        self.groups = [worker.join(name, PATIENCE_S) for worker in self.workers]

    def make(self, name: str | None = None) -> None:
        """Makes the group, or its next epoch, or another one of the same workers."""
        self.client.wait_for_workers(self.ids, timeout=PATIENCE_S)
        self.client.create_group(name or self.name, self.ids, order="listed")

    def both(self, story: Callable[[chorus.Group, int], Any], groups: list[chorus.Group] | None = None) -> list[Any]:
        """Calls ``story(group, rank)`` in two threads; returns both results, or raises the first failure."""
        results: list[Any] = [None, None]
        failures: list[BaseException] = []

        def one(rank: int) -> None:
            try:
                results[rank] = story((groups or self.groups)[rank], rank)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return results

    def close(self) -> None:
        for worker in self.workers:
            worker.close()
