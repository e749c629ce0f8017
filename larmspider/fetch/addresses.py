"""The address of a host name, looked up in threads: for hosts that share their pace by address.

    addresses = Addresses(known)
    addresses.of("wiki")         # None: a look-up begins; known("wiki", "10.0.0.7") is called later
    addresses.of("wiki")         # "10.0.0.7", out of the cache

Of several addresses it is the smallest, IPv4 before IPv6: the order of answers varies, this does
not. A name that does not resolve is its own address; its fetch says what is wrong.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from queue import SimpleQueue
from threading import Thread

THREADS = 4
TTL_SECS = 3600.0
FAILED_TTL_SECS = 60.0
"""A name that did not resolve is looked up again after this."""
MOST_NAMES = 16_384


class Addresses:
    """``known(name, address)`` is called in the event loop that ran when of() was asked.

    ``look_up`` blocks; OSError or ValueError: the name does not resolve. ``clock`` in seconds.
    """

    def __init__(
        self,
        known: Callable[[str, str], None],
        look_up: Callable[[str], str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tell, self._look_up, self._clock = known, look_up or smallest_address, clock
        # not an executor, whose threads Python waits for at its end
        self._jobs: SimpleQueue[tuple[asyncio.AbstractEventLoop, str, str] | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._known: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._asked: set[str] = set()
        self._closed = False

    def of(self, name: str) -> str | None:
        """The address, or None: then a look-up is under way."""
        found = self._known.get(name)
        if found is not None and self._clock() < found[1]:
            return found[0]
        bare = name.removeprefix("[").removesuffix("]")
        with suppress(ValueError):
            return _text(bare)
        if name not in self._asked and not self._closed:
            self._asked.add(name)
            self._jobs.put((asyncio.get_running_loop(), name, bare))
            if len(self._threads) < THREADS:
                self._threads.append(Thread(target=self._work, name="addresses", daemon=True))
                self._threads[-1].start()
        return None

    def _work(self) -> None:
        """In a thread, until close()."""
        while (job := self._jobs.get()) is not None and not self._closed:
            loop, name, bare = job
            address: str | None = None
            with suppress(OSError, ValueError):  # no address, none to be read, no name for the DNS
                address = self._look_up(bare)
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(self._learn, name, address)

    def _learn(self, name: str, found: str | None) -> None:
        if self._closed:
            return
        self._asked.discard(name)
        address, ttl = (name, FAILED_TTL_SECS) if found is None else (found, TTL_SECS)
        self._known.pop(name, None)
        self._known[name] = (address, self._clock() + ttl)
        if len(self._known) > MOST_NAMES:
            self._known.popitem(last=False)
        self._tell(name, address)

    def close(self) -> None:
        """Nothing is told after this; look-ups under way are not waited for."""
        self._closed = True
        for _ in self._threads:
            self._jobs.put(None)


def smallest_address(name: str) -> str:
    """By the system's resolver. OSError, ValueError: it has none."""
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    texts = {_text(str(address[0]).partition("%")[0]) for *_, address in found}
    return min(texts, key=lambda text: (":" in text, text))


def _text(address: str) -> str:
    """One spelling for each address. ValueError for what is none."""
    parsed = ip_address(address)
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped:
        parsed = parsed.ipv4_mapped
    return parsed.compressed
