"""Synthetic clicks: users like items whose taste is like theirs. All of it follows from a seed."""

from __future__ import annotations

from typing import NamedTuple

import numpy

USERS, ITEMS, TASTES = 200, 50, 2
SEED = 39


class Batch(NamedTuple):
    """Numbers of users and items, as a service would have them, and whether the user has clicked: 0 or 1."""

    users: numpy.ndarray
    items: numpy.ndarray
    clicked: numpy.ndarray


class Clicks:
    """Draws batches of clicks; the same ones for each who asks."""

    def __init__(self) -> None:
        random = numpy.random.default_rng(SEED)
        self.users = numpy.unique(random.integers(1 << 40, size=USERS))  # hashes: rows of a table of 2^40
        self.items = numpy.unique(random.integers(1 << 40, size=ITEMS))
        self._taste_of_users = random.normal(size=(len(self.users), TASTES))
        self._taste_of_items = random.normal(size=(len(self.items), TASTES))

    def batch(self, stream: int, number: int, size: int) -> Batch:
        """Returns batch `number` of a stream, such as a worker's."""
        random = numpy.random.default_rng([SEED, stream, number])
        users = random.integers(len(self.users), size=size)
        items = random.integers(len(self.items), size=size)
        liking = (self._taste_of_users[users] * self._taste_of_items[items]).sum(axis=1)
        clicked = random.random(size) < 1 / (1 + numpy.exp(-2 * liking))
        return Batch(self.users[users], self.items[items], clicked.astype("f4"))
