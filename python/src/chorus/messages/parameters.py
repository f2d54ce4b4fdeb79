"""Messages about parameters and checkpoints.

Made by python/tools/generate.py; do not edit.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class OptimizerSettings:
    """Message ``OptimizerSettings`` of the REST interface."""

    name: str
    learning_rate: float | None = None
    momentum: float | None = None
    beta1: float | None = None
    beta2: float | None = None
    epsilon: float | None = None
    initial_accumulator: float | None = None
    weight_decay: float | None = None
    clip_norm: float | None = None
    clip_value: float | None = None


@dataclasses.dataclass(frozen=True)
class InitializerSettings:
    """Message ``InitializerSettings`` of the REST interface."""

    name: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    deviation: float | None = None
    seed: int | None = None


@dataclasses.dataclass(frozen=True)
class ParameterEndpoint:
    """Message ``ParameterEndpoint`` of the REST interface."""

    shard: int
    elements: list[int]
    role: str
    url: str
    worker: str | None = None
    incarnation: str | None = None
    epoch: int | None = None
    state: str | None = None


@dataclasses.dataclass(frozen=True)
class ParameterInfo:
    """Message ``Parameter`` of the REST interface."""

    name: str
    dtype: str
    shape: list[int]
    group: str | None = None
    optimizer: OptimizerSettings | None = None
    initializer: InitializerSettings | None = None
    staleness: int | None = None
    reduce: str | None = None
    replicas: int | None = None
    nonfinite: str | None = None
    clients: list[str] = dataclasses.field(default_factory=list)
    lazy_rows: int | None = None
    durability: str | None = None
    device: str | None = None
    bytes: int | None = None
    epoch: int | None = None
    uid: str | None = None
    why: str | None = None
    state: str | None = None
    endpoints: list[ParameterEndpoint] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class PushAnswer:
    """Message ``PushAnswer`` of the REST interface."""

    version: int
    epoch: int
    next_sequence: int
    duplicate: bool


@dataclasses.dataclass(frozen=True)
class CheckpointAnswer:
    """Message ``CheckpointAnswer`` of the REST interface."""

    name: str
    number: int
    parameters: int
    files: int
    seconds: float
    unaligned: list[str]


__all__ = [
    "CheckpointAnswer",
    "InitializerSettings",
    "OptimizerSettings",
    "ParameterEndpoint",
    "ParameterInfo",
    "PushAnswer",
]
