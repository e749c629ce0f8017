"""A page's request and response, and the threads in which pages are made.

    def hosts(request: WebRequest) -> WebResponse:
        order = request.choice("sort", ("queued", "host"))
        return request.render("hosts.html", rows=sorted_rows(request.source, order))

Parameters are checked here: an unknown word or number is the default, not an error, and texts are
cut.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from larmspider.errors import CrawlDirError, HttpError, LarmspiderError, SearchAwayError
from larmspider.index.access import EVERYTHING, Access
from larmspider.search.best_bets import BestBet, titled
from larmspider.search.curated import Curated
from larmspider.urls.schemes import is_source
from larmspider.web.auth import Identity
from larmspider.web.look import Look
from larmspider.web.people import People
from larmspider.web.previews import Previews
from larmspider.web.query_log import QueryLog
from larmspider.web.reader import Reader
from larmspider.web.readers import Readers
from larmspider.web.words import Words

if TYPE_CHECKING:
    from larmspider.search.searcher import Searcher
    from larmspider.status.crawl_view import Source
    from larmspider.status.snapshot import Gauges
    from larmspider.status.status import CrawlStatus
    from larmspider.web.render import Templates


@dataclass(frozen=True, slots=True)
class PageView:
    """A page: ``PageView("/hosts/{host}", host)``. ``answer`` runs in a thread and may raise
    HttpError, whose text becomes the error page.

    ``path`` is a route of aiohttp. ``nav`` is the title in the navigation, "" for none. ``scope``
    is what the page needs in a server of several crawls; "" for nothing. ``aside``: the answer
    takes long, and waits only for other answers of this kind. ``without_crawl``: the page works in
    a directory without a crawl too. ``live``: the page uses ``request.gauges``.
    """

    path: str
    answer: Callable[[WebRequest], WebResponse]
    nav: str = ""
    without_crawl: bool = False
    live: bool = False
    scope: str = ""
    aside: bool = False


MAX_TEXT = 8_192
"""Characters of a parameter; URLs are the longest."""
HTML = "text/html; charset=utf-8"
JSON = "application/json; charset=utf-8"


def search_status(error: LarmspiderError) -> int:
    """The HTTP status where there is no search: 503 if it may come back by itself."""
    return 503 if isinstance(error, SearchAwayError) else 404


@dataclass(frozen=True, slots=True)
class WebResponse:
    """``headers`` replace the common headers of all responses (auth.HEADERS)."""

    body: bytes
    content_type: str = HTML
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FlashMessage:
    """The result of a POST, shown on the next page. ``good``: whether it succeeded. ``typed``: the
    fields of a form that is shown again, to be corrected or confirmed."""

    text: str
    good: bool
    typed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WebRequest:
    """``query`` and ``path`` hold the parameters as they came; read them by the methods.

    ``only_head``: a HEAD request, whose page is not sent. ``origin`` is the text before ``url``,
    such as http://127.0.0.1:8080. ``signed_in``: may control the crawl. ``may_read``: may see the
    content of the crawl. ``identity`` is who sends the request. Forms have to send back
    ``csrf``. ``reader`` is who asks; an operator can be ``seen_as`` another person.
    ``gauges`` of the running crawl, for pages with ``PageView.live``. ``say`` translates to
    the language of the search. ``flash``: the result of the POST that led here.
    """

    source: Source
    crawl_status: CrawlStatus
    templates: Templates
    url: str
    query: Mapping[str, str]
    path: Mapping[str, str]
    only_head: bool = False
    origin: str = ""
    signed_in: bool = False
    may_read: bool = True
    identity: Identity | None = None
    csrf: str = ""
    who: str = ""
    reader: Reader = field(default_factory=Reader)
    seen_as: Reader | None = None
    people: People = field(default_factory=People)
    readers: Readers = field(default_factory=Readers)
    look: Look = field(default_factory=Look)
    say: Words = field(default_factory=Words)
    curated: Curated = field(default_factory=Curated)
    query_log: QueryLog = field(default_factory=QueryLog)
    previews: Previews = field(default_factory=Previews)
    groups: Collection[str] = ()
    gauges: Gauges | None = None
    flash: FlashMessage | None = None

    def may(self, scope: str) -> bool:
        """Whether the sender may do what needs this scope."""
        return self.identity is not None and self.identity.may(scope)

    @property
    def only_searches(self) -> bool:
        """Whether the page is for readers who only search, without the pages of the crawl: the
        search, the sign-in that leads to it, and pages that this reader may not see."""
        path = self.url.partition("?")[0]
        search = path in ("/search", "/login") or path.startswith("/search/")
        return not self.signed_in and (search or not self.may_read)

    @property
    def access(self) -> Access:
        """The pages that may be shown, by the rules of all searched crawls. Raises CrawlDirError
        without a crawl."""
        if self.signed_in:
            return EVERYTHING
        restricted = {pattern for one in self.source.all for pattern in one.restricted}
        return self.readers.access(tuple(sorted(restricted)), self.groups, self.principals)

    def _access_of(self, source: Source) -> Access:
        """The pages of one crawl that may be shown."""
        if self.signed_in:
            return EVERYTHING
        return self.readers.access(source.restricted, self.groups, self.principals)

    @property
    def principals(self) -> frozenset[str]:
        """The principals for whom access lists are judged."""
        return self.reader.principals

    def may_see(self, url: str) -> bool:
        """Whether a page may be shown, by its host and by its access list."""
        access = self.access
        if not access.page(url) or not self.source.admits(url, access.reader):
            return False
        if access.reader is None or not is_source(url):
            return True
        # the look at rights that changed covers the files in the index alone
        return self.searcher().get(self.source.crawl.forms(url).exact) is not None

    def searcher(self) -> Searcher:
        """The index as this reader may see it. Raises CrawlDirError if there is no index."""
        found = self.source.seen_by(self._access_of)
        return found.widened_by(self.curated.synonyms.value)

    def best_bets(self, query: str) -> list[BestBet]:
        """The operator's links above the hits of a query, as far as this reader may see them."""
        found = self.curated.best_bets.value.of(query, self.may_see)
        if not found:
            return []
        crawl = self.source.crawl
        return titled(found, self.searcher(), lambda url: crawl.forms(url).exact)

    def told(self, error: LarmspiderError) -> str:
        """The message of an error for programs. Only signed-in readers see the paths of the crawl;
        readers without access to its content do not see the cause."""
        if self.signed_in or not isinstance(error, CrawlDirError):
            return str(error)
        if not self.may_read:
            return "the search cannot be used right now"
        return self.source.without_paths(str(error))

    def text(
        self, name: str, default: str = "", limit: int = MAX_TEXT, nul: Literal["", " "] = ""
    ) -> str:
        """A parameter of the query, without lone surrogates, cut to ``limit`` characters. Each NUL
        in it is replaced by ``nul``."""
        value = self.query.get(name, default)[:limit]
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", nul)

    def number(self, name: str, default: int, low: int = 1, high: int = 1_000_000) -> int:
        """A whole number of the query, brought into its range."""
        value = self.query.get(name, "")
        if not value.isascii() or not value.isdigit() or len(value) > 12:
            return default
        return min(high, max(low, int(value)))

    def choice(self, name: str, accepted: Collection[str], default: str = "") -> str:
        """A word of ``accepted``; else ``default``, or the first of them."""
        value = self.query.get(name, "")
        return value if value in accepted else default or next(iter(accepted))

    def render(self, template: str, status: int = 200, **values: Any) -> WebResponse:
        """A page from templates/, which gets ``request``, ``say`` and the values."""
        text = self.templates.render(template, request=self, say=self.say, **values)
        return WebResponse(text.encode("utf-8", "replace"), status=status)


