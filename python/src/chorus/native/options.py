"""Options of collectives, checked before ctypes would cut them to size."""

from __future__ import annotations

import ctypes
import math
import numbers
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import abi

LONGEST_S = 365 * 86_400.0

# A format or "auto", or these with the formats that "auto" may take, and the level between whose groups codes are sent:
# {"format": "int8", "between": "rack"}, {"format": "auto", "allow": ["bf16", "int8"]}.
Compression = str | Mapping[str, Any]


def whole(name: str, value: Any) -> int:
    """Returns `value` as a whole number."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, expected a whole number") from None


def unsigned(name: str, value: Any, bits: int = 32) -> int:
    """Returns `value` as a whole number that fits into so many bits."""
    number = whole(name, value)
    if not 0 <= number < 1 << bits:
        raise ValueError(f"{name} is {number}, expected 0 to {(1 << bits) - 1}")
    return number


def text(name: str, value: str | os.PathLike[str] | None) -> bytes | None:
    """Returns a string or path as C takes it; None stays None."""
    if value is None:
        return None
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str):
        raise TypeError(f"{name} is a {type(value).__name__}, expected a string")
    if "\0" in value:
        raise ValueError(f"{name} has a character 0 in it")
    return value.encode()


def milliseconds(name: str, seconds: float) -> int:
    """Returns seconds, a number of Python or of numpy, as milliseconds: at least 1 and at most a year."""
    if not isinstance(seconds, numbers.Real):
        raise TypeError(f"{name} is {seconds!r}, expected seconds")
    if math.isnan(seconds) or seconds <= 0:
        raise ValueError(f"{name} is {seconds!r}, expected seconds above 0")
    return max(1, round(1000 * min(float(seconds), LONGEST_S)))


def reduction(name: str) -> int:
    """Returns the number of a reduction."""
    try:
        return abi.REDUCTIONS.index(name)
    except ValueError:
        raise ValueError(f"reduce {name!r}: expected one of {' '.join(abi.REDUCTIONS)}") from None


def _list(name: str, values: Sequence[int], kind: Any, bits: int) -> tuple[Any, int]:
    if not isinstance(values, Iterable):
        raise TypeError(f"{name} is {values!r}, expected a list of whole numbers")
    listed = [unsigned(f"{name}[{i}]", value, bits) for i, value in enumerate(values)]
    return (kind * len(listed))(*listed), len(listed)


def whole_numbers(name: str, values: Sequence[int]) -> tuple[Any, int]:
    """Returns a list of numbers of 32 bits as C takes it, and its length."""
    return _list(name, values, ctypes.c_uint32, 32)


def _compression(value: Compression | None) -> tuple[bytes | None, bytes | None, bytes | None]:
    if not isinstance(value, Mapping):
        return text("compression", value), None, None
    unknown = sorted(set(value) - {"format", "between", "allow"})
    if unknown or "format" not in value:
        given = ", ".join(sorted(value)) or "nothing"
        raise ValueError(f"compression has {given}, expected format, and between and allow at will")
    allow = value.get("allow")
    if isinstance(allow, str):
        raise TypeError(f"allow is {allow!r}, expected a list of formats")
    return (
        text("compression", value["format"]),
        text("between", value.get("between")),
        None if allow is None else text("allow", ",".join(allow)),
    )


def collective(
    *,
    reduce: str = "sum",
    root: int = 0,
    algorithm: str | None = None,
    arity: int | None = None,
    algorithm_shape: Sequence[int] | None = None,
    counts: Sequence[int] | None = None,
    receive_counts: Sequence[int] | None = None,
    timeout: float | None = None,
    compression: Compression | None = None,
    error_feedback: str | None = None,
) -> abi.CollectiveOptions:
    """Returns ``chorus_collective_options_t``, which keeps the lists that it refers to alive."""
    made = abi.CollectiveOptions(size=ctypes.sizeof(abi.CollectiveOptions))
    made.reduce, made.root = reduction(reduce), unsigned("root", root)
    made.algorithm = text("algorithm", algorithm)
    if arity is not None:
        made.arity = unsigned("arity", arity)
    if algorithm_shape is not None:
        listed, made.algorithm_shape_length = _list("algorithm_shape", algorithm_shape, ctypes.c_uint32, 32)
        made.algorithm_shape = ctypes.cast(listed, ctypes.POINTER(ctypes.c_uint32))
    if counts is not None:
        listed, made.counts_length = _list("counts", counts, ctypes.c_uint64, 64)
        made.counts = ctypes.cast(listed, ctypes.POINTER(ctypes.c_uint64))
    if receive_counts is not None:
        listed, made.receive_counts_length = _list("receive_counts", receive_counts, ctypes.c_uint64, 64)
        made.receive_counts = ctypes.cast(listed, ctypes.POINTER(ctypes.c_uint64))
    if timeout is not None:
        made.timeout_ms = milliseconds("timeout", timeout)
    made.compression, made.between, made.allow = _compression(compression)
    made.error_feedback = text("error_feedback", error_feedback)
    return made


def message(*, tag: int = 0, timeout: float | None = None) -> abi.MessageOptions:
    """Returns ``chorus_message_options_t``."""
    made = abi.MessageOptions(size=ctypes.sizeof(abi.MessageOptions))
    made.tag = unsigned("tag", tag, 31)
    if timeout is not None:
        made.timeout_ms = milliseconds("timeout", timeout)
    return made
