"""Best bets: links above the hits of certain queries, in a text file, one a line.

    # queries, separated by commas => URL, and a title that replaces the page's own
    vpn, remote access => http://wiki.example/it/vpn
    holiday            => https://hr.example/leave  Apply for leave

A typed query must equal one of these queries; capital letters and accents make no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import can_ada

from larmspider.search.snippets import one_line
from larmspider.search.synonyms import Problems, folded

if TYPE_CHECKING:
    from larmspider.search.searcher import Searcher

MAX_LINKS = 5
"""Links of one query. A line with one link more is a bad line, but counts for its other queries."""
_MAX_URL = 2_048
_EXPECTED = "expected queries => URL title, as in: vpn, remote access => http://wiki.example/vpn"


@dataclass(frozen=True, slots=True)
class BestBet:
    """A link above the results. An empty ``title`` means the title of the page, if the index has
    it. ``place`` is the URL as browsers read it; access rights are checked by ``place``."""

    url: str
    title: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class BestBets:
    """Links by the folded words of a query."""

    links: Mapping[tuple[str, ...], tuple[BestBet, ...]] = field(default_factory=dict)

    def of(self, query: str, may_see: Callable[[str], bool]) -> list[BestBet]:
        """The links for a query, without links to pages that the reader may not see."""
        found = self.links.get(folded(query), ())
        return [bet for bet in found if may_see(bet.place)]


NO_BEST_BETS = BestBets()


def parse_best_bets(lines: Iterable[str]) -> tuple[BestBets, Problems]:
    """The links of all good lines, and the bad lines."""
    links: dict[tuple[str, ...], tuple[BestBet, ...]] = {}
    problems: Problems = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        named, arrow, link = text.partition("=>")
        queries = [words for query in named.split(",") if (words := folded(query))]
        url, _, title = link.strip().partition(" ")
        place = _place(url)
        if not arrow or not queries or not url:
            problems.append((number, f"{text!r:.60}: {_EXPECTED}"))
        elif place is None:
            problems.append(
                (number, f"{url!r:.60}: expected a URL that begins with http:// or https://")
            )
        else:
            bet = BestBet(url, " ".join(title.split()), place)
            for words in dict.fromkeys(queries):
                if len(others := links.get(words, ())) < MAX_LINKS:
                    links[words] = (*others, bet)
                else:
                    full = f"{' '.join(words)!r:.60} has {MAX_LINKS} links already"
                    problems.append((number, f"{url!r:.60}: {full}, the maximum"))
    return BestBets(links), problems


def titled(
    bets: Iterable[BestBet], searcher: Searcher, exact: Callable[[str], str]
) -> list[BestBet]:
    """The links; a link without a title gets the title of its page. ``exact`` gives the exact form
    of a URL."""
    found = []
    for bet in bets:
        page = None if bet.title else searcher.get(exact(bet.url))
        found.append(replace(bet, title=one_line(page.title)) if page else bet)
    return found


def _place(url: str) -> str | None:
    """The URL in the form in which browsers read it; None for a URL that cannot be a link."""
    if len(url) > _MAX_URL or not url.isprintable():
        return None
    try:
        parsed = can_ada.parse(url)
    except ValueError:
        return None
    if parsed.protocol not in ("http:", "https:") or parsed.username or parsed.password:
        return None
    return str(parsed.href)
