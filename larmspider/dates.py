"""Dates in headers and feeds, as seconds since the epoch.

>>> http_time("Sun, 06 Nov 1994 08:49:37 GMT"), http_time("Sun Nov  6 08:49:37 1994")
(784111777.0, 784111777.0)
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_tz


def http_time(text: str) -> float | None:
    """A date in one of the three forms of RFC 9110 5.6.7, or of a mail; None for other texts.

    A date without a zone is UTC, as in the form of asctime. ``-0000`` also means UTC (RFC 5322
    3.3). A leap second counts as the second before it.
    """
    try:
        found = parsedate_tz(text)
        if found is None:
            return None
        year, month, day, hour, minute, second = found[:6]
        date = datetime(year, month, day, hour, minute, 59 if second == 60 else second, tzinfo=UTC)
        return date.timestamp() - (found[9] or 0)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
