"""The POST requests of the server's own pages; each checks the form as web/actions.py does."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from aiohttp import web

from larmspider.errors import ConfigError, HttpError, LarmspiderError
from larmspider.server.api.api import Server
from larmspider.server.api.crawls import By
from larmspider.server.config.crawl_file import CrawlFileError, said
from larmspider.server.form import errors_of, groups, values_of
from larmspider.server.mount import Mounts
from larmspider.server.pages import manage
from larmspider.server.people import people_acts
from larmspider.server.people.tokens import first_key
from larmspider.web.actions import EDITED, checked_form, edit, flash_back, read_form, set_session
from larmspider.web.auth import EDIT, OPERATE, SEARCH
from larmspider.web.reader import OPERATOR_ROLE
from larmspider.web.request import FlashMessage
from larmspider.web.site import SITE, address_of, aiohttp_response, proof_of, web_request
from larmspider.web.tries import tried_too_often

ALL = "*"


@dataclass(frozen=True, slots=True)
class Form:
    """A form that was sent: the name of the crawl and the fields."""

    server: Server
    mounts: Mounts
    name: str
    form: dict[str, str]
    by: By


def add_routes(router: web.UrlDispatcher, server: Server, mounts: Mounts) -> None:
    """All acts."""

    async def first(request: web.Request) -> web.StreamResponse:
        return await _first(request, server)

    async def create(request: web.Request) -> web.StreamResponse:
        return await _done(
            request, "/new", lambda form, by: _create(of(form.get("name", "").strip(), form, by))
        )

    async def act(request: web.Request) -> web.StreamResponse:
        name, what = request.match_info["name"], request.match_info["act"]
        if what not in _ACTS:
            raise HttpError("There is no such act.", 404)
        target = f"/manage/{name}"
        return await _done(request, target, lambda form, by: _ACTS[what](of(name, form, by)))

    def of(name: str, form: dict[str, str], by: By) -> Form:
        return Form(server, mounts, name, form, by)

    router.add_post("/first", first)

    async def preview(request: web.Request) -> web.StreamResponse:
        return await _preview(request, server)

    for path, handler in people_acts.handlers(server).items():
        router.add_post(path, handler)

    async def preview_change(request: web.Request) -> web.StreamResponse:
        return await _preview_change(request, server)

    router.add_post("/new", create)
    router.add_post("/preview", preview)

    async def search_file(request: web.Request) -> web.StreamResponse:
        name = request.match_info["file"]
        if name not in EDITED:
            raise HttpError("There is no such file.", 404)
        site = request.app[SITE]

        async def done(form: dict[str, str], by: By) -> tuple[str, str]:
            said = await asyncio.to_thread(edit, site, name, form)
            server.crawls.audit.note(by.who, by.address, "edit", name, "saved")
            return said, "/control/search"

        return await _done(request, "/control/search", done, OPERATE)

    router.add_post("/control/{file}", search_file)
    router.add_post("/manage/{name}/preview", preview_change)
    router.add_post("/manage/{name}/{act}", act)


async def _done(
    request: web.Request,
    target: str,
    act: Callable[[dict[str, str], By], Awaitable[tuple[str, str]]],
    scope: str = EDIT,
) -> web.StreamResponse:
    """Do an act of a form, and lead to the page that shows the result."""
    site = request.app[SITE]
    form = await checked_form(request, site, scope)
    by = by_of(request)
    try:
        done, target = await act(form, by)
    except (ConfigError, HttpError) as error:
        return flash_back(site, form | {"next": target}, _refusal(error, form))
    return flash_back(site, form | {"next": target}, FlashMessage(done, good=True))


def by_of(request: web.Request) -> By:
    """The sender of a request, and its address."""
    identity = proof_of(request).identity
    scope = SEARCH if identity is None else identity.scope
    return By(proof_of(request).who, address_of(request), scope)


def _refusal(error: LarmspiderError, form: dict[str, str]) -> FlashMessage:
    """An error with all that was typed; each problem of a crawl file beside its field."""
    typed, text = dict(form), str(error)
    if isinstance(error, CrawlFileError):
        typed |= errors_of(form, error.problems)
        more = len(error.problems) - 1
        text = said(error.problems[0])  # without the line: a form has none
        text += f" (and {more:,} more)" if more else ""
    return FlashMessage(text, good=False, typed=typed)


async def _preview(request: web.Request, server: Server) -> web.StreamResponse:
    """The form of a new crawl again, with the first pages of the crawl."""
    form = await checked_form(request, request.app[SITE], EDIT)
    look, shared = None, list[str]()
    try:
        crawl = server.crawls.check(values_of(form))
        server.crawls.audit.note(
            proof_of(request).who, address_of(request), "preview", form.get("seeds", ""), "begun"
        )
        shared = server.crawls.warnings(crawl)
        look = await server.looks.at(crawl, server.ports)
        flash = FlashMessage("Nothing is kept yet.", good=True, typed=form)
    except (ConfigError, HttpError) as error:
        flash = _refusal(error, form)
    asked = replace(web_request(request), flash=flash)
    fields = groups(None, form, server.secrets.names())
    page = asked.render("new_crawl.html", groups=fields, look=look, shared=shared)
    return aiohttp_response(page)


async def _preview_change(request: web.Request, server: Server) -> web.StreamResponse:
    """The page of a crawl again, with what the typed form would change."""
    form, name, found = await checked_form(request, request.app[SITE]), "", None
    name = request.match_info["name"]
    try:
        values = values_of(form, given=True)
        found = await asyncio.to_thread(server.crawls.changes, name, values)
        flash = FlashMessage("Nothing is saved yet.", good=True, typed=form)
    except ConfigError as error:
        flash = _refusal(error, form)
    asked = replace(web_request(request), flash=flash)
    page = await asyncio.to_thread(manage, server, asked, found)
    return aiohttp_response(page)


async def _create(call: Form) -> tuple[str, str]:
    call.server.crawls.create(call.name, values_of(call.form), call.by)
    await call.mounts.drop(ALL)
    done = f"{call.name} is created"
    if call.form.get("start"):
        done += f"; {call.server.crawls.start(call.name, call.by)}"
    return done, f"/manage/{call.name}"


async def _change(call: Form) -> tuple[str, str]:
    values = values_of(call.form, given=True)
    call.server.crawls.change(call.name, values, call.form.get("seen", ""), call.by)
    for one in (call.name, ALL):
        await call.mounts.drop(one)
    return f"{call.name} is changed; the next run uses that", f"/manage/{call.name}"


async def _delete(call: Form) -> tuple[str, str]:
    for one in (call.name, ALL):
        await call.mounts.drop(one)
    done = await asyncio.to_thread(
        call.server.crawls.delete,
        call.name,
        call.form.get("typed", ""),
        call.by,
        pages=bool(call.form.get("pages")),
    )
    return done, "/"


async def _start(call: Form) -> tuple[str, str]:
    await call.mounts.drop(ALL)
    return call.server.crawls.start(call.name, call.by), f"/manage/{call.name}"


async def _stop(call: Form) -> tuple[str, str]:
    return call.server.crawls.stop(call.name, call.by), f"/manage/{call.name}"


async def _visit(call: Form) -> tuple[str, str]:
    done = call.server.crawls.visit(
        call.name, call.form.get("what", "all"), call.form.get("value", ""), call.by
    )
    return done, f"/manage/{call.name}"


async def _pause(call: Form) -> tuple[str, str]:
    return await call.server.crawls.tell(call.name, "pause", call.by), f"/manage/{call.name}"


async def _resume(call: Form) -> tuple[str, str]:
    return await call.server.crawls.tell(call.name, "resume", call.by), f"/manage/{call.name}"


_Act = Callable[[Form], Awaitable[tuple[str, str]]]
_ACTS: dict[str, _Act] = {
    "start": _start, "stop": _stop, "pause": _pause, "resume": _resume, "visit": _visit,
    "change": _change, "delete": _delete,
}  # fmt: skip


async def _first(request: web.Request, server: Server) -> web.StreamResponse:
    """Make the first operator for the holder of the one-time key, and a token, and sign in."""
    site, address = request.app[SITE], address_of(request)
    if reason := site.guard.foreign(request.headers):
        raise HttpError(f"Refused: {reason}.", 403)
    tries = site.guard.tries
    if secs := tries.wait(address):
        raise tried_too_often(secs)
    form = await read_form(request)
    key = form.get("key", "")
    if server.tokens.can_operate():
        raise HttpError("The one-time key was used: sign in.", 410)
    asked = web_request(request)
    if not hmac.compare_digest(key.encode(), first_key(server.manager.home.path).encode()):
        if secs := tries.failed(address, key):
            raise tried_too_often(secs)
        page = asked.render("first.html", 403, key="", wrong=True, problem="", typed="admin")
        return aiohttp_response(page)
    name, password = form.get("name", "").strip() or "admin", form.get("password", "")
    users = server.people.users
    try:
        await asyncio.to_thread(users.add, name, OPERATOR_ROLE, password)
        token = server.tokens.make(name, OPERATE, user=name)
    except ConfigError as error:
        page = asked.render("first.html", 400, key=key, wrong=False, problem=str(error), typed=name)
        return aiohttp_response(page)
    server.crawls.audit.note(name, address, "first operator", name, "done")
    (server.manager.home.path / "first.key").unlink(missing_ok=True)
    opened = await server.opened() if server.opened is not None else ""
    page = asked.render("first_done.html", who=name, token=token, opened=opened)
    response = aiohttp_response(page)
    identity = users.identity(name)
    assert identity is not None
    set_session(request, response, identity)
    return response
