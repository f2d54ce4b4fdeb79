"""What objects do first in a child of fork(), before it runs on: threads of the parent may have had their locks."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forked(Protocol):
    """An object that is told of a fork."""

    def _in_child(self) -> None:
        """Called in the child, by its only thread."""


_watched: weakref.WeakSet[Forked] = weakref.WeakSet()


def watch(one: Forked) -> None:
    """Tells an object of every fork from now on, as long as it lives."""
    _watched.add(one)


def _tell() -> None:
    for one in _watched:
        one._in_child()


os.register_at_fork(after_in_child=_tell)
