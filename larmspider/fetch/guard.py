"""Whether a crawl may send anything now: a worker among many may not when its lease is over.

    set_guard(crawler, lambda: lease.valid)
    guard_of(crawler)                         # None: a crawl that has nobody to ask

It is asked before libcurl gets to do anything, so that a process that was stopped for an hour sends
nothing of what it had begun.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

Guard = Callable[[], bool]
_guards: WeakKeyDictionary[Crawler, Guard] = WeakKeyDictionary()


def set_guard(crawler: Crawler, may_send: Guard) -> None:
    """Before its first fetch."""
    _guards[crawler] = may_send


def guard_of(crawler: Crawler) -> Guard | None:
    """The one that was set."""
    return _guards.get(crawler)
