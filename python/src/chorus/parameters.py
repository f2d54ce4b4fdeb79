"""Parameters and checkpoints, as the coordinator knows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .base import Caller
from .codec import body, decode
from .messages import CheckpointAnswer, InitializerSettings, OptimizerSettings, ParameterInfo
from .parameter import Parameter
from .transport import new_key, quoted

Settings = str | Mapping[str, Any] | OptimizerSettings | InitializerSettings | None


class Parameters(Caller):
    """The part of `chorus.Client` about parameters."""

    def parameters(self, *, timeout: float | None = None) -> list[ParameterInfo]:
        """Returns the parameters."""
        return self._list(ParameterInfo, "/v1/parameters", timeout)

    def create_parameter(
        self,
        name: str,
        group: str,
        shape: Sequence[int],
        *,
        dtype: str = "f32",
        optimizer: Settings = None,
        initializer: Settings = None,
        staleness: int | None = None,
        reduce: str | None = None,
        replicas: int | None = None,
        nonfinite: str | None = None,
        shards: int | None = None,
        clients: Sequence[str] | None = None,
        checkpoint: str | Mapping[str, Any] | None = None,
        lazy_rows: int | None = None,
        durability: str | None = None,
        device: str | None = None,
        recreate: bool | None = None,
        client: str | None = None,
        incarnation: str | int | None = None,
        timeout: float | None = None,
    ) -> Parameter:
        """Makes a parameter on the workers of a group, or finds one that is the same.

        Fields that are not listed are those of the request (docs/guides/parameters.md).

        Parameters
        ----------
        name : str
            The parameter's name.
        group : str
            The group whose workers hold the shards.
        shape : sequence of int
            Rows are what the first dimension counts.
        optimizer : str, mapping or OptimizerSettings, optional
            What a push does: ``"adam"``, or ``{"name": "adam", "learning_rate": 0.01}``; without one pushes are added.
        initializer : str, mapping or InitializerSettings, optional
            The first values; zeros unless given.
        checkpoint : str or mapping, optional
            Begins with that checkpoint: its name, or ``{"name": "nightly", "number": 7}``.
        client, incarnation : optional
            Who pushes, as of `parameter`.
        """
        message = body(
            dtype=dtype,
            shape=shape,
            group=group,
            optimizer=_named(optimizer),
            initializer=_named(initializer),
            staleness=staleness,
            reduce=reduce,
            replicas=replicas,
            nonfinite=nonfinite,
            shards=shards,
            clients=clients,
            checkpoint=_named(checkpoint),
            lazy_rows=lazy_rows,
            durability=durability,
            device=device,
            recreate=recreate,
        )
        answer = self._ask("PUT", f"/v1/parameters/{quoted(name)}", message, timeout=timeout)
        return Parameter(self, decode(ParameterInfo, answer), client, incarnation)

    def parameter(
        self,
        name: str,
        *,
        client: str | None = None,
        incarnation: str | int | None = None,
        sequence: int = 0,
        timeout: float | None = None,
    ) -> Parameter:
        """Returns a parameter that is there, to pull and push.

        Parameters
        ----------
        name : str
            The parameter's name.
        client : str, optional
            Who pushes, as clocks count it; a name of its own unless given.
        incarnation : str or int, optional
            16 hexadecimal digits, or the number: higher than of a former process that pushed as `client`. The time
            unless given.
        sequence : int
            The number of the next push; other than 0 for a client that goes on under its former incarnation.
        """
        info = decode(ParameterInfo, self._ask("GET", f"/v1/parameters/{quoted(name)}", timeout=timeout))
        return Parameter(self, info, client, incarnation, sequence)

    def delete_parameter(self, name: str, *, timeout: float | None = None) -> None:
        """Deletes a parameter."""
        path = f"/v1/parameters/{quoted(name)}"
        self._transport.delete(path, to=self._origins, deadline=self._deadline(timeout))

    def give_up_parameter(self, name: str, *, timeout: float | None = None) -> ParameterInfo:
        """Waits no longer for silent workers that have shards of a parameter: these are lost."""
        return decode(ParameterInfo, self._ask("POST", f"/v1/parameters/{quoted(name)}/give-up", timeout=timeout))

    def checkpoint(
        self,
        name: str,
        parameters: Sequence[str] | None = None,
        *,
        keep: int | None = None,
        timeout: float | None = None,
    ) -> CheckpointAnswer:
        """Writes parameters into files of the workers, and returns when they are on the disk.

        Parameters
        ----------
        name : str
            The checkpoint's name, a folder below the workers' ``--checkpoint-directory``.
        parameters : sequence of str, optional
            All unless given.
        keep : int, optional
            How many checkpoints of the name to keep.
        """
        message = body(name=name, parameters=parameters, keep=keep)
        headers = {"Idempotency-Key": new_key()}
        return decode(CheckpointAnswer, self._ask("POST", "/v1/checkpoints", message, headers=headers, timeout=timeout))


def _named(settings: Settings) -> Any:
    return {"name": settings} if isinstance(settings, str) else settings
