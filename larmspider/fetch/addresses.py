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
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from ipaddress import IPv6Address, ip_address

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
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="addresses")
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
            loop = asyncio.get_running_loop()
            future = self._pool.submit(self._look_up, bare)
            future.add_done_callback(lambda done: self._done(loop, name, done))
        return None

    def _done(self, loop: asyncio.AbstractEventLoop, name: str, future: Future[str]) -> None:
        """In the thread of the look-up."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(self._learn, name, future)

    def _learn(self, name: str, future: Future[str]) -> None:
        if self._closed:
            return
        self._asked.discard(name)
        try:
            address, ttl = future.result(), TTL_SECS
        except (OSError, ValueError):  # no address, none that can be read, no name for the DNS
            address, ttl = name, FAILED_TTL_SECS
        self._known.pop(name, None)
        self._known[name] = (address, self._clock() + ttl)
        if len(self._known) > MOST_NAMES:
            self._known.popitem(last=False)
        self._tell(name, address)

    def close(self) -> None:
        """Nothing is told after this; look-ups under way are not waited for."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)


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
