"""Revisits: judges the answer to a request for a stored page.

    304, or the same bytes or text as before     Kept: a line in fetch.log, nothing is stored
    another text, or other links                 the Page: a new version
    noindex, which is new                        Removed, then the Page
    404, a redirect, a login form, a 503, ...    Kept, until deletes.py calls it gone: Removed

This spider middleware runs after the filters and before FollowMiddleware. The links of a changed
page are therefore followed as those on any page, and no links of an error page or a login. A page
may be fetched a second time at once, to learn which words change with each fetch, and to find out
whether a 304 is true.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace
from scrapy.http import Response

from larmspider import options, stats
from larmspider.crawl.stored_bodies import StoredBodies
from larmspider.errors import InvalidURL
from larmspider.extraction.processes.helper_process import ExtractionStopped
from larmspider.extraction.texts.fingerprint import (
    asked_password,
    asks_password,
    fingerprint,
    has_minutes,
    link_signature,
    same_page,
    signature,
    was_noindex,
)
from larmspider.fetch.errors import kind_of, message_of
from larmspider.frontier.ending import LookAgain, Revisited
from larmspider.frontier.frontier import LOOK_AGAIN_SECS
from larmspider.frontier.storage.records import FetchRecord, UrlState, host_of
from larmspider.index.access import Access
from larmspider.index.schema import FILES
from larmspider.items import REDIRECT, Kept, Link, Page, Removed
from larmspider.learned.deletes.error_pages import ONCE_MORE, Wait
from larmspider.learned.deletes.moves import SAME_RUN_SECS, is_gone, is_seen_since
from larmspider.learned.deletes.table import DAY, Observation, observation_of
from larmspider.learned.revisits.validators import modified_at
from larmspider.middlewares.acknowledge import visit_of_page
from larmspider.requests import BLOB, link_request
from larmspider.scheduler.leases import give_back, lease_of
from larmspider.scheduler.scheduler import WithScheduler, scheduler_of
from larmspider.urls.normalizer import forms_from_settings
from larmspider.urls.signing_in import is_login_path
from larmspider.urls.syntax import without_userinfo
from larmspider.workdir.restricted import restricted_of_run

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from larmspider.extraction.texts.language import Languages
    from larmspider.frontier.hosts import Lease
    from larmspider.learned.revisits.host import HostKnowledge
    from larmspider.learned.revisits.revisiting import Revisiting
    from larmspider.urls.canonical import Forms

BODY_DIGEST = 20
"""Bytes of FetchRecord.digest that are the body's; the rest is the fingerprint of the text."""
_UNASKED = {"robots": Observation.ROBOTS, "scope": Observation.SCOPE}
_LOGINS = frozenset({"login", "logon", "signin", "sso", "saml", "saml2", "oauth2", "adfs", "cas"})
"""Names in the paths of logins, without hyphens."""
_ERRORS = frozenset(
    {"error", "errors", "errorpage", "error404", "404", "notfound", "pagenotfound", "filenotfound"}
    | {"pagenotfounderror", "fehler", "fehlerseite"}
)
"""Last names in the paths of error pages, without hyphens and extension."""
_WORDS = frozenset(map(str, Observation))
NAMED = 3
"""The end of a run names at most 3 pages that left, and 3 that came."""
NEXT_MINUTE_SECS = 61.0
"""Seconds until the second fetch of a page that has a clock without seconds."""
FRESH_SECS = 2 * DAY
"""How long the 404 of a redirect's target counts for the page that redirects to it."""
MANY = 3
"""A URL is an error page or a login once 3 stored pages of a host redirect to it."""


def visit_of(request: Request | None) -> FetchRecord | None:
    """The record of a URL before this Request revisited it; None for a new URL."""
    lease = lease_of(request)
    return lease.entry.visit if lease is not None and lease.entry is not None else None


def unread(response: Response, digest: str) -> Kept | None:
    """A Kept for an answer to a revisit that need not be read: a 304, or the stored bytes.
    ``digest`` of the body, in hex."""
    visit = visit_of(response.request)
    if visit is None:
        return None
    if response.status == 304:
        return _kept(response, Observation.NOT_MODIFIED)
    same = visit.status == response.status and visit.digest[:BODY_DIGEST].hex() == digest
    if not same or response.status != 200 or _may_say_otherwise(response, visit):
        return None  # a redirect says where it leads in its head
    return _kept(response, Observation.SAME)


