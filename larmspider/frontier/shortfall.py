"""Why a crawl stored almost nothing of a seed's host, in one sentence for each host.

    watch.saw("wiki:80", page)          # each page that is new, after the filters
    watch.refused_by_robots("wiki:80")
    watch.lines(["wiki:80"])            # ["wiki.example says nofollow on all 1 pages; ..."]

The first pages of a host show what keeps a crawl from the rest. Of a host with more than FEW pages
nothing is said, and after LOOKED pages it costs one look-up a page. What a crawl has seen of a host
is its note ``shortfall wiki:80``, which moves with its partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import islice
from urllib.parse import urlsplit

import msgpack

from larmspider.extraction.fingerprint import asks_password
from larmspider.extraction.formats import extractor_for
from larmspider.formatting import counted, printable
from larmspider.frontier.storage.backend import Backend
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import host_of
from larmspider.items import REDIRECT, Link, Page
from larmspider.urls.signing_in import is_login_path

NOTE = "shortfall {host}"
FEW = 20
"""A host with more stored pages has no shortfall."""
LOOKED = 40
"""Pages and redirects of a host that are looked at."""
LEAST_SHARE = 0.9
"""The share of a host's pages or links that must have a trait, for the trait to be the reason."""
LEAST_WALL = 0.5
"""The share of a host's answers that must be logins, or shells of JavaScript, to be the reason."""
SHELL_TEXT = 200
"""Characters of a page that scripts make: it says "Loading ...", or that it needs JavaScript."""
LOGIN_TEXT, WALL_LINKS = 500, 3
"""Characters of a page that is a login and not only has a field for a password; links to the same
host of each answer of a host behind a login, at most."""
MAX_EXAMPLE = 200
MAX_SEEDS = 1_000
"""Seeds whose hosts are looked at."""
SHOWN = 10
"""Hosts that the end of a crawl names."""