def json_response(value: Any, status: int = 200) -> WebResponse:
    """``value`` as JSON, with no character that could end a script element."""
    text = json.dumps(value, ensure_ascii=True).replace("<", "\\u003c")
    return WebResponse(text.encode("ascii") + b"\n", JSON, status)


T = TypeVar("T")

THREADS = 2
MAX_WAITING = 64
"""Requests that wait for a thread or are in one; further ones are refused."""
SECONDS = 15.0
"""How long a request may take, its wait included."""


class Work:
    """Runs pages in few threads, each for a short time, so that the crawl continues meanwhile."""

    def __init__(self, threads: int = THREADS, seconds: float = SECONDS) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="larm-web")
        self._seconds = seconds
        self._waiting = 0

    async def run(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run ``function(*args)`` in a thread. Raises HttpError (503) when too many requests wait,
        or when the call takes too long; the thread then ends in its own time."""
        if self._waiting >= MAX_WAITING:
            raise HttpError("Too many requests are waiting; try again in a moment.", 503)
        loop = asyncio.get_running_loop()
        try:
            future = loop.run_in_executor(self._pool, partial(function, *args, **kwargs))
        except RuntimeError:  # it was closed meanwhile
            raise HttpError("The crawls have changed; try again in a moment.", 503) from None
        self._waiting += 1
        future.add_done_callback(self._done)
        try:
            return await asyncio.wait_for(asyncio.shield(future), self._seconds)
        except asyncio.CancelledError:
            if future.cancelled():
                raise HttpError("The crawls have changed; try again in a moment.", 503) from None
            raise
        except TimeoutError:
            raise HttpError(
                "This request took longer than {seconds:g} s and was given up.",
                503,
                seconds=self._seconds,
            ) from None

    def _done(self, future: asyncio.Future[Any]) -> None:
        self._waiting -= 1
        if not future.cancelled():
            future.exception()  # retrieved: asyncio does not log the error of an abandoned request

    def close(self) -> None:
        """Refuse further calls; calls under way are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