def _may_say_otherwise(response: Response, visit: FetchRecord) -> bool:
    """Whether the headers may say something else about indexing than at the last visit."""
    return "X-Robots-Tag" in response.headers or was_noindex(visit.link_signature)


def _kept(seen: Response | Request, kind: str, message: str = "", fetched: float = 0.0) -> Kept:
    """A Kept for a response, or for a Request without a response."""
    meta, answer = seen.meta, seen if isinstance(seen, Response) else None
    blob = meta.get(BLOB)
    return Kept(
        url=seen.url,
        normalized=meta.get("normalized"),
        exact=meta.get("exact"),
        from_page=meta.get("from_page", ""),
        link_type=meta.get("link_type", 0),
        depth=meta.get("depth", 0),
        kind=str(kind),
        message=message,
        fetched=fetched,
        status=0 if answer is None else answer.status,
        size=0 if answer is None else blob.size if blob is not None else len(answer.body),
        latency=0.0 if answer is None else meta.get("download_latency", 0.0),
        headers=None if answer is None else answer.headers,
    )


def word_of(item: Page | Kept | Removed) -> str:
    """The observation of a revisit, for the stats."""
    if isinstance(item, Kept):
        return item.kind if item.kind in _WORDS else str(Observation.FAILED)
    return str(Observation.CHANGED) if isinstance(item, Page) else "removed"


class RevisitsMiddleware(WithScheduler):
    """Judges the spider's items for an answer to a revisit."""

    @cached_property
    def _access(self) -> Access:
        """Access by the claimed crawl: unknown before the first answer."""
        found = restricted_of_run(self.crawler.settings)
        return Access(tuple(host for host in found if host != FILES))

    @cached_property
    def _bodies(self) -> StoredBodies:
        return StoredBodies(options.larm_dir(self.crawler.settings))

    @cached_property
    def _forms(self) -> Callable[[str], Forms]:
        return forms_from_settings(self.crawler.settings)

    def _name(self, key: str, url: str, why: str = "") -> None:
        """Keep the first pages that left or came, for the end of the run."""
        names = self._named.setdefault(key, [])
        if len(names) < NAMED:
            names.append(f"{without_userinfo(url)}{f' ({why})' if why else ''}")
            assert self.crawler.stats is not None
            self.crawler.stats.set_value(key, ", ".join(names))

    @cached_property
    def _named(self) -> dict[str, list[str]]:
        return {}

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        lease = lease_of(response)
        entry = None if lease is None else lease.entry
        if self.scheduler is None or lease is None or entry is None:
            async for item in result:
                yield item
            return
        refresh, merger = self.scheduler.frontier.refresh, self.scheduler.frontier.merger
        async for item in result:
            if not isinstance(item, Page | Kept):
                yield item
                continue
            if isinstance(item, Page) and merger.is_on:
                item.fingerprint = fingerprint(item, merger.changing(entry.host))
            if entry.visit is None:
                if isinstance(item, Page):
                    if refresh.mode and item.status == 200:
                        self._name(stats.REFRESH_CAME, item.url)
                    item.signature = signature(item, refresh.known(entry.host).volatile)
                    item.link_signature = link_signature(item)
                    if refresh.mode and (target := _redirect_in(item)):
                        refresh.redirects_to(entry.host, entry.key, target)
                yield item
            else:
                judge = _Judge(refresh, lease, response, for_all=self._access.page(entry.url))
                if isinstance(item, Page) and judge.wants_stored(item):
                    changing = merger.changing(entry.host)
                    judge.stored = await self._stored(entry.visit, response, changing)
                for judged in judge.judge(item):
                    if isinstance(judged, Page) and not await self._tell_language(judged):
                        give_back(response)
                        return
                    if not refresh.gate.is_held(entry.host, entry.key):  # else it counts then
                        self._count(judged)
                    if isinstance(judged, Removed):
                        self._name(stats.REFRESH_LEFT, judged.url, judged.reason)
                    if lease.host.record.is_source and isinstance(judged, Page | Removed):
                        await self._unlisted(judge, judged)
                    yield judged
                if judge.leads_to is not None and isinstance(item, Page):
                    assert self.crawler.spider is not None
                    yield link_request(self.crawler.spider, judge.leads_to, item)

    async def _unlisted(self, judge: _Judge, folder: Page | Removed) -> None:
        """Make the files due that a changed folder, or one that has left, names no more. The index
        does not count the links to files, because it has no link texts of files."""
        assert self.scheduler is not None
        if isinstance(folder, Removed):
            judge.stored = await self._stored(judge.visit, judge.response, ())
        if judge.stored is not None:
            now = {link.exact for link in folder.links} if isinstance(folder, Page) else set()
            names = {link.exact for link in judge.stored.links if link.exact} - now
            self.scheduler.frontier.unlinked(sorted(names))

    async def _stored(
        self, visit: FetchRecord, response: Response, changing: Collection[bytes]
    ) -> Page | None:
        """The stored page, read by today's readers; None if its body is missing."""
        read = getattr(self.crawler.spider, "read_stored", None)
        if read is None:
            return None
        digest = visit.digest[:BODY_DIGEST]
        found = await asyncio.to_thread(self._bodies.find, visit.url or response.url, digest)
        page: Page | None = found and await read(response.url, *found, response)
        if page is not None:
            for link in page.links:
                with suppress(InvalidURL):
                    link.normalized, link.exact = self._forms(link.url)
            page.status = visit.status
            page.noindex = was_noindex(visit.link_signature)
            page.fingerprint = fingerprint(page, changing)
        return page

    async def _tell_language(self, page: Page) -> bool:
        """Set the language of a page. Returns False if the crawl is being stopped."""
        languages: Languages | None = getattr(self.crawler.spider, "late_languages", None)
        if languages is not None and page.status == 200:
            try:
                page.language = await languages.of(page)
            except ExtractionStopped:
                return False
        return True

    def _count(self, item: Page | Kept | Removed) -> None:
        assert self.crawler.stats is not None
        self.crawler.stats.inc_value(stats.REFRESH.format(seen=word_of(item)))


