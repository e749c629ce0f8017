"""Whether this worker may still act, by its own clock: nobody else has its hosts as long as it may.

    lease = WorkerLease(15.0)
    sent = lease.now()
    ...                            # Redis renews it, and says so
    lease.renewed(sent)
    lease.valid                    # for 13.5 s from ``sent`` on

The clock counts on while the process is stopped and while the machine sleeps: a worker that wakes
after an hour knows at once that its time is over. Redis lets others have its hosts a full lease
after the renewal came there, which is later than it was sent; a tenth of the lease is left for
clocks that run at different speeds and for what was begun just before.
"""

from __future__ import annotations

import time
from collections.abc import Callable

MARGIN = 0.1
"""Part of the lease that is not used."""


def clock() -> float:
    """Seconds of a clock that nobody sets and that counts while process or machine are stopped."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class WorkerLease:
    """``seconds`` is LARM_LEASE_SECS. Not valid before it is renewed first."""

    def __init__(self, seconds: float, now: Callable[[], float] = clock) -> None:
        self.seconds, self.now = seconds, now
        self.until = float("-inf")
        self._ended = False

    def __repr__(self) -> str:
        left = "ended" if self._ended else f"{self.until - self.now():+.1f} s"
        return f"<WorkerLease {left}>"

    def renewed(self, sent: float) -> None:
        """Redis has renewed it; it was asked to at ``sent``, by now()."""
        self.until = max(self.until, sent + self.seconds * (1 - MARGIN))

    def end(self) -> None:
        """It is over for good: given up, or taken. A renewal that is under way changes nothing."""
        self._ended = True

    @property
    def valid(self) -> bool:
        """May hosts be asked now? 0.2 us."""
        return not self._ended and self.now() < self.until
