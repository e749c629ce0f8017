"""The links around a page: which pages lead to it, and where it leads; bounded lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from larmspider.crawl.reader import CrawlDir
from larmspider.items import FRAME, REDIRECT

LIMIT = 50
KINDS = {str(FRAME): "frame", str(REDIRECT): "redirect"}


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A page or a target; ``kind`` is "", frame or redirect. ``normalized`` is "" for a link that
    has no canonical form."""

    url: str
    normalized: str
    kind: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Neighbours:
    """``total_in``: pages that link here, as far as is known; of these ``into`` are the first.

    ``more_in``, ``more_out``: there are more, or may be (``cut_short``: the time was up).
    """

    into: Sequence[Neighbour]
    out: Sequence[Neighbour]
    total_in: int
    more_in: bool
    more_out: bool
    cut_short: bool


def neighbours(crawl: CrawlDir, normalized: str, fetched_as: str, limit: int = LIMIT) -> Neighbours:
    """``fetched_as`` is the URL that was fetched, "" where it was not: then it leads nowhere."""
    into: dict[str, Neighbour] = {}
    more_in = False
    for page, _, _, kind, anchor in crawl.logs.links_to(normalized):
        if len(into) >= limit:
            more_in = True
            break
        into.setdefault(page, Neighbour(page, "", KINDS.get(kind, ""), anchor))
    target = crawl.logs.target(normalized)
    total = max(len(into), target.pages if target else 0)
    links = crawl.logs.links_from(fetched_as, limit + 1) if fetched_as else []
    out = [
        Neighbour(url, target_url, KINDS.get(kind, ""), anchor)
        for _, url, target_url, kind, anchor in links or ()
    ]
    return Neighbours(
        into=list(into.values()),
        out=out[:limit],
        total_in=total,
        more_in=more_in or total > len(into),
        more_out=len(out) > limit or links is None,
        cut_short=crawl.logs.cut_short,
    )
