"""A settings module by which each request of a worker tells when its turn was.

    Turn: 4711 8123.41          process, time.monotonic() when the frontier handed the URL out

A server sees when a request came, which is later, and on a busy machine by any time.
"""

from __future__ import annotations

import os
import time

from scrapy import Request

from larmspider.requests import LEASE
from larmspider.settings import *  # noqa: F403


class TurnMiddleware:
    """Requests without a lease have no turn."""

    def process_request(self, request: Request) -> None:
        lease = request.meta.get(LEASE)
        if lease is not None:
            turn = lease.since - time.time() + time.monotonic()
            request.headers["Turn"] = f"{os.getpid()} {turn}"


DOWNLOADER_MIDDLEWARES = {**DOWNLOADER_MIDDLEWARES, TurnMiddleware: 900}  # noqa: F405
