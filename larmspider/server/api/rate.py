"""How many requests each sender may make to the API in a minute."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from larmspider.errors import HttpError

PER_MINUTE = 300
"""Searches and pages; a search costs 5 to 50 ms of CPU."""
MAX_SENDERS = 10_000
"""Senders that are remembered, some 2 MB; one more takes the place of the oldest."""


class Rate:
    """Limits each sender: ``per_minute`` of ``what`` at once, and the same number a minute."""

    def __init__(
        self,
        per_minute: int = PER_MINUTE,
        what: str = "searches and pages",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most, self._what, self._clock = per_minute, what, clock
        self._left: dict[str, tuple[float, float]] = {}

    def check(self, who: str) -> None:
        """Count a request. Raises HttpError if its sender has sent too many."""
        left, _ = self._now(who)
        if left < 1:
            secs = (1 - left) / self._most * 60
            raise too_many(f"More than {self._most:,} {self._what} a minute", secs)

    def took(self, who: str, number: int = 1) -> None:
        left, now = self._now(who)
        self._left.pop(who, None)  # it becomes the newest
        while len(self._left) >= MAX_SENDERS:
            del self._left[next(iter(self._left))]
        self._left[who] = left - number, now

    def _now(self, who: str) -> tuple[float, float]:
        now = self._clock()
        left, at = self._left.get(who, (float(self._most), now))
        return min(self._most, left + (now - at) * self._most / 60), now


def too_many(why: str, secs: float) -> HttpError:
    """The error for a sender that has to wait; ``values["seconds"]`` is Retry-After."""
    seconds = max(1, math.ceil(secs))
    return HttpError(why + "; try again in {seconds} s.", 429, seconds=seconds)