class _Judge:
    """Judges one answer to a revisit. ``for_all``: whether every user may see the pages of the
    host."""

    def __init__(
        self, refresh: Revisiting, lease: Lease, response: Response, *, for_all: bool = True
    ) -> None:
        entry = lease.entry
        assert entry is not None
        assert entry.visit is not None
        self.refresh, self.lease, self.entry, self.response = refresh, lease, entry, response
        self.for_all = for_all
        self.visit: FetchRecord = entry.visit
        self.known: HostKnowledge = refresh.known(entry.host)
        self.now = refresh.clock()
        self.leads_to: Link | None = None
        """The redirect of a moved page, which is to be followed."""
        self.target = ""
        """The target of this redirect, in exact form."""
        self.stored: Page | None = None
        """The stored page, if it was needed and is known."""
        self.look_again_secs = LOOK_AGAIN_SECS
        self.restless = False
        """Whether the page changes at each visit without a new word."""

    def wants_stored(self, page: Page) -> bool:
        """Whether to compare the answer with the stored body: it may be the same, and this is not
        known yet."""
        visit = self.visit
        return (
            visit.state is UrlState.STORED
            and visit.status == page.status == 200
            and not page.file_bytes
            and len(visit.digest) >= BODY_DIGEST
            and (asked_password(visit.link_signature) or not asks_password(page))  # else a login
            and not self._is_known(page)
        )

    def judge(self, item: Page | Kept) -> Iterator[Any]:
        """The items for the stores; empty if the page has to be fetched once more."""
        is_second = self.entry.key in self.refresh.looks
        first = self.refresh.looks.pop(self.entry.key, None)
        if isinstance(item, Kept):
            seen, record = self._unread(item, is_second=is_second)
        else:
            seen, record = self._read(item, first if isinstance(first, Page) else None)
        if seen is None:
            self.lease.ending = LookAgain(self.look_again_secs)
            return
        if is_second and first is None:  # the first answer was a 304
            self.known.validators.checked(changed=seen is Observation.CHANGED)
            self.refresh.touch(self.entry.host)
        date = (self.response.headers.get("Date") or b"").decode("latin-1")
        changed_at = modified_at(record.last_modified, date, self.now)
        removed: Removed | str | None = None
        if seen is Observation.NOINDEX:
            removed = self.refresh.delete(self.entry, seen, str(seen), self.now)
            if isinstance(removed, Removed):
                removed.time = item.fetched - 0.001  # before the new version
                seen = Observation.CHANGED
            else:
                record = self.visit
        self._note_change(seen, item)
        decision = self.refresh.judge(
            self.entry,
            record,
            seen,
            self.now,
            changed_at,
            restless=self.restless,
            target=self.target,
        )
        if decision.delete and removed is None:
            target = self.target if seen is Observation.MOVED else ""
            removed = self.refresh.delete(
                self.entry,
                seen,
                decision.reason,
                self.now,
                target=target,
                outside=isinstance(item, Page) and _is_outside(item),
            )
        if seen is Observation.MOVED and isinstance(item, Page):
            self._follow(item, confirmed=decision.delete)
        self.lease.ending = Revisited(decision.record)
        if seen is Observation.CHANGED:
            if removed is not None:
                yield removed
            yield item
            return
        kind = f"http-{item.status}" if seen is Observation.FAILED else str(seen)
        held = f"; {removed}" if isinstance(removed, str) else ""
        yield _kept(self.response, kind, decision.reason + held, self.now)
        if isinstance(removed, Removed):
            self.lease.ending = Revisited(None)
            yield removed

    def _note_change(self, seen: Observation, item: Page | Kept) -> None:
        key, volatile = self.entry.key[8:], self.known.volatile
        if seen is Observation.CHANGED and self.stored is not None and isinstance(item, Page):
            self.restless = volatile.saw_change(key, self.stored, item)
            self.refresh.touch(self.entry.host)
        elif seen in (Observation.SAME, Observation.NOT_MODIFIED) and volatile.saw_none(key):
            self.refresh.touch(self.entry.host)

    def _unread(self, kept: Kept, *, is_second: bool) -> tuple[Observation | None, FetchRecord]:
        validators, visit, header = self.known.validators, self.visit, self.response.headers.get
        if kept.kind == Observation.NOT_MODIFIED:
            if is_second:  # the request had no condition
                return Observation.FAILED, visit
            is_doubtful = b"noindex" in (header("X-Robots-Tag") or b"").lower()
            is_doubtful &= not was_noindex(visit.link_signature)
            if is_doubtful or validators.wants_check(random.random()):  # noqa: S311 - no secret
                self.refresh.looks[self.entry.key] = None
                return None, visit
            return Observation.NOT_MODIFIED, visit
        etag, modified = (
            (header(name) or b"").decode("latin-1") for name in ("ETag", "Last-Modified")
        )
        validators.saw(visit, etag, modified, changed=False)
        return Observation.SAME, replace(visit, etag=etag, last_modified=modified)

    def _read(self, page: Page, first: Page | None) -> tuple[Observation | None, FetchRecord]:
        visit, was_stored = self.visit, self.visit.state is UrlState.STORED
        seen = observation_of(page.status)
        if seen is not None:
            if not was_stored and visit.status == page.status:
                return Observation.SAME, visit  # it was not a page before either
            if seen is Observation.LOCKED and was_stored and not self.for_all:
                return Observation.DENIED, visit
            return seen, visit
        is_empty = page.status == 200 and not page.file_bytes and not page.body.strip()
        is_empty |= 200 < page.status < 300
        was_page = was_stored and visit.status == 200 and not self._is_lost_body(page)
        if is_empty and was_page and visit.digest:
            return Observation.EMPTY, visit
        if was_page and self._leads_to_login(page):
            return Observation.LOGIN, visit
        if was_page and not self._is_known(page):
            errors, stored = self.refresh.gate.error_pages, self.stored
            found = errors.looks_like(self.entry.host, page, visit, stored=stored, first=first)
            if found is ONCE_MORE:
                self.refresh.looks[self.entry.key] = page
            if isinstance(found, Wait):
                return None, visit
            if isinstance(found, Observation):
                return found, visit
        if page.status >= 300 and (seen := self._redirected(page)) is not None:
            return seen, visit
        volatile = self.known.volatile
        if first is not None:
            volatile.learn(first, page, self.stored)
            self.refresh.touch(self.entry.host)
        text, links = signature(page, volatile), link_signature(page, volatile)
        is_same = self._is_known(page)
        if not is_same and was_stored and first is None and self._wants_pair(page):
            self.refresh.looks[self.entry.key] = page
            return None, visit
        if was_stored and page.status == 200:
            self.known.validators.saw(visit, page.etag, page.last_modified, changed=not is_same)
            self.refresh.touch(self.entry.host)
        new = visit if is_same else visit_of_page(page)
        record = replace(
            new,
            etag=page.etag,
            last_modified=page.last_modified,
            signature=text,
            link_signature=links,
        )
        page.signature, page.link_signature = text, links
        if page.noindex and was_stored and page.status == 200 and not _was_hidden(visit):
            return Observation.NOINDEX, record
        return Observation.SAME if is_same else Observation.CHANGED, record

    def _is_lost_body(self, page: Page) -> bool:
        """Whether the answer is exactly the body that the stores have lost. It is then stored
        again, and is not an error page."""
        lost = self.refresh.lost_body_of(self.entry)
        return bool(lost) and page.status == 200 and lost == bytes.fromhex(page.digest)

    def _is_known(self, page: Page) -> bool:
        """Whether text and links are unchanged, with or without volatile words: by the signatures
        of the last visit, or by the stored body."""
        visit, volatile = self.visit, self.known.volatile
        if self.stored is not None and page.status == 200:
            return same_page(self.stored, page, volatile)
        return (
            visit.status == page.status
            and (visit.signature or visit.digest[BODY_DIGEST:])
            in (signature(page, volatile), page.fingerprint)
            and visit.link_signature in (b"", link_signature(page, volatile), link_signature(page))
        )

    def _wants_pair(self, page: Page) -> bool:
        """Whether to fetch the page twice in a row."""
        volatile, stored = self.known.volatile, self.stored
        has_turn = volatile.wants_pair(page.url)
        if stored is not None:
            has_turn |= volatile.wants_more(stored, page)
            if has_minutes(stored, page):
                self.look_again_secs = NEXT_MINUTE_SECS
        return has_turn and not page.file_bytes

    def _follow(self, page: Page, *, confirmed: bool) -> None:
        """Follow the redirect of a moved page. Without ``confirmed``, a target whose query has the
        page's path counts as a login, and is not followed."""
        link = next(link for link in page.links if link.type == REDIRECT)
        target = unquote(link.url.partition("?")[2])
        is_login = unquote(urlsplit(page.url).path) in target
        is_web = link.url.startswith(("http://", "https://"))
        if is_web and link.rejected_by is None and (confirmed or not is_login):
            self.leads_to = link

    def _leads_to_login(self, page: Page) -> bool:
        """Whether the answer is a redirect to a login: by the name of its target, or because the
        target is not stored and its query has the page's path."""
        link = next((link for link in page.links if link.type == REDIRECT), None)
        if page.status < 300 or link is None:
            return False
        here, there = urlsplit(page.url).path, urlsplit(link.url)
        if _is_login(there.path):
            return not _is_login(here)
        if len(here) < 2 or unquote(here) not in unquote(unquote(there.query)):
            return False
        if _is_error(there.path):  # /error?aspxerrorpath=/a: made-up URLs show whether it is one
            return False
        record = self.refresh.record_of(link.exact or link.url)
        return record is None or record.state is not UrlState.STORED

    def _redirected(self, page: Page) -> Observation | None:
        """The observation for a stored page that now redirects. None if it redirected before, or
        was not a page."""
        if self.visit.state is not UrlState.STORED or self.visit.status != 200:
            self.refresh.redirects_to(self.entry.host, self.entry.key, _redirect_in(page))
            return None
        target = _redirect_in(page)
        if target in ("", self.refresh.exact_of(self.entry)):  # e.g. it wants a cookie
            return Observation.FAILED
        self.target = target = self.refresh.end_of(self.entry, target)
        there, before = self.refresh.record_of(target), self.visit.link_signature
        after = b"" if there is None else there.link_signature
        if after and asked_password(after) and not asked_password(before):
            return Observation.LOGIN
        if there is not None and is_gone(there):
            return self._led_nowhere(there)
        pages = self.refresh.pages_at(self.entry, target, MANY)
        is_root = target.endswith("://" + target.split("/")[2] + "/")
        many = pages >= MANY or (is_root and not self._is_start_of(target))
        since = self.visit.missing_since or self.now
        if there is not None and not many and not is_seen_since(there, since):
            self.refresh.look_at(target)
        return Observation.MOVED_TO_ONE if many else Observation.MOVED

    def _is_start_of(self, root: str) -> bool:
        """Whether the page may have moved to the root of a host, as the start page of its own host
        or of a folder that has a host of its own now. Other pages that lead there are gone."""
        exact = self.refresh.exact_of(self.entry)
        is_folder = urlsplit(exact).path.endswith("/") and host_of(exact) != host_of(root)
        return is_folder or self.visit.depth == 0

    def _led_nowhere(self, there: FetchRecord) -> Observation:
        """The observation for a redirect to a missing page. A visit to the target counts if it was
        within FRESH_SECS, or in the run of the last visit to the page, or after it; an older visit
        is repeated. The target is visited in the run of each visit to the page, so that the next
        one counts, too."""
        passed = self.now - there.time
        if not 0 <= passed <= SAME_RUN_SECS:
            self.refresh.look_at(self.target)
        is_seen = 0 <= passed <= FRESH_SECS
        is_seen |= passed >= 0 and is_seen_since(there, self.visit.time)
        return Observation.MISSING if is_seen else Observation.FAILED


