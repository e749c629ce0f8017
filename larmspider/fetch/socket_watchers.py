"""Tells libcurl when its sockets can be read or written.

On Linux they are watched by an epoll of their own, which the event loop watches: libcurl lets go of
a connection between two fetches, and asyncio's add_reader and remove_reader for each cost 11 us a
fetch more, an eighth of it (62 us against 73, 74 against 82, 82 against 100 in alternating runs
of benchmarks/fetch.py). Elsewhere the event loop watches them.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import pycurl

Act = Callable[[int, int], None]
"""Called with a socket and CSELECT_IN, CSELECT_OUT, CSELECT_ERR."""


class Watcher(Protocol):
    def watch(self, fd: int, what: int) -> None:
        """Wait for POLL_IN, POLL_OUT, both or nothing (0) on ``fd``."""

    def close(self) -> None: ...


def watcher(loop: asyncio.AbstractEventLoop, act: Act) -> Watcher:
    """The one for this system."""
    return EpollWatcher(loop, act) if hasattr(select, "epoll") else LoopWatcher(loop, act)


class EpollWatcher:
    """Linux: an epoll inside the event loop's."""

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
            if fd in self._watched:  # what came before may have ended it
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
