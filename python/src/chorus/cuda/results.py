"""What calls write to arrays on GPUs: copied there by whoever waits for the call."""

from __future__ import annotations

import bisect
import itertools
import threading
import weakref
from collections.abc import Callable, Sequence

from ..errors import ChorusError
from . import staging
from .staging import Staged

_claiming = threading.RLock()  # a signal's handler may call
_claimed: weakref.WeakSet[Results] = weakref.WeakSet()  # of calls that nobody has waited for


class Results:
    """The arrays on GPUs that a call writes to. As a context it is the call: leaving it copies the results.

    An array has its result only after that: a second call would read what the array held before the first one. So a
    call is refused while its arrays belong to another one.

    Parameters
    ----------
    written : sequence of Staged
        Not to be used by other calls from `claim` to `finish`.
    nbytes : callable, optional
        Returns, after the call, how many of the first bytes it has written; all unless given.

    Attributes
    ----------
    error : ChorusError or None
        Why the results could not be copied.
    """

    def __init__(self, written: Sequence[Staged], nbytes: Callable[[], int] | None = None) -> None:
        self._written, self._nbytes = written, nbytes
        spans = sorted((one.address, one.address + one.nbytes) for one in written)
        self._begins, self._ends = [begin for begin, _ in spans], [end for _, end in spans]
        self._lock = threading.RLock()  # a signal's handler may ask for a result during the copy
        self._finished = not written
        self.error: ChorusError | None = None

    def claim(self, read: Sequence[Staged]) -> None:
        """Makes the arrays the call's own.

        Raises
        ------
        ValueError
            A call that nobody has waited for writes to one of them, or to one of `read`; or two of them overlap.
        """
        if any(end > begin for end, begin in zip(self._ends, itertools.islice(self._begins, 1, None))):
            raise ValueError("two arrays that the call writes to overlap")
        with _claiming:
            for other in list(_claimed):
                for one in (*self._written, *read):
                    if other._has(one):
                        raise ValueError(
                            f"the array on {one.name} is the result of a call that nobody has waited for: wait first"
                        )
            if not self._finished:
                _claimed.add(self)

    def finish(self, ended_well: bool) -> None:
        """Copies the results if the call has ended well, and lets go of the arrays. Later calls do nothing."""
        if self._finished:
            return
        with self._lock:
            if self._finished:
                return
            if ended_well:
                try:
                    staging.store(self._written, self._nbytes() if self._nbytes is not None else None)
                except ChorusError as error:
                    self.error = error
            self._finished, self._written = True, ()
        with _claiming:
            _claimed.discard(self)

    def __enter__(self) -> Results:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.finish(kind is None)
        if kind is None and self.error is not None:
            raise self.error

    def _has(self, array: Staged) -> bool:
        position = bisect.bisect_left(self._begins, array.address + array.nbytes)
        return position > 0 and self._ends[position - 1] > array.address


NONE = Results(())  # of a call without arrays on GPUs
