"""The POST requests: signing in and out, and the operator's actions.

A form is redirected to the control page, which shows the result; a script that sends the token as
``Authorization: Bearer`` gets JSON.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import nullcontext
from typing import Any

from aiohttp import web

from larmspider import options, plugin
from larmspider.control.deletes import approve, what_waits
from larmspider.control.scope_change import preview
from larmspider.errors import HttpError, LarmspiderError
from larmspider.formatting import printable
from larmspider.reports import traps
from larmspider.search.curated import CuratedFile
from larmspider.web.auth import OPERATE, Identity, Provider, cookie_name
from larmspider.web.connections import REQUEST_SECS
from larmspider.web.request import JSON, FlashMessage, json_response
from larmspider.web.site import (
    SITE,
    Site,
    address_of,
    aiohttp_response,
    proof_of,
    scheme_of,
    web_request,
)
from larmspider.web.tries import tried_too_often
from larmspider.web.views.traps import traps_of

logger = logging.getLogger(__name__)

PREVIEW = "scope-preview"
APPROVE_DELETES = "approve-deletes"
ACCEPT_MIRROR = "accept-mirror"
ACCEPT_TRAP, REJECT_TRAP = "accept-trap", "reject-trap"
EDITED = ("synonyms", "best-bets", "labels")
"""Files of the search; the field of the form has the name of the action."""


async def sign_in(request: web.Request) -> web.Response:
    """Check the token of the form and set the session cookie. A wrong token shows the form
    again."""
    site = request.app[SITE]
    if reason := site.guard.foreign(request.headers):
        raise HttpError(f"Refused: {reason}.", 403)
    tries, address = site.guard.tries, address_of(request)
    if secs := tries.wait(address):
        raise tried_too_often(secs)
    form = await read_form(request)
    target = inside(form.get("next", ""), site.people.start)
    if secs := tries.wait(address):  # others of this address were faster
        raise tried_too_often(secs)
    name, token = form.get("name", "").strip(), form.get("token", "").strip()
    if name and site.people.has_passwords:
        token = form.get("password", "")
        identity = await site.people.check(name, token, address)
    else:
        identity = site.guard.identify(token)
        if identity is not None and identity.scope != OPERATE:
            identity = None
    if identity is None:
        if secs := tries.failed(address, f"{name} {token}"):
            raise tried_too_often(secs)
        asked = web_request(request)
        page = asked.render("login.html", 403, target=target, wrong=True, typed=name)
        return aiohttp_response(page)
    response = web.Response(status=303, headers={"Location": target})
    set_session(request, response, identity)
    return response


def set_session(
    request: web.Request,
    response: web.Response,
    identity: Identity,
    provider: Provider | None = None,
) -> None:
    """Begin a session of a browser that has signed in."""
    host, guard = request.headers.get("Host", ""), request.app[SITE].guard
    guard.end_session(request.cookies, host)
    _set_cookie(request, response, guard.begin_session(host, identity, provider))


def _set_cookie(request: web.Request, response: web.Response, value: str) -> None:
    """The session cookie; "" takes it back. No Domain: it is this host's alone."""
    secure = scheme_of(request) == "https"
    response.set_cookie(
        cookie_name(request.headers.get("Host", ""), secure=secure),
        value,
        httponly=True,
        samesite="Strict",
        path="/",
        secure=secure,
        max_age=None if value else 0,
    )


def inside(target: str, other: str = "/control") -> str:
    """``target`` if it is a path on this server, else the ``other`` one."""
    plain = target.startswith("/") and target[1:2] not in ("/", "\\") and target.isprintable()
    return target if plain and target.isascii() else other


async def sign_out(request: web.Request) -> web.Response:
    site = request.app[SITE]
    form = await checked_form(request, site, "")
    target, session = inside(form.get("next", "/")), proof_of(request).session
    response = web.Response(status=303, headers={"Location": target})
    site.guard.end_session(request.cookies, request.headers.get("Host", ""))
    if session is not None:
        asked = web_request(request)
        if away := await site.people.signed_out(session, asked.origin):
            # a page, for the Content-Security-Policy lets no form lead to another server
            response = aiohttp_response(asked.render("leaving.html", target=away))
    _set_cookie(request, response, "")
    return response


async def act(request: web.Request) -> web.Response:
    """/control/{act}."""
    site = request.app[SITE]
    form = await checked_form(request, site)
    name = request.match_info["act"]
    by_script = "Authorization" in request.headers
    try:
        if name == PREVIEW:
            crawl = await site.work.run(lambda: site.source.crawl)
            done = await site.work.run(preview, crawl, form.get("restrict", ""))
        elif name in EDITED:
            done = await site.work.run(_edit, site, name, form)
        elif name == APPROVE_DELETES:
            done = await site.work.run(lambda: _approve_deletes(site, form))
        elif name == ACCEPT_MIRROR:
            done = await site.work.run(
                plugin.load("mirrors.view").accept_mirror, site, form.get("host", "")
            )
        elif name in (ACCEPT_TRAP, REJECT_TRAP):
            done = await site.work.run(_judge_trap, site, name, form.get("name", ""))
        elif site.source.controller is None:
            raise HttpError("No crawl runs here that could be controlled.", 409)
        else:
            done = await site.source.controller.act(name, form, address_of(request))
            site.forget()
    except LarmspiderError as error:
        status = error.status if isinstance(error, HttpError) else 409
        if by_script:
            return aiohttp_response(json_response({"error": str(error)}, status))
        return flash_back(site, form, FlashMessage(str(error), good=False, typed=form))
    if by_script:
        return aiohttp_response(json_response({"done": done}))
    return flash_back(
        site, form, FlashMessage(done, good=True, typed=form if name == PREVIEW else {})
    )


