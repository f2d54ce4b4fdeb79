"""Programs that the package starts: a coordinator of its own, and how they end with their parent."""

from __future__ import annotations

import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import threading
from concurrent.futures import Future

from .errors import ChorusError

PATIENCE_S = 10.0  # between SIGTERM and SIGKILL
_PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None).prctl


def end_with_parent() -> None:
    """For ``preexec_fn`` of subprocess: the new process gets SIGTERM when the thread that started it has ended.

    It hears signals that the thread blocks: these, and what is ignored, are inherited.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def described(status: int | None) -> str:
    """Says how a process has ended, by what subprocess and multiprocessing return: "status 1", "signal SIGKILL"."""
    if status is None or status >= 0:
        return f"status {status}"
    known = {int(one): one.name for one in signal.Signals}
    return f"signal {known.get(-status, -status)}"


def find(name: str) -> str:
    """Returns the path of a program: in the folder CHORUS_BIN, beside the library CHORUS_LIBRARY, in the package, in the
    build of build/release/python, or on PATH.

    Raises
    ------
    ChorusError
        It is in none of them.
    """
    folders = []
    if named := os.environ.get("CHORUS_BIN"):
        folders.append(pathlib.Path(named))
    if library := os.environ.get("CHORUS_LIBRARY"):
        beside = pathlib.Path(library) if os.path.isdir(library) else pathlib.Path(library).parent
        folders += [beside, beside.parent / "bin"]
    package = pathlib.Path(__file__).parent
    folders += [package / "bin", package.parents[1] / "bin"]  # of a wheel, of a build
    found = shutil.which(name, path=os.pathsep.join([*map(str, folders), os.environ.get("PATH", os.defpath)]))
    if found is None:
        raise ChorusError(
            f"{name} was not found in CHORUS_BIN, beside CHORUS_LIBRARY, in the package, or on PATH: name a coordinator"
        )
    return found


class LocalCoordinator:
    """A coordinator on a port of 127.0.0.1 that keeps nothing on disk, and ends with ``with``.

    Attributes
    ----------
    url : str
        Where it listens.
    """

    def __init__(self) -> None:
        command = [find("chorus-coordinator"), "--port", "0", "--log-level", "error"]
        self._ended = threading.Event()
        self._process = self._started(command)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("listening on "):
            self.close()
            raise ChorusError(f"{command[0]} did not start, and ended with {self._process.returncode}")
        self.url = line.removeprefix("listening on ").strip()

    def _started(self, command: list[str]) -> subprocess.Popen[str]:
        """Starts the program in a thread that lives until close(): it would end with the thread that makes this object."""
        started: Future[subprocess.Popen[str]] = Future()

        def start() -> None:
            try:
                started.set_result(
                    subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent)
                )
            except BaseException as error:
                started.set_exception(error)
            else:
                self._ended.wait()

        threading.Thread(target=start, name="chorus-coordinator", daemon=True).start()
        return started.result()

    def __enter__(self) -> LocalCoordinator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the coordinator."""
        end([self._process])
        self._ended.set()
        if self._process.stdout is not None:
            self._process.stdout.close()


def end(processes: list[subprocess.Popen[str]]) -> None:
    """Ends processes by SIGTERM, and those that do not heed it by SIGKILL."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
    for process in processes:
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
