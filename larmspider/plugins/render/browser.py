"""Chromium without a network: the caller answers each request of a page.

    browser = Browser(find_browser(), RenderLimits())
    rendered = await browser.render(response, answer)
    rendered.html                     # the page as its scripts have left it

One process serves the crawl, with its sandbox and never as root. Each page has a context of its
own. A page that failed while it shared the process is rendered once more, in its own process.
``answer`` fetches scripts and data. Style sheets are empty. Pictures, fonts, films, sockets,
further windows and all requests but GET are refused. The same-origin policy holds (same_origin.py).
Playwright drives Chromium (larmspider[render]): a protocol client of our own would be smaller to
install, and harder to keep up with Chromium.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import DownloadFailedError

from larmspider.errors import ConfigError
from larmspider.extraction.processes.fair_queue import Turns
from larmspider.fetch.downloader import Stopped
from larmspider.fetch.errors import TooBig
from larmspider.fetch.limits import RenderLimits
from larmspider.fetch.sites.lookup import Origin, origin_of
from larmspider.frontier.storage.records import host_of
from larmspider.plugins.render.same_origin import FRAME, Asking, answer_headers

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Frame, Page, Route
    from playwright.async_api import Request as Asked
    from scrapy.http import Response


PROGRAMS = ("chromium", "chromium-browser", "google-chrome-stable")
_ARGUMENTS = (
    "--proxy-server=127.0.0.1:9",  # no server listens there: only the caller answers requests
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--disable-background-networking",
    "--disable-quic",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",  # otherwise STUN reaches any address
)
_WANTED = frozenset((FRAME, "script", "xhr", "fetch"))
_HEADERS = ("content-security-policy", "x-content-type-options")
"""Headers that confine a page. Chromium gets these, the media type and the headers of CORS."""
_INHERITS = ("", "about:blank", "about:srcdoc")
"""URLs of frames that have the origin of their parent."""
_GO_THERE = '<meta http-equiv="refresh" content="0;url={}">'
START_SECS = 120.0
AFTER_SECS = 10.0
"""Seconds for reading the page, and for closing it, when its time is up."""
_MARKUP = """(() => {
    const type = document.doctype ? new XMLSerializer().serializeToString(document.doctype) : "";
    const all = type + (document.documentElement ? document.documentElement.outerHTML : "");
    return all.length > %d ? all.length : all;
})()"""
TOGETHER = 3
"""Pages at a time."""
EACH = 2
"""Pages of one host at a time: one place is left for other hosts."""
MOST_LINKS = 100
LONGEST_LINK = 8_192
"""A script may go to another URL again and again; 100 links of 8,192 characters are kept."""


class NotRendered(DownloadFailedError):  # noqa: N818 - like the errors of fetch/errors.py
    """Chromium failed to render the page."""

    kind = "render"


@dataclass(slots=True)
class Rendered:
    """``cut``: the limits that were reached, in words."""

    html: str = ""
    requests: int = 0
    bytes: int = 0
    cut: list[str] = field(default_factory=list)


Answer = Callable[[Asking, dict[str, str], Callable[[], int]], Awaitable["Response | None"]]
"""Takes a request, some headers and the bytes left when its turn has come. Returns the answer; None
refuses the request. Follows a redirect and notes it in the Asking, but returns a frame's redirect
to another origin itself. Raises TooBig."""


def find_browser() -> str:
    """The program. Raises ConfigError if pages cannot be rendered here."""
    where = "render (LARM_SITES_FILE)"
    if importlib.util.find_spec("playwright") is None:
        raise ConfigError(f"{where} needs Playwright: pip install 'larmspider[render]'")
    found = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if found is None:
        raise ConfigError(f"{where}: {PROGRAMS[0]} is not found on PATH: apt-get install chromium")
    if os.geteuid() == 0:
        raise ConfigError(f"{where}: Chromium is never run as root: crawl as another user")
    return found


def check_browser() -> None:
    """Start it once. Raises ConfigError if it does not start with its sandbox."""
    program = find_browser()
    with tempfile.TemporaryDirectory(prefix="larmspider-", ignore_cleanup_errors=True) as folder:
        command = [program, "--headless", *_ARGUMENTS, f"--user-data-dir={folder}"]
        command += ["--dump-dom", "data:text/html,<p>well"]
        try:
            done = subprocess.run(  # noqa: S603 - the program of the system, no shell
                command, capture_output=True, timeout=START_SECS, check=False
            )
            said, well = done.stderr.decode("utf-8", "replace"), b"<p>well" in done.stdout
        except (OSError, subprocess.TimeoutExpired) as error:
            said, well = str(error), False
    if not well:
        lines = [line for line in said.splitlines() if "sandbox" in line] or said.splitlines()[-1:]
        what = f": {lines[0].strip()[:300]}" if lines else ""
        raise ConfigError(
            f"render (LARM_SITES_FILE): {program} does not start with its sandbox, and is not run"
            f" without{what}"
        )


class Browser:
    """One Chromium for all pages. It starts with the first page, and again after it has died.

    A page may harm the other pages in the process. A page that fails while other pages share the
    process is therefore rendered once more, in a Chromium of its own. If the last page of a host
    has failed, each page of the host gets its own Chromium, until a page succeeds.
    """

    def __init__(self, program: str, limits: RenderLimits) -> None:
        self.program, self.limits = program, limits
        self.stopped = False
        """Whether no further page is rendered."""
        self._shared = _Chromium(program)
        self._own: set[_Chromium] = set()
        self._turns = Turns(TOGETHER, EACH)

    @asynccontextmanager
    async def _place(self, host: str, group: str) -> AsyncIterator[None]:
        """Hosts share the places by the seconds that their pages hold them."""
        turn = self._turns.push(host, group)
        await self._turns.begin(turn)
        began = time.monotonic()
        failed: bool | None = None
        try:
            yield
            failed = False
        except NotRendered:
            failed = True
            raise
        finally:
            self._turns.end(turn, time.monotonic() - began, failed=failed)

    async def render(
        self,
        response: Response,
        answer: Answer,
        allowed: Iterable[Origin] = (),
        group: str = "",
    ) -> Rendered:
        """The page of a response, after its scripts have run. ``allowed``: other origins that it
        may ask with credentials. Hosts with one ``group`` count as one host, as in FairQueue.
        Raises NotRendered, Stopped."""
        host, origins = host_of(response.url), frozenset(allowed)

        def page() -> _Rendering:
            return _Rendering(response, answer, self.limits, origins)

        async with self._place(host, group):
            if not self._turns.queue.failures(host, group):
                visitors = self._shared.visitors
                was_alone = not self._shared.inside
                try:
                    return await self._render(self._shared, page())
                except NotRendered:
                    if was_alone and self._shared.visitors == visitors + 1:
                        raise
            own = _Chromium(self.program)
            self._own.add(own)
            try:
                return await self._render(own, page())
            finally:
                self._own.remove(own)
                await own.close()

    async def _render(self, chromium: _Chromium, page: _Rendering) -> Rendered:
        """Raises NotRendered, Stopped."""
        from playwright.async_api import Error

        if self.stopped:
            raise Stopped("the crawl stops")
        try:
            async with chromium.context() as context:
                return await page.run(context)
        except TimeoutError:
            self._unless_stopped()
            raise NotRendered("the page's script does not end") from None
        except (Error, OSError) as error:
            self._unless_stopped()
            words = str(error).strip().splitlines() or [type(error).__name__]
            raise NotRendered(f"Chromium: {words[0][:200]}") from None

    def _unless_stopped(self) -> None:
        if self.stopped:
            raise Stopped("the crawl stops") from None

    def stop(self) -> asyncio.Future[None]:
        """Render no further page, and close()."""
        self.stopped = True
        return asyncio.ensure_future(self.close())

    async def close(self) -> None:
        """End the processes; the next page starts another."""
        for chromium in (self._shared, *self._own):
            await chromium.close()


class _Chromium:
    """A process, once it is needed. ``inside``: pages that are there; ``visitors``: all that ever
    were."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.inside = self.visitors = 0
        self._driver: Any = None
        self._browser: Any = None
        self._starting = asyncio.Lock()

    @asynccontextmanager
    async def context(self) -> AsyncIterator[BrowserContext]:
        """A place for one page. Where it does not close, the process ends."""
        self.inside += 1
        self.visitors += 1
        try:
            context = await self._context()
            browser = self._browser
            try:
                yield context
            finally:
                try:
                    async with asyncio.timeout(AFTER_SECS):
                        await context.close()
                except BaseException:
                    if self._browser is browser:
                        await self.close()
                    raise
        finally:
            self.inside -= 1

    async def _context(self) -> BrowserContext:
        from playwright.async_api import async_playwright

        async with self._starting:
            if self._browser is None or not self._browser.is_connected():
                await self.close()
                self._driver = await async_playwright().start()
                self._browser = await self._driver.chromium.launch(
                    executable_path=self.program,
                    chromium_sandbox=True,
                    args=list(_ARGUMENTS),
                    handle_sigint=False,
                    handle_sigterm=False,
                    handle_sighup=False,
                    timeout=1000 * START_SECS,
                )
            context: BrowserContext = await self._browser.new_context(
                service_workers="block", accept_downloads=False
            )
            return context

    async def close(self) -> None:
        """End the process; the next page starts another."""
        browser, driver = self._browser, self._driver
        self._browser = self._driver = None
        with suppress(Exception):  # it may be dead
            async with asyncio.timeout(AFTER_SECS):
                if browser is not None:
                    await browser.close()
        with suppress(Exception):
            async with asyncio.timeout(AFTER_SECS):
                if driver is not None:
                    await driver.stop()


