"""Times as logs and commands show them: UTC, to the millisecond."""

from __future__ import annotations

from datetime import UTC, datetime


def utc(epoch: float) -> str:
    """Seconds since the epoch as ``2026-01-31T12:00:00.000Z``."""
    return datetime.fromtimestamp(epoch, UTC).isoformat(timespec="milliseconds")[:23] + "Z"
