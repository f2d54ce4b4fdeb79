"""Messages about workers, groups, tensors and events.

Made by python/tools/generate.py; do not edit.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Locality:
    """Message ``Locality`` of the REST interface."""

    region: str | None = None
    zone: str | None = None
    rack: str | None = None
    host: str | None = None


@dataclasses.dataclass(frozen=True)
class Nvlinks:
    """Message ``Nvlinks`` of the REST interface."""

    to: str
    links: int
    gbyte_per_s: float
    is_switch: bool | None = None


@dataclasses.dataclass(frozen=True)
class GpuLocality:
    """Message ``GpuLocality`` of the REST interface."""

    uuid: str
    pci_address: str
    name: str | None = None
    memory_gbyte_per_s: float | None = None
    pcie_generation: int | None = None
    pcie_width: int | None = None
    nvlinks: list[Nvlinks] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class WorkerInfo:
    """Message ``Worker`` of the REST interface."""

    id: str
    incarnation: str
    url: str
    locality: Locality
    version: str
    state: str
    lease_ms: int
    heard_ms_ago: int
    groups: list[str]
    gpus: list[GpuLocality]
    takeovers: int
    rivals: list[str]


@dataclasses.dataclass(frozen=True)
class RoleInAlgorithm:
    """Message ``RoleInAlgorithm`` of the REST interface."""

    algorithm: str | None = None
    role: str | None = None
    sends_to: list[int] = dataclasses.field(default_factory=list)
    receives_from: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Member:
    """Message ``Member`` of the REST interface."""

    rank: int
    worker: str
    incarnation: str | None = None
    url: str | None = None
    locality: Locality | None = None
    roles: list[RoleInAlgorithm] = dataclasses.field(default_factory=list)
    since_epoch: int | None = None


@dataclasses.dataclass(frozen=True)
class GroupRequest:
    """Message ``GroupRequest`` of the REST interface."""

    workers: list[str] = dataclasses.field(default_factory=list)
    size: int | None = None
    on_failure: str | None = None
    min_ranks: int | None = None
    order: str | None = None


@dataclasses.dataclass(frozen=True)
class Stretch:
    """Message ``Stretch`` of the REST interface."""

    arrival_order: float | None = None
    assigned: float | None = None


@dataclasses.dataclass(frozen=True)
class Selection:
    """Message ``Selection`` of the REST interface."""

    op: str
    algorithm: str
    max_bytes: int | None = None
    root: int | None = None
    arity: int | None = None
    algorithm_shape: list[int] = dataclasses.field(default_factory=list)
    reason: str | None = None


@dataclasses.dataclass(frozen=True)
class CompressionSelection:
    """Message ``CompressionSelection`` of the REST interface."""

    op: str
    formats: list[str]
    between: str | None = None
    element_bytes: int | None = None
    max_bytes: int | None = None
    reason: str | None = None


@dataclasses.dataclass(frozen=True)
class SlowMember:
    """Message ``SlowMember`` of the REST interface."""

    rank: int | None = None
    worker: str | None = None
    late_seconds: float | None = None
    share: float | None = None


@dataclasses.dataclass(frozen=True)
class GroupInfo:
    """Message ``Group`` of the REST interface."""

    name: str
    epoch: int
    members: list[Member]
    state: str | None = None
    lost: list[str] = dataclasses.field(default_factory=list)
    requested: GroupRequest | None = None
    order: str | None = None
    by_position: list[int] = dataclasses.field(default_factory=list)
    stretch: Stretch | None = None
    selection: list[Selection] = dataclasses.field(default_factory=list)
    compression: list[CompressionSelection] = dataclasses.field(default_factory=list)
    segment_bytes: int | None = None
    slow: list[SlowMember] = dataclasses.field(default_factory=list)
    next_sequence: int | None = None


@dataclasses.dataclass(frozen=True)
class Place:
    """Message ``Place`` of the REST interface."""

    region: str
    offset: int | None = None


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """Message ``TensorInfo`` of the REST interface."""

    name: str
    dtype: str
    shape: list[int]
    version: int
    bytes: int
    device: str
    shm: Place | None = None


@dataclasses.dataclass(frozen=True)
class CallReport:
    """Message ``LocalReport`` of the REST interface."""

    group: str
    epoch: int
    sequence: int
    next_sequence: int
    rank: int
    algorithm: str
    seconds: float
    bytes_sent: int
    bytes_received: int
    version: int
    tensors: int
    wire_format: str | None = None


@dataclasses.dataclass(frozen=True)
class Event:
    """Message ``Event`` of the REST interface."""

    sequence: int
    type: str
    at: str
    worker: str | None = None
    incarnation: str | None = None
    group: str | None = None
    epoch: int | None = None
    collective: str | None = None
    run: int | None = None
    code: str | None = None
    detail: str | None = None


__all__ = [
    "CallReport",
    "CompressionSelection",
    "Event",
    "GpuLocality",
    "GroupInfo",
    "GroupRequest",
    "Locality",
    "Member",
    "Nvlinks",
    "Place",
    "RoleInAlgorithm",
    "Selection",
    "SlowMember",
    "Stretch",
    "TensorInfo",
    "WorkerInfo",
]
