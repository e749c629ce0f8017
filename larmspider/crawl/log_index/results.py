"""The field ``result`` of fetch.log, read: is the link to this URL broken?"""

from __future__ import annotations

NOT_ASKED = frozenset({"robots", "scope", "ignored"})
"""Results of URLs that were not asked for."""


def is_failure(result: str) -> bool:
    """A status from 400 on, or no answer.

    >>> [is_failure(result) for result in ("200", "301", "404", "dns", "robots")]
    [False, False, True, True, False]
    """
    if result.isdecimal():
        return int(result) >= 400
    return result not in NOT_ASKED
