"""libchorus.so.0: where it lies, and calls of its functions."""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
from typing import Any

from ..errors import ChorusError, NoAnswer, from_problem
from . import abi
from .problems import LibraryNotFound


class Library:
    """The loaded library. Any thread may call; the interpreter's lock is released during a call.

    Parameters
    ----------
    loaded : ctypes.CDLL
        The library.
    path : str
        Where it was found.

    Raises
    ------
    LibraryNotFound
        Its version does not fit, or it lacks a function.
    """

    def __init__(self, loaded: ctypes.CDLL, path: str) -> None:
        self.path = path
        self.functions: dict[str, Any] = {}
        try:
            for name, (result, arguments) in abi.FUNCTIONS.items():
                function = getattr(loaded, name)
                function.restype, function.argtypes = result, list(arguments)
                self.functions[name] = function
        except AttributeError as error:
            raise LibraryNotFound(f"{path}: {error}: expected {abi.SONAME} of version {_expected()}") from None
        self.version: str = self.functions["chorus_version"]().decode()
        major, minor = (int(part) for part in self.version.split(".")[:2])
        if major != abi.VERSION[0] or minor < abi.VERSION[1]:
            raise LibraryNotFound(f"{path} has version {self.version}, expected {_expected()}")

    def has_feature(self, name: str) -> bool:
        """Whether the build has ``"shared_memory"``, ``"tls"`` or ``"cuda"``."""
        return bool(self.functions["chorus_has_feature"](name.encode()))

    def status(self, name: str, *arguments: Any) -> tuple[int, ChorusError | None]:
        """Calls a function that takes an error last; returns its status, and the exception of one that is not OK."""
        create = self.functions["chorus_error_create"]
        error = create()
        try:
            status: int = self.functions[name](*arguments, error)
            return status, None if status == abi.OK else self._exception(status, error)
        finally:
            self.functions["chorus_error_free"](error)

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function that takes an error last, and raises the exception of a status that is not OK."""
        _, error = self.status(name, *arguments)
        if error is not None:
            raise error

    def _exception(self, status: int, error: int | None) -> ChorusError:
        code = self.functions["chorus_status_name"](status).decode()
        text = self.functions["chorus_error_text"](error).decode("utf-8", "replace")
        if status == abi.PENDING:
            return NoAnswer("the call has not ended, and goes on")
        ranks = ctypes.POINTER(ctypes.c_uint32)()
        count = self.functions["chorus_error_ranks"](error, ctypes.byref(ranks))
        return from_problem({"code": code, "detail": text or code, "ranks": ranks[:count] if count else []})


def _expected() -> str:
    return f"{abi.VERSION[0]}.{abi.VERSION[1]} or a later {abi.VERSION[0]}.x"


def candidates() -> list[str]:
    """Where the library is looked for, in order: CHORUS_LIBRARY alone if it is set; else in the package, in the build of
    build/release/python, then where the system's loader looks."""
    if named := os.environ.get("CHORUS_LIBRARY"):
        path = pathlib.Path(named)
        return [str(path / abi.SONAME if path.is_dir() else path)]
    package = pathlib.Path(__file__).parents[1]
    beside = [package / abi.SONAME, package / "lib" / abi.SONAME, package.parents[1] / "library" / abi.SONAME]
    return [*(str(path) for path in beside if path.exists()), abi.SONAME]


def load() -> Library:
    """Returns the library, which is loaded once for each path.

    Raises
    ------
    LibraryNotFound
        It was not found, cannot be loaded, or has another version.
    """
    return _load(tuple(candidates()))


@functools.lru_cache(maxsize=None)
def _load(paths: tuple[str, ...]) -> Library:
    why = []
    for path in paths:
        try:
            return Library(ctypes.CDLL(path), path)
        except OSError as error:
            if isinstance(error, LibraryNotFound):
                raise
            why.append(str(error))
    raise LibraryNotFound(
        f"{abi.SONAME} cannot be loaded: {'; '.join(why)}. Install the library (docs/guides/linking.md), or set "
        "CHORUS_LIBRARY to its path"
    )
