"""How the program ends, which functions that atexit calls are not told."""

from __future__ import annotations

import _sitebuiltins
import sys
import threading
from typing import NoReturn

_exit, _quit = sys.exit, _sitebuiltins.Quitter.__call__
_has_failed = False


def watch() -> None:
    """Notes from now on with which status the main thread calls sys.exit, as multiprocessing does after exceptions, or
    exit and quit. Python tells nobody of a SystemExit that a program raises itself.
    """
    setattr(sys, "exit", _noting_exit)
    setattr(_sitebuiltins.Quitter, "__call__", _noting_quit)


def by_exception() -> bool:
    """Whether the program ends by an exception, or by one of these with another status than 0."""
    return _has_failed or getattr(sys, "last_value", None) is not None


def _noting_exit(status: object = None, /) -> NoReturn:
    _note(status)
    _exit(status)  # type: ignore[arg-type]


def _noting_quit(self: _sitebuiltins.Quitter, code: object = None) -> NoReturn:
    _note(code)
    _quit(self, code)  # type: ignore[arg-type]


def _note(status: object) -> None:
    global _has_failed
    if threading.current_thread() is threading.main_thread():
        _has_failed = status not in (None, 0)
