"""Links as data: around a page, between hosts, the most linked, the broken; and as CSV.

>>> with crawl.logs.index() as index:
...     broken_links(crawl.logs, index, index.broken()[:100], referrers=5)
[BrokenLink(url='http://wiki/gone', result='404', ..., pages=12, carriers=[...])]
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import cos, hypot, log, pi, sin, sqrt

from larmspider.crawl.log_index.index import LogIndex
from larmspider.crawl.logs import CrawlLogs
from larmspider.crawl.reader import CrawlDir
from larmspider.formatting import counted, defused, escaped
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import url_key
from larmspider.items import FRAME, REDIRECT
from larmspider.learned.describe import stand_in
from larmspider.learned.spellings.aliases import HostAliases, sentence
from larmspider.urls.equivalence import names_of

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
    """``into``: the first of the ``total_in`` pages that are known to link here. ``more_in``,
    ``more_out``: whether there are, or may be, more. ``cut_short``: the search ran out of time.
    """

    into: Sequence[Neighbour]
    out: Sequence[Neighbour]
    total_in: int
    more_in: bool
    more_out: bool
    cut_short: bool


def neighbours(crawl: CrawlDir, exact: str, fetched_as: str, limit: int = LIMIT) -> Neighbours:
    """The links around a page. ``fetched_as`` is the URL that was fetched, "" for none: then no
    links out of it are known."""
    into: dict[str, Neighbour] = {}
    more_in = False
    for page, _, _, kind, anchor in crawl.logs.links_to(exact):
        if len(into) >= limit:
            more_in = True
            break
        into.setdefault(page, Neighbour(page, "", KINDS.get(kind, ""), anchor))
    target = crawl.logs.target(exact)
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


WIDTH, HEIGHT = 1000.0, 640.0
MARGIN = 100.0
"""Space for names at the left and right; a third of it above and below."""
HOSTS = 30
ROUNDS = 150


@dataclass(frozen=True, slots=True)
class Node:
    """A host in the picture. ``links``: the number of links to it. ``radius``: in units of the
    picture."""

    host: str
    links: int
    x: float
    y: float
    radius: float


@dataclass(frozen=True, slots=True)
class HostLink:
    """A line in the picture; ``width`` grows with the logarithm of ``links``."""

    x1: float
    y1: float
    x2: float
    y2: float
    width: float
    links: int
    title: str


@dataclass(frozen=True, slots=True)
class HostGraph:
    """``nodes`` are the hosts with most links of ``hosts``."""

    nodes: Sequence[Node]
    edges: Sequence[HostLink]
    hosts: int


def host_graph(links: Mapping[str, int], edges: Mapping[tuple[str, str], int]) -> HostGraph:
    """A picture of hosts and the links between them: ``links`` to each host, ``edges`` from one to
    another.

    Hosts that link each other pull, all push (Fruchterman and Reingold, "Graph Drawing by
    Force-directed Placement", 1991); they start on a circle, so the same crawl gives the same
    picture.
    """
    names = sorted(links, key=lambda name: (-links[name], name))[:HOSTS]
    known = set(names)
    between: dict[tuple[str, str], int] = {}
    for (source, target), count in edges.items():
        if source != target and source in known and target in known:
            pair = (source, target) if source < target else (target, source)
            between[pair] = between.get(pair, 0) + count
    places = _placed(names, between)
    most = max((links[name] for name in names), default=1)
    nodes = [
        Node(name, links[name], *places[name], 5 + 15 * sqrt(links[name] / max(1, most)))
        for name in names
    ]
    drawn = [
        HostLink(
            *places[a], *places[b], 0.6 + log(count + 1) / 2, count,
            f"{a} – {b}: {counted(count, 'link')}",
        )
        for (a, b), count in sorted(between.items())
    ]  # fmt: skip
    return HostGraph(nodes, drawn, len(links))


def _placed(
    names: Sequence[str], between: Mapping[tuple[str, str], int]
) -> dict[str, tuple[float, float]]:
    number = max(1, len(names))
    at = {
        name: [WIDTH / 2 + WIDTH / 3 * cos(2 * pi * n / number),
               HEIGHT / 2 + HEIGHT / 3 * sin(2 * pi * n / number)]
        for n, name in enumerate(names)
    }  # fmt: skip
    ideal = 0.8 * sqrt(WIDTH * HEIGHT / number)
    crowd = max(1.0, 2 * len(between) / number)  # in a dense graph each link pulls less
    for turn in range(ROUNDS if len(names) > 1 else 0):
        moves = {name: [0.0, 0.0] for name in names}
        for n, a in enumerate(names):
            for b in names[n + 1 :]:
                pull = -ideal * ideal
                _move(at, moves, a, b, lambda distance, pull=pull: pull / distance)
        for (a, b), count in between.items():
            strength = (0.5 + log(count + 1) / 4) / crowd
            _move(at, moves, a, b, lambda d, strength=strength: strength * d * d / ideal)
        most = WIDTH / 10 * (1 - turn / ROUNDS) + 1
        for name in names:
            _step(at[name], moves[name], most)
    return _filling(at)


def _filling(at: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, float]]:
    """The positions, stretched over the whole picture."""
    columns = []
    for axis, (side, margin) in enumerate(((WIDTH, MARGIN), (HEIGHT, MARGIN / 3))):
        values = [place[axis] for place in at.values()]
        low, span = min(values, default=0.0), max(values, default=0.0) - min(values, default=0.0)
        room = side - 2 * margin
        columns.append(
            [round(margin + (v - low) / span * room if span else side / 2, 1) for v in values]
        )
    return dict(zip(at, zip(*columns, strict=True), strict=True))


def _move(at, moves, a, b, force) -> None:  # type: ignore[no-untyped-def]
    dx, dy = at[b][0] - at[a][0], at[b][1] - at[a][1]
    distance = max(1.0, hypot(dx, dy))
    share = force(distance) / distance
    moves[a][0] += dx * share
    moves[a][1] += dy * share
    moves[b][0] -= dx * share
    moves[b][1] -= dy * share


def _step(place: list[float], move: list[float], most: float) -> None:
    length = max(1e-9, hypot(*move))
    part = min(length, most) / length
    place[0] = min(WIDTH, max(0.0, place[0] + move[0] * part))
    place[1] = min(HEIGHT, max(0.0, place[1] + move[1] * part))


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """RFC 4180, with CRLF; invisible characters are escaped."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows([escaped(defused(cell)) for cell in row] for row in rows)
    return out.getvalue()


@dataclass(frozen=True, slots=True)
class LinkedPage:
    """``pages`` link to it; ``anchor`` is the first text of such a link that is not empty."""

    url: str
    normalized: str
    pages: int
    anchor: str


@dataclass(frozen=True, slots=True)
class Referrer:
    """A page with a link to a broken target: ``url`` as it stands there, and the link's text."""

    page: str
    url: str
    anchor: str


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """``result`` is an HTTP status from 400 on, or the word for a failure; ``pages`` have the link,
    ``carriers`` are the first of these referrers (as JSON names them)."""

    url: str
    normalized: str
    result: str
    message: str
    time: str
    pages: int
    carriers: Sequence[Referrer]


def most_linked(logs: CrawlLogs, index: LogIndex, start: int, limit: int) -> list[LinkedPage]:
    """The most linked pages from number ``start`` on, counted from 0; the first 1,000 are known."""
    found = []
    for pages, key in index.most_linked()[start : start + limit]:
        target = index.target_of(key)
        offsets = () if target is None else target.offsets[:3]
        links = [link for link in logs.records_at("links.log", offsets) if link]
        if links:
            anchor = next((link[4] for link in links if link[4]), "")
            first = next((link for link in links if _is_to(link, key, logs)), links[0])
            found.append(LinkedPage(first[1], first[2], pages, anchor))
    return found


def _is_to(link: list[str], key: bytes, logs: CrawlLogs) -> bool:
    """Whether a record of links.log has the URL of this key, and not another, merged one."""
    return logs.forms is not None and url_key(logs.forms(link[1]).exact) == key


def broken_links(
    logs: CrawlLogs,
    index: LogIndex,
    rows: Sequence[tuple[int, bytes, int]],
    referrers: int,
) -> list[BrokenLink]:
    """Some rows of LogIndex.broken() with up to ``referrers`` referrers each."""
    targets = [index.target_of(key) for _, key, _ in rows]
    offsets = [() if target is None else target.offsets[:referrers] for target in targets]
    links = logs.records_at("links.log", chain.from_iterable(offsets))
    fetches = logs.records_at("fetch.log", (offset for _, _, offset in rows))
    found = []
    for (pages, _, _), some, fields in zip(rows, offsets, fetches, strict=True):
        found_on = [next(links) for _ in some]
        if fields is None:
            continue
        time, url, normalized, _, result, _, _, message = fields
        carriers = [Referrer(link[0], link[1], link[4]) for link in found_on if link]
        found.append(BrokenLink(url, normalized, result, message, time, pages, carriers))
    return found


@dataclass(frozen=True, slots=True)
class Alias:
    """A merged URL. ``same_as``: the URL with the same page, by ``rules``. ``why``: the reason in
    words. ``held``: it waits until a trial has a verdict."""

    url: str
    same_as: str
    rules: Sequence[str]
    held: bool
    why: str
    depth: int
    from_page: str


def aliases(frontier: FrontierReader) -> Iterator[Alias]:
    """All merged URLs, host by host."""
    hosts: dict[str, HostAliases] = {}
    for merged in frontier.all_merged():
        entry = merged.entry
        if not merged.rules:
            continue  # a page that was fetched twice
        known = hosts.get(entry.host)
        if known is None:
            note = frontier.note(f"aliases {entry.host}")
            known = hosts[entry.host] = HostAliases.unpack(note)
        yield Alias(
            entry.url,
            stand_in(frontier, merged),
            list(names_of(merged.rules)),
            known.is_held(entry.key, merged.rules),
            sentence(merged.rules, known),
            entry.depth,
            entry.from_page,
        )


def rules_by_host(frontier: FrontierReader) -> dict[str, HostAliases]:
    """The proven rules of each host that has two URLs with one canonical form. O(hosts)."""
    found = ((host, frontier.note(f"aliases {host}")) for host in frontier.hosts())
    return {host: HostAliases.unpack(note) for host, note in found if note is not None}


ALIAS_COLUMNS = ("url", "same-as", "rules", "held", "depth", "from-page")
BROKEN_COLUMNS = ("result", "url", "pages", "page", "link", "anchor", "message", "time")


def broken_rows(links: Iterable[BrokenLink]) -> Iterator[tuple[object, ...]]:
    """A row for each page with a broken link; one row for a target without known pages, such as a
    seed."""
    for link in links:
        for referrer in link.carriers or (Referrer("", "", ""),):
            yield (
                link.result, link.url, link.pages, referrer.page, referrer.url, referrer.anchor,
                link.message, link.time,
            )  # fmt: skip
