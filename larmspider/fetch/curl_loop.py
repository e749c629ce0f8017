"""One libcurl multi handle, driven by the asyncio event loop that runs.

    loop = CurlLoop(kept_connections=128)
    code, words = await loop.start(curl)     # 0 and "": it went well; else libcurl's code

libcurl names the sockets that it waits for and until when; nothing polls.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

import pycurl

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


Act = Callable[[int, int], None]
"""Called with a socket and CSELECT_IN, CSELECT_OUT, CSELECT_ERR."""


class Watcher(Protocol):
    def watch(self, fd: int, what: int) -> None:
        """Wait for POLL_IN, POLL_OUT, both or nothing (0) on ``fd``."""

    def close(self) -> None: ...


def watcher(loop: asyncio.AbstractEventLoop, act: Act) -> Watcher:
    return EpollWatcher(loop, act) if hasattr(select, "epoll") else LoopWatcher(loop, act)


class EpollWatcher:
    """Linux: an epoll that the event loop watches.

    libcurl lets go of a connection between two fetches, and asyncio's add_reader and remove_reader
    for each of them cost 11 us a fetch more, an eighth of it (benchmarks/fetch.py).
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, act: Act) -> None:
        self._loop, self._act = loop, act
        self._epoll = select.epoll()
        self._watched: set[int] = set()
        loop.add_reader(self._epoll.fileno(), self._ready)

    def watch(self, fd: int, what: int) -> None:
        if what:
            mask = (what & pycurl.POLL_IN and select.EPOLLIN) | (
                what & pycurl.POLL_OUT and select.EPOLLOUT
            )
            if fd not in self._watched:
                self._watched.add(fd)
                self._epoll.register(fd, mask)
                return
            self._epoll.modify(fd, mask)
        elif fd in self._watched:
            self._watched.remove(fd)
            with suppress(OSError):  # libcurl may have closed it
                self._epoll.unregister(fd)

    def _ready(self) -> None:
        for fd, mask in self._epoll.poll(0):
            if fd in self._watched:  # an event before it may have ended it
                self._act(fd, _events(mask))

    def close(self) -> None:
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()


def _events(mask: int) -> int:
    events = 0
    if mask & select.EPOLLIN:
        events |= pycurl.CSELECT_IN
    if mask & select.EPOLLOUT:
        events |= pycurl.CSELECT_OUT
    if mask & (select.EPOLLERR | select.EPOLLHUP):
        events |= pycurl.CSELECT_ERR | pycurl.CSELECT_IN
    return int(events)


class LoopWatcher:
    """Any selector event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, act: Act) -> None:
        self._loop, self._act = loop, act
        self._watched: dict[int, int] = {}

    def watch(self, fd: int, what: int) -> None:
        before = self._watched.pop(fd, 0)
        if what:
            self._watched[fd] = what
        if what & ~before & pycurl.POLL_IN:
            self._loop.add_reader(fd, self._act, fd, pycurl.CSELECT_IN)
        elif before & ~what & pycurl.POLL_IN:
            self._loop.remove_reader(fd)
        if what & ~before & pycurl.POLL_OUT:
            self._loop.add_writer(fd, self._act, fd, pycurl.CSELECT_OUT)
        elif before & ~what & pycurl.POLL_OUT:
            self._loop.remove_writer(fd)

    def close(self) -> None:
        for fd in list(self._watched):
            self.watch(fd, 0)


SendGate = Callable[[], bool]
"""Whether a crawl may send anything now: a worker without its lease may not. Called before libcurl
may act, so that a process that was stopped for an hour sends nothing of its unfinished work."""
_send_gates: WeakKeyDictionary[Crawler, SendGate] = WeakKeyDictionary()


def set_send_gate(crawler: Crawler, may_send: SendGate) -> None:
    """Call this before the crawl's first fetch."""
    _send_gates[crawler] = may_send


def send_gate_of(crawler: Crawler) -> SendGate | None:
    return _send_gates.get(crawler)


