"""``import chorus.torch`` makes "chorus" a backend of torch.distributed.

>>> import chorus.torch
>>> torch.distributed.init_process_group("chorus")

Tensors are on the CPU, or on GPUs, from and to which they are copied. Needs PyTorch 1.13 or later with its C++ headers,
a C++ compiler, and libchorus.so.0: the extension is compiled by the first process that needs it, once for each version
of PyTorch, of Python and of this package (``python -m chorus.torch`` does it beforehand). docs/guides/torch.md tells
the rest.
"""

from __future__ import annotations

from torch.distributed.distributed_c10d import Backend

from .elastic import Elastic
from .embedding import Embedding
from .ended import TooLate
from .rendezvous import create

__all__ = ["Elastic", "Embedding", "TooLate", "create"]


def _register() -> None:
    try:
        Backend.register_backend("chorus", create, devices=["cpu", "cuda"])
    except TypeError:  # PyTorch 1.13 asks for no devices
        Backend.register_backend("chorus", create)
    Backend.CHORUS = "chorus"  # 1.13 keeps the name in capitals, and get_backend() would return that


_register()
