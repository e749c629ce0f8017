"""Traps: URLs that a server makes without end.

http://h/a/b/a/b/a/b/           a relative link that is resolved again on each page
http://h/x/x/x/... (30 deep)    likewise
http://wiki/cal/2093-04/        a calendar whose "next month" link never ends
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import date
from operator import itemgetter
from typing import TYPE_CHECKING, Self

from larmspider import options
from larmspider.middlewares.url_filter import UrlFilter
from larmspider.urls.schemes import is_source

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_YEAR = r"((?:19|20|21)\d\d)"
_MONTH = r"(0?[1-9]|1[0-2])"
_YEAR_MONTH = re.compile(
    rf"(?<!\d){_YEAR}([-/_.]){_MONTH}(?!\d)"  # 2093-04, 2093/4
    rf"|[?&;]year={_YEAR}[&;]month={_MONTH}(?!\d)"
    rf"|[?&;](?:date|month|day|start|week)={_YEAR}(0[1-9]|1[0-2])(?:\d\d)?(?!\d)",
    re.IGNORECASE,
)
_CALENDAR = re.compile(
    r"[/?&;._-](?:cal|calendar|kalender|calendrier|agenda|events?|termine?|schedule"
    r"|month|year|week|day|date)(?:[/?&;=._-]|$)",
    re.IGNORECASE,
)


class TrapsFilter(UrlFilter):
    """Rejects a path of more than ``depth`` segments, a path in which one segment stands
    ``repeats`` times or more (numbers of one or two digits do not count), and calendar pages more
    than ``horizon`` months away from ``today``.

    A future month in the form 2093-04 is enough to reject a URL. Any other month also needs a URL
    that looks like a calendar, because http://news/2009/05/ is an archive and
    http://forum/topic/2045/2 a discussion. 0 turns a check off.
    """

    name = "traps"
    remembers = True  # days pass, but the horizon is in months

    def __init__(
        self, depth: int, repeats: int, horizon: int, today: Callable[[], date] = date.today
    ) -> None:
        self.depth = depth
        self.repeats = repeats
        self.horizon = horizon
        self.today = today

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        return cls(
            options.integer(settings, "LARM_PATH_DEPTH_LIMIT", minimum=0),
            options.integer(settings, "LARM_PATH_REPEATS_LIMIT", minimum=0),
            options.integer(settings, "LARM_CALENDAR_HORIZON_MONTHS", minimum=0),
        )

    def reject_reason(self, url: str) -> str | None:
        if is_source(url):
            return None  # a walk of folders always ends (fetch/file_handler.py)
        path = url.partition("?")[0].split("/")[3:]
        if 0 < self.depth < len(path) - (path[-1:] == [""]):
            return f"path deeper than {self.depth} (LARM_PATH_DEPTH_LIMIT)"
        if 0 < self.repeats <= len(path) and len(set(path)) < len(path):
            segment, times = max(
                Counter(filter(_counts, path)).items(), key=itemgetter(1), default=("", 0)
            )
            if times >= self.repeats:
                return f"path repeats {segment!r} {times} times (LARM_PATH_REPEATS_LIMIT)"
        if self.horizon and _YEAR_MONTH.search(url):
            return self._calendar_reason(url)
        return None

    def _calendar_reason(self, url: str) -> str | None:
        today = self.today()
        for groups in _YEAR_MONTH.findall(url):
            year, month = (int(group) for group in groups if group.isdigit())
            ahead = (year - today.year) * 12 + month - today.month
            plain = ahead > 0 and "-" in groups
            if abs(ahead) > self.horizon and (plain or _CALENDAR.search(url)):
                return (
                    f"{year}-{month:02} is {abs(ahead)} months away (LARM_CALENDAR_HORIZON_MONTHS)"
                )
        return None


def _counts(segment: str) -> bool:
    return not (len(segment) < 3 and (not segment or segment.isdigit()))
