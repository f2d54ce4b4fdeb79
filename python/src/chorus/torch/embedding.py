"""`Embedding`: rows of a parameter that owners have, where torch.nn.Embedding has them in the process."""

from __future__ import annotations

from typing import Any

import torch

from ..messages import PushAnswer
from ..parameter import Parameter

_DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


class Embedding(torch.nn.Module):  # type: ignore[misc]
    """Looks up rows of a parameter, and pushes their gradients; the parameter's optimizer moves them at their owners.

    A call pulls the rows that it needs, each once; a table with `lazy_rows` may have any number of rows. The gradients
    of `backward` wait in this object until `push`. There is nothing in it for an optimizer of this process. For one
    thread.

    Parameters
    ----------
    parameter : Parameter
        Of shape ``(rows, width)`` and a floating-point dtype, on the CPU. Pushes are numbered by it.

    Examples
    --------
    >>> items = chorus.torch.Embedding(client.create_parameter(
    ...     "items", "g", [1 << 40, 16], lazy_rows=1_000_000, optimizer="adagrad", initializer="normal"))
    >>> loss_of(items(torch.tensor([[7, 1 << 39], [7, 3]]))).backward()
    >>> items.push()
    """

    def __init__(self, parameter: Parameter) -> None:
        super().__init__()
        if len(parameter.shape) != 2 or parameter.dtype not in _DTYPES:
            raise ValueError(
                f"parameter {parameter.name!r} is {parameter.dtype} of shape {parameter.shape}, expected rows and width "
                f"of one of {' '.join(_DTYPES)}"
            )
        self.parameter = parameter
        self._computed: list[tuple[Any, Any]] = []  # numbers of rows, and gradients, since the last push
        self._waiting: list[tuple[Any, Any]] = []  # the same of the next push
        self._pushed: dict[str, Any] | None = None  # the push that has to be repeated

    def extra_repr(self) -> str:
        return repr(self.parameter)

    def forward(self, rows: Any) -> Any:
        """Returns the values of rows.

        Parameters
        ----------
        rows : torch.Tensor of int64, of any shape
            Their numbers, in any order and repeated.

        Returns
        -------
        torch.Tensor of shape ``(*rows.shape, width)``
            As the owners had them just now.
        """
        numbers, inverse = rows.unique(return_inverse=True)
        values = torch.empty(len(numbers), self.parameter.shape[1], dtype=_DTYPES[self.parameter.dtype])
        self.parameter.pull_rows(numbers, values)
        if torch.is_grad_enabled():
            # Rows of a call live as long as its graph: who never calls backward(), as in an evaluation, keeps none.
            values.requires_grad_().register_hook(
                lambda found: self._computed.append((numbers, found.detach().clone()))
            )
        return torch.nn.functional.embedding(inverse, values)

    def push(self, *, clock: int | None = None, timeout: float | None = None) -> PushAnswer | None:
        """Pushes the gradients of all backward passes since the last push, as one push that counts once.

        After an exception by which nothing was applied the next call pushes these gradients as well. After one that
        leaves the push in doubt (`Parameter.in_doubt`) it first repeats the push as it was. To do without, make another object of ``client.parameter(name)``.

        Parameters
        ----------
        clock, timeout
            As of `Parameter.push_rows`.

        Returns
        -------
        PushAnswer or None
            None if no row has got a gradient.
        """
        if self._pushed is not None:
            self._push(repeat=self.parameter.in_doubt, timeout=timeout)
        self._waiting += self._computed
        self._computed.clear()
        if not self._waiting:
            return None
        numbers, gradients = (torch.cat(parts) for parts in zip(*self._waiting))
        self._waiting = [(numbers, gradients)]
        self._pushed = {"rows": numbers, "gradients": gradients, "clock": clock}
        return self._push(repeat=False, timeout=timeout)

    def _push(self, repeat: bool, timeout: float | None) -> PushAnswer:
        assert self._pushed is not None
        try:
            answer = self.parameter.push_rows(**self._pushed, repeat=repeat, timeout=timeout)
        except BaseException:
            if not self.parameter.in_doubt:
                self._pushed = None
            raise
        self._pushed = None
        self._waiting.clear()
        return answer
