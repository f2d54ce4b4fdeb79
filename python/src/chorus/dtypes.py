"""The twelve dtypes of Chorus, and what the same elements are called elsewhere."""

from __future__ import annotations

import functools
import importlib
import math
import sys
from collections.abc import Sequence
from typing import Any

ITEMSIZE = {
    "f64": 8,
    "f32": 4,
    "f16": 2,
    "bf16": 2,
    "i64": 8,
    "i32": 4,
    "i16": 2,
    "i8": 1,
    "u64": 8,
    "u32": 4,
    "u16": 2,
    "u8": 1,
}

# What elements may be meant as, by an argument `dtype`, where arrays cannot say it.
MEANT = {"u16": ("bf16", "f16")}
# The same for kinds of numpy that have no dtype here: bool, times, eight-bit floats and void; first letters of dtypes.
_HELD = {"b": "iu", "m": "i", "M": "i", "f": "iu", "V": "bfiu"}

# Codes of the struct module. memoryview shows bf16 as its bits.
_FORMATS = {"f64": "d", "f32": "f", "f16": "e", "bf16": "H", "i64": "q", "i32": "i", "i16": "h", "i8": "b"}
_FORMATS |= {"u64": "Q", "u32": "I", "u16": "H", "u8": "B"}


def check(dtype: str) -> str:
    """Returns `dtype` if it is one of the twelve."""
    if dtype not in ITEMSIZE:
        raise TypeError(f"dtype {dtype!r}: expected one of {' '.join(ITEMSIZE)}")
    return dtype


def nbytes(dtype: str, shape: Sequence[int]) -> int:
    return ITEMSIZE[dtype] * math.prod(shape)


def of_format(code: str) -> str | None:
    """Returns the dtype of a buffer's format; None where there is none."""
    if code[:1] == ">" or (code[:1] == "=" and sys.byteorder == "big"):
        return None
    code = code.lstrip("<=@")
    if code == "l" or code == "L":
        code = {"l": "q", "L": "Q"}[code]  # eight bytes on every system that Chorus runs on
    if code == "c":
        code = "B"
    return next((dtype for dtype, known in _FORMATS.items() if known == code and dtype != "bf16"), None)


@functools.lru_cache(maxsize=64)
def of_numpy(dtype: Any) -> str | None:
    """Returns the dtype of numpy's `dtype`, ml_dtypes' bfloat16 among them; None where there is none."""
    if dtype.name == "bfloat16":
        return "bf16"
    kind = {"f": "f", "i": "i", "u": "u"}.get(dtype.kind)
    found = f"{kind}{8 * dtype.itemsize}"
    return found if found in ITEMSIZE else None


def may_hold(found: Any, dtype: str) -> bool:
    """Whether elements of numpy's dtype `found`, which is none of the twelve, may be meant as `dtype`."""
    fits = found.itemsize == ITEMSIZE[dtype] and not found.hasobject
    return fits and dtype[0] in _HELD.get(found.kind, "")


def numpy_dtype(dtype: str) -> Any:
    """Returns numpy's dtype; of bf16 that of ml_dtypes if it is installed, else uint16 for the bits."""
    import numpy

    if dtype != "bf16":
        return numpy.dtype(f"<{dtype[0]}{ITEMSIZE[dtype]}")
    try:
        return numpy.dtype(importlib.import_module("ml_dtypes").bfloat16)
    except ImportError:
        return numpy.dtype("<u2")


def view_format(dtype: str) -> str:
    """Returns the format in which a memoryview shows the elements; of f16 and bf16 their bits."""
    return "H" if dtype == "f16" else _FORMATS[dtype]
