"""Acts on users, by the pages /users, /see and /account, and by the API."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from aiohttp import web

from larmspider.errors import ConfigError, HttpError
from larmspider.server.api.crawls import By
from larmspider.server.people.users import new_password
from larmspider.web.actions import checked_form, flash_back, set_session
from larmspider.web.auth import OPERATE
from larmspider.web.reader import ROLES, Reader
from larmspider.web.request import FlashMessage
from larmspider.web.site import SITE, address_of, aiohttp_response, proof_of, web_request
from larmspider.web.tries import tried_too_often

if TYPE_CHECKING:
    from larmspider.server.api.api import Server

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Subject(NamedTuple):
    """The user whom an act changes. ``role``: the role of a new user, or the new role of a user."""

    name: str
    role: str = ""


Act = Callable[["Server", Subject, By], str]


def add(server: Server, user: Subject, by: By) -> str:
    """Make a user. Returns the password, which is shown once. Raises ConfigError."""
    password = new_password()
    server.people.users.add(user.name, user.role, password)
    _note(server, by, "add user", f"{user.name} ({user.role})")
    return password


def reset(server: Server, user: Subject, by: By) -> str:
    """Give a user a new password, which is shown once. Raises ConfigError."""
    password = new_password()
    server.people.users.set_password(user.name, password)
    _note(server, by, "reset password", user.name)
    return password


def set_role(server: Server, user: Subject, by: By) -> str:
    """Raises ConfigError."""
    server.people.users.set_role(user.name, user.role)
    _note(server, by, "set role", f"{user.name} ({user.role})")
    return ""


def delete(server: Server, user: Subject, by: By) -> str:
    """Delete a user with all tokens. Raises ConfigError."""
    server.people.users.remove(user.name, server.tokens.remove_of)
    _note(server, by, "delete user", user.name)
    return ""


ACTS: dict[str, tuple[Act, str]] = {
    "add": (add, ""),
    "reset": (reset, ""),
    "role": (set_role, "{name} is {role} now; the sessions have ended"),
    "delete": (delete, "{name} is deleted, with all tokens and sessions"),
}
"""Each act, and the message on the page after it."""


def _note(server: Server, by: By, act: str, what: str) -> None:
    server.crawls.audit.note(by.who, by.address, act, what, "done")


def described(reader: Reader, source: str) -> str:
    """The name of a person for the audit log, which cuts long lines."""
    return f"{reader.name}: {source}; {', '.join(sorted(reader.principals))}"


def handlers(server: Server) -> dict[str, Handler]:
    """The POST requests by path."""
    found: dict[str, Handler] = {
        f"/users/{name}": partial(_users, server=server, act=act, said=said)
        for name, (act, said) in ACTS.items()
    }
    return found | {
        "/see": partial(_see, server=server),
        "/see/end": partial(_end_seeing, server=server),
        "/account": partial(_change_password, server=server),
    }


async def _users(request: web.Request, *, server: Server, act: Act, said: str) -> web.Response:
    site = request.app[SITE]
    form = await checked_form(request, site)
    by = By(proof_of(request).who, address_of(request), OPERATE)
    name, role, target = form.get("name", "").strip(), form.get("role", ""), {"next": "/users"}
    try:
        password = await asyncio.to_thread(act, server, Subject(name, role), by)
    except ConfigError as error:
        return flash_back(site, form | target, FlashMessage(str(error), good=False, typed=form))
    if said:
        done = FlashMessage(said.format(name=name, role=role), good=True)
        return flash_back(site, form | target, done)
    tokens = server.tokens.all()
    rows = [
        (one, ", ".join(token.name for token in tokens if token.user == one.name))
        for one in server.people.users.all()
    ]
    asked = web_request(request)
    page = asked.render("users.html", rows=rows, roles=ROLES, made=(name, password), problem="")
    return aiohttp_response(page)


async def _see(request: web.Request, *, server: Server) -> web.Response:
    site = request.app[SITE]
    form = await checked_form(request, site)
    session, name = proof_of(request).session, form.get("name", "").strip()
    if session is None:
        raise HttpError("Refused: only a browser sees as another person; ctl has see-as.", 400)
    try:
        reader, source = await server.people.reader(name)
    except (ConfigError, HttpError) as error:
        target = form | {"next": "/see"}
        return flash_back(site, target, FlashMessage(str(error), good=False, typed=form))
    what = described(reader, source)
    server.crawls.audit.note(session.identity.name, address_of(request), "see as", what, "begun")
    session.seen_as = reader
    return web.Response(status=303, headers={"Location": "/search"})


async def _end_seeing(request: web.Request, *, server: Server) -> web.Response:
    site = request.app[SITE]
    await checked_form(request, site)
    session = proof_of(request).session
    if session is not None and session.seen_as is not None:
        name, session.seen_as = session.seen_as.name, None
        server.crawls.audit.note(
            session.identity.name, address_of(request), "see as", name, "ended"
        )
    return web.Response(status=303, headers={"Location": "/see"})


async def _change_password(request: web.Request, *, server: Server) -> web.Response:
    """A user's own new password; the other sessions of the user end."""
    site, address = request.app[SITE], address_of(request)
    form = await checked_form(request, site, "")
    name, target = proof_of(request).who, form | {"next": "/account"}
    if server.people.users.find(name) is None:
        raise HttpError("Refused: this account has no password here.", 400)
    found = await server.people.check(name, form.get("old", ""), address)
    if found is None:
        if secs := site.guard.tries.failed(address, form.get("old", "")):
            raise tried_too_often(secs)
        wrong = web_request(request).say("The name or the password is wrong.")
        return flash_back(site, target, FlashMessage(wrong, good=False))
    try:
        await asyncio.to_thread(server.people.users.set_password, name, form.get("new", ""))
    except ConfigError as error:
        return flash_back(site, target, FlashMessage(str(error), good=False))
    server.crawls.audit.note(name, address, "change password", name, "done")
    response = flash_back(site, target, FlashMessage("The password is changed.", good=True))
    identity = server.people.users.identity(name)
    assert identity is not None
    set_session(request, response, identity)
    return response
