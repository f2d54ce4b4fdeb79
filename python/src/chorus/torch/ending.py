"""How the program ends, which functions that atexit calls are not told."""

from __future__ import annotations

import sys
import threading
from typing import NoReturn

_exit = sys.exit
_has_failed = False


def watch() -> None:
    """Notes from now on with which status the main thread calls sys.exit, as multiprocessing does after exceptions."""
    setattr(sys, "exit", _noting_exit)


def by_exception() -> bool:
    """Whether the program ends by an exception, or by sys.exit with another status than 0."""
    return _has_failed or getattr(sys, "last_value", None) is not None


def _noting_exit(status: object = None, /) -> NoReturn:
    global _has_failed
    if threading.current_thread() is threading.main_thread():
        _has_failed = status not in (None, 0)
    _exit(status)  # type: ignore[arg-type]
