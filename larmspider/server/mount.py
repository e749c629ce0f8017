"""The pages of each crawl below a path of the server: /crawls/wiki/hosts is /hosts of web/.

A crawl's application is the same as for `larmspider serve DIR`, and sees the paths that it has
there: what may be read without a token is decided by these. Its answers are changed on the way out:
links and redirects that begin with / get the path in front, /-/ becomes the server's own root.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from aiohttp import web
from yarl import URL

from larmspider.web.prefix import INNER
from larmspider.web.request import HTML

MAX_OPEN = 16
"""Applications that are kept open; some 2 MB each. One more takes the place of the oldest."""
_LINK = re.compile(rb'((?:href|action|src)=")/(?!static/|/)(-/)?')
"""Attributes of our templates. Text of pages cannot look so: its quotes are escaped."""


class Mounts:
    """``make`` builds the application of a name."""

    def __init__(self, make: Callable[[str], Awaitable[web.Application]]) -> None:
        self._make = make
        self._open: OrderedDict[str, web.Application] = OrderedDict()

    async def answer(self, request: web.Request, name: str, base: str) -> web.StreamResponse:
        """Let the application ``name`` answer a request whose path begins with ``base``."""
        app = await self._app(name)
        inside = request.rel_url.raw_path_qs.removeprefix(base) or "/"
        cloned = request.clone(rel_url=URL(inside, encoded=True))
        cloned[INNER] = True
        # what aiohttp's own server calls; there is no public way to ask one application in another
        response = await app._handle(cloned)
        if base and isinstance(response, web.Response) and not response.prepared:
            _rebase(response, base)
        return response

    async def _app(self, name: str) -> web.Application:
        app = self._open.get(name)
        if app is None:
            app = await self._make(name)
            app.freeze()
            await app.startup()
            self._open[name] = app
        self._open.move_to_end(name)
        while len(self._open) > MAX_OPEN:
            _, oldest = self._open.popitem(last=False)
            await _end(oldest)
        return app

    async def drop(self, name: str) -> None:
        """Close the application of a crawl that was changed or deleted."""
        app = self._open.pop(name, None)
        if app is not None:
            await _end(app)

    async def close(self) -> None:
        for name in list(self._open):
            await self.drop(name)


async def _end(app: web.Application) -> None:
    await app.shutdown()
    await app.cleanup()


def _rebase(response: web.Response, base: str) -> None:
    location = response.headers.get("Location", "")
    if location.startswith("/") and not location.startswith("//"):
        response.headers["Location"] = base + location
    if response.headers.get("Content-Type") == HTML and isinstance(response.body, bytes):
        response.body = rebased(response.body, base)


def rebased(page: bytes, base: str) -> bytes:
    """A page whose links lead below ``base``.

    >>> rebased(b'<a href="/hosts"> <a href="/-/"> <link href="/static/larm.css">', "/crawls/w")
    b'<a href="/crawls/w/hosts"> <a href="/"> <link href="/static/larm.css">'
    """
    front = base.encode("ascii")

    def replaced(found: re.Match[bytes]) -> bytes:
        return found[1] + (b"/" if found[2] else front + b"/")

    page = page.replace(b"<body", b'<body data-base="' + front + b'"', 1)
    return _LINK.sub(replaced, page)
