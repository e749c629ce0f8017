"""Why a crawl stored almost nothing of a seed's host, in one sentence for each host.

    watch.saw("wiki:80", page)          # each page that is new, after the filters
    watch.refused_by_robots("wiki:80")
    watch.lines(["wiki:80"])            # ["wiki.example says nofollow on its only page; ..."]

The first pages of a host show what keeps a crawl from the rest. A host with more than FEW pages has
no line, and costs one look-up a page after LOOKED pages. The note ``shortfall wiki:80`` has the
evidence of a host, and moves with its partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from urllib.parse import urlsplit

from larmspider import program
from larmspider.extraction.formats import extractor_for
from larmspider.extraction.pages.ways_on import (
    Instead,
    asks_sign_in,
    instead_of_links,
    is_shell,
    leads_to_logins,
)
from larmspider.extraction.texts.fingerprint import asks_password
from larmspider.formatting import counted, printable
from larmspider.frontier.part import HostNotes, Note, NotesMemory, Part
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import host_of
from larmspider.items import REDIRECT, Link, Page
from larmspider.urls.signing_in import is_login_path

NOTE = "shortfall {host}"
FEW = 20
"""A host with more stored pages, without redirects, has no shortfall."""
LOOKED = 40
"""Pages and redirects of a host that are looked at."""
LEAST_SHARE = 0.9
"""The share of a host's pages or links that must have a trait, for the trait to be the reason."""
LEAST_WALL = 0.5
"""The share of a host's answers that must be logins, or shells of JavaScript, to be the reason."""
WALL_LINKS = 3
"""Links to the same host of each answer of a host behind a login, at most."""
LEAST_ERRORS, MOST_ERRORS = 2, 0.7
"""Errors of a host of which some pages are stored, and their share of its answers, to be the
reason; errors that ask for a login, from the share LEAST_WALL on."""
MANY_NOFOLLOW = 3
"""Links with nofollow for each link that was followed, to be the reason."""
LEAST_REFUSED = 3
"""Links that a filter must have refused, to be the reason."""
_LOGIN_ERRORS = frozenset((401, 403, 407))
MAX_EXAMPLE = 200
MAX_SEEDS = 1_000
"""Seeds whose hosts are looked at."""
SHOWN = 10
"""Hosts that the end of a crawl names."""