@dataclass(slots=True)
class Evidence:
    """Counts of a host's first answers. ``pages`` are answers 200, ``errors`` answers
    from 400 on by status. Links count where they lead to the same host."""

    pages: int = 0
    redirects: int = 0
    errors: dict[int, int] = field(default_factory=dict)
    nofollow: int = 0
    """Pages that say nofollow."""
    nofollow_links: int = 0
    """Links that were left for that, or that say nofollow themselves."""
    followed: int = 0
    """Links that were followed or known."""
    noindex: int = 0
    canonical: int = 0
    canonical_at: str = ""
    logins: int = 0
    """Pages with a password, redirects to a login."""
    shells: int = 0
    scope: int = 0
    """Links that are out of scope."""
    scope_at: str = ""
    moved: int = 0
    """Redirects out of scope."""
    moved_to: str = ""
    untaken: int = 0
    """Pages of a type that is not read."""
    untaken_type: str = ""
    robots: int = 0
    """URLs that robots.txt does not allow."""

    @property
    def answers(self) -> int:
        return self.pages + self.redirects + sum(self.errors.values())

    def saw(self, page: Page) -> None:
        """Count a new page, whose links the filters have judged."""
        first = page.links[:1]
        if 300 <= page.status < 400 or page.moved:
            self.redirects += 1
            if first and first[0].type == REDIRECT:
                self._redirect(first[0])
            return
        if page.status >= 400:
            self.errors[page.status] = self.errors.get(page.status, 0) + 1
            return
        self.pages += 1
        self.nofollow += page.nofollow
        self.noindex += page.noindex
        is_short = len(page.text) < LOGIN_TEXT or is_login_path(urlsplit(page.url).path)
        self.logins += is_short and asks_password(page)
        if page.canonical and page.canonical not in (page.url, page.normalized, page.exact):
            self.canonical += 1
            self.canonical_at = self.canonical_at or page.canonical[:MAX_EXAMPLE]
        if not page.text and page.mime and extractor_for(page.mime) is None:
            self.untaken += 1
            self.untaken_type = page.mime[:MAX_EXAMPLE]
        followed = self.followed
        self._count_links(page)
        self.shells += (
            self.followed == followed
            and len(page.text) < SHELL_TEXT
            and "html" in page.mime
            and b"<script" in page.body
        )

    def _redirect(self, link: Link) -> None:
        with suppress(ValueError):  # a target that is no URL
            self.logins += is_login_path(urlsplit(link.url).path)
        if link.rejected_by == "scope":
            self.moved += 1
            self.moved_to = self.moved_to or link.url[:MAX_EXAMPLE]

    def _count_links(self, page: Page) -> None:
        host = host_of(page.url)
        here = (page.url, page.normalized, page.exact)
        for link in page.links:
            if host_of(link.url) != host or link.url in here or link.normalized in here:
                continue
            if link.rejected_by == "nofollow":
                self.nofollow_links += 1
            elif link.rejected_by == "scope":
                self.scope += 1
                self.scope_at = self.scope_at or link.url[:MAX_EXAMPLE]
            elif link.rejected_by in (None, "visited"):
                self.followed += 1

    def reason(self, name: str, *, restrict: bool = False) -> str:
        """Why little of a host ``name`` is stored; "" where nothing keeps a crawl from the rest."""
        return next(self._reasons(name, restrict=restrict), "")

    def _reasons(self, name: str, *, restrict: bool) -> Iterator[str]:
        rules = f"LARM_HOST_RULES {name}"
        most = LEAST_SHARE * max(1, self.pages)
        all_links = self.nofollow_links + self.scope + self.followed
        if self.errors and not (self.pages or self.redirects):
            yield self._all_errors(name)
        if self.moved and self.moved >= LEAST_WALL * self.answers:
            yield (
                f"{name} redirects {_of(self.moved, self.answers, 'URL')} to {self.moved_to}, which"
                " is out of scope; start there, or take that host into restrict (LARM_RESTRICT)"
            )
        is_walled = self.followed <= WALL_LINKS * self.answers
        if self.logins and self.logins >= LEAST_WALL * self.answers and is_walled:
            yield (
                f"{name} asks for a login on {_of(self.logins, self.answers, 'answer')}; login or"
                " auth in LARM_SITES_FILE signs in (docs/sites.md)"
            )
        if self.robots and self.robots >= self.pages:
            yield (
                f"robots.txt of {name} disallows {counted(self.robots, 'URL')} of those found;"
                " ROBOTSTXT_OBEY=False ignores the robots.txt of every host, so set it only where"
                " you own all hosts of the crawl; else ask the owner to allow this crawler"
            )
        if self.shells and self.shells >= LEAST_WALL * self.pages:
            yield (
                f"{name} needs JavaScript on {_of(self.shells, self.pages, 'page')}, which have no"
                " text and no links without it; render = true in LARM_SITES_FILE runs it"
            )
        if self.nofollow_links and self.nofollow >= most:
            yield (
                f"{name} says nofollow on {_of(self.nofollow, self.pages, 'page')};"
                f" {rules} nofollow: ignore follows them"
            )
        if self.nofollow_links and not self.followed:
            yield (
                f"{name} says nofollow on {_of(self.nofollow_links, all_links, 'link')} to itself;"
                f" {rules} nofollow: ignore follows them"
            )
        if self.scope and not self.followed:
            what = "restrict (LARM_RESTRICT) matches" if restrict else "the scope has"
            yield (
                f"{what} {counted(self.pages, 'page')} of {name} and none of the"
                f" {counted(self.scope, 'link')} to the same host, such as {self.scope_at}; widen"
                " restrict to follow them"
            )
        if self.untaken and self.untaken >= most:
            yield (
                f"{name} sends {_of(self.untaken, self.pages, 'page')} as {self.untaken_type},"
                " which nothing reads; the server's Content-Type or another start page changes that"
            )
        if self.noindex and self.noindex >= most:
            yield (
                f"{name} says noindex on {_of(self.noindex, self.pages, 'page')}: stored, and not"
                " found by the search; no setting changes that, the host's owner does"
            )
        if self.canonical and self.canonical >= most and not self.followed:
            yield (
                f"{name} names another canonical URL on {_of(self.canonical, self.pages, 'page')},"
                f" such as {self.canonical_at}; start there as well"
            )

    def _all_errors(self, name: str) -> str:
        number = sum(self.errors.values())
        said = ", ".join(
            f"{status} to {_of(times, number, 'URL')}"
            for status, times in sorted(self.errors.items(), key=lambda item: -item[1])[:3]
        )
        advice = "look at the start URL"
        if self.errors.keys() & {401, 403, 407}:
            advice = "auth, cookies or login in LARM_SITES_FILE may be needed (docs/sites.md)"
        elif min(self.errors) >= 500:
            advice = "the server fails: run the same command when it works again"
        return f"{name} answers {said}; {advice}"

    def pack(self) -> bytes:
        packed: bytes = msgpack.packb(asdict(self))
        return packed

    @classmethod
    def unpack(cls, note: bytes | None) -> Evidence:
        return cls(**msgpack.unpackb(note, strict_map_key=False)) if note else cls()


