"""/oidc/start, /oidc/callback, /oidc/logout: people come from the provider (OpenID Connect)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web

from larmspider.errors import ConfigError, HttpError
from larmspider.server.people.people import START
from larmspider.web.actions import inside, read_form, set_session
from larmspider.web.auth import Provider, cookie_name
from larmspider.web.people import PROVIDER_REFUSED
from larmspider.web.site import SITE, address_of, aiohttp_response, scheme_of, web_request
from larmspider.web.tries import tried_too_often

if TYPE_CHECKING:
    from larmspider.server.api.api import Server


def add_routes(router: web.UrlDispatcher, server: Server) -> None:
    router.add_get(START, partial(_start, server=server), allow_head=False)
    router.add_get("/oidc/callback", partial(_finish, server=server), allow_head=False)
    router.add_post("/oidc/logout", partial(_logged_out, server=server))


def _cookie(request: web.Request) -> str:
    secure = scheme_of(request) == "https"
    return f"{cookie_name(request.headers.get('Host', ''), secure=secure)}_oidc"


def _checked(request: web.Request, server: Server) -> None:
    """Raises HttpError without a provider, and after too many failures from one address."""
    if server.people.provider is None:
        raise HttpError("There is no such page.", 404)
    if secs := request.app[SITE].guard.tries.wait(address_of(request)):
        raise tried_too_often(secs)


async def _start(request: web.Request, *, server: Server) -> web.StreamResponse:
    _checked(request, server)
    target = inside(request.query.get("next", ""), "/")
    begun = await server.people.provider.begin(web_request(request).origin, target)
    response = web.Response(status=303, headers={"Location": begun.url})
    # Lax: the provider's redirect back comes from another site
    secure = scheme_of(request) == "https"
    response.set_cookie(
        _cookie(request), begun.cookie, httponly=True, samesite="Lax", secure=secure, max_age=600
    )
    return response


async def _finish(request: web.Request, *, server: Server) -> web.StreamResponse:
    _checked(request, server)
    asked, people = web_request(request), server.people
    cookie = request.cookies.get(_cookie(request), "")
    try:
        person = await people.provider.finish(request.query, cookie, asked.origin)
        await people.prepare(person.principals)
        identity = people.identity_of(person.name, person.principals)
        await asyncio.to_thread(people.note_seen, identity)
    except HttpError as error:
        if error.status < 500:
            request.app[SITE].guard.tries.failed(address_of(request), request.query_string)
        raise
    except ConfigError as error:
        raise HttpError(PROVIDER_REFUSED, 403, name=people.provider.name, why=str(error)) from None
    server.crawls.audit.note(
        identity.name, address_of(request), "sign in", people.provider.name, "done"
    )
    # a page, not a redirect: browsers send a strict cookie only with requests that begin here
    response = aiohttp_response(asked.render("leaving.html", target=person.target))
    set_session(request, response, identity, person.session)
    # a cookie with the prefix __Host- goes by one that is secure, too
    secure = scheme_of(request) == "https"
    response.del_cookie(_cookie(request), path="/", httponly=True, samesite="Lax", secure=secure)
    return response


async def _logged_out(request: web.Request, *, server: Server) -> web.StreamResponse:
    """The provider ends sessions; its token is the proof."""
    _checked(request, server)
    form = await read_form(request)
    try:
        number, subject = await server.people.provider.logged_out(form.get("logout_token", ""))
    except HttpError as error:
        request.app[SITE].guard.tries.failed(address_of(request), "")
        raise HttpError(str(error), 400 if error.status < 500 else 503) from None
    ended = request.app[SITE].guard.end_sessions(
        lambda one: one.provider is not None and _is_ended(one.provider, number, subject)
    )
    name = server.people.provider.name
    server.crawls.audit.note(name, address_of(request), "sign out", f"{ended} sessions", "done")
    return web.Response(status=200)


def _is_ended(session: Provider, number: str, subject: str) -> bool:
    """A token may name a session whose number the provider has not told: all of that person end."""
    if number and session.number:
        return session.number == number
    return bool(subject) and session.subject == subject
