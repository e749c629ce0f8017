"""Pages are made in threads, few at a time and none for long, so that the crawl goes on beside.

reply = await work.run(view, ask)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from larmspider.web.request import Refused

T = TypeVar("T")

THREADS = 2
WAITING_MOST = 64
"""Requests that wait for a thread or are in one; further ones are refused."""
SECONDS = 15.0
"""How long one may take, its wait included."""


class Work:
    """The threads. ``close()`` waits for none."""

    def __init__(self, threads: int = THREADS, seconds: float = SECONDS) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="larm-web")
        self._seconds = seconds
        self._waiting = 0

    async def run(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """``function(*args)`` in a thread. Raises Refused (503) when there is too much to do, or it
        takes too long; the thread then ends in its own time."""
        if self._waiting >= WAITING_MOST:
            raise Refused("Too many requests wait for an answer; try again in a moment.", 503)
        loop = asyncio.get_running_loop()
        self._waiting += 1
        future = loop.run_in_executor(self._pool, partial(function, *args, **kwargs))
        future.add_done_callback(self._done)
        try:
            return await asyncio.wait_for(asyncio.shield(future), self._seconds)
        except TimeoutError:
            message = f"This takes longer than {self._seconds:g} s and was given up."
            raise Refused(message, 503) from None

    def _done(self, future: asyncio.Future[Any]) -> None:
        self._waiting -= 1
        if not future.cancelled():
            future.exception()  # one that was given up on is not told of again

    def close(self) -> None:
        """Take no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
