"""One exception per problem code.

Made by python/tools/generate.py; do not edit.
"""

from .errors import ChorusError


class NotFound(ChorusError, code="not_found"):
    """No such resource (status 404)."""


class NotLeader(ChorusError, code="not_leader"):
    """Another coordinator leads (status 307)."""


class BadRequest(ChorusError, code="bad_request"):
    """Bad request (status 400)."""


class MalformedJson(ChorusError, code="malformed_json"):
    """Malformed JSON (status 400)."""


class Unauthorized(ChorusError, code="unauthorized"):
    """Unauthorized (status 401)."""


class Forbidden(ChorusError, code="forbidden"):
    """Forbidden (status 403)."""


class UnknownWorker(NotFound, code="unknown_worker"):
    """Unknown worker (status 404)."""


class UnknownGroup(NotFound, code="unknown_group"):
    """Unknown group (status 404)."""


class UnknownTensor(NotFound, code="unknown_tensor"):
    """Unknown tensor (status 404)."""


class UnknownCollective(NotFound, code="unknown_collective"):
    """Unknown collective (status 404)."""


class UnknownRun(NotFound, code="unknown_run"):
    """Unknown run (status 404)."""


class UnknownRegion(NotFound, code="unknown_region"):
    """Unknown region (status 404)."""


class UnknownParameter(NotFound, code="unknown_parameter"):
    """Unknown parameter (status 404)."""


class MethodNotAllowed(ChorusError, code="method_not_allowed"):
    """Method not allowed (status 405)."""


class RequestTimeout(ChorusError, code="request_timeout"):
    """The request came too slowly (status 408)."""


class Mismatch(ChorusError, code="mismatch"):
    """The ranks do not agree (status 409)."""


class EpochFenced(ChorusError, code="epoch_fenced"):
    """From an older epoch (status 409)."""


class PlanMismatch(Mismatch, code="plan_mismatch"):
    """The ranks have different plans (status 409)."""


class GroupBroken(ChorusError, code="group_broken"):
    """The group needs a new epoch (status 409)."""


class NotEnoughWorkers(ChorusError, code="not_enough_workers"):
    """Not enough workers (status 409)."""


class AlreadyExists(ChorusError, code="already_exists"):
    """Already exists (status 409)."""


class Busy(ChorusError, code="busy"):
    """Busy (status 409)."""


class Cancelled(ChorusError, code="cancelled"):
    """Cancelled (status 409)."""


class OutOfOrder(ChorusError, code="out_of_order"):
    """Not its turn (status 409)."""


class RegionInUse(ChorusError, code="region_in_use"):
    """The region is in use (status 409)."""


class RegionDamaged(ChorusError, code="region_damaged"):
    """The region is damaged (status 409)."""


class Compacted(ChorusError, code="compacted"):
    """No longer kept (status 410)."""


class LengthRequired(ChorusError, code="length_required"):
    """Content-Length required (status 411)."""


class PreconditionFailed(ChorusError, code="precondition_failed"):
    """Precondition failed (status 412)."""


class PayloadTooLarge(ChorusError, code="payload_too_large"):
    """The body is too large (status 413)."""


class UnsupportedMediaType(ChorusError, code="unsupported_media_type"):
    """Unsupported media type (status 415)."""


class RangeNotSatisfiable(ChorusError, code="range_not_satisfiable"):
    """Range not satisfiable (status 416)."""


class Misdirected(ChorusError, code="misdirected"):
    """Another worker has it (status 421)."""


class UnknownHost(ChorusError, code="unknown_host"):
    """Not the name of this service (status 421)."""


class InvalidField(ChorusError, code="invalid_field"):
    """A field is not valid (status 422)."""


class LengthMismatch(ChorusError, code="length_mismatch"):
    """The body's length does not fit (status 422)."""


class DigestMismatch(ChorusError, code="digest_mismatch"):
    """The body's digest does not fit (status 422)."""


class IdempotencyReused(ChorusError, code="idempotency_reused"):
    """Idempotency-Key used for another request (status 422)."""


class NonFinite(ChorusError, code="non_finite"):
    """Not a finite number (status 422)."""


class RateLimited(ChorusError, code="rate_limited"):
    """Too many requests (status 429)."""


class HeaderTooLarge(ChorusError, code="header_too_large"):
    """The header is too large (status 431)."""


class Internal(ChorusError, code="internal"):
    """Internal error (status 500)."""


class DeviceFailed(ChorusError, code="device_failed"):
    """A GPU failed (status 500)."""


class MemoryDamaged(ChorusError, code="memory_damaged"):
    """The worker's memory is damaged (status 500)."""


class Unsupported(ChorusError, code="unsupported"):
    """Not supported (status 501)."""


class PeerLost(ChorusError, code="peer_lost"):
    """A peer was lost (status 502)."""


class CorruptFrame(ChorusError, code="corrupt_frame"):
    """Bytes were changed on the way (status 502)."""


class WorkerUnreachable(ChorusError, code="worker_unreachable"):
    """A worker is unreachable (status 502)."""


class Unavailable(ChorusError, code="unavailable"):
    """Unavailable (status 503)."""


class ParameterLost(ChorusError, code="parameter_lost"):
    """The parameter is lost (status 503)."""


class LogDamaged(ChorusError, code="log_damaged"):
    """The log of pushes is damaged (status 503)."""


class Interrupted(ChorusError, code="interrupted"):
    """Interrupted by a restart (status 503)."""


class DeadlineExceeded(ChorusError, TimeoutError, code="deadline_exceeded"):
    """Deadline exceeded (status 504)."""


class RowsExhausted(ChorusError, code="rows_exhausted"):
    """No more rows may be created (status 507)."""


__all__ = [
    "AlreadyExists",
    "BadRequest",
    "Busy",
    "Cancelled",
    "Compacted",
    "CorruptFrame",
    "DeadlineExceeded",
    "DeviceFailed",
    "DigestMismatch",
    "EpochFenced",
    "Forbidden",
    "GroupBroken",
    "HeaderTooLarge",
    "IdempotencyReused",
    "Internal",
    "Interrupted",
    "InvalidField",
    "LengthMismatch",
    "LengthRequired",
    "LogDamaged",
    "MalformedJson",
    "MemoryDamaged",
    "MethodNotAllowed",
    "Misdirected",
    "Mismatch",
    "NonFinite",
    "NotEnoughWorkers",
    "NotFound",
    "NotLeader",
    "OutOfOrder",
    "ParameterLost",
    "PayloadTooLarge",
    "PeerLost",
    "PlanMismatch",
    "PreconditionFailed",
    "RangeNotSatisfiable",
    "RateLimited",
    "RegionDamaged",
    "RegionInUse",
    "RequestTimeout",
    "RowsExhausted",
    "Unauthorized",
    "Unavailable",
    "UnknownCollective",
    "UnknownGroup",
    "UnknownHost",
    "UnknownParameter",
    "UnknownRegion",
    "UnknownRun",
    "UnknownTensor",
    "UnknownWorker",
    "Unsupported",
    "UnsupportedMediaType",
    "WorkerUnreachable",
]