class Evidence(Note):
    """Counts of a host's first answers. ``pages``: answers with status 200. ``errors``: answers
    with a status from 400 on, by status. Only links to the same host count."""

    pages: int = 0
    redirects: int = 0
    errors: dict[int, int] = {}
    nofollow: int = 0
    """Pages that say nofollow."""
    nofollow_links: int = 0
    """Links that were not followed, because their page or the link itself says nofollow."""
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
    robots_failed: str = ""
    """The kind of failure of robots.txt, while no page is there."""
    wall_at_start: bool = False
    """Whether the first page is a login, or asks for a password and has few links."""
    shell_at_start: bool = False
    outside: int = 0
    """Links to other hosts that are out of scope."""
    outside_at: str = ""
    refused: dict[str, int] = {}
    """Links that other filters have refused, by the name of the filter."""
    refused_at: str = ""
    failed: dict[str, int] = {}
    """URLs that could not be fetched, by kind (politeness.py)."""
    blank: int = 0
    scripted: int = 0
    """Pages whose links are scripts."""
    forms: int = 0
    """Pages with a form and nothing that was followed."""
    markup: int = 0
    """Pages of HTML that are sent as plain text."""
    to_login: int = 0
    """Redirects to a login."""
    walls: int = 0
    """Pages that are a login, and have few links."""

    @property
    def answers(self) -> int:
        return self.pages + self.redirects + sum(self.errors.values())

    def is_short(self, stored: int) -> bool:
        """Whether few of the ``stored`` answers are content, by the share among the first ones:
        each URL of a long list may lead to a login."""
        content = self.pages - self.walls - self.shells
        return stored * content <= FEW * (self.pages + self.redirects) or stored <= FEW

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
        is_login = asks_sign_in(page)
        self.logins += is_login
        if self.pages == 1:
            self.wall_at_start = is_login or asks_password(page) or leads_to_logins(page)
        if page.canonical and page.canonical not in (page.url, page.normalized, page.exact):
            self.canonical += 1
            self.canonical_at = self.canonical_at or page.canonical[:MAX_EXAMPLE]
        if not page.text and page.mime and extractor_for(page.mime) is None:
            self.untaken += 1
            self.untaken_type = page.mime[:MAX_EXAMPLE]
        followed = self.followed
        self._count_links(page)
        has_links = self.followed > followed
        self.walls += is_login and self.followed - followed <= WALL_LINKS
        self.wall_at_start &= self.pages > 1 or self.followed <= WALL_LINKS
        if is_shell(page, has_links=has_links):
            self.shells += 1
            self.shell_at_start |= self.pages == 1
        elif not has_links:
            self._count_instead(page)

    def _count_instead(self, page: Page) -> None:
        found = instead_of_links(page)
        self.blank += found is Instead.NOTHING
        self.scripted += found is Instead.SCRIPTS
        self.forms += found is Instead.FORM
        self.markup += found is Instead.MARKUP

    def _redirect(self, link: Link) -> None:
        with suppress(ValueError):  # a target that is not a URL
            is_login = is_login_path(urlsplit(link.url).path)
            self.logins += is_login
            self.to_login += is_login
        if link.rejected_by == "scope":
            self.moved += 1
            self.moved_to = self.moved_to or link.url[:MAX_EXAMPLE]

    def _count_links(self, page: Page) -> None:
        host, start = host_of(page.url), "/".join(page.url.split("/", 3)[:3]) + "/"
        here = (page.url, page.normalized, page.exact)
        for link in page.links:
            if link.url in here or link.normalized in here:
                continue
            if not link.url.startswith(start) and host_of(link.url) != host:
                if link.rejected_by == "scope":
                    self.outside += 1
                    self.outside_at = self.outside_at or link.url[:MAX_EXAMPLE]
                continue
            if link.rejected_by == "nofollow":
                self.nofollow_links += 1
            elif link.rejected_by == "scope":
                self.scope += 1
                self.scope_at = self.scope_at or link.url[:MAX_EXAMPLE]
            elif link.rejected_by in (None, "visited"):
                self.followed += 1
            else:
                name = link.rejected_by
                self.refused[name] = self.refused.get(name, 0) + 1
                self.refused_at = self.refused_at or link.url[:MAX_EXAMPLE]

    def reason(self, name: str, *, restrict: bool = False) -> str:
        """Why little of a host ``name`` is stored; "" if nothing keeps a crawl from the rest."""
        return next(self._reasons(name, restrict=restrict), "")

    def _reasons(self, name: str, *, restrict: bool) -> Iterator[str]:
        rules = f"LARM_HOST_RULES {name}"
        most = LEAST_SHARE * max(1, self.pages)
        all_links = self.nofollow_links + self.scope + self.followed
        if self.errors and not (self.pages or self.redirects):
            yield self._all_errors(name)
        is_walled = self.followed <= WALL_LINKS * self.answers
        is_walled |= self.to_login + self.walls > LEAST_WALL * self.answers
        if self.logins and self.logins >= LEAST_WALL * self.answers and is_walled:
            yield (
                f"{name} asks for a login on {_of(self.logins, self.answers, 'answer')}; login or"
                " auth in LARM_SITES_FILE signs in (docs/sign-in.md)"
            )
        if self.wall_at_start and is_walled:
            yield (
                f"{name} asks for a login on the first page, which has few links; login or auth in"
                " LARM_SITES_FILE signs in (docs/sign-in.md)"
            )
        if self.moved and self.moved >= LEAST_WALL * self.answers:
            yield (
                f"{name} redirects {_of(self.moved, self.answers, 'URL')} to {self.moved_to}, which"
                " is out of scope; start there, or add that host to restrict (LARM_RESTRICT)"
            )
        if self.robots and self.robots >= self.pages:
            yield (
                f"robots.txt of {name} disallows {counted(self.robots, 'found URL')};"
                " ROBOTSTXT_OBEY=False ignores the robots.txt of every host, so set it only where"
                " you own all hosts of the crawl; else ask the owner to allow this crawler"
            )
        if self.shells and (self.shell_at_start or self.shells >= LEAST_WALL * self.pages):
            yield (
                f"{name} needs JavaScript on {_of(self.shells, self.pages, 'page')}: without it"
                " there is no text and no link; render = true in LARM_SITES_FILE runs it"
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
        refused = sum(self.refused.values())
        if refused >= LEAST_REFUSED and not self.followed:
            yield (
                f"{name} has {counted(refused, 'link')} to itself, such as {self.refused_at}, and"
                f" no link passes the filters ({', '.join(sorted(self.refused))});"
                f" {program.NAME} explain"
                " URL says why"
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
        yield from self._no_links(name)
        yield from self._no_pages(name)
        if self.nofollow_links >= max(LEAST_REFUSED, MANY_NOFOLLOW * self.followed):
            yield (
                f"{name} says nofollow on {_of(self.nofollow_links, all_links, 'link')} to itself;"
                f" {rules} nofollow: ignore follows them"
            )

    def _no_links(self, name: str) -> Iterator[str]:
        """Why there is nothing to follow on the pages."""
        if self.followed or not self.pages:
            return
        most = LEAST_SHARE * self.pages
        if self.blank >= most:
            yield (
                f"{name} answers {_of(self.blank, self.pages, 'page')} without a word (empty"
                " bodies); look at the start URL in a browser"
            )
        if self.markup >= most:
            yield (
                f"{name} sends {_of(self.markup, self.pages, 'page')} of HTML as text/plain, so"
                " that no link is read; the server's Content-Type changes that"
            )
        if self.outside:
            yield (
                f"{name} has no link to itself, and {counted(self.outside, 'link')} out of scope,"
                f" such as {self.outside_at}; start there as well, or add that host to restrict"
                " (LARM_RESTRICT)"
            )
        if self.scripted >= most:
            yield (
                f"{name} has no links but by JavaScript on"
                f" {_of(self.scripted, self.pages, 'page')}; a sitemap or more start URLs name"
                " its pages"
            )
        if self.forms >= most:
            yield (
                f"{name} has a form and no links on {_of(self.forms, self.pages, 'page')}; a crawl"
                " fills in none: cookies or login in LARM_SITES_FILE (docs/sign-in.md), or start"
                " behind it"
            )

    def _no_pages(self, name: str) -> Iterator[str]:
        """Why other URLs gave no pages, or all of them."""
        number, walled = (
            sum(self.errors.values()),
            sum(times for status, times in self.errors.items() if status in _LOGIN_ERRORS),
        )
        share = LEAST_WALL if 2 * walled > number else MOST_ERRORS
        if number >= LEAST_ERRORS and number >= share * self.answers:
            yield self._all_errors(name)
        if self.pages:
            return
        if self.redirects:
            yield (
                f"{name} redirects {counted(self.redirects, 'URL')} and shows no page; if it waits"
                " for a cookie, cookies or login in LARM_SITES_FILE has it (docs/sign-in.md)"
            )
        if self.robots_failed:
            yield (
                f"robots.txt of {name} failed: {_in_words(self.robots_failed)}, so that no URL may"
                f" be fetched (RFC 9309); {_advice(self.robots_failed)}"
            )
        if self.failed:
            kinds = sorted(self.failed, key=lambda kind: -self.failed[kind])
            yield (
                f"{name} gave no answer: {', '.join(map(_in_words, kinds[:3]))};"
                f" {_advice(kinds[0])}"
            )

    def _all_errors(self, name: str) -> str:
        said = ", ".join(
            f"{status} to {_of(times, self.answers, 'URL')}"
            for status, times in sorted(self.errors.items(), key=lambda item: -item[1])[:3]
        )
        advice = "look at the start URL"
        if self.errors.keys() & _LOGIN_ERRORS:
            advice = "auth, cookies or login in LARM_SITES_FILE may be needed (docs/sign-in.md)"
        elif min(self.errors) >= 500:
            advice = "the server fails: run the same command when it works again"
        return f"{name} answers {said}; {advice}"


_WORDS = {
    "dns": "its name has no address",
    "refused": "connection refused",
    "timeout": "timeout",
    "slow": "too slow",
    "tls": "no secure connection",
    "reset": "connection closed",
    "bad-response": "no valid answer",
    "address": "its address is one that is never asked (LARM_DENY_ADDRESSES)",
}
_ADVICE = {
    "dns": "look at the name in the start URL",
    "refused": "look at the port of the start URL, and whether the server runs",
    "tls": "tls in LARM_SITES_FILE may be needed (docs/sites.md)",
    "address": "LARM_ALLOW_ADDRESSES lets it through",
    "login": "look at login in LARM_SITES_FILE (docs/sign-in.md)",
}


def _in_words(kind: str) -> str:
    return _WORDS.get(kind, kind.replace("http-", "HTTP "))


def _advice(kind: str) -> str:
    return _ADVICE.get(kind, "run the same command when the server works")


def _of(number: int, whole: int, what: str) -> str:
    """``all 3 pages``, ``its only page``, ``2 of 3 pages``"""
    if number >= whole == 1:
        return f"its only {what}"
    if number >= whole:
        return f"all {number:,} {what}s"
    return f"{number:,} of {counted(whole, what)}"


class Shortfall(Part):
    """Counts what the first answers of each host show."""

    def __init__(self, notes: NotesMemory) -> None:
        self._hosts = HostNotes(notes, "shortfall", Evidence)
        self._enough: set[str] = set()
        """Hosts with LOOKED answers: nothing more is counted for them."""

    def _of(self, host: str) -> Evidence:
        self._hosts.touch(host)
        return self._hosts.of(host)

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

    def gave_up(self, host: str, kind: str) -> None:
        """A URL could not be fetched. An answer with an error is a page."""
        if host not in self._enough and not kind.startswith("http-"):
            failed = self._of(host).failed
            failed[kind] = failed.get(kind, 0) + 1

    def robots_failed(self, host: str, kind: str) -> None:
        if host not in self._enough and not (evidence := self._of(host)).pages:
            evidence.robots_failed = kind[:MAX_EXAMPLE]

    def forget(self, host: str) -> None:
        self._hosts.forget(host)
        self._enough.discard(host)

    def save(self) -> None:
        self._hosts.save()


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
        if not note or not (evidence := Evidence.unpack(note)).is_short(stored):
            continue
        name = host.removesuffix(":80").removesuffix(":443")
        if reason := evidence.reason(name, restrict=restrict):
            yield printable(reason)