def _redirect_in(page: Page) -> str:
    """The exact form of the URL to which a page redirects; "" for a page that does not."""
    if not 300 <= page.status < 400:
        return ""
    return next((link.exact or link.url for link in page.links if link.type == REDIRECT), "")


def _is_outside(page: Page) -> bool:
    """Whether the page redirects to a URL that is out of scope."""
    return any(link.type == REDIRECT and link.rejected_by == "scope" for link in page.links)


def _is_login(path: str) -> bool:
    """Whether a path names a login, as ``/users/sign_in``, ``/sso/start`` and ``/anmelden`` do."""
    return is_login_path(path) or not _LOGINS.isdisjoint(_names_in(path))


def _is_error(path: str) -> bool:
    """Whether a path names an error page, as ``/error`` and ``/NotFound.aspx`` do."""
    return _names_in(path)[-1] in _ERRORS


def _names_in(path: str) -> list[str]:
    """The parts of a path without extensions, hyphens and underscores."""
    names = (part.partition(".")[0] for part in path.lower().split("/"))
    return [name.replace("-", "").replace("_", "") for name in names]


def _was_hidden(visit: FetchRecord) -> bool:
    """Whether the page was not to be indexed; without a link signature it may have been."""
    return not visit.link_signature or was_noindex(visit.link_signature)


