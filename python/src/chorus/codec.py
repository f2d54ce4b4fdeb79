"""JSON of the REST interface from and to the dataclasses of `chorus.messages`."""

import dataclasses
import functools
import numbers
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from .errors import ChorusError

T = TypeVar("T")


@functools.lru_cache(maxsize=None)
def _fields(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _value(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, types.UnionType):
        kinds = [one for one in typing.get_args(kind) if one is not type(None)]
        if isinstance(value, str) and str in kinds:
            return value
        kind = next((one for one in kinds if one is not str), str)
    if typing.get_origin(kind) is list:
        (item,) = typing.get_args(kind)
        return [_value(item, one) for one in value]
    if dataclasses.is_dataclass(kind):
        return decode(typing.cast(type, kind), value)
    return value


def decode(kind: type[T], value: Any) -> T:
    """Returns the message of a JSON object. Fields that this release does not know are passed over."""
    if not isinstance(value, dict):
        raise ChorusError(f"an answer should be a message {kind.__name__}, and is {str(value)[:100]}")
    fields = _fields(typing.cast(Any, kind))
    try:
        return kind(**{name: _value(fields[name], one) for name, one in value.items() if name in fields})
    except TypeError as wrong:
        raise ChorusError(f"an answer should be a message {kind.__name__}: {wrong}") from None


def encode(value: Any) -> Any:
    """Returns JSON for a value of which dataclasses are a part; fields without a value are left out.

    Numbers and lists of numbers may be numpy's.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value) if _given(value, f.name)}
    if isinstance(value, Mapping):
        return {str(name): encode(one) for name, one in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [encode(one) for one in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    return float(value) if isinstance(value, numbers.Real) else value


def _given(value: Any, name: str) -> bool:
    return getattr(value, name) is not None


def body(**fields: Any) -> dict[str, Any]:
    """Returns the JSON object of the fields that are not None."""
    return {name: encode(value) for name, value in fields.items() if value is not None}
