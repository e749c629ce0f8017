"""A cached value that is refreshed in the background (stale-while-revalidate, RFC 5861).

    hosts = RefreshingCache(read_hosts, seconds=5.0)
    hosts.get()          # made now
    hosts.get()          # 6 s later: the old value, while a thread makes a new one
    hosts.get(wait=True) # 6 s later: made now

A value older than STALE times its age limit is made before get() returns. Making takes at most
SHARE of the time, because it shares the interpreter with the crawl: a value that costs much CPU is
refreshed less often. Waiting does not count: otherwise a read that waited 6 s for a busy machine
would be shown for 5 minutes. A value made from another cached one reads that one with
``wait=True``, or it would be older than the limits of both.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from larmspider.errors import LarmspiderError

T = TypeVar("T")

SHARE = 0.02
STALE = 4.0
"""The age at which get() no longer returns a value, in multiples of the age limit."""


class RefreshingCache(Generic[T]):
    """One thread at a time calls ``make``. get() raises its errors."""

    def __init__(
        self,
        make: Callable[[], T],
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        self._make, self._seconds, self._clock, self._cpu = make, seconds, clock, cpu
        self._making = threading.Lock()
        self.seconds_to_make = 0.0
        """CPU seconds that the last value took."""
        self._value: T | None = None
        self._made = self._lasts = float("-inf")
        self._forgotten = 0

    def get(self, *, wait: bool = False) -> T:
        """The value, at most STALE times as old as the limit; with ``wait`` never older than the
        limit, for callers in the background."""
        age, value = self._clock() - self._made, self._value
        if age < self._lasts and value is not None:
            return value
        given = 1.0 if wait else STALE
        if age < given * self._lasts and value is not None:
            if self._making.acquire(blocking=False):
                threading.Thread(target=self._again, name="larm-web-kept", daemon=True).start()
            return value
        with self._making:
            if self._value is None or self._clock() - self._made >= given * self._lasts:
                self._set()
            assert self._value is not None
            return self._value

    def forget(self) -> None:
        """Let the next get() make a new value, even while a value is being made."""
        self._forgotten += 1
        self._made = self._lasts = float("-inf")

    def _again(self) -> None:
        try:
            self._set()
        except LarmspiderError:
            self.forget()  # the next get() raises it
        finally:
            self._making.release()

    def _set(self) -> None:
        began, forgotten = self._cpu(), self._forgotten
        self._value = self._make()
        if forgotten == self._forgotten:
            self._made = self._clock()
            self.seconds_to_make = self._cpu() - began
            self._lasts = max(self._seconds, self.seconds_to_make / SHARE)