def failed(crawler: Crawler, request: Request, error: BaseException) -> Iterator[Kept | Removed]:
    """The items for the stores if a revisit had no response. The page stays, unless robots.txt
    demands its removal. The lease holds the final state of the URL."""
    scheduler, lease = scheduler_of(crawler), lease_of(request)
    assert scheduler is not None
    assert lease is not None
    refresh, entry = scheduler.frontier.refresh, lease.entry
    assert entry is not None
    assert entry.visit is not None
    now, kind = refresh.clock(), kind_of(error)
    refresh.looks.pop(entry.key, None)
    seen = _UNASKED.get(kind, Observation.FAILED)
    decision = refresh.judge(entry, entry.visit, seen, now)
    lease.ending = Revisited(decision.record)
    counters = crawler.stats
    assert counters is not None
    removed = refresh.delete(entry, seen, decision.reason, now) if decision.delete else ""
    if not refresh.gate.is_held(entry.host, entry.key):
        counters.inc_value(stats.REFRESH.format(seen=str(seen)))
    if isinstance(removed, Removed):
        lease.ending = Revisited(None)
        counters.inc_value(stats.REFRESH.format(seen=word_of(removed)))
        yield removed
        return
    why = "; ".join(filter(None, (decision.reason, removed)))
    yield _kept(request, kind, why if kind in _UNASKED else message_of(error), now)
