"""Objects that the handlers of the application share, and the translation between aiohttp's
requests and responses and the pages'."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from dataclasses import dataclass, field

from aiohttp import web

from larmspider.search.curated import Curated
from larmspider.status.crawl_view import Source
from larmspider.status.status import CrawlStatus
from larmspider.web.auth import SEARCH as MAY_SEARCH
from larmspider.web.auth import SEARCH_PATH, Guard, Identity, Proof, Session, cookie_name
from larmspider.web.connections import Connections
from larmspider.web.events import Events
from larmspider.web.look import Look
from larmspider.web.people import People
from larmspider.web.prefix import prefix_of
from larmspider.web.previews import Previews
from larmspider.web.query_log import QueryLog
from larmspider.web.reader import OPERATOR_ROLE, Reader, all_of
from larmspider.web.readers import Readers
from larmspider.web.render import Templates
from larmspider.web.request import FlashMessage, WebRequest, WebResponse, Work

SEARCH = SEARCH_PATH
"""The page of the search. Everything that it needs is below this path, except DESCRIPTION."""
INDEX = "larmspider"
"""The name of the index in the search API; each of several crawls has a name of its own, too."""
EVERY_INDEX = (INDEX, "_all", "*")
"""Names of all crawls in the path of the search API, where commas separate names."""
DESCRIPTION = "/opensearch.xml"
"""The description with which browsers add the search to their own."""


class FlashMessages:
    """The last messages, each by a random number that cannot be guessed. A redirect names the
    number, not the text, so that a foreign link cannot put its text on a page."""

    def __init__(self) -> None:
        self._kept: deque[tuple[str, FlashMessage]] = deque(maxlen=50)

    def keep(self, flash: FlashMessage) -> str:
        """Keep the message and return its number."""
        number = secrets.token_hex(8)
        self._kept.append((number, flash))
        return number

    def of(self, number: str) -> FlashMessage | None:
        """The message with a number; None for an unknown or old number."""
        return next((flash for n, flash in self._kept if n == number), None)


@dataclass(slots=True)
class Site:
    """The state of an application. ``health`` runs /healthz, which waits for no page. ``aside``
    runs slow pages, for which no other page waits."""

    source: Source
    crawl_status: CrawlStatus
    guard: Guard
    templates: Templates
    work: Work
    events: Events
    flashes: FlashMessages
    readers: Readers = field(default_factory=Readers)
    look: Look = field(default_factory=Look)
    curated: Curated = field(default_factory=Curated)
    query_log: QueryLog = field(default_factory=QueryLog)
    previews: Previews = field(default_factory=Previews)
    health: Work = field(default_factory=lambda: Work(threads=1))
    aside: Work = field(default_factory=lambda: Work(threads=1))
    connections: Connections = field(default_factory=Connections)
    first: asyncio.Task[None] | None = None
    people: People = field(default_factory=People)

    def forget(self) -> None:
        """Drop cached values after an action that a checkpoint has committed."""
        self.events.forget()
        self.crawl_status.forget()


SITE = web.AppKey("site", Site)
_PROOF = web.RequestKey("proof", Proof)


def proof_of(request: web.Request) -> Proof:
    """The sender of a request. It is checked and counted once."""
    found: Proof | None = request.get(_PROOF)
    if found is None:
        guard = request.app[SITE].guard
        found = guard.proof(
            request.headers, request.cookies, address_of(request), needed=needs_proof(request)
        )
        request[_PROOF] = found
    return found


def see_as(request: web.Request, identity: Identity, reader: Reader) -> None:
    """Let an operator's request to the search be answered as if ``reader`` had sent it."""
    request[_PROOF] = Proof(Session("", "", 0.0, identity, seen_as=reader))


def is_signed_in(request: web.Request) -> bool:
    """Whether the request was found to come from a signed-in person."""
    found: Proof | None = request.get(_PROOF)
    return found is not None and found.signed_in


def needs_proof(request: web.Request) -> bool:
    """Whether the request is refused, or led to the form, without a proof."""
    return request.path.startswith("/control") or not _is_open(request)


def drop_stale_cookie(request: web.Request, response: web.StreamResponse) -> None:
    """Take back the cookie of a session that has ended: a browser sends it with each request."""
    found: Proof | None = request.get(_PROOF)
    if found is not None and found.stale:
        host = request.headers.get("Host", "")
        for secure in (True, False):
            name = cookie_name(host, secure=secure)
            if name in request.cookies and name not in response.cookies:
                response.del_cookie(name, path="/", secure=secure, httponly=True)


