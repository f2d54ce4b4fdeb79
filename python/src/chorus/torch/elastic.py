"""`Elastic`: DistributedDataParallel that goes on when ranks are lost, and when they come back."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from ..client import Client
from ..deadline import Deadline
from ..errors import ChorusError
from ..native.group import ends_well
from ..native.problems import BadArgument, Fenced, Stopped
from ..native.worker import Worker
from ..problems import UnknownGroup
from ..ranks import Place, forget, place_of
from . import build, ended
from .rendezvous import enter
from .session import Lent, worker_options
from .state import Stateful, share

T = TypeVar("T")


class Elastic:
    """Trains a model by DistributedDataParallel on ranks that may be lost, and may come back.

    The ranks are the members of a group that shrinks: when one is lost, the others are its next epoch; when the
    process is started again, with the same environment, it enters in another one. At the beginning of each epoch the
    rank that has done the most steps broadcasts its step, model, optimizer and `others`, so that all go on from there
    with the same bits. A step that was interrupted is done again. Nothing is written to disk or read from it. A process
    that is started again when the others have ended raises `TooLate`.

    The environment says which rank of which group a process is, as for `chorus.init`: `chorus.launch` sets it, and
    starts ranks again with ``--restarts``. Calls of torch.distributed go to the ranks that are there; its process group
    is this object's. For one thread.

    Parameters
    ----------
    model : torch.nn.Module
        On the CPU, of the same structure on every rank.
    optimizer : torch.optim.Optimizer
        Of the model's parameters.
    *others : Stateful
        What else ranks have alike, such as a scheduler of learning rates.
    min_ranks : int
        With fewer ranks training waits until one comes back, as long as `timeout`.
    timeout : float
        Seconds that a call may take, and an epoch until it begins. A rank that has ended is noticed at once.
    **options
        Of DistributedDataParallel.

    Attributes
    ----------
    step, began : int
        How many steps have been done; and with how many the present epoch began. The same on all ranks.
    model : torch.nn.parallel.DistributedDataParallel
        That of the present epoch.

    Examples
    --------
    >>> with chorus.torch.Elastic(model, optimizer) as elastic:
    ...     while elastic.step < 1000:
    ...         elastic.train(lambda model: loss_of(model, batch(elastic.step, elastic.rank, elastic.size)).backward())
    """

    def __init__(
        self, model: Any, optimizer: Any, *others: Stateful, min_ranks: int = 1, timeout: float = 300.0, **options: Any
    ) -> None:
        build.load()
        self.step, self.began, self.model = 0, 0, None
        self._module, self._optimizer, self._others = model, optimizer, others
        self._timeout, self._options, self._is_new = timeout, options, True
        self._place = place = place_of(os.environ)
        ended.check(place)
        self._worker = Worker(place.coordinator, place.id(place.rank), interruptible=False, **worker_options())
        try:
            if place.rank == 0:
                _make_group(place, min_ranks, timeout)
            self._form()
        except BaseException:
            self.close()
            raise

    @property
    def rank(self) -> int:
        """The rank of this process among those that are there."""
        return self._group.rank

    @property
    def size(self) -> int:
        """How many ranks are there."""
        return self._group.size

    def __enter__(self) -> Elastic:
        return self

    def __exit__(self, _: object, error: object, *__: object) -> None:
        while ends_well(error):  # until the ranks that are there meet, with the same state
            try:
                self._group.barrier(timeout=self._timeout)
                break
            except ChorusError as failure:
                if not _ends_epoch(failure):
                    raise
            self._form()
        if ends_well(error) and self.rank == 0:
            ended.tell(self._place, self.step)
        self.close()

    def close(self) -> None:
        """Leaves the group at once; leaving the ``with`` waits for the other ranks first."""
        self._leave()
        self._worker.close()

    def train(self, gradients: Callable[[Any], T]) -> T | None:
        """Tries to do a step: calls `gradients`, and then the optimizer's ``step``.

        Parameters
        ----------
        gradients : callable
            Takes `model`; computes the gradients of its parameters, which are None before: forward and backward.

        Returns
        -------
        What `gradients` returned. None if the ranks have changed meanwhile: `step`, `rank` and `size` are new then.

        Raises
        ------
        ChorusError
            No new epoch has begun within the timeout. What `gradients` raises by itself is raised as it is.
        """
        self._optimizer.zero_grad(set_to_none=True)
        try:
            result = gradients(self.model)
        except Exception as error:
            if not _ends_epoch(error):
                raise
        else:
            self._optimizer.step()
            self.step += 1
            return result
        self._form()  # the exception, whose frames had the model, is gone
        return None

    def _form(self) -> None:
        """Joins the next epoch in which all ranks come to have the same state."""
        deadline = Deadline(self._timeout)
        while True:
            self._leave()
            self._group = self._worker.join(self._place.group, max(0.001, deadline.within(self._timeout)))
            try:
                enter(Lent(self._place.coordinator, self._worker, self._group), self._timeout)
                self._catch_up()
                self.model = torch.nn.parallel.DistributedDataParallel(self._module, **self._options)
                return
            except Exception as error:
                if not _ends_epoch(error) or deadline.passed():
                    raise

    def _leave(self) -> None:
        self.model = None
        if dist.is_initialized():
            dist.destroy_process_group()
        gc.collect()  # with what DistributedDataParallel has left at the parameters

    def _catch_up(self) -> None:
        """Gives all ranks the state of the first of those that have done the most steps."""
        steps = [torch.empty((), dtype=torch.int64) for _ in range(self.size)]
        dist.all_gather(steps, torch.tensor(-1 if self._is_new else self.step))
        source = max(range(self.size), key=lambda rank: (int(steps[rank]), -rank))
        if int(steps[source]) == -1:  # nobody has done a step yet, or all who had have ended
            ended.check(self._place)
        share([self._module, self._optimizer, *self._others], source)
        self.step = self.began = max(0, int(steps[source]))
        self._is_new = False


def _make_group(place: Place, min_ranks: int, timeout: float) -> None:
    """Makes the group, unless it is there: this process has come back then."""
    with Client(place.coordinator, timeout=timeout) as client:
        if ended.is_first_start():
            forget(client, place.group)
        try:
            client.group(place.group)
        except UnknownGroup:
            ids = [place.id(rank) for rank in range(place.size)]
            client.wait_for_workers(ids)
            client.create_group(place.group, ids, on_failure="shrink", min_ranks=min_ranks)


def _ends_epoch(error: Exception) -> bool:
    """Whether a call of the group has failed, and not the program."""
    if isinstance(error, ChorusError):
        return not isinstance(error, (BadArgument, Fenced, Stopped, ended.TooLate))
    return isinstance(error, RuntimeError) and "chorus: " in str(error)  # torch hands over the text alone