CLOSE_SECS = 0.5
"""How long to wait for libcurl's end, which waits for its look-ups of names, half a minute where no
DNS server answers. (pycurl does not know CURLMOPT_QUICK_EXIT.)"""


class CurlLoop:
    """Bound to the event loop in which it is made. Raises RuntimeError if none runs.

    As soon as ``may_send`` says no, all transfers end as if cancelled.
    """

    def __init__(self, kept_connections: int, may_send: SendGate | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._may_send = may_send
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, kept_connections)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
        self._running: dict[pycurl.Curl, asyncio.Future[tuple[int, str]]] = {}
        self._watcher: Watcher = watcher(self._loop, self._act)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0  # no event loop has to know this: uvloop's handles may not
        self._due: float | None = None
        self._starting = False
        self._closed = self._left = False

    def __len__(self) -> int:
        """Transfers under way."""
        return len(self._running)

    def start(self, curl: pycurl.Curl) -> asyncio.Future[tuple[int, str]]:
        """Begin a transfer; raises pycurl.error where libcurl does not take the handle."""
        future = self._loop.create_future()
        self._running[curl] = future
        self._starting = True
        try:
            self._multi.add_handle(curl)
        except BaseException:
            del self._running[curl]
            raise
        finally:
            self._starting = False
        self._act(pycurl.SOCKET_TIMEOUT, 0)
        return future

    def cancel(self, curl: pycurl.Curl) -> None:
        """End a transfer and its connection; does nothing if the transfer is over."""
        if self._running.pop(curl, None) is not None:
            self._multi.remove_handle(curl)

    def close(self) -> None:
        """End all transfers; their waiters get CancelledError."""
        if self._closed:
            return
        self._closed = True
        self._cancel_all()
        if self._timer is not None:
            self._timer.cancel()
        end = Thread(target=self._multi.close, name="libcurl-end", daemon=True)
        end.start()
        end.join(CLOSE_SECS)
        self._left = True
        self._watcher.close()

    def _cancel_all(self) -> None:
        for curl, future in list(self._running.items()):
            self.cancel(curl)
            future.cancel()

    # called by libcurl

    def _watch(self, what: int, fd: int, multi: object, data: object) -> None:
        if not self._left:
            self._watcher.watch(fd, 0 if what == pycurl.POLL_REMOVE else what)

    def _set_timer(self, milliseconds: int) -> None:
        """Set the timer. Most deadlines are postponed before they come, so a timer that is set
        stays, and checks the deadline when it fires."""
        if milliseconds < 0 or (milliseconds == 0 and self._starting):
            self._due = None
            return
        self._due = due = self._loop.time() + milliseconds / 1000
        if self._timer is None:
            self._call_at(due)
        elif due < self._timer_at:
            self._timer.cancel()
            self._call_at(due)

    def _call_at(self, due: float) -> None:
        self._timer, self._timer_at = self._loop.call_at(due, self._on_time), due

    def _on_time(self) -> None:
        self._timer = None
        if self._due is None or self._closed:
            return
        if self._loop.time() < self._due:
            self._call_at(self._due)
            return
        self._due = None
        self._act(pycurl.SOCKET_TIMEOUT, 0)

    def _act(self, fd: int, events: int) -> None:
        if self._closed:
            return
        if self._may_send is not None and not self._may_send():
            self._cancel_all()  # then libcurl has nothing to send and may tidy up
        _, running = self._multi.socket_action(fd, events)
        if running < len(self._running):
            self._collect()

    def _collect(self) -> None:
        left = 1
        while left:
            left, done, failed = self._multi.info_read()
            for curl in done:
                self._end(curl, 0, "")
            for curl, code, words in failed:
                self._end(curl, code, words)

    def _end(self, curl: pycurl.Curl, code: int, words: str) -> None:
        future = self._running.pop(curl, None)
        if future is None:
            return
        self._multi.remove_handle(curl)
        if not future.done():
            future.set_result((code, words))
