"""The web application: an aiohttp.web.Application from a Source and a Guard.

runner = web.AppRunner(build(source, guard))
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from urllib.parse import quote

from aiohttp import web

from larmspider import plugin
from larmspider.errors import CrawlDirError, HttpError, LarmspiderError, QueryError
from larmspider.formatting import printable
from larmspider.search.curated import Curated
from larmspider.status.crawl_view import Source
from larmspider.status.status import CrawlStatus
from larmspider.urls.file_urls import NOWHERE, OpenableUrls
from larmspider.web import actions
from larmspider.web.auth import HEADERS, Guard
from larmspider.web.events import Events
from larmspider.web.look import Look
from larmspider.web.people import People
from larmspider.web.prefix import INNER, lead_below, prefix_of
from larmspider.web.query_log import QueryLog
from larmspider.web.readers import Readers
from larmspider.web.render import Templates, packaged
from larmspider.web.request import (
    PageView,
    WebRequest,
    WebResponse,
    Work,
    json_response,
    search_status,
)
from larmspider.web.site import (
    SEARCH,
    SITE,
    FlashMessages,
    Site,
    aiohttp_response,
    drop_stale_cookie,
    is_signed_in,
    may_read,
    may_search,
    may_still_read,
    needs_proof,
    prepare,
    proof_of,
    web_request,
)
from larmspider.web.tries import tried_too_often
from larmspider.web.views import PAGES
from larmspider.web.views.overview import update_parts
from larmspider.web.views.service import HEALTH

logger = logging.getLogger(__name__)

MAX_BODY = 65_536
"""Bytes of a POST."""
_SEARCH_API = "search_api.api"
API = "/api/"
"""Below this path errors are JSON."""
_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def build(
    source: Source,
    guard: Guard,
    readers: Readers | None = None,
    look: Look | None = None,
    curated: Curated | None = None,
    query_log: QueryLog | None = None,
    opens: OpenableUrls = NOWHERE,
    *,
    ahead: bool = False,
    pages: Sequence[PageView] = PAGES,
    mounted: str = "",
    of_server: bool = False,
    max_body: int = MAX_BODY,
    people: People | None = None,
) -> web.Application:
    """The application. ``ahead``: read what takes long before the first request, which is of no use
    in a crawl that only begins. ``mounted``: the name of the crawl below a path of a server of
    several crawls, whose own pages are at `/-/` (server/mount.py). ``of_server``: these own
    pages."""
    nav = [(page.nav, page.path, page.scope) for page in pages if page.nav]
    templates = Templates(opens, nav=nav, mounted=mounted, of_server=of_server or bool(mounted))
    work, crawl_status = Work(), CrawlStatus(source)
    events = Events(source.controller, work, partial(update_parts, crawl_status, templates))
    site = Site(
        source, crawl_status, guard, templates, work, events, FlashMessages(),
        readers or Readers(), look or Look(), curated or Curated(),
        query_log or QueryLog(), people=people or People(),
    )  # fmt: skip
    app = web.Application(middlewares=[_answer], client_max_size=max_body)
    app[SITE] = site
    for page in pages:
        app.router.add_get(page.path, _handler(page))
    app.router.add_get("/static/{name}", _static)
    app.router.add_post("/login", actions.sign_in)
    app.router.add_post("/logout", actions.sign_out)
    if pages is PAGES:
        app.router.add_get("/events", _events, allow_head=False)
        app.router.add_post("/control/{act}", actions.act)
        if api := plugin.find(_SEARCH_API):
            api.add_routes(app.router)

    async def begin(_: web.Application) -> None:
        def read() -> None:
            with suppress(LarmspiderError):
                crawl_status.status(None)

        site.first = asyncio.get_running_loop().create_task(work.run(read))

    async def stop(_: web.Application) -> None:
        events.close()

    async def close(_: web.Application) -> None:
        site.health.close()
        site.aside.close()
        site.previews.close()
        work.close()
        site.query_log.close()
        source.close()

    if ahead:
        app.on_startup.append(begin)
    app.on_shutdown.append(stop)
    app.on_cleanup.append(close)
    return app


def _handler(page: PageView) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        site = request.app[SITE]
        asked = web_request(request)
        if page.live:
            asked = replace(asked, gauges=await site.events.gauges())
        work = site.health if page.path == HEALTH else site.aside if page.aside else site.work
        return aiohttp_response(await work.run(_page, page, asked))

    return handler


def _page(page: PageView, request: WebRequest) -> WebResponse:
    if page.scope and not request.may(page.scope):
        raise HttpError(
            "You may not see this page: it needs the scope {scope}.", 403, scope=page.scope
        )
    if not page.without_crawl and not request.source.exists():
        if request.text("format") == "json":
            missing = CrawlDirError(request.source.run_state.sentence)
            return json_response({"error": request.told(missing)}, 404)
        return request.render("no_crawl.html", 404)
    return page.answer(request)


async def _events(request: web.Request) -> web.StreamResponse:
    language = web_request(request).say.language
    return await request.app[SITE].events.listen(request, lambda: may_still_read(request), language)


async def _static(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    content = packaged("static", name)
    kind = _TYPES.get(name.rpartition(".")[2])
    if found := request.app[SITE].look.files.get(name):
        kind, content = found
    if content is None or kind is None:
        raise HttpError("There is no such file.", 404)
    headers = {"Content-Type": kind, "Cache-Control": "max-age=300"}
    response = web.Response(body=content, headers=headers)
    # not pages: their size would tell of the secret of their forms, beside text of a foreign link
    response.enable_compression()
    return response


@web.middleware
async def _answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Middleware of every request: connections, guard, error pages, headers."""
    connection = request.app[SITE].connections.of(request.transport)
    if connection is None:  # it is closed, or the application runs under another server
        return await _answered(request, handler)
    with connection.busy():
        if not connection.spare:
            response = await _answered(request, handler)
            connection.signed_in = is_signed_in(request)
            return response
        response = await _answered(request, handler if request.path == HEALTH else _refused)
        response.force_close()
        return response


