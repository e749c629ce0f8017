"""A fetch that the frontier makes for itself, in its host's turn, before the host's pages.

    own = OwnFetch(FetchKind.SOURCE, "http://wiki/sitemap.xml", released, ended)

dispatch.py makes a lease of it, and the scheduler fetches the URL. Then Frontier.own_ended() calls
``ended``, or Frontier.release() calls ``released``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from larmspider.items import Page


class FetchKind(Enum):
    """The purpose of a fetch."""

    PAGE = "page"
    ROBOTS = "robots"
    LOGIN = "login"
    """A step of signing in (scheduler/login_fetch.py)."""
    SOURCE = "source"
    """A sitemap or feed (sources.py)."""
    MADE_UP = "made-up"
    """An invented URL: its response shows how the host answers for missing pages
    (error_pages.py)."""
    VIEW_PROBE = "view-probe"
    """A page that worked: it shows whether a host fails, or one of its views (broken_views.py)."""


def _nothing(answer: str, entries: int, page: Page | None) -> None:
    """Frontier does what follows by itself."""


@dataclass(slots=True, eq=False)
class OwnFetch:
    """``released`` is called if the request was not made, else ``ended``: with the answer (an HTTP
    status, what was wrong with a document, or a kind of failure), the number of URLs that a source
    names, and the page that a made-up URL gave. ``hops``: redirects that were followed. ``began``:
    when the first request was made, by time.monotonic(). ``seconds``: from ``began`` to the answer.
    ``retry_after``: the seconds of its Retry-After, if any."""

    kind: FetchKind
    url: str
    released: Callable[[], None] = field(repr=False)
    ended: Callable[[str, int, Page | None], None] = field(default=_nothing, repr=False)
    hops: int = 0
    began: float = 0.0
    seconds: float = 0.0
    retry_after: float | None = None
