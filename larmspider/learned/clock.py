"""Jumps of the clock, which must not count as time that a page or a host has waited.

    jumps.saw(last, now)                     # the clock of the last checkpoint, and of this run
    now - since < DAY                        # becomes:
    jumps.now_for(since, now) - since < DAY

A clock that is a year ahead for a night looks like a year without a run. No visit was made in that
gap. A gap of more than 7 days, and more than twice the gap before, therefore counts as a short gap.
"""

from __future__ import annotations

import msgspec

from larmspider.learned.revisits.refresh import DAY

LEAST_JUMP_SECS = 7 * DAY
"""A shorter gap between two runs counts as a whole: runs may be a week apart."""
_COUNTED_SECS = 2 * DAY  # seconds of a jump that count: a night may have had no run
_MOST_GAP_SECS = 45 * DAY  # a longer gap is forgotten, for it was a jump itself
_MOST_JUMPS = 20  # 27 bytes each, in a note


class ClockJumps(msgspec.Struct, array_like=True):
    """New fields go to the end, with a default. ``gap``: the seconds between the last
    two runs. ``jumps``: the clock before and after each jump, and the seconds that do not count."""

    gap: float = 0.0
    jumps: list[tuple[float, float, float]] = []

    def saw(self, last: float, now: float) -> None:
        """The crawl last wrote its clock at ``last``, 0.0 for never. A clock that was set back
        forgets the jumps that it took back, and the gap before.

        >>> jumps = ClockJumps()
        >>> for day, next_day in ((1, 2), (2, 367), (367, 4), (4, 370), (370, 371)):
        ...     jumps.saw(day * DAY, next_day * DAY)
        >>> (jumps.now_for(3 * DAY, 371 * DAY) - 3 * DAY) / DAY
        4.0
        """
        self.jumps = [one for one in self.jumps if one[1] <= now]
        if now <= last:
            self.gap = 0.0  # perhaps the jump itself, which is taken back
            return
        if not last:
            return
        gap, usual = now - last, 2 * self.gap
        if gap > max(LEAST_JUMP_SECS, usual):
            skipped = gap - max(_COUNTED_SECS, usual)
            self.jumps = [*self.jumps, (last, now, skipped)][-_MOST_JUMPS:]
        self.gap = min(gap, _MOST_GAP_SECS)

    def now_for(self, since: float, now: float) -> float:
        """The time now, without the jumps since a time.

        >>> jumps = ClockJumps()
        >>> jumps.saw(10 * DAY, 375 * DAY)
        >>> (jumps.now_for(9 * DAY, 376 * DAY) - 9 * DAY) / DAY
        4.0
        """
        return now - sum(skipped for last, at, skipped in self.jumps if since <= last and at <= now)
