"""Sitemaps and feeds of each host: where they are, when to fetch them, how far to trust them.

    sources.found("wiki:80", ["http://wiki/sitemap.xml"], "robots.txt")
    own = sources.own_fetch("wiki:80", now, allowed) # the source to fetch now, or None
    own.ended("200", 812, None)                      # it named 812 URLs; fetched again in a day
    sources.judged(key, changed=True)                # of a page that it named as changed
    sources.precision(url)                           # 0.6: of 3 such pages 2 had changed

A source is fetched at most once a day; a sitemap in an index only if the index calls it newer. The
trust in a source is a Beta counter over the pages that it named as changed: had their text changed?
The counter starts with a true and a false one. The note ``sources wiki:80`` keeps it, and moves
with the host's partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from larmspider.frontier.hosts import Host, Lease, origin_of
from larmspider.frontier.own_fetch import FetchKind, OwnFetch
from larmspider.frontier.part import HostNotes, Note, NotesMemory, Part
from larmspider.frontier.storage.records import host_of
from larmspider.urls.file_urls import FILES
from larmspider.urls.schemes import WEB_PORTS

if TYPE_CHECKING:
    from larmspider.items import Page

EVERY_SECS = 23 * 3600.0
"""Between two requests for a source: a day, so that a timer that is early does not miss one."""
MAX_SOURCES = 200
"""Sources of a host, with the sitemaps that its indexes name."""
MAX_FEEDS = 10
"""Feeds of a host that its pages name: a wiki has a feed for each page."""
MAX_DEPTH = 2
"""An index may name an index, and that one sitemaps."""
MAX_SIGNALLED = 100_000
"""Pages that sources have named as changed and that are not visited yet; pages beyond are visited,
too, but do not count for or against their source."""
MAX_NAMED = 100_000
"""Pages of a host that sitemaps name, 16 bytes each, which are remembered until the next reading.
Sitemaps beyond are read, too, but cannot show that they stopped naming a page."""
PRIOR = 1.0
"""Pages that had changed, and that had not, before a source has named any."""
LEAST_PRECISION = 0.05
"""A source that is right less often makes no page due."""
IN_VAIN = 3
"""Empty responses in a row after which a source is fetched once in 30 days."""
_NAMED, _KEY = "named", 16
GUESSED = "/sitemap.xml"
ROBOTS = "robots.txt"
"""How a source was found: its own host's robots.txt names it, so that need not allow it, too."""


class Source(msgspec.Struct, array_like=True):
    """New fields go to the end, with a default. ``how`` it was found: ``robots.txt``, ``robots.txt
    of`` another host, ``guess``, ``feed`` or the URL of an index. ``answer``: an HTTP status, a
    kind of failure, or what was wrong with the document. ``changed``: the time of its last change
    according to its index. ``depth``: the number of indexes above it. ``true`` and ``false``: pages
    that it rightly and wrongly named as changed. ``missing`` and ``there``: pages that it stopped
    naming, and that visits then did not find, or found."""

    url: str
    how: str = ""
    time: float = 0.0
    answer: str = ""
    entries: int = 0
    changed: float = 0.0
    depth: int = 0
    vain: int = 0
    true: float = 0.0
    false: float = 0.0
    missing: float = 0.0
    there: float = 0.0

    @property
    def drops_pages(self) -> bool:
        """Whether the pages that it stops naming are missing often enough for a visit."""
        seen = self.missing + self.there
        return (self.missing + PRIOR) / (seen + 2 * PRIOR) >= LEAST_PRECISION

    @property
    def precision(self) -> float:
        """The share of pages that it names as changed whose text will have changed."""
        return (self.true + PRIOR) / (self.true + self.false + 2 * PRIOR)

    def due(self) -> float:
        """When the source is fetched next."""
        if not self.time:
            return 0.0
        if self.depth and self.changed and self.changed <= self.time and self.answer == "200":
            return self.time + 30 * EVERY_SECS
        return self.time + (EVERY_SECS if self.vain < IN_VAIN else 30 * EVERY_SECS)


