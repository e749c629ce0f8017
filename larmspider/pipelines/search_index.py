"""The search index: pages, and the texts of the links to them (larmspider/index/ writes them).

Pages with status 200 are indexed, unless they have noindex or a refresh to another page. Links to a
page are often found long after the page. Link texts of indexed pages are therefore updated at each
commit, a few at a time, and completely when nothing is left to fetch. A crawl that is stopped then
stops at once; the next run continues with the rest.
"""

from __future__ import annotations

import asyncio
import logging
import time
from bisect import bisect_right
from collections.abc import (
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from functools import partial
from math import inf
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import msgpack
import scrapy.signals
from scrapy.exceptions import DontCloseSpider

from larmspider import options, program, signals, stats
from larmspider.access.renewal import Renewed
from larmspider.access.rights import Document, Problems
from larmspider.access.sent import META
from larmspider.access.sources import Sources
from larmspider.errors import CrawlDirError
from larmspider.extraction.texts.language import in_languages, languages_in
from larmspider.extraction.texts.simhasher import Simhasher
from larmspider.fetch.in_thread import in_thread
from larmspider.files import replace_file
from larmspider.formatting import counted, duration, printable
from larmspider.index.link_access import LinkAccess, covered
from larmspider.index.rebuild import finish
from larmspider.index.schema import STEMMERS
from larmspider.index.unreached import UnreachedLog
from larmspider.index.version import META_NAME, REBUILDS, restricted_of
from larmspider.index.writer import IndexWriter, heap_bytes_of
from larmspider.items import Kept, Page, Removed
from larmspider.pipelines.reextract import (
    is_for_readers,
    linking_pages,
    missed_pages,
)
from larmspider.pipelines.store import Store
from larmspider.urls.schemes import is_source
from larmspider.workdir.pushed import stored_access
from larmspider.workdir.restricted import restricted_of_run

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.statscollectors import StatsCollector

logger = logging.getLogger(__name__)

_REMEMBERED = 10_000  # pages: 2 MB of memory, 8 minutes of a crawl with 20 pages a second
_PROGRESS_SECS = 5.0
PASS_SECS = 60.0
"""The rights of servers are renewed beside the crawl. The first fetch waits for that as long as
this, and the end of the crawl as long as the last document that was looked at is not older."""
_EXISTS = b"index"
Unreachable: TypeAlias = tuple[Mapping[str, float], Sequence[str]]
"""The result of signals.unreached."""
_IS_THERE = frozenset({"same", "not-modified"})
_MAY_BE_THERE = frozenset({"noindex", "scope"})
"""Outcomes of a visit (Kept.kind) that do not say whether the page can be reached."""


class SearchIndexPipeline(Store):
    """Writes index/."""

    needs = ("url", "text")
    files = ("index", "index.new", "index.old")

    def __init__(
        self,
        directory: Path,
        heap_bytes: int,
        stemmer: str,
        counters: StatsCollector,
        wake: Callable[[], object] = lambda: None,
        stopping: Callable[[], bool] = lambda: False,
        given_up: Callable[[], bool] = lambda: False,
        languages: Collection[str] = (),
        restricted: Callable[[], Collection[str]] = tuple,
        unknown: Callable[[Sequence[str]], Iterable[str]] = lambda _: (),
        unlinked: Callable[[list[str]], object] = lambda _: None,
        unreached: Callable[[list[str]], Iterable[Unreachable]] = lambda _: (),
        sources: Sources | None = None,
        access_secs: float = inf,
    ) -> None:
        """``wake`` is called when the crawl may end, ``stopping`` tells whether it has to,
        ``given_up`` whether it has to stop while it opens. Only pages in ``languages`` are
        indexed, all if empty. ``restricted``, called when the store opens, returns patterns of
        hosts whose link texts are for their own pages alone. ``unknown`` returns the pages of a
        batch that are not stored; the others are written again at their next visit. ``unlinked``
        gets the pages that no link leads to any more, ``unreached`` the pages that were not reached
        (signals.unreached). ``sources`` know who may read a page. After ``access_secs`` they check
        all files again."""
        self.directory = directory
        self.heap_bytes = heap_bytes
        self.stemmer = stemmer
        self.counters = counters
        self.languages = languages
        self._restricted, self._access = restricted, LinkAccess()
        self._sources, self._access_secs = sources or Sources(), access_secs
        self._sources.count = partial(counters.inc_value, stats.ACCESS_UNREADABLE)
        self._renewed_at = time.monotonic()
        self.wake, self.stopping, self.given_up = wake, stopping, given_up
        self._simhasher = Simhasher()
        self._ahead = _Ahead(directory / "ahead")
        self._in_doubt: Sequence[str] = ()
        self._unknown, self._unlinked, self._unreached = unknown, unlinked, unreached
        self._marks: UnreachedLog | None = None
        self._writer: IndexWriter | None = None
        self._up_to_date = False  # the link texts, as far as pages were written
        self._refresh: asyncio.Task[None] | None = None
        self._pass: asyncio.Task[None] | None = None  # over the rights of servers
        self._pass_at = 0.0  # when its last document was looked at
        self._closing = False
        self._failure: CrawlDirError | None = None  # pages may be missing since

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        settings = crawler.settings
        heap_bytes = heap_bytes_of(settings)
        stemmer = options.choice(settings, "LARM_INDEX_STEMMER", STEMMERS)
        assert crawler.stats is not None
        store = cls(
            options.larm_dir(settings) / "index",
            heap_bytes,
            stemmer,
            crawler.stats,
            wake=partial(crawler.signals.send_catch_log, signals.wake),
            stopping=lambda: not (crawler.crawling and crawler.engine.running),
            given_up=lambda: not crawler.crawling,
            languages=languages_in(settings, "LARM_INDEX_LANGUAGES"),
            restricted=partial(restricted_of_run, settings),
            unknown=partial(_unknown, crawler),
            unlinked=lambda names: crawler.signals.send_catch_log(signals.unlinked, names=names),
            unreached=partial(_answers, crawler, signals.unreached),
            sources=Sources.from_settings(
                settings, partial(stored_access, options.larm_dir(settings))
            ),
            access_secs=options.seconds(settings, "LARM_ACCESS_SECS", minimum=60.0),
        )
        crawler.signals.connect(store.links_to, signal=signals.links_to)
        crawler.signals.connect(store.spider_idle, signal=scrapy.signals.spider_idle)
        return store

    def open_spider(self) -> Coroutine[Any, Any, None] | None:
        options.writable_dir(self.directory.parent)
        finish(self.directory)
        noted = restricted_of(self.directory)
        self._open()
        assert self._writer is not None
        hosts = (*self._restricted(), *(noted or ()))
        self._access = LinkAccess(hosts, self._writer.access)
        withdraws = not covered(self._access.restricted, noted)
        withdraws = withdraws and bool(self._writer.anchors.sizes()["pairs"])
        if not withdraws:
            self._writer.withdraw_link_texts(self._access, tuple)
        table = self._writer.access
        if not withdraws and not (self._sources or table.patterns or table.hosts):
            return None
        return self._begin(self._writer, withdraws=withdraws)

    async def _begin(self, writer: IndexWriter, *, withdraws: bool) -> None:
        """Bring the index in line with rights that have changed, before the first fetch."""
        await self._renew(writer, self.given_up)
        until = time.monotonic() + PASS_SECS
        await self._wait_for_pass(lambda: self.given_up() or time.monotonic() > until)
        if withdraws:
            await self._withdraw(writer)

    async def _renew(self, writer: IndexWriter, stop: Callable[[], bool]) -> None:
        """Look at the rights of all files, and at the rules. Start the pass over servers."""
        with self._failure_kept():
            found = await asyncio.to_thread(writer.renew_access, self._sources, stop)
        self._renewed_at = time.monotonic()
        self._tell_renewed(found)
        if self._pass is None:
            self._pass_at = time.monotonic()
            self._pass = asyncio.ensure_future(self._renew_connected(writer))

    async def _renew_connected(self, writer: IndexWriter) -> None:
        def stop() -> bool:
            self._pass_at = time.monotonic()
            return self._closing or self.given_up()

        try:
            found = await in_thread(lambda: writer.renew_connected(self._sources, stop))
            self._tell_renewed(found)
            with self._failure_kept():
                await asyncio.to_thread(writer.checkpoint, stop)
        except CrawlDirError as error:
            logger.error("%s", error)  # and flush() raises it
        except Exception:
            logger.exception("The rights of documents on servers were not renewed")
        finally:
            self._pass = None

    async def _wait_for_pass(self, stop: Callable[[], bool]) -> None:
        while self._pass is not None and not stop():
            await asyncio.wait({self._pass}, timeout=0.2)

    def _passes(self) -> bool:
        """Whether the pass over the rights of servers goes on."""
        return self._pass is not None and time.monotonic() - self._pass_at < PASS_SECS

    def _tell_renewed(self, found: Renewed) -> None:
        for key, number in (
            (stats.ACCESS_FILES, found.files),
            (stats.ACCESS_ROWS, found.rows),
            (stats.ACCESS_MOVED, found.moved),
        ):
            self.counters.inc_value(key, number)
        if found.replaced:
            logger.warning(
                "%s replaced by documents with other rights: only operators find the old ones,"
                " until the crawl reads the new ones",
                counted(found.replaced, "document"),
            )
        for root in found.unmounted:
            logger.warning(
                "%s is missing, empty or away: is the share mounted? Its files keep the rights that"
                " they had",
                printable(root),
            )
        if found.files or found.rows or found.moved:
            logger.info(
                "Rights: looked at %s in %s of CPU (%s a second); %s and %s changed",
                counted(found.files, "file"),
                duration(found.seconds),
                f"{found.per_second:,}",
                counted(found.rows, "list"),
                counted(found.moved, "document"),
            )
        self._tell_problems()

    def _tell_problems(self) -> None:
        problems = self._sources.problems
        if problems.number:
            logger.warning(
                "The rights of %s cannot be read, so only operators find them: %s",
                counted(problems.number, "document"),
                printable("; ".join(problems.first)),
            )
            self._sources.problems = Problems()

    async def _withdraw(self, writer: IndexWriter) -> None:
        """Bring the link texts in line with newly restricted hosts, while the crawl waits;
        meanwhile its search leaves them out."""
        hosts = counted(len(self._access.restricted) - 1, "pattern")
        logger.info(
            "Other hosts were restricted when link texts came into the search index: link texts on"
            " pages of restricted hosts (%s) are now removed from it",
            hosts,
        )
        began = time.monotonic()
        with self._failure_kept():
            await asyncio.to_thread(
                writer.withdraw_link_texts, self._access, self._linking_pages, self.given_up
            )
        took = duration(time.monotonic() - began)
        if self.given_up():
            logger.warning("Not all link texts of restricted hosts are removed yet, after %s", took)
        else:
            logger.info("The link texts of restricted hosts are removed, in %s", took)

    def _linking_pages(self) -> Iterator[tuple[str, str]]:
        said = time.monotonic()
        pages = linking_pages(self.directory.parent, self._forms)
        for number, page in enumerate(pages, 1):
            if time.monotonic() - said >= _PROGRESS_SECS:
                said = time.monotonic()
                logger.info(
                    "Looking for link texts of restricted hosts: %s", counted(number, "page")
                )
            yield page

    def _open(self) -> None:
        self._writer = IndexWriter(
            self.directory,
            heap_bytes=self.heap_bytes,
            stemmer=self.stemmer,
            simhashes=self._simhasher.submit,
            collects=True,
        )
        self._writer.before_commit = self._ahead.write
        self._marks = UnreachedLog(self.directory)
        if self._marks.is_new and self._writer.count():
            for missed in missed_pages(self.directory.parent, self._forms):
                self._marks.missed(*missed)
        for name in self._unknown(self._in_doubt) if self._in_doubt else ():
            self._take_out(name)

    def links_to(self, names: Sequence[str]) -> list[int]:
        """See signals.links_to."""
        return [] if self._writer is None else self._writer.anchors.numbers(names)

    def spider_idle(self) -> None:
        """Nothing is queued or in flight: update all link texts before the crawl ends."""
        if self._refresh is None:
            is_done = self._up_to_date and not self._passes()
            if is_done or self._writer is None or self._failure is not None:
                return
            self._refresh = asyncio.ensure_future(self._bring_up_to_date(self._writer))
        raise DontCloseSpider

    async def _bring_up_to_date(self, writer: IndexWriter) -> None:
        try:
            await self._wait_for_pass(lambda: self._must_end() or not self._passes())
            if self._up_to_date:
                return
            logger.info("Bringing the link texts in the search index up to date")
            self._up_to_date = True  # until the next write()
            with self._failure_kept():
                await asyncio.to_thread(writer.refresh_all_anchors, self._must_end)
            self._tell_unlinked(writer)  # this run visits them
        except CrawlDirError as error:
            logger.error("%s", error)  # and flush() raises it
        finally:
            self._refresh = None
            self.wake()

    def _must_end(self) -> bool:
        return self._closing or self.stopping()

    def write(self, page: Page) -> None:
        assert self._writer is not None
        self._up_to_date = False
        try:
            self._index(page, self._writer)
        except CrawlDirError as error:
            self._failure = self._failure or error
            raise

    def _index(self, page: Page, writer: IndexWriter) -> None:
        self._ahead.add(page.name)
        self._mark(page.name)
        self._give(writer, Document(page.name, page.headers, page.body, page.mime))
        shown = in_languages(page, self.languages)
        if shown is None:
            self.counters.inc_value(stats.SEARCH_INDEX_LANGUAGE)
        if shown is not None and is_for_readers(page):
            writer.add(shown, page.digest or None)
            self.counters.inc_value(stats.SEARCH_INDEX_PAGES)
        else:
            writer.remove(page.name)  # it may have been indexed before a crash
        if page.noindex:
            self.counters.inc_value(stats.SEARCH_INDEX_NOINDEX)
        writer.add_anchors(page.name, self._access.given(page))

    def kept(self, kept: Kept) -> None:
        name = kept.exact or kept.normalized or kept.url
        if kept.kind in _IS_THERE and self._writer is not None:
            place = self._sources.sent.place_of(name)
            was_sent = bool(place) and any(
                key.decode("latin-1").lower() == place.lower() for key in kept.headers or ()
            )
            # a page that is the same has the same meta elements; a 304 may leave out any header
            if is_source(name) or was_sent or (place and kept.kind == "same" and META not in place):
                self._give(self._writer, Document(name, kept.headers))
        if kept.kind in _IS_THERE:
            self._mark(name)
        elif kept.kind not in _MAY_BE_THERE and self._marks is not None:
            self._marks.missed(name, kept.kind, kept.fetched)

    def _mark(self, name: str) -> None:
        """The page was reached, or was removed."""
        if self._marks is not None:
            self._marks.reached(name)

    def _give(self, writer: IndexWriter, document: Document) -> None:
        """Give a page its rights. The rules are in the table, and count more than this."""
        if self._sources and self._sources.rules.number_of(document.name) is None:
            writer.access.give(document.name, self._sources.access_of(document))
            for name, values in (document.headers or {}).items():
                if is_source(document.name) and name.lower() == b"etag" and values:
                    writer.access.note_read(document.name, values[0].decode("latin-1"))

    def remove(self, removed: Removed) -> None:
        old, new = removed.exact, removed.successor
        if new and self._access.moves(old, new):
            assert self._writer is not None
            self._writer.move_link_texts(old, new)
        self._take_out(old)

    def _take_out(self, name: str) -> None:
        assert self._writer is not None
        self._up_to_date = False
        self._ahead.add(name)
        self._mark(name)
        with self._failure_kept():
            self._writer.remove(name)
        self._writer.add_anchors(name, ())

    def flush(self) -> bytes:
        """The position: the number of pages that the index was given. The index cannot go back, but
        it knows which pages came later. Raises the first CrawlDirError again, because pages may be
        missing since then."""
        if self._failure is not None:
            raise self._failure
        return b"%s %d" % (_EXISTS, self._ahead.checkpoint())

    def recover(self, position: bytes) -> None:
        """Raises CrawlDirError if the index is gone."""
        finish(self.directory)
        exists, _, number = position.partition(b" ")
        self._in_doubt = self._ahead.recover(int(number or 0))
        if self._ahead.oldest > int(number or 0):
            logger.warning(
                "The crawl goes back further than the search index in %s remembers, which may have"
                " pages that are not stored: `%s verify --repair` takes them out",
                self.directory,
                program.NAME,
            )
        if exists == _EXISTS and not (self.directory / META_NAME).exists():
            raise CrawlDirError(
                f"{self.directory}: the search index is gone; put it back, or {REBUILDS}"
            )

    async def commit(self) -> None:
        writer = self._writer
        if writer is not None:
            self._ask_unreached()
            if time.monotonic() - self._renewed_at >= self._access_secs and self._sources:
                await self._renew(writer, self._must_end)
            with self._failure_kept():
                await asyncio.to_thread(writer.checkpoint, self._must_end)
                await asyncio.to_thread(self._write_marks)
            self._tell_unlinked(writer)
        self.flush()

    def _tell_unlinked(self, writer: IndexWriter) -> None:
        # the writer is an argument, because close_spider() may have taken it away by now
        names, writer.anchors.unlinked = writer.anchors.unlinked, []
        if names:
            self._unlinked(names)

    def _ask_unreached(self) -> None:
        """Ask which hosts do not answer, and which hosts' pages belong to another worker now."""
        if self._marks is not None:
            for hosts, left in self._unreached(self._marks.keys):
                self._marks.set_hosts(hosts)
                for name in left:
                    self._marks.reached(name)

    def _write_marks(self) -> None:
        if self._marks is not None:
            try:
                self._marks.write()
            except OSError as error:
                raise CrawlDirError(
                    f"{self.directory}: cannot write which pages were not reached: {error}"
                ) from error

    @contextmanager
    def _failure_kept(self) -> Iterator[None]:
        try:
            yield
        except CrawlDirError as error:
            self._failure = self._failure or error
            raise

    async def close_spider(self) -> None:
        writer = self._writer
        if writer is None:
            self._simhasher.close()
            return
        self._closing = True
        if self._refresh is not None:
            await self._refresh
        if self._pass is not None:
            logger.warning(
                "Not all rights of documents on servers are renewed; the rest keep theirs"
            )
            self._pass.cancel()
        self._ask_unreached()
        self._tell_problems()
        try:
            with self._failure_kept():
                try:
                    self._write_marks()  # the writer seals them with its files
                finally:
                    await asyncio.to_thread(writer.close, self.stopping)
            if writer.waiting:
                logger.warning(
                    "%s: stored; not in the search index before the same command continues",
                    counted(writer.waiting, "page"),
                )
        except CrawlDirError as error:
            logger.error("%s", error)  # and flush() raises it
        finally:
            self._writer = None  # not before: a checkpoint meanwhile must wait for this commit
            self._simhasher.close()


class _Ahead:
    """A file that names the pages that the index was given since the last checkpoint but one, and
    at least the last _REMEMBERED pages, each with its number. After a crash the index may have
    these pages although the crawl does not; so after a Redis that came back without its last
    commits. The first entry has no name: the number of the last page that is left out."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._number = self._checkpoint = self._written = 0
        self._names = [(0, "")]

    @property
    def oldest(self) -> int:
        """The oldest checkpoint that the crawl can go back to."""
        return self._names[0][0]

    def recover(self, number: int) -> list[str]:
        """Recover the pages after ``number``, a checkpoint()."""
        self._number = self._checkpoint = self._written = number
        self._names = [(number, "")]
        try:
            found = msgpack.unpackb(self._path.read_bytes())
        except (OSError, ValueError):  # none, or of a machine that crashed
            return []
        if found and not found[0][1]:
            self._names = []
        self._names += [(at, name) for at, name in found]
        in_doubt = [(at, name) for at, name in self._names if at > number and name]
        self._number = max([number, *(at for at, _ in in_doubt)])
        return list(dict.fromkeys(name for _, name in in_doubt))

    def add(self, name: str) -> None:
        self._names.append((self._number + 1, name))
        self._number += 1  # after it: write() may come between

    def checkpoint(self) -> int:
        """The number of the last page; the checkpoint before this one was committed."""
        since = bisect_right(self._names, self._checkpoint, key=itemgetter(0))
        first = min(since, len(self._names) - _REMEMBERED)
        if first > 1:
            self._names = [(self._names[first - 1][0], ""), *self._names[first:]]
        self._checkpoint = self._number
        return self._number

    def write(self) -> None:
        """Write the file. Called before the index commits, in any thread."""
        number = self._number
        if self._written != number:
            replace_file(self._path, msgpack.packb(self._names[:]))
            self._written = number


def _unknown(crawler: Crawler, names: Sequence[str]) -> Iterable[str]:
    answers = crawler.signals.send_catch_log(signals.in_doubt, names=names)
    return [name for _, found in answers if isinstance(found, list) for name in found]


def _answers(crawler: Crawler, signal: object, names: list[str]) -> list[Unreachable]:
    answers = crawler.signals.send_catch_log(signal, names=names)
    return [found for _, found in answers if isinstance(found, tuple)]