async def _refused(_: web.Request) -> web.StreamResponse:
    raise HttpError("All connections are in use; try again in a moment.", 503)


async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        response = await _guarded(request, handler)
    except web.HTTPException as error:
        if error.status < 400:
            response = web.Response(status=error.status, headers=error.headers)
        else:
            missing = HttpError("There is no such page.", 404)
            other = HttpError(error.reason, error.status)
            response = _error_page(request, missing if error.status == 404 else other)
    except LarmspiderError as error:
        response = _error_page(request, error)
        if isinstance(error, HttpError) and error.status == 429:
            response.headers["Retry-After"] = str(error.values["seconds"])
            response.force_close()  # the rest of the request is not read
    except (ConnectionError, asyncio.CancelledError):
        raise
    except Exception:
        logger.exception("Error while making the page %s", printable(request.path)[:200])
        response = _error_page(
            request, HttpError("Error while making this page; see the log.", 500)
        )
    if not response.prepared:
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        drop_stale_cookie(request, response)
        if (prefix := prefix_of(request)) and not request.get(INNER):
            lead_below(response, prefix)
    return response


async def _guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    guard = request.app[SITE].guard
    if "Host" not in request.headers:
        raise HttpError("The request has no Host header.", 400)
    if not guard.accepts_host(request.headers.get("Host", "")):
        raise HttpError(
            "The Host header does not name this server; LARM_WEB_HOSTS lists the names it has.", 421
        )
    if needs_proof(request) and (secs := proof_of(request).wait):
        raise tried_too_often(secs)
    if not may_read(request):
        wants_page = "text/html" in request.headers.get("Accept", "")
        if request.method == "GET" and wants_page and not request.path.startswith(API):
            if request.path == "/" and may_search(request):
                raise web.HTTPSeeOther(SEARCH)
            if proof_of(request).identity is None:
                raise web.HTTPSeeOther(f"/login?next={quote(request.path_qs, safe='')}")
        if proof_of(request).identity is not None:
            raise HttpError("You may not see this page.", 403)
        raise HttpError("Sign in with the token first.", 401)
    await prepare(request)
    return await handler(request)


def _error_page(request: web.Request, error: LarmspiderError) -> web.Response:
    asked, status = web_request(request), _status(error)
    if (api := plugin.find(_SEARCH_API)) and api.is_asked(request.path):
        return aiohttp_response(api.error_response(error, asked.told(error), status))
    is_api = request.path.startswith(API)
    if is_api or "Authorization" in request.headers or request.query.get("format") == "json":
        return aiohttp_response(json_response({"error": asked.told(error)}, status))
    message = _for_searchers(asked, error) if asked.only_searches else _message(asked, error)
    return aiohttp_response(asked.render("error.html", status, message=message, number=status))


def _message(asked: WebRequest, error: LarmspiderError) -> str:
    """The message of an error in the language of the page."""
    if isinstance(error, (HttpError, QueryError)):
        return asked.say.error(error)
    return asked.say.told(asked.told(error))


def _for_searchers(asked: WebRequest, error: LarmspiderError) -> str:
    """The message of an error in the language of the search. Readers without access do not learn
    where the crawl lies."""
    if isinstance(error, (HttpError, QueryError)):
        return asked.say.error(error)
    general = asked.say("The search cannot be used right now.")
    return f"{general} {asked.told(error)}" if asked.may_read else general


def _status(error: LarmspiderError) -> int:
    status = error.status if isinstance(error, HttpError) else search_status(error)
    if isinstance(error, QueryError):
        status = 400
    if not isinstance(error, (HttpError, CrawlDirError, QueryError)):
        status = 500
    return status
