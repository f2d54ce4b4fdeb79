"""States of models and optimizers, broadcast by torch.distributed."""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Any, Protocol

import torch
import torch.distributed as dist


class Stateful(Protocol):
    """What has a state that ranks share: a model, an optimizer, a scheduler of learning rates."""

    def state_dict(self) -> Any:
        ...

    def load_state_dict(self, state_dict: Any) -> Any:
        ...


def share(values: Sequence[Stateful], source: int) -> None:
    """Gives `values` of every rank the states that they have on rank `source`, which are bit for bit the same then.

    Every rank of the default process group calls it. Tensors go from where they lie, one by one; what else a state has
    is pickled.
    """
    told: list[Any] = [None, None]
    tensors: list[Any] = []
    sends = dist.get_rank() == source
    if sends:
        skeleton = _without_tensors([value.state_dict() for value in values], tensors)
        told = [skeleton, [(tensor.shape, tensor.dtype) for tensor in tensors]]
    dist.broadcast_object_list(told, source)
    if not sends:
        tensors = [torch.empty(shape, dtype=dtype) for shape, dtype in told[1]]
    for tensor in tensors:
        dist.broadcast(tensor, source)
    if not sends:
        for value, state in zip(values, _with_tensors(told[0], tensors)):
            value.load_state_dict(state)


def _without_tensors(state: Any, tensors: list[Any]) -> bytes:
    """Returns a state with numbers in place of its tensors, which are appended to `tensors`."""

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: Any) -> int | None:
            if not isinstance(value, torch.Tensor):
                return None
            tensors.append(value.detach())
            return len(tensors) - 1

    file = io.BytesIO()
    Pickler(file).dump(state)
    return file.getvalue()


def _with_tensors(skeleton: bytes, tensors: list[Any]) -> Any:
    class Unpickler(pickle.Unpickler):
        def persistent_load(self, number: Any) -> Any:
            return tensors[number]

    return Unpickler(io.BytesIO(skeleton)).load()
