"""Addresses of names, each looked up in a thread of its own: names that hang hold up no others.

    names = Names(patience=10.0, ttl=300.0)
    names.known("wiki")                    # None
    answer = await names.look_up("wiki")   # Answer(addresses=("10.0.0.7",), ...)
    names.known("wiki")                    # the same, for ttl seconds

The system's resolver is asked (getaddrinfo: hosts file, nsswitch.conf), which may be silent for
half a minute. libcurl would do that in 20 threads, while each name holds a place: with 60 silent
names before them, none of 30 good ones was fetched in 22 s; now all are in 3 s
(tests/hostile/silent_names.py). AT_ONCE look-ups are under way, not counting those that have taken
longer than SLOW_SECS, up to MOST_THREADS threads.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self
from weakref import WeakKeyDictionary

from larmspider.fetch.limits import Limits
from larmspider.fetch.resolver import Answer, resolve

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

AT_ONCE = 32
MOST_THREADS = 256
SLOW_SECS = 0.5
FAILED_SECS = 3.0
"""A name without an address is looked up again after this: less than the wait before a retry."""
STALE_SECS = 86_400.0
STALE_AGAIN_SECS = 30.0
"""An old address serves while its renewal is slow; the next try is after this (RFC 8767 5)."""
MOST_NAMES = 16_384
_STACK_BYTES = 512 * 1024


@dataclass(slots=True)
class _Kept:
    """``until``: as good as new. ``old_at``: of no use any more."""

    answer: Answer
    until: float
    old_at: float


@dataclass(slots=True)
class _Asked:
    """Somebody waits for this name."""

    future: asyncio.Future[Answer]
    timer: asyncio.TimerHandle


class Names:
    """``patience``, ``ttl``, ``slow`` in seconds. ``resolve`` blocks. Used in one event loop."""

    _of_crawler: ClassVar[WeakKeyDictionary[Crawler, Names]] = WeakKeyDictionary()

    def __init__(
        self,
        patience: float,
        ttl: float,
        resolve: Callable[[str], Answer] = resolve,
        clock: Callable[[], float] = time.monotonic,
        slow: float = SLOW_SECS,
    ) -> None:
        self._patience, self._ttl, self._slow = patience, max(1.0, ttl), slow
        self._resolve, self._clock = resolve, clock
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._asked: dict[str, _Asked] = {}
        self._queue: deque[str] = deque()
        self._threads: dict[str, asyncio.TimerHandle] = {}
        self._young: set[str] = set()
        self._closed = False
        self.heard: Callable[[str, Answer], None] | None = None
        """Called with each name of which something has become known."""
        self.eased: Callable[[], None] | None = None
        """Called when ``crowded`` may have ended because a look-up has become a slow one."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """The same for all that asks."""
        names = cls._of_crawler.get(crawler)
        if not isinstance(names, cls) or names._closed:
            limits = Limits.from_settings(crawler.settings)
            names = cls(limits.connect_secs, limits.dns_secs)
            cls._of_crawler[crawler] = names
        return names

    def __repr__(self) -> str:
        waiting = f"{len(self._asked)} asked, {len(self._queue)} queued"
        return f"<Names {waiting}, {len(self._young)} of {len(self._threads)} threads young>"

    @property
    def crowded(self) -> bool:
        """A further look-up would have to wait."""
        return bool(self._queue) or not self._has_room()

    def known(self, name: str) -> Answer | None:
        """What is known and not old."""
        kept = self._kept.get(name)
        return kept.answer if kept is not None and self._clock() < kept.until else None

    def look_up(self, name: str) -> asyncio.Future[Answer]:
        """Ask anew; one look-up serves all who ask meanwhile, so shield what you await.

        It is over after ``patience``, or ``slow`` where an old address can serve.
        """
        asked = self._asked.get(name)
        if asked is not None:
            return asked.future
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        if self._closed:
            future.set_result(Answer(problem="the crawl has ended"))
            return future
        wait = self._patience if self._stale(name) is None else min(self._slow, self._patience)
        self._asked[name] = _Asked(future, loop.call_later(wait, self._give_up, name))
        if name not in self._threads:  # it may hang there since it was asked for the last time
            self._queue.append(name)
            self._start()
        return future

    def close(self) -> None:
        """Nothing is heard of after this; look-ups under way are not waited for."""
        self._closed = True
        for asked in self._asked.values():
            asked.timer.cancel()
            asked.future.cancel()
        for timer in self._threads.values():
            timer.cancel()
        self._asked.clear()
        self._queue.clear()

    def _has_room(self) -> bool:
        return len(self._young) < AT_ONCE and len(self._threads) < MOST_THREADS

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        while self._queue and self._has_room():
            name = self._queue.popleft()
            if name not in self._asked or name in self._threads:
                continue  # given up while it waited here
            self._threads[name] = loop.call_later(self._slow, self._is_slow, name)
            self._young.add(name)
            thread = threading.Thread(
                target=self._work, args=(loop, name), name="look-up", daemon=True
            )
            before = threading.stack_size(_STACK_BYTES)
            try:
                thread.start()
            except RuntimeError as error:
                self._learn(name, Answer(problem=f"{name} cannot be looked up: {error}"))
            finally:
                threading.stack_size(before)

    def _work(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        """In a thread."""
        answer = self._resolve(name)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(self._learn, name, answer)

    def _is_slow(self, name: str) -> None:
        self._young.discard(name)
        self._start()
        if self.eased is not None:
            self.eased()

    def _learn(self, name: str, answer: Answer) -> None:
        self._threads.pop(name).cancel()
        self._young.discard(name)
        if self._closed:
            return
        if not answer.addresses and not answer.final:
            answer = self._stale(name) or answer
        self._tell(name, answer)
        self._start()

    def _give_up(self, name: str) -> None:
        problem = f"no server of names answers for {name} (LARM_CONNECT_TIMEOUT_SECS)"
        self._tell(name, self._stale(name) or Answer(problem=problem))

    def _stale(self, name: str) -> Answer | None:
        kept = self._kept.get(name)
        fits = kept is not None and kept.answer.addresses and self._clock() < kept.old_at
        return kept.answer if kept is not None and fits else None

    def _tell(self, name: str, answer: Answer) -> None:
        now, kept = self._clock(), self._kept.pop(name, None)
        if kept is not None and kept.answer is answer:
            kept.until = min(now + STALE_AGAIN_SECS, kept.old_at)
        else:
            ttl = self._ttl if answer.addresses else FAILED_SECS
            kept = _Kept(answer, now + ttl, now + max(ttl, STALE_SECS))
        self._kept[name] = kept
        if len(self._kept) > MOST_NAMES:
            self._kept.popitem(last=False)
        asked = self._asked.pop(name, None)
        if asked is not None:
            asked.timer.cancel()
            if not asked.future.done():
                asked.future.set_result(answer)
        if self.heard is not None:
            self.heard(name, answer)
