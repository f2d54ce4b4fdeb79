"""What the ranks of `Elastic` leave at the coordinator when they have ended, for one that comes back afterwards."""

from __future__ import annotations

import contextlib
import os

from ..client import Client
from ..errors import ChorusError
from ..ranks import ENDED, Place


class TooLate(ChorusError):
    """This process was started again, and the other ranks have ended meanwhile. `step` says with which step."""

    def __init__(self, message: str, step: int) -> None:
        super().__init__(message)
        self.step = step


def tell(place: Place, step: int) -> None:
    """Leaves a group of the calling rank, in whose name is the step."""
    with contextlib.suppress(ChorusError), Client(place.coordinator) as client:
        client.create_group(f"{_prefix(place)}{step}", [place.id(place.rank)], on_failure="fail")


def check(place: Place) -> None:
    """Raises `TooLate` in a process that was started again after the others have ended."""
    if is_first_start():
        return
    for name, step in _told(place).items():
        raise TooLate(
            f"the other ranks of group {place.group!r} have ended with step {step}, as group {name!r} says: rank "
            f"{place.rank}, which was started again, has nothing to go on from",
            step,
        )


def is_first_start() -> bool:
    return os.environ.get("CHORUS_RESTART", "0") == "0"


def _prefix(place: Place) -> str:
    return place.group + ENDED


def _told(place: Place) -> dict[str, int]:
    """Returns steps by the names of groups."""
    with Client(place.coordinator) as client:
        names = [group.name for group in client.groups() if group.name.startswith(_prefix(place))]
    steps = {name: name.removeprefix(_prefix(place)) for name in names}
    return {name: int(step) for name, step in steps.items() if step.isdigit()}