def address_of(request: web.Request) -> str:
    """The address of the client, which trusted proxies name."""
    forwarded = request.headers.getall("X-Forwarded-For", ())
    return request.app[SITE].readers.client(request.remote or "", ",".join(forwarded))


def web_request(request: web.Request, *, is_search: bool = False) -> WebRequest:
    """The request as pages see it. ``is_search``: it searches, whatever its path."""
    site = request.app[SITE]
    proof = proof_of(request)
    reader, seen_as = reader_of(request), None
    if proof.session is not None and (is_search or _is_search(request.path)):
        seen_as = proof.session.seen_as
    operates = seen_as.role == OPERATOR_ROLE if seen_as is not None else proof.signed_in
    return WebRequest(
        source=site.source,
        crawl_status=site.crawl_status,
        templates=site.templates,
        url=request.path_qs,
        query=request.query,
        path=request.match_info,
        only_head=request.method == "HEAD",
        origin=f"{scheme_of(request)}://{request.headers.get('Host', '')}{prefix_of(request)}",
        signed_in=operates,
        who=proof.who,
        identity=proof.identity,
        may_read=site.guard.may_read("/", signed_in=proof.reads) and seen_as is None,
        reader=seen_as or reader,
        seen_as=seen_as,
        people=site.people,
        readers=site.readers,
        look=site.look,
        say=site.look.words(request.headers.get("Accept-Language", "")),
        curated=site.curated,
        query_log=site.query_log,
        previews=site.previews,
        groups=(seen_as or reader).groups,
        csrf="" if proof.session is None else proof.session.csrf,
        flash=site.flashes.of(request.query.get("said", "")),
    )


def reader_of(request: web.Request) -> Reader:
    """The sender of the request: by the session or token, else as a trusted proxy says."""
    site, identity = request.app[SITE], proof_of(request).identity
    said = site.readers.said_of(request)
    name = said.name if said is not None else ""
    principals = _principals_of(identity, said)
    found = all_of(site.people.expanded(principals), signed_in=bool(identity or said))
    if identity is None:
        return Reader(name, principals=found)
    return Reader(identity.name, identity.role, found)


async def prepare(request: web.Request) -> None:
    """Look up the names of the sender, before `reader_of`. Raises HttpError."""
    site, identity = request.app[SITE], proof_of(request).identity
    await site.people.prepare(_principals_of(identity, site.readers.said_of(request)))


def _principals_of(identity: Identity | None, said: Reader | None) -> frozenset[str]:
    if identity is not None and identity.principals:
        return identity.principals
    return frozenset() if said is None else said.principals


def may_read(request: web.Request) -> bool:
    """Whether the path may be read. The search may also be read by users whom a trusted proxy lets
    in, and by all signed-in users."""
    if _is_open(request) or (proof := proof_of(request)).reads:
        return True
    if proof.may(MAY_SEARCH) and _is_search(request.path):
        return True
    people = request.app[SITE].people
    return proof.identity is not None and people.allows(proof.identity.scope, request.path)


def _is_search(path: str) -> bool:
    return path in (SEARCH, DESCRIPTION) or path.startswith(f"{SEARCH}/")


def may_still_read(request: web.Request) -> bool:
    """may_read(), some time later: a session may have ended meanwhile."""
    session = proof_of(request).session
    if session is None or _is_open(request):
        return may_read(request)
    guard, host = request.app[SITE].guard, request.headers.get("Host", "")
    return guard.session(request.cookies, host, use=False) is session


def _is_open(request: web.Request) -> bool:
    """Whether users who have not signed in may read the path."""
    path = SEARCH if request.path == DESCRIPTION else request.path
    site = request.app[SITE]
    if site.guard.may_read(path, signed_in=False):
        return True
    return _is_search(path) and site.readers.said_of(request) is not None


def may_search(request: web.Request) -> bool:
    """Whether the search may be read."""
    guard, readers = request.app[SITE].guard, request.app[SITE].readers
    if guard.may_read(SEARCH, signed_in=False) or readers.said_of(request) is not None:
        return True
    return proof_of(request).may(MAY_SEARCH)


def scheme_of(request: web.Request) -> str:
    """The scheme that the browser sees, for links to this server. A proxy in front may speak
    https."""
    forwarded = request.headers.get("X-Forwarded-Proto", "").strip().lower()
    return forwarded if forwarded in ("http", "https") else request.scheme


def aiohttp_response(response: WebResponse) -> web.Response:
    headers = {"Content-Type": response.content_type, **response.headers}
    return web.Response(body=response.body, status=response.status, headers=headers)
