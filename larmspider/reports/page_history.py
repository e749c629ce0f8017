"""The history of a page and of its host, in plain words, for ``scrapy explain``.

left the search 2026-03-02T04:10:00Z: moved 2 times over 1.1 days, to https://wiki/vpn
http://wiki moved to https://wiki: 30 pages (first seen 2026-03-01; 28 left ...)
was http://wiki/vpn until 2026-03-02T04:10:00Z (scrapy page http://wiki/vpn --versions)
different since 2026-03-01 (login), and stays: a login form never removes a page by itself
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from larmspider import program
from larmspider.control.deletes import approved_in, why_it_stays
from larmspider.formatting import utc
from larmspider.frontier.storage.records import host_of, url_key
from larmspider.learned.deletes.notes import WHOLE_HOST, HostDeletes, note_of
from larmspider.learned.revisits.host import NOTE, HostKnowledge
from larmspider.learned.revisits.revisiting import GONE_AGAIN_SECS
from larmspider.pipelines.deleted_log import DELETED_LOG_COLUMNS, moves_in
from larmspider.pipelines.records import read_records

if TYPE_CHECKING:
    from larmspider.crawl.reader import CrawlDir

MAX_TIMES = 5
"""Number of removals of a page that are shown, the latest ones."""


_SEEN = {
    "gone": "HTTP 410",
    "missing": "HTTP 404 or an error page",
    "noindex": "the page says noindex",
    "disallowed": "robots.txt",
    "denied": "HTTP 401 or 403",
}
"""The observation behind a removal, by the first word of its reason."""


class Notes(Protocol):
    """The part of FrontierReader that this module needs."""

    def note(self, name: str) -> bytes | None: ...


def history_in_words(crawl: CrawlDir, notes: Notes | None, exact: str) -> Iterator[str]:
    """Lines about a page: each removal, each of its old URLs, and the move of its host. A page
    whose last visit did not find it unchanged also has a line that says why it stays."""
    left, was = _removals(crawl, exact)
    yield from (f"left the search {when}: {_plain(reason)}" for when, reason in left[-MAX_TIMES:])
    if left and crawl.stored(exact) is not None:
        yield "is back: it was stored again since"
    for url, when in was[-MAX_TIMES:]:
        yield f"was {url} until {when} ({program.NAME} page {url} --versions)"
    if notes is None:
        return
    host, key = host_of(exact), url_key(exact)
    hosts = dict.fromkeys([host, *(host_of(url) for url, _ in was)])
    for name in hosts:
        move = HostDeletes.unpack(notes.note(note_of(name))).move
        if move is not None and host in (name, *move.hosts):
            yield f"host: {move.report()}"
    known = HostKnowledge.unpack(notes.note(NOTE.format(host=host)))
    if known.volatile.is_restless(key[8:]):
        yield (
            "restless: it changed at its last visits, but without a word that is new on its host;"
            " it is visited like a page without a known rate of change"
        )
    for at, url, _ in known.gone:
        if left and url_key(url) == key:
            again = utc(at + GONE_AGAIN_SECS)[:10]
            yield f"requested once more by the first refresh after {again}, because it may return"
    kept = HostDeletes.unpack(notes.note(note_of(host)))
    waiting = kept.waiting.get(key)
    page = waiting or kept.undecided.get(key)
    approved = [approved_in(part.path).get(host, {}) for part in crawl.parts]
    # the next run drops the approvals of pages that are back or have left
    if page is not None and any(keys.get(key) in (0.0, page.since) for keys in approved):
        yield "removal approved: the next refresh visits it, and removes it if nothing has changed"
    elif any(WHOLE_HOST in keys for keys in approved) and crawl.stored(exact) is not None:
        yield (
            "removal approved with all pages of its host, if the host does not"
            " answer the next refresh"
        )
    if page is not None:
        why = waiting.why if waiting is not None else why_it_stays(page)
        yield f"different since {utc(page.since)[:10]} ({page.seen}), and stays: {why}"


def _plain(reason: str) -> str:
    """The reason in deleted.log, with the observation if its word does not say it.

    >>> _plain("gone"), _plain("disallowed 2 times over 1.0 days")
    ('gone (HTTP 410)', 'disallowed 2 times over 1.0 days (robots.txt)')
    """
    seen = _SEEN.get(reason.partition(" ")[0])
    return f"{reason} ({seen})" if seen else reason


def old_urls(crawl: CrawlDir, exact: str) -> list[tuple[str, str, str]]:
    """URL, exact form and time of removal of each URL that has moved here, over any number of
    moves, the last move first."""
    moves: dict[str, dict[str, tuple[str, str]]] = {}
    for part in crawl.parts:
        for when, url, old, new in moves_in(part.path):
            moves.setdefault(new, {})[old] = url, when
    found: dict[str, tuple[str, str, str]] = {}
    left = [exact] if moves else []
    while left:
        for old, (url, when) in moves.get(left.pop(), {}).items():
            if old != exact and old not in found:
                found[old] = url, old, when
                left.append(old)
    return sorted(found.values(), key=lambda one: one[2], reverse=True)


def _removals(crawl: CrawlDir, exact: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Times and reasons of a page's removals; URLs that left for it, and when."""
    left = list[tuple[str, str]]()
    for part in crawl.parts:
        path = part.path / "deleted.log"
        if not path.exists():
            continue
        for when, _, of, reason in read_records(path, len(DELETED_LOG_COLUMNS)):
            if of == exact:
                left.append((when, reason))
    was = [(url, when) for url, _, when in reversed(old_urls(crawl, exact))]
    return sorted(left), was