def _edit(site: Site, name: str, form: dict[str, str]) -> str:
    """Replace a file of the search by the typed text. Raises LarmspiderError."""
    if not site.source.exists():
        raise HttpError("There is no crawl here.", 409)
    return edit(site, name, form)


def edit(site: Site, name: str, form: dict[str, str]) -> str:
    """As `_edit`, also on a server without a crawl."""
    curated = site.curated
    files: dict[str, CuratedFile[Any]] = {
        "synonyms": curated.synonyms, "best-bets": curated.best_bets, "labels": curated.labels,
    }  # fmt: skip
    file = files[name]
    file.replace(form.get(name, ""), form.get("seen", ""))
    logger.info("Control: %s replaced", name)
    return f"{file.path} is saved, and in force"


def _approve_deletes(site: Site, form: dict[str, str]) -> str:
    """Approve the list of a name as it was shown. Raises LarmspiderError."""
    crawl = site.source.crawl
    with crawl.frontier() as frontier:
        waits = what_waits(frontier, options.clock(site.source.settings)())
    parts = [part.path for part in crawl.parts]
    return approve(parts, form.get("name", ""), waits, form.get("shown", ""))


def _judge_trap(site: Site, act: str, name: str) -> str:
    """Add the rule of a class to the operator's file, or let go of its URLs. Raises
    LarmspiderError."""
    found = {trap.name: trap for trap in traps_of(site.source)}
    if name not in found:
        raise HttpError(f"{name[:300]!r} is not a held class.", 409)
    if act == REJECT_TRAP:
        path = traps.reject(found[name], site.source.crawl)
        done = f"{name} is not a trap ({path}): its URLs will be fetched"
    else:
        path, _ = traps.accept(
            found[name], traps.rules_file(site.source.settings, site.source.crawl)
        )
        done = f"the rule of {name} is in {path}, for crawls that begin"
    logger.info("Control: %s", printable(done))
    return done


def flash_back(site: Site, form: dict[str, str], flash: FlashMessage) -> web.Response:
    number = site.flashes.keep(flash)
    target = inside(form.get("next", ""))
    mark = "&" if "?" in target else "?"
    return web.Response(status=303, headers={"Location": f"{target}{mark}said={number}"})


async def checked_form(request: web.Request, site: Site, scope: str = OPERATE) -> dict[str, str]:
    """The form of a request that may change something; ``scope`` "" for every session.
    Raises HttpError for any other."""
    headers = request.headers
    if reason := site.guard.foreign(headers):
        raise HttpError(f"Refused: {reason}.", 403)
    proof = proof_of(request)
    if not (proof.may(scope) if scope else proof.session):
        if proof.wait:  # /logout
            raise tried_too_often(proof.wait)
        if proof.session is not None:
            raise HttpError("Refused: you may not do that.", 403)
        raise HttpError("Refused: sign in with the token first.", 401)
    if headers.get("Content-Type", "").partition(";")[0] == JSON.partition(";")[0]:
        raise HttpError("Refused: expected a form (application/x-www-form-urlencoded).", 415)
    form = await read_form(request)
    if reason := site.guard.refuse_post(proof, form.get("csrf", "")):
        raise HttpError(f"Refused: {reason}.", 403)
    return form


async def read_form(request: web.Request) -> dict[str, str]:
    """The fields of a form. Raises HttpError for a body that is not a form, or comes too late."""
    if (request.charset or "utf-8").lower() not in ("utf-8", "utf8", "us-ascii"):
        raise HttpError("Refused: expected a form in UTF-8.", 400)
    connection = request.app[SITE].connections.of(request.transport)
    waiting = nullcontext() if connection is None else connection.waits()
    try:
        with waiting:
            async with asyncio.timeout(REQUEST_SECS):
                fields = await request.post()
    except TimeoutError:
        raise HttpError(f"The form took longer than {REQUEST_SECS:g} s to come.", 408) from None
    except web.HTTPException:
        raise
    except ConnectionError:  # this answer reaches no reader; without it aiohttp logs a traceback
        raise HttpError("The connection ended before the form was there.", 400) from None
    except Exception as error:  # noqa: BLE001 - AssertionError, LookupError, ValueError, ...:
        # aiohttp raises what its parsers happen to raise, and the form is to blame
        logger.debug("A form that cannot be read: %r", error)
        raise HttpError("The body of this request is not a readable form.", 400) from None
    files = [value for value in fields.values() if isinstance(value, web.FileField)]
    for file in files:
        file.file.close()
    if files:
        raise HttpError("Refused: expected a form without files.", 400)
    return {name: str(value) for name, value in fields.items()}
