"""Retry-After, seconds or a date (RFC 9110 10.2.3): how long a server asks us to stay away."""

from __future__ import annotations

from email.utils import parsedate_to_datetime


def retry_after(value: bytes | None, now: float) -> float | None:
    """Seconds from ``now`` (since the epoch), 0 or more; None without a header that can be read."""
    if value is None:
        return None
    text = value.decode("latin-1").strip()
    if text.isascii() and text.isdigit():
        return float(text[:10])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None
