"""Messages about plans and simulations.

Made by python/tools/generate.py; do not edit.
"""

import dataclasses

from .collectives import Considered, ConsideredFormat, LowerBound
from .groups import Stretch


@dataclasses.dataclass(frozen=True)
class PlannedMove:
    """Message ``PlannedMove`` of the REST interface."""

    op: str
    rank: int
    peer: int
    chunk: int
    chunks: int


@dataclasses.dataclass(frozen=True)
class PlanAnswer:
    """Message ``PlanAnswer`` of the REST interface."""

    algorithm: str
    root: int
    arity: int
    algorithm_shape: list[int]
    reason: str
    predicted_seconds: float
    considered: list[Considered]
    lower_bound: LowerBound
    verified: bool
    verification: str
    rounds: list[list[PlannedMove]]
    considered_formats: list[ConsideredFormat] = dataclasses.field(default_factory=list)
    wire_format: str | None = None
    wire_bytes: int | None = None
    compression_ratio: float | None = None
    order: list[int] = dataclasses.field(default_factory=list)
    stretch: Stretch | None = None


@dataclasses.dataclass(frozen=True)
class SimulatedPlan:
    """Message ``SimulatedPlan`` of the REST interface."""

    algorithm: str
    root: int
    arity: int
    algorithm_shape: list[int]
    seconds: float
    rounds: int
    bytes_per_rank: int
    bottleneck: str
    wire_bytes: int | None = None


@dataclasses.dataclass(frozen=True)
class SimulationAnswer:
    """Message ``SimulationAnswer`` of the REST interface."""

    op: str
    ranks: int
    bytes: int
    topology: str
    items: list[SimulatedPlan]
    lower_bound: LowerBound
    order: list[int] = dataclasses.field(default_factory=list)
    stretch: Stretch | None = None


__all__ = [
    "PlanAnswer",
    "PlannedMove",
    "SimulatedPlan",
    "SimulationAnswer",
]
