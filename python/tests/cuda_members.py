"""Members with arrays on GPUs, in a process where ``cuda_double.cpp`` stands for the driver."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from typing import Any

import chorus
from members import Pair

Group = chorus.Group


def both(pair: Pair, story: Callable[[Group, int], Any]) -> list[Any]:
    """Calls ``story(group, rank)`` for both ranks; returns both results."""
    results: list[Any] = [None, None]
    failures: list[BaseException] = []

    def other() -> None:
        try:
            results[1] = story(pair.groups[1], 1)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    try:
        results[0] = story(pair.groups[0], 0)
    finally:
        thread.join()
        if failures:
            raise failures[0]
    return results


def raised(kind: type[BaseException], text: str, call: Callable[[], Any]) -> BaseException:
    """Calls what raises an exception of this kind that has this text, and returns it."""
    try:
        call()
    except kind as error:
        assert text in str(error), f"{error}: expected {text!r}"
        return error
    raise AssertionError(f"nothing was raised, expected {text!r}")


def tell(module: str, name: str, url: str) -> None:
    """Tells a story of two members, of whoever asks over REST, or without a coordinator."""
    story = getattr(importlib.import_module(module), name)
    if not url:
        story()
    elif name == "asks_over_rest":
        story(chorus.Client(url))
    else:
        story(Pair(chorus.Client(url), f"gpus-{name.replace('_', '-')}"))
    print(f"{name} has ended")
