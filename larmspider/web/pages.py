"""A page: its path, the function that answers, and its place in the navigation.

PAGES = (Page("/hosts", hosts, "Hosts"), Page("/hosts/{host}", host))

The function runs in a thread (work.py) and may take its time there; it gets an Ask and gives a
Reply, or raises Refused, whose text becomes the error page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from larmspider.web.request import Ask, Reply


@dataclass(frozen=True, slots=True)
class Page:
    """``path`` as aiohttp's routes have it. ``nav`` is the title in the navigation, "" for none.

    ``without_crawl``: it makes sense in a directory without a crawl too. ``live``: ``ask.numbers``
    is asked for.
    """

    path: str
    answer: Callable[[Ask], Reply]
    nav: str = ""
    without_crawl: bool = False
    live: bool = False
