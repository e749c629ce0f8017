"""The pages of each crawl below a path of the server: /crawls/wiki/hosts is /hosts of web/.

A crawl's application is the same as for `larmspider serve DIR`, and sees the paths that it has
there: what may be read without a token is decided by these. Its answers are changed on the way out:
links and redirects that begin with / get the path in front, /-/ becomes the server's own root.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar
from weakref import WeakValueDictionary

from aiohttp import web
from yarl import URL

from larmspider.web.prefix import INNER, lead_below
from larmspider.web.request import WebRequest
from larmspider.web.site import SITE, web_request

Found = TypeVar("Found")

MAX_OPEN = 16
"""Applications that are kept open; some 2 MB each. One more takes the place of the oldest."""
LOOK_SECS = 1.0
"""After this time the crawls of an application are looked at again: 0.03 ms a crawl."""


@dataclass(slots=True)
class _Mounted:
    """An application, its crawls, and when they were looked at."""

    app: web.Application
    crawls: object
    looked_at: float = 0.0


class Mounts:
    """``make`` builds the application of a name. ``crawls_of`` describes the crawls that it shows:
    if they have changed, the application is made again."""

    def __init__(
        self,
        make: Callable[[str], Awaitable[web.Application]],
        crawls_of: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._make, self._crawls_of = make, crawls_of
        self._open: OrderedDict[str, _Mounted] = OrderedDict()
        self._making: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def answer(self, request: web.Request, name: str, base: str) -> web.StreamResponse:
        """Let the application ``name`` answer a request whose path begins with ``base``."""
        app = await self._app(name)
        inside = request.rel_url.raw_path_qs.removeprefix(base) or "/"
        cloned = request.clone(rel_url=URL(inside, encoded=True))
        cloned[INNER] = True
        # what aiohttp's own server calls; there is no public way to ask one application in another
        response = await app._handle(cloned)
        if base and not response.prepared:
            lead_below(response, base, mounted=True)
        return response

    async def ask(
        self, request: web.Request, name: str, answer: Callable[[WebRequest], Found]
    ) -> Found:
        """Call ``answer``, which searches, in a thread of the application ``name``, and return its
        result."""
        site = (await self._app(name))[SITE]
        asked = web_request(request, is_search=True)
        asked = replace(asked, source=site.source, crawl_status=site.crawl_status)
        return await site.work.run(answer, asked)

    async def _app(self, name: str) -> web.Application:
        found = self._open.get(name)
        if found is None or time.monotonic() >= found.looked_at + LOOK_SECS:
            # for each name: a crawl in a folder that hangs keeps no other crawl waiting
            making = self._making.setdefault(name, asyncio.Lock())
            async with making:
                found = await self._looked_at(name)
        self._open.move_to_end(name)
        while len(self._open) > MAX_OPEN:
            _, oldest = self._open.popitem(last=False)
            await _end(oldest.app)
        return found.app

    async def _looked_at(self, name: str) -> _Mounted:
        crawls = await asyncio.to_thread(self._crawls_of, name)
        found = self._open.get(name)
        if found is not None and found.crawls != crawls:
            await self.drop(name)
            found = None
        if found is None:
            app = await self._make(name)
            app.freeze()
            await app.startup()
            found = self._open[name] = _Mounted(app, crawls)
        found.looked_at = time.monotonic()
        return found

    async def drop(self, name: str) -> None:
        """Close the application of a crawl that was changed or deleted."""
        found = self._open.pop(name, None)
        if found is not None:
            await _end(found.app)

    async def close(self) -> None:
        for name in list(self._open):
            await self.drop(name)


async def _end(app: web.Application) -> None:
    await app.shutdown()
    await app.cleanup()