class HostSources(Note):
    """The sources of a host by URL, and when the first of them is ``due``."""

    sources: dict[str, Source] = {}
    due: float = 0.0

    def reckon(self) -> None:
        self.due = min((one.due() for one in self.sources.values()), default=float("inf"))


class Named(Note):
    """The keys of the pages that each sitemap of a host names, joined."""

    by_sitemap: dict[str, bytes] = {}


class Sources(Part):
    """The sources of all hosts. If ``is_on`` is False, no source is fetched."""

    def __init__(
        self, notes: NotesMemory, clock: Callable[[], float], *, is_on: bool = True
    ) -> None:
        self._backend, self._clock, self.is_on = notes.backend, clock, is_on
        self._hosts = HostNotes(notes, "sources", HostSources, prepare=self._prepare)
        self._answered: set[str] = set()
        self._signalled: dict[bytes, tuple[str, str]] = {}
        self._dropped: dict[bytes, tuple[str, str]] = {}
        self._out: set[str] = set()  # hosts with a source that is being fetched

    def __repr__(self) -> str:
        return f"<Sources of {len(self._hosts)} hosts>"

    def of(self, host: str) -> Iterator[Source]:
        """The sources of a host, in the order of their discovery."""
        yield from self._hosts.of(host).sources.values()

    def _prepare(self, _host: str, found: HostSources) -> None:
        now = self._clock()
        for source in found.sources.values():
            source.time = min(source.time, now)  # the clock may have been ahead
        found.reckon()

    def answered(self, lease: Lease) -> None:
        self.host_answered(lease.host.record.host, lease.host.record.scheme)

    def host_answered(self, host: str, scheme: str) -> None:
        """The host has responded for a page. From now on its sources are fetched."""
        if host in self._answered:
            return
        self._answered.add(host)
        if scheme in WEB_PORTS and host != FILES:  # folders name what they have
            self.found(host, [origin_of(scheme, host) + GUESSED], "guess")

    def found(self, host: str, urls: Iterable[str], how: str, depth: int = 0) -> list[str]:
        """Add sources that robots.txt, a page or an index names. Returns the host's new ones."""
        mine, new = self._hosts.of(host), []
        feeds = sum(one.how == "feed" for one in mine.sources.values())
        for url in urls:
            if url in mine.sources or host_of(url) != host or depth > MAX_DEPTH:
                continue
            if len(mine.sources) >= MAX_SOURCES or (how == "feed" and feeds >= MAX_FEEDS):
                break
            feeds += how == "feed"
            mine.sources[url] = Source(url, how, depth=depth)
            new.append(url)
        if new:
            mine.reckon()
            self._hosts.touch(host)
        return new

    def next_time(self, host: str) -> float | None:
        """When a source of the host is due; None: never, or not before the host has responded for a
        page."""
        if host in self._out:
            return None
        if host not in self._answered and not self._backend.counts(host).stored:
            return None
        due = self._hosts.of(host).due
        return None if due == float("inf") else due

    def own_fetch(self, host: Host, now: float, allowed: Callable[[str], bool]) -> OwnFetch | None:
        return self.next_fetch(host.record.host, now, allowed)

    def next_fetch(self, host: str, now: float, allowed: Callable[[str], bool]) -> OwnFetch | None:
        """The source to fetch now; the next one follows after it has ended. A source that
        robots.txt neither allows nor names is skipped."""
        at = self.next_time(host)
        if at is None or at > now:
            return None
        mine = self._hosts.of(host)
        for source in sorted(mine.sources.values(), key=Source.due):
            if source.due() > now:
                break
            if source.how == ROBOTS or allowed(source.url):
                self._out.add(host)
                return OwnFetch(
                    FetchKind.SOURCE,
                    source.url,
                    partial(self._out.discard, host),
                    partial(self._ended, source.url),
                )
            self.asked(source.url, now, "robots")
        return None

    def _ended(self, url: str, answer: str, entries: int, _page: Page | None) -> None:
        self.asked(url, self._clock(), answer, entries)

    def asked(self, url: str, now: float, answer: str, entries: int = 0) -> None:
        """A fetch of a source has ended. ``answer`` is "200" if the source was read."""
        host = host_of(url)
        self._out.discard(host)
        mine = self._hosts.of(host)
        source = mine.sources.get(url)
        if source is None:
            return
        source.time, source.answer, source.entries = now, answer, entries
        source.vain = 0 if entries else source.vain + 1
        mine.reckon()
        self._hosts.touch(host)

    def index_says(self, url: str, changed: float | None) -> None:
        """Note the last change of a sitemap, as its index states it."""
        mine = self._hosts.of(host_of(url))
        if (source := mine.sources.get(url)) is not None:
            source.changed = changed or 0.0
            mine.reckon()
            self._hosts.touch(host_of(url))

    # trust

    def precision(self, url: str) -> float:
        """0 to 1; 0.5 for a source that has named nothing yet."""
        source = self._hosts.of(host_of(url)).sources.get(url)
        return 0.5 if source is None else source.precision

    def signalled(self, keys: Iterable[bytes], url: str) -> None:
        """A source has named pages, by the keys of their URLs, as changed since our last visit."""
        host = host_of(url)
        for key in keys:
            if len(self._signalled) >= MAX_SIGNALLED:
                break
            self._signalled.setdefault(key, (host, url))

    def dropped(self, keys: Iterable[bytes], url: str) -> Source | None:
        """A source has stopped naming these stored pages. If it too often stopped naming pages that
        were still there, it makes no page due, and the source is returned."""
        host = host_of(url)
        for key in keys:
            if len(self._dropped) >= MAX_SIGNALLED:
                break
            self._dropped.setdefault(key, (host, url))
        source = self._hosts.of(host).sources.get(url)
        return source if source is not None and not source.drops_pages else None

    def visited(self, key: bytes, *, missing: bool) -> None:
        """A page is there, or is missing: the source that stopped naming it was right, or not."""
        host, url = self._dropped.pop(key, ("", ""))
        source = self._hosts.of(host).sources.get(url) if host else None
        if source is None:
            return
        source.missing, source.there = source.missing + missing, source.there + (not missing)
        if source.missing + source.there > 1_000:  # what it did long ago counts less
            source.missing, source.there = source.missing / 2, source.there / 2
        self._hosts.touch(host)

    def judged(self, key: bytes, *, changed: bool) -> None:
        """A page was visited again. Note whether the source was right that named it as changed."""
        host, url = self._signalled.pop(key, ("", ""))
        source = self._hosts.of(host).sources.get(url) if host else None
        if source is None:
            return
        if changed:
            source.true += 1
        else:
            source.false += 1
        if source.true + source.false > 1_000:  # what it did long ago counts less
            source.true, source.false = source.true / 2, source.false / 2
        self._hosts.touch(host)

    def named(self, url: str, keys: Iterable[bytes]) -> list[bytes]:
        """A sitemap names the pages with these keys. Returns the keys that its previous version
        named, and that no sitemap of its host names now."""
        host = host_of(url)
        if url not in self._hosts.of(host).sources:
            return []
        note = Named.unpack(self._backend.note(f"{_NAMED} {host}"))
        kept = note.by_sitemap
        before, now = _split(kept.pop(url, b"")), set(keys)
        if sum(map(len, kept.values())) // _KEY + len(now) <= MAX_NAMED:
            kept[url] = b"".join(sorted(now))
        gone = before - now
        if gone or before != now:
            self._backend.put_note(f"{_NAMED} {host}", note.pack())
        for others in kept.values() if gone else ():
            gone -= _split(others)
        return sorted(gone)

    # durability

    def save(self) -> None:
        """Hand what changed since the last call to the backend."""
        self._hosts.save()

    def forget(self, host: str) -> None:
        """The host is another worker's now."""
        self._hosts.forget(host)
        self._answered.discard(host)
        self._out.discard(host)


def _split(keys: bytes) -> set[bytes]:
    return {keys[at : at + _KEY] for at in range(0, len(keys), _KEY)}
