"""Exceptions of a worker in this process, for statuses of the C interface that are no problem codes of REST.

A status that is also a problem code (``peer_lost``, ``deadline_exceeded``) raises that code's exception.
"""

from __future__ import annotations

from ..errors import ChorusError

__all__ = [
    "Aborted",
    "BadArgument",
    "BadSecurity",
    "BindFailed",
    "Fenced",
    "LibraryNotFound",
    "NoCoordinator",
    "NoNewEpoch",
    "NotAssigned",
    "NotCancellable",
    "NotShared",
    "OutOfMemory",
    "ProtocolError",
    "RankFailed",
    "Stopped",
]


class BadArgument(ChorusError, ValueError, code="bad_argument"):
    """An argument, a size, a dtype or a name that cannot be; nothing was sent."""


class NoCoordinator(ChorusError, ConnectionError, code="no_coordinator"):
    """The worker has no coordinator, or could not reach one until the deadline."""


class Fenced(ChorusError, code="fenced"):
    """A newer process has taken this worker's id."""


class NotAssigned(ChorusError, TimeoutError, code="not_assigned"):
    """Until the deadline nobody made a group of that name with this worker in it."""


class NoNewEpoch(ChorusError, TimeoutError, code="no_new_epoch"):
    """The group's epoch has failed or lost a member, and there was no newer one until the deadline."""


class Stopped(ChorusError, code="stopped"):
    """The worker was stopped, or the object is closed."""


class Aborted(ChorusError, code="aborted"):
    """An earlier call of the epoch has failed, or the worker stops."""


class ProtocolError(ChorusError, code="protocol_error"):
    """A member sent what cannot be."""


class NotCancellable(ChorusError, code="not_cancellable"):
    """The call has ended, or another member may wait for it; `Work.cancel` returns False then."""


class OutOfMemory(ChorusError, MemoryError, code="out_of_memory"):
    """The memory limit of the worker or of the system is reached."""


class NotShared(ChorusError, code="not_shared"):
    """This worker shares no memory with others."""


class BindFailed(ChorusError, OSError, code="bind_failed"):
    """The host and port to listen on cannot be had."""


class BadSecurity(ChorusError, code="bad_security"):
    """A file of tokens or a certificate that cannot be used."""


class LibraryNotFound(ChorusError, OSError):
    """libchorus.so.0 was not found, cannot be loaded, or is of another version."""


class RankFailed(ChorusError):
    """The function of `chorus.run` failed on the rank ``ranks[0]``; ``__cause__`` is what it raised there."""
