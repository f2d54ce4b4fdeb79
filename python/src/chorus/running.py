"""`chorus.run`: a function on n processes that are the ranks of a group."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import multiprocessing.process
import numbers
import os
import pickle
import signal
import sys
import threading
import traceback
import uuid
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

from .deadline import Deadline
from .errors import ChorusError, NoAnswer
from .native.problems import Aborted, RankFailed
from .problems import DeadlineExceeded, EpochFenced, PeerLost
from .programs import PATIENCE_S, LocalCoordinator, described
from .ranks import Place, join

# What a member sees when another one has failed: the other one's failure is looked for so long.
_CONSEQUENCES = (Aborted, DeadlineExceeded, EpochFenced, PeerLost)
_CAUSE_S = 1.0
_LOOK_S = 1.0  # between looks at processes of which some other process keeps the pipe open


def run(
    n: int,
    function: Callable[..., Any],
    *args: Any,
    coordinator: str | None = None,
    timeout: float | None = None,
    start_timeout: float = 60.0,
    options: Mapping[str, Any] | None = None,
) -> list[Any]:
    """Calls ``function(group, *args)`` on n new processes, the ranks of a new group, and returns their results.

    Processes are started by multiprocessing's "spawn": `function`, `args` and results are pickled, the function is one
    of a module, and a script calls `run` under ``if __name__ == "__main__":``. All processes have ended on return.

    Parameters
    ----------
    n : int
        How many ranks.
    function : callable
        Called with the `Group` of its rank, and with `args`.
    *args
        The same for every rank.
    coordinator : str, optional
        URL of a coordinator; without it that of CHORUS_COORDINATOR, or one that runs as long as the call.
    timeout : float, optional
        Seconds for all of it.
    start_timeout : float
        Seconds within which all ranks have to meet.
    options : mapping, optional
        Options of every rank's `Worker`.

    Returns
    -------
    list
        The results, in the order of ranks.

    Raises
    ------
    RankFailed
        A rank's function raised, which is ``__cause__``, also SystemExit of any status; or its process ended, and the
        text says how. ``ranks`` names the first one. The others are ended.
    NoAnswer
        It has not ended within `timeout`; it is ended.

    Examples
    --------
    >>> def train(group):
    ...     return group.all_reduce(numpy.full(3, group.rank + 1.0)).tolist()
    >>> chorus.run(4, train)[0]
    [10.0, 10.0, 10.0]
    """
    if not isinstance(n, (int, numbers.Integral)) or n < 1:
        raise ValueError(f"n is {n!r}, expected at least 1")
    deadline = Deadline(timeout)
    with contextlib.ExitStack() as stack:
        url = coordinator or os.environ.get("CHORUS_COORDINATOR") or stack.enter_context(LocalCoordinator()).url
        ranks = stack.enter_context(_Ranks())
        group = f"run-{uuid.uuid4().hex[:12]}"
        for rank in range(n):
            ranks.start(Place(url, group, rank, n), start_timeout, dict(options or {}), function, args)
        results = ranks.results(deadline)
    return results


class _Ranks:
    """The processes, by rank, and a pipe to each. On exit all have ended."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._processes: list[multiprocessing.process.BaseProcess] = []
        self._pipes: list[Connection] = []

    def start(self, *what: Any) -> None:
        mine, theirs = self._context.Pipe()
        self._pipes.append(mine)
        process = self._context.Process(target=_main, args=(theirs, *what))
        with theirs:
            process.start()
        self._processes.append(process)

    def results(self, deadline: Deadline) -> list[Any]:
        """Waits for all results, or for the first failure, and raises that."""
        found: dict[int, Any] = {}
        failure: RankFailed | None = None
        open_pipes = dict(enumerate(self._pipes))
        while open_pipes:
            # A process that was forked by a rank may outlive it, and has its end of the pipe as well.
            gone = {rank for rank, process in enumerate(self._processes) if process.exitcode is not None}
            ready = multiprocessing.connection.wait(list(open_pipes.values()), deadline.within(_LOOK_S))
            for rank in [rank for rank, pipe in open_pipes.items() if pipe in ready or rank in gone]:
                result, why = self._take(rank)
                del open_pipes[rank]
                if why is None:
                    found[rank] = result
                elif failure is None:
                    failure, deadline = why, Deadline(_CAUSE_S)
                elif _is_consequence(failure) and not _is_consequence(why):
                    failure = why
            if failure is not None and (deadline.passed() or not _is_consequence(failure)):
                raise failure
            if failure is None and open_pipes and deadline.passed():
                late = ", ".join(str(rank) for rank in open_pipes)
                raise NoAnswer(f"ranks {late} have not ended within {deadline.seconds:g} s", ranks=list(open_pipes))
        if failure is not None:
            raise failure
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.send(None)  # all results are here: a worker may go
        return [found[rank] for rank in sorted(found)]

    def _take(self, rank: int) -> tuple[Any, RankFailed | None]:
        """Returns a rank's result, or its failure."""
        try:
            if not self._pipes[rank].poll():
                raise EOFError
            ended, value, text = self._pipes[rank].recv()
        except (EOFError, OSError):
            self._processes[rank].join(PATIENCE_S)
            how = described(self._processes[rank].exitcode)
            return None, RankFailed(f"the process of rank {rank} ended with {how}", ranks=[rank])
        if ended:
            return value, None
        failure = RankFailed(f"rank {rank} failed: {type(value).__name__}: {value}\n\n{text}", ranks=[rank])
        failure.__cause__ = value
        return None, failure

    def __enter__(self) -> _Ranks:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        for process in self._processes if kind is not None else ():
            process.terminate()
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(PATIENCE_S)
            if process.exitcode is None:
                process.kill()
                process.join()


def _is_consequence(failure: RankFailed) -> bool:
    return isinstance(failure.__cause__, _CONSEQUENCES)


def _main(
    pipe: Connection,
    place: Place,
    start_timeout: float,
    options: Mapping[str, Any],
    function: Callable[..., Any],
    args: tuple[Any, ...],
) -> None:
    """One rank, in its own process, which has inherited the signals that the caller of `run` blocks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it, and ends its ranks
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        group = join(place, start_timeout, options)
    except Exception as error:
        pipe.send(_failed(error))
        return
    group._meets = False  # the parent says when all have their results
    with group:
        try:
            told = ForkingPickler.dumps((True, function(group, *args), ""))
        except (Exception, SystemExit) as error:
            told = ForkingPickler.dumps(_failed(error))
        with contextlib.suppress(EOFError, OSError):  # the parent may have heard of another failure
            pipe.send_bytes(told)  # a failure before the others lose this member
            pipe.recv()


def _failed(error: BaseException) -> tuple[bool, BaseException, str]:
    return False, _portable(error), traceback.format_exc()


def _end_with_parent() -> None:
    parent = multiprocessing.process.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _portable(error: BaseException) -> BaseException:
    """Returns `error`, or what can be said of one that cannot be pickled."""
    try:
        again = pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001: a class may raise anything
        return ChorusError(f"{type(error).__name__}: {error}")
    return error if type(again) is type(error) else ChorusError(f"{type(error).__name__}: {error}")
