"""Hosts that have moved as a whole: http to https, a bare name to www, a new name, a folder of
another host, or several hosts.

    same_place("http://wiki/a?b=1", "https://wiki/a?b=1")      # True: only the host differs
    moved_to([Successor("wiki:443", b"1"), Successor("wiki:443", b"2")])     # ("wiki:443",)

A host has moved when its start page and more than half of its canaries redirect to pages of other
hosts, which are stored (delete_gate.py). A host that answers every path with one text has no such
pages. If two hosts redirect to each other, neither has moved: a page stands for another one only
if a visit has found it since the other one redirects there (or within SAME_RUN_SECS before).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from larmspider.formatting import counted, utc
from larmspider.frontier.hosts import origin_of
from larmspider.frontier.storage.records import FetchRecord, UrlState, host_of

REDIRECT_GONE = frozenset({404, 410})
"""Statuses of a redirect's target that say: the page has gone, too."""
SAME_RUN_SECS = 3600.0
"""A target that was visited so shortly before a page first redirected there need not be visited
again: most pages of a run come after their targets or before them by chance."""


class Successor(NamedTuple):
    """A page of another ``host``, stored with a ``text`` (its signature)."""

    host: str
    text: bytes


class HostMove(msgspec.Struct, array_like=True):
    """New fields go to the end, with a default. ``host`` moved ``to`` another one. ``since``: when
    a visit saw the move first; ``pages``: the number of pages then; ``left``: the number of pages
    that left the search for their new URLs; ``others``: further hosts that have some of its
    pages."""

    host: str
    to: str
    since: float
    pages: int
    left: int = 0
    others: list[str] = []

    @property
    def hosts(self) -> tuple[str, ...]:
        """All hosts that have its pages now."""
        return self.to, *self.others

    def in_words(self) -> str:
        """``http://wiki moved to https://wiki: 30 pages``."""
        to = " and ".join(map(_shown, self.hosts))
        return f"{_shown(self.host)} moved to {to}: {counted(self.pages, 'page')}"

    def report(self) -> str:
        """The same with the date, and how many pages have left."""
        gone = f"{self.left:,} left the search for their new URLs"
        return f"{self.in_words()} (first seen {utc(self.since)[:10]}; {gone})"


def _shown(host: str) -> str:
    """The origin of a host with a default port; of another port the scheme is not known.

    >>> [_shown(host) for host in ("wiki:80", "wiki:443", "wiki:8080")]
    ['http://wiki', 'https://wiki', 'wiki:8080']
    """
    for port, scheme in ((":80", "http"), (":443", "https")):
        if host.endswith(port):
            return origin_of(scheme, host)
    return host


def same_place(url: str, target: str) -> bool:
    """Whether both URLs, in exact form, have the same path and query on two hosts."""
    return _behind_host(url) == _behind_host(target) and host_of(url) != host_of(target)


def _behind_host(url: str) -> str:
    return url.partition("//")[2].partition("/")[2]


def stands_for(target: FetchRecord | None) -> bool:
    """Whether the target of a redirect may take the place of the page: it is stored and was there
    at its last visit. A URL that was merged has no record, and its page stands."""
    return target is not None and target.stands


def is_seen_since(target: FetchRecord, redirects_since: float) -> bool:
    """Whether the target of a redirect was visited after the page began to redirect there. An
    earlier visit proves nothing, because the target may redirect back by now."""
    return target.time >= redirects_since - SAME_RUN_SECS


def moved_to(canaries: Sequence[Successor | None]) -> tuple[str, ...]:
    """The hosts to which a host has moved, according to its canaries (the start page first): the
    host of the start page's target. The other targets' hosts follow if that host has at most half
    of the canaries.

    >>> moved_to([Successor("b:80", b"1"), Successor("c:80", b"2"), Successor("b:80", b"3")])
    ('b:80',)
    >>> moved_to([Successor("b:80", b"1"), Successor("c:80", b"2")])
    ('b:80', 'c:80')
    >>> moved_to([Successor("b:80", b"1"), Successor("b:80", b"1"), Successor("b:80", b"1")])
    ()
    """
    first = canaries[0] if canaries else None
    if first is None:
        return ()
    found = [one for one in canaries if one is not None]
    same = [one for one in found if one.host == first.host]
    for some in (same, found):
        texts = {one.text for one in some}
        if len(some) * 2 > len(canaries) and len(texts) * 2 >= len(some):
            return tuple(dict.fromkeys(one.host for one in some))
    return ()


def is_gone(target: FetchRecord) -> bool:
    """Whether the target of a redirect answered that it has no such page."""
    return target.state is UrlState.FAILED and target.status in REDIRECT_GONE
