"""Hosts that have moved as a whole: http to https, a bare name to www, a new name, a folder of
another host, or several hosts.

    moved_to([Successor("wiki:443", b"1"), Successor("wiki:443", b"2")])     # ("wiki:443",)

A host has moved when its start page and more than half of its canaries redirect to pages of other
hosts, which are stored (delete_gate.py). A host that answers every path with one text has no such
pages. If two hosts redirect to each other, neither has moved. A page stands for a page that
redirects to it only if a visit has found it after the redirect began (or within SAME_RUN_SECS
before).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from larmspider.formatting import counted, utc
from larmspider.frontier.hosts import origin_of
from larmspider.frontier.storage.records import FetchRecord, UrlState

REDIRECT_GONE = frozenset({404, 410})
"""Statuses of a redirect's target that say: the page has gone, too."""
LEAST_ASKED = 5
"""A move needs 3 of 5 canaries, or most of fewer. The others may be missing on the new host."""
SAME_RUN_SECS = 3600.0
"""A target that was visited so shortly before a page first redirected there need not be visited
again: most pages of a run come after their targets or before them by chance."""


class Successor(NamedTuple):
    """The page to which another one redirects: its ``host``, and its ``text`` (the signature), b""
    if the page is missing there."""

    host: str
    text: bytes

    @property
    def is_there(self) -> bool:
        return bool(self.text)


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
    of the canaries. Pages that are missing on the new host do not count.

    >>> moved_to([Successor("b:80", b"1"), Successor("c:80", b"2"), Successor("b:80", b"3")])
    ('b:80',)
    >>> moved_to([Successor("b:80", b"1"), Successor("c:80", b"2")])
    ('b:80', 'c:80')
    >>> moved_to([Successor("b:80", b"1"), Successor("b:80", b"1"), Successor("b:80", b"1")])
    ()
    """
    first = canaries[0] if canaries else None
    if first is None or not first.is_there:
        return ()
    found = [one for one in canaries if one is not None and one.is_there]
    same = [one for one in found if one.host == first.host]
    gone = sum(one == Successor(first.host, b"") for one in canaries)
    number = max(len(canaries) - gone, min(LEAST_ASKED, len(canaries)))
    for some in (same, found):
        texts = {one.text for one in some}
        if len(some) * 2 > number and len(texts) * 2 > len(some):
            return tuple(dict.fromkeys(one.host for one in some))
    return ()


def are_renamed(
    canaries: Mapping[bytes, bool | None], successors: Mapping[bytes, Successor]
) -> bool:
    """Whether the start page, which is the first canary, and more than half of the canaries are
    there, or redirect to a stored page each: a new site has other paths.

    >>> one, two = Successor("h:80", b"1"), Successor("h:80", b"2")
    >>> missing = dict.fromkeys([b"/a", b"/b", b"/c"], False)
    >>> are_renamed({b"/": True} | missing, {b"/a": one, b"/b": two})
    True
    >>> are_renamed({b"/": True} | missing, {b"/a": one, b"/b": one})
    False
    """
    missing = [key for key, is_there in canaries.items() if not is_there]
    start = next(iter(canaries), b"")
    if start in missing and not successors.get(start, Successor("", b"")).is_there:
        return False
    found = [successors[key] for key in missing if key in successors]
    texts = Counter(one.text for one in found if one.is_there)
    renamed = list(texts.values()).count(1)
    return (len(canaries) - len(missing) + renamed) * 2 > len(canaries)


def is_gone(target: FetchRecord) -> bool:
    """Whether the target of a redirect says that the page is gone."""
    return target.state is UrlState.FAILED and target.status in REDIRECT_GONE