def _of(number: int, whole: int, what: str) -> str:
    """``all 3 pages``, ``2 of 3 pages``"""
    if number >= whole:
        return f"all {number:,} {what}s"
    return f"{number:,} of {counted(whole, what)}"


class Shortfall:
    """Counts what the first answers of each host show."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._seen: dict[str, Evidence] = {}
        self._enough: set[str] = set()
        """Hosts with LOOKED answers: nothing is counted any more."""
        self._changed: set[str] = set()

    def _of(self, host: str) -> Evidence:
        found = self._seen.get(host)
        if found is None:
            note = self._backend.note(NOTE.format(host=host))
            found = self._seen[host] = Evidence.unpack(note)
        self._changed.add(host)
        return found

    def saw(self, host: str, page: Page) -> None:
        """A page that was not visited before."""
        if host in self._enough:
            return
        evidence = self._of(host)
        evidence.saw(page)
        if evidence.answers >= LOOKED:
            self._enough.add(host)

    def refused_by_robots(self, host: str) -> None:
        if host not in self._enough:
            self._of(host).robots += 1

    def forget(self, host: str) -> None:
        """Another worker has the host."""
        self._seen.pop(host, None)
        self._enough.discard(host)
        self._changed.discard(host)

    def save(self) -> None:
        """Hand what has changed to the backend, for the batch that ends now."""
        for host in self._changed:
            self._backend.put_note(NOTE.format(host=host), self._seen[host].pack())
        self._changed.clear()
        for host in self._enough:
            self._seen.pop(host, None)


def shortfalls_in(
    reader: FrontierReader, seeds: Iterable[str], *, restrict: bool = False
) -> list[str]:
    """shortfalls() of the seeds' hosts of a crawl, as of its last checkpoint."""
    names = dict.fromkeys(host_of(seed) for seed in islice(seeds, MAX_SEEDS))
    rows = (
        (name, reader.host(name)[1].stored, reader.note(NOTE.format(host=name))) for name in names
    )
    return list(shortfalls(rows, restrict=restrict))


def shortfalls(
    hosts: Iterable[tuple[str, int, bytes | None]], *, restrict: bool = False
) -> Iterator[str]:
    """A sentence for each host of which little is stored: its name, stored pages, and note.
    ``restrict``: whether the scope is a pattern."""
    for host, stored, note in hosts:
        if note and stored <= FEW:
            name = host.removesuffix(":80").removesuffix(":443")
            if reason := Evidence.unpack(note).reason(name, restrict=restrict):
                yield printable(reason)
