"""Coordinator and workers as real processes on loopback."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import chorus
from stand_ins import HeldPort

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE_S = 20


def program(name: str) -> pathlib.Path:
    """Where a built program is: in CHORUS_BINARIES, or in the release build."""
    return pathlib.Path(os.environ.get("CHORUS_BINARIES") or ROOT / "build/release/bin") / name


class Service:
    """One process, which listens at `url`."""

    def __init__(self, name: str, arguments: Sequence[str], log: pathlib.Path) -> None:
        with log.open("a") as output:
            self.process = subprocess.Popen(
                [program(name), "--log-level", "warn", *arguments],
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            raise RuntimeError(f"{name} did not start: {log.read_text()[-500:]}")
        self.url = line.removeprefix("listening on ").strip()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.kill()
        if self.process.stdout is not None:
            self.process.stdout.close()


class Fleet:
    """A coordinator, and workers that are ready. `client` asks them; group `all` has all workers in order."""

    def __init__(
        self,
        workers: Sequence[str] = ("a", "b"),
        flags: Sequence[str] = (),
        worker_flags: Sequence[str] = (),
        lease_ms: int = 60_000,
        **client: Any,
    ) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="chorus-python-")
        self.path = pathlib.Path(self._directory.name)
        self.services: list[Service] = []
        self.port = HeldPort()
        self.flags, self.worker_flags = ["--lease-ms", str(lease_ms), *flags], list(worker_flags)
        self.workers: dict[str, Service] = {}
        try:
            self.coordinator = self.start_coordinator()
            self.client = chorus.Client(self.coordinator.url, **client)
            for name in workers:
                self.start_worker(name)
            self.client.wait_for_workers(len(workers), timeout=PATIENCE_S)
            if workers:
                self.client.create_group("all", workers)
        except BaseException:
            self.stop()
            raise

    def start_coordinator(self) -> Service:
        """Starts a coordinator, always on the same port."""
        port = str(self.port.number)
        self.services.append(Service("chorus-coordinator", ["--port", port, *self.flags], self.path / "log"))
        return self.services[-1]

    def start_worker(self, name: str, *flags: str) -> Service:
        arguments = ["--port", "0", "--coordinator", self.coordinator.url, "--id", name, *self.worker_flags, *flags]
        self.services.append(Service("chorus-worker", arguments, self.path / "log"))
        self.workers[name] = self.services[-1]
        return self.services[-1]

    def metric(self, worker: str, line: str) -> float:
        """The value of a metric of a worker; 0 where it has none."""
        import urllib.request

        with urllib.request.urlopen(f"{self.workers[worker].url}/metrics") as answer:
            for one in answer.read().decode().splitlines():
                if one.startswith(f"{line} "):
                    return float(one.rsplit(" ", 1)[1])
        return 0.0

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.stop()

    def stop(self) -> None:
        for service in reversed(self.services):
            service.stop()
        self.port.close()
        self._directory.cleanup()


def until(condition: Callable[[], Any], what: str) -> Any:
    """Waits until `condition` holds, and returns what it gave."""
    deadline = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.005)
    return value


def alive(pid: int) -> bool:
    """Whether a process runs: one that has ended and that its parent has not asked for does not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