class _Rendering:
    """One page."""

    def __init__(
        self,
        response: Response,
        answer: Answer,
        limits: RenderLimits,
        allowed: frozenset[Origin] = frozenset(),
    ) -> None:
        self.response, self.answer, self.limits = response, answer, limits
        self.origin, self.allowed = origin_of(response.url), allowed
        self.rendered = Rendered()
        self.page: Page | None = None
        self._served = False
        self._leads_to: list[str] = []
        self._until = 0.0
        """Set once Chromium is there: its start does not count as a page's time."""

    async def run(self, context: BrowserContext) -> Rendered:
        from playwright.async_api import TimeoutError as TooLate

        self._until = time.monotonic() + self.limits.secs
        await context.route("**/*", self._route)
        self.page = page = await context.new_page()
        left = 1000 * max(0.1, self._until - time.monotonic())
        try:
            await page.goto(self.response.url, wait_until="networkidle", timeout=left)
        except TooLate:
            self._cut(f"{self.limits.secs:g} s (LARM_RENDER_SECS)")
        async with asyncio.timeout(AFTER_SECS):
            html = await self._markup(context, page)
        links = "".join(f'<a href="{escape(url)}"></a>' for url in self._leads_to)
        self.rendered.html = html + links
        return self.rendered

    async def _markup(self, context: BrowserContext, page: Any) -> str:
        """The same as page.content(), but Chromium sends at most LARM_RENDER_BYTES: a script of one
        line makes 500 MB. The page's scripts cannot change the answer. Raises NotRendered."""
        session = await context.new_cdp_session(page)
        tree = await session.send("Page.getFrameTree")
        frame = {"frameId": tree["frameTree"]["frame"]["id"]}
        world = await session.send("Page.createIsolatedWorld", frame)
        found = await session.send(
            "Runtime.evaluate",
            {
                "expression": _MARKUP % self.limits.max_bytes,
                "contextId": world["executionContextId"],
            },
        )
        html = found["result"].get("value")
        if not isinstance(html, str):
            raise NotRendered("the page has grown larger than LARM_RENDER_BYTES")
        return html

    async def _route(self, route: Route) -> None:
        from playwright.async_api import Error

        with suppress(Error):  # the page is closed already
            await self._answer(route, route.request)

    async def _answer(self, route: Route, asked: Asked) -> None:
        frame = self._frame_of(asked)
        if frame is None:
            await route.abort()
            return
        main = self.page is not None and frame == self.page.main_frame
        if main and asked.is_navigation_request():
            if self._served:
                self._note_link(asked.url)
                await route.fulfill(status=204)  # keeps the browser on the page
                return
            self._served = True
            await self._fulfill(route, self.response, {})
            return
        if asked.resource_type == "stylesheet":
            await route.fulfill(status=200, content_type="text/css", body="")
            return
        asking = Asking(
            asked.url,
            self.origin,
            self.allowed,
            asked.resource_type,
            asked.headers.get("origin", ""),
            by_page=self._is_own(frame),
        )
        found = await self._ask(asking, asked) if self._wants(asked) else None
        if found is not None and asking.kind == FRAME and asking.crossed:
            # else the frame would have another origin's content, and this one's rights
            there = _GO_THERE.format(escape(asking.url))
            await route.fulfill(status=200, content_type="text/html", body=there)
            return
        headers = None if found is None else answer_headers(asking, found.headers)
        if found is None or headers is None:
            await route.abort()
        else:
            await self._fulfill(route, found, headers)

    def _note_link(self, url: str) -> None:
        """A URL that the page's script goes to is a link of the page, which the filters judge."""
        if len(self._leads_to) >= MOST_LINKS or len(url) > LONGEST_LINK:
            self._cut(f"{MOST_LINKS} links of {LONGEST_LINK:,} characters by its script")
        else:
            self._leads_to.append(url)

    def _frame_of(self, asked: Asked) -> Frame | None:
        """The frame that asks; None for another window, which shows nothing of the page."""
        from playwright.async_api import Error

        try:
            frame = asked.frame
            return frame if self.page is None or frame.page == self.page else None
        except Error:  # it has no frame yet
            return None

    def _is_own(self, frame: Frame | None) -> bool:
        """Whether a frame and those around it have the origin of the page."""
        main = None if self.page is None else self.page.main_frame
        while frame is not None and frame != main:
            url = frame.url.removeprefix("blob:")
            if url not in _INHERITS and origin_of(url) != self.origin:
                return False
            frame = frame.parent_frame
        return frame is not None

    def _wants(self, asked: Asked) -> bool:
        if asked.method != "GET" or asked.resource_type not in _WANTED:
            return False
        if self.rendered.requests >= self.limits.requests:
            self._cut(f"{self.limits.requests} requests (LARM_RENDER_REQUESTS)")
        elif self.rendered.bytes >= self.limits.max_bytes:
            self._cut(f"{self.limits.max_bytes} bytes (LARM_RENDER_BYTES)")
        else:
            self.rendered.requests += 1
            return time.monotonic() < self._until
        return False

    async def _ask(self, asking: Asking, asked: Asked) -> Response | None:
        headers = {"Accept": asked.headers.get("accept", "*/*")}
        try:
            async with asyncio.timeout(self._until - time.monotonic()):
                found = await self.answer(asking, headers, self._bytes_left)
        except TimeoutError:
            return None
        except TooBig:
            self.rendered.bytes = self.limits.max_bytes
            self._cut(f"{self.limits.max_bytes} bytes (LARM_RENDER_BYTES)")
            return None
        self.rendered.bytes += len(found.body) if found is not None else 0
        return found

    def _bytes_left(self) -> int:
        return self.limits.max_bytes - self.rendered.bytes

    async def _fulfill(self, route: Route, response: Response, cors: dict[str, str]) -> None:
        headers = {
            name: b", ".join(values).decode("latin-1")
            for name in _HEADERS
            if (values := response.headers.getlist(name))
        }
        if (content_type := response.headers.get("content-type")) is not None:
            headers["content-type"] = content_type.decode("latin-1")
        await route.fulfill(status=response.status, headers=headers | cors, body=response.body)

    def _cut(self, limit: str) -> None:
        if limit not in self.rendered.cut:
            self.rendered.cut.append(limit)
