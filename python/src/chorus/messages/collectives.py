"""Messages about collectives and their progress.

Made by python/tools/generate.py; do not edit.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Compression:
    """Message ``Compression`` of the REST interface."""

    format: str
    between: str | None = None
    allow: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Schedule:
    """Message ``Schedule`` of the REST interface."""

    segment_bytes: int | None = None
    window: int | None = None


@dataclasses.dataclass(frozen=True)
class CollectiveRequest:
    """Message ``CollectiveRequest`` of the REST interface."""

    group: str
    op: str | None = None
    tensor: str | None = None
    output: str | None = None
    reduce: str | None = None
    counts: list[int] = dataclasses.field(default_factory=list)
    local_algorithm: str | None = None
    algorithm: str | None = None
    root: int | None = None
    arity: int | None = None
    algorithm_shape: list[int] = dataclasses.field(default_factory=list)
    epoch: int | None = None
    timeout_ms: int | None = None
    in_place: bool | None = None
    on_failure: str | None = None
    reproducible: bool | None = None
    compression: str | Compression | None = None
    error_feedback: bool | None = None
    schedule: Schedule | None = None


@dataclasses.dataclass(frozen=True)
class Considered:
    """Message ``Considered`` of the REST interface."""

    algorithm: str
    root: int
    arity: int
    algorithm_shape: list[int]
    predicted_seconds: float
    rounds: int
    bytes_per_rank: int


@dataclasses.dataclass(frozen=True)
class ConsideredFormat:
    """Message ``ConsideredFormat`` of the REST interface."""

    algorithm: str
    predicted_seconds: float
    format: str | None = None
    wire_bytes: int | None = None


@dataclasses.dataclass(frozen=True)
class LowerBound:
    """Message ``LowerBound`` of the REST interface."""

    rounds: int
    bytes_per_rank: int


@dataclasses.dataclass(frozen=True)
class FieldError:
    """Message ``FieldError`` of the REST interface."""

    pointer: str
    detail: str


@dataclasses.dataclass(frozen=True)
class Problem:
    """Message ``Problem`` of the REST interface."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    retryable: bool
    instance: str | None = None
    retry_after_s: int | None = None
    ranks: list[int] = dataclasses.field(default_factory=list)
    errors: list[FieldError] = dataclasses.field(default_factory=list)
    trace_id: str | None = None


@dataclasses.dataclass(frozen=True)
class RunReport:
    """Message ``RunReport`` of the REST interface."""

    run: int
    rank: int
    worker: str
    state: str
    started_us: int
    seconds: float
    wait_seconds: float
    bytes_sent: int
    bytes_received: int
    steps: int
    version: int
    input_digest: str | None = None
    output_digest: str | None = None
    error: Problem | None = None


@dataclasses.dataclass(frozen=True)
class RankRecord:
    """Message ``RankRecord`` of the REST interface."""

    rank: int
    worker: str
    parts: int
    state: str
    late_seconds: float
    device: str | None = None
    report: RunReport | None = None


@dataclasses.dataclass(frozen=True)
class Attempt:
    """Message ``Attempt`` of the REST interface."""

    run: int
    epoch: int
    error: Problem


@dataclasses.dataclass(frozen=True)
class StalledRank:
    """Message ``StalledRank`` of the REST interface."""

    rank: int
    worker: str
    state: str
    instruction: str
    for_s: float
    peer: int | None = None


@dataclasses.dataclass(frozen=True)
class Stall:
    """Message ``Stall`` of the REST interface."""

    since: str
    for_s: float
    waiting_for: list[int]
    ranks: list[StalledRank]
    text: str


@dataclasses.dataclass(frozen=True)
class CollectiveRecord:
    """Message ``Collective`` of the REST interface."""

    id: str
    state: str
    request: CollectiveRequest
    run: int
    epoch: int
    dtype: str
    shape: list[int]
    bytes: int
    timeout_ms: int
    algorithm: str
    root: int
    arity: int
    algorithm_shape: list[int]
    reason: str
    considered: list[Considered]
    predicted_seconds: float
    lower_bound: LowerBound
    created_at: str
    seconds: float
    arrival_skew_seconds: float
    ranks: list[RankRecord]
    attempts: list[Attempt]
    local_algorithm: str | None = None
    wire_format: str | None = None
    wire_bytes: int | None = None
    compression_ratio: float | None = None
    considered_formats: list[ConsideredFormat] = dataclasses.field(default_factory=list)
    stalled: Stall | None = None
    traceparent: str | None = None
    error: Problem | None = None


@dataclasses.dataclass(frozen=True)
class InstructionState:
    """Message ``InstructionState`` of the REST interface."""

    instruction: int
    op: str
    bytes_done: int
    bytes: int
    peer: int | None = None
    message: int | None = None


@dataclasses.dataclass(frozen=True)
class AwaitedRank:
    """Message ``AwaitedRank`` of the REST interface."""

    rank: int
    worker: str
    where: str
    suspicion: str
    for_seconds: float


@dataclasses.dataclass(frozen=True)
class RunProgress:
    """Message ``RunProgress`` of the REST interface."""

    run: str
    state: str
    worker: str
    group: str
    epoch: int
    description: str
    rank: int
    ranks: int
    seconds: float
    still_seconds: float
    steps_done: int
    steps: int
    bytes_sent: int
    bytes_received: int
    instructions: list[InstructionState]
    waiting_for: list[AwaitedRank]


__all__ = [
    "Attempt",
    "AwaitedRank",
    "CollectiveRecord",
    "CollectiveRequest",
    "Compression",
    "Considered",
    "ConsideredFormat",
    "FieldError",
    "InstructionState",
    "LowerBound",
    "Problem",
    "RankRecord",
    "RunProgress",
    "RunReport",
    "Schedule",
    "Stall",
    "StalledRank",
]
