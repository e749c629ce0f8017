"""What the handlers of the application share, and how a reply is sent."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

from aiohttp import web

from larmspider.status.crawl_view import Source
from larmspider.status.status import CrawlStatus
from larmspider.web.auth import Guard
from larmspider.web.events import Events
from larmspider.web.render import Templates
from larmspider.web.request import FlashMessage, WebRequest, WebResponse, Work

CHECKPOINTED_SECS = 6.0
"""After so long a checkpoint, one each 5 s, has what was done."""


class FlashMessages:
    """What was done lately, by the number that stands in the address after a redirect: so that an
    address cannot make a page say what it likes."""

    def __init__(self) -> None:
        self._kept: deque[tuple[str, FlashMessage]] = deque(maxlen=50)
        self._number = 0

    def keep(self, saying: FlashMessage) -> str:
        """Its number."""
        self._number += 1
        self._kept.append((str(self._number), saying))
        return str(self._number)

    def of(self, number: str) -> FlashMessage | None:
        """None for one that was never said, or long ago."""
        return next((saying for n, saying in self._kept if n == number), None)


@dataclass(slots=True)
class Site:
    """One for each application. ``failing`` is held by one who has sent a wrong token."""

    source: Source
    board: CrawlStatus
    guard: Guard
    templates: Templates
    work: Work
    events: Events
    sayings: FlashMessages
    first: asyncio.Task[None] | None = None
    failing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def forget(self) -> None:
        """After an act nothing is shown as it was before; once more when a checkpoint has it, as
        hosts and forecast go by that."""
        self.events.forget()
        self.board.forget()
        asyncio.get_running_loop().call_later(CHECKPOINTED_SECS, self.board.forget)


SITE = web.AppKey("site", Site)


def ask_of(request: web.Request) -> WebRequest:
    """The request as pages see it."""
    site = request.app[SITE]
    signed_in = site.guard.signed_in(request.cookies, request.headers.get("Authorization", ""))
    return WebRequest(
        source=site.source,
        board=site.board,
        templates=site.templates,
        url=request.path_qs,
        query=request.query,
        path=request.match_info,
        origin=f"{_scheme(request)}://{request.headers.get('Host', '')}",
        signed_in=signed_in,
        csrf=site.guard.csrf if signed_in else "",
        said=site.sayings.of(request.query.get("said", "")),
    )


def _scheme(request: web.Request) -> str:
    """https behind a proxy that says so; it only decides about links to ourselves."""
    told = request.headers.get("X-Forwarded-Proto", "").strip().lower()
    return told if told in ("http", "https") else request.scheme


def response_of(reply: WebResponse) -> web.Response:
    """What aiohttp sends."""
    headers = {"Content-Type": reply.content_type, **reply.headers}
    return web.Response(body=reply.body, status=reply.status, headers=headers)
