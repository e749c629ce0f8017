"""Addresses of names, each looked up in a thread of its own: names that hang hold up no others.

    names = DnsCache(patience=10.0, ttl=300.0)
    names.known("wiki")                    # None
    answer = await names.look_up("wiki")   # Resolution(addresses=("10.0.0.7",), ...)
    names.known("wiki")                    # the same, for ttl seconds

The system's resolver is asked (getaddrinfo: hosts file, nsswitch.conf), which may be silent for
half a minute. libcurl would do that in 20 threads, while each name holds a place: with 60 silent
names before them, none of 30 good ones was fetched in 22 s; now all are in 3 s
(tests/support/hostile/silent_names.py). AT_ONCE look-ups are under way, not counting those that
have taken longer than SLOW_SECS, up to MOST_THREADS threads.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

import can_ada

from larmspider import options
from larmspider.fetch.limits import Limits
from larmspider.fetch.proxies import read_proxy
from larmspider.fetch.sites.lookup import Sites
from larmspider.frontier.dispatch import AddressBook

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings


# What the system knows of a host name: its addresses, or why there are none.
#
#     resolve("wiki")       # Resolution(addresses=("10.0.0.7",)): hosts file, DNS, ...
#     resolve("nobody")     # Resolution(problem="Could not resolve host: nobody", final=True)
#
# It blocks, half a minute and longer where no server of names answers.

_FINAL = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})
"""What getaddrinfo() says where there is no such name, and not that nobody could be asked."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """``addresses`` in the order in which they should be tried; none: ``problem`` says why.

    ``final``: there are none, by the word of a server of names.
    """

    addresses: tuple[str, ...] = ()
    problem: str = ""
    final: bool = False


def resolve(name: str) -> Resolution:
    """Addresses with a zone (fe80::1%eth0) are left out: libcurl takes none from us."""
    try:
        # as bytes: what a str is put through refuses names that DNS has
        found = socket.getaddrinfo(name.encode("ascii"), None, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:  # ValueError: a name that nobody can be asked for
        final = isinstance(error, ValueError) or error.errno in _FINAL
        return Resolution(problem=f"Could not resolve host: {name}", final=final)
    texts = dict.fromkeys(str(address[0]) for *_, address in found)
    addresses = tuple(text for text in texts if "%" not in text)
    if not addresses:
        return Resolution(problem=f"Could not resolve host: {name}: no address without a zone")
    return Resolution(addresses)


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

    answer: Resolution
    until: float
    old_at: float


@dataclass(slots=True)
class _Asked:
    """Somebody waits for this name."""

    future: asyncio.Future[Resolution]
    timer: asyncio.TimerHandle


class DnsCache:
    """``patience``, ``ttl``, ``slow`` in seconds. ``resolve`` blocks. Used in one event loop."""

    _of_crawler: ClassVar[WeakKeyDictionary[Crawler, DnsCache]] = WeakKeyDictionary()

    def __init__(
        self,
        patience: float,
        ttl: float,
        resolve: Callable[[str], Resolution] = resolve,
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
        self.heard: Callable[[str, Resolution], None] | None = None
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

    def known(self, name: str) -> Resolution | None:
        """What is known and not old."""
        kept = self._kept.get(name)
        return kept.answer if kept is not None and self._clock() < kept.until else None

    def look_up(self, name: str) -> asyncio.Future[Resolution]:
        """Ask anew; one look-up serves all who ask meanwhile, so shield what you await.

        It is over after ``patience``, or ``slow`` where an old address can serve.
        """
        asked = self._asked.get(name)
        if asked is not None:
            return asked.future
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Resolution] = loop.create_future()
        if self._closed:
            future.set_result(Resolution(problem="the crawl has ended"))
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
                self._learn(name, Resolution(problem=f"{name} cannot be looked up: {error}"))
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

    def _learn(self, name: str, answer: Resolution) -> None:
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
        self._tell(name, self._stale(name) or Resolution(problem=problem))

    def _stale(self, name: str) -> Resolution | None:
        kept = self._kept.get(name)
        fits = kept is not None and kept.answer.addresses and self._clock() < kept.old_at
        return kept.answer if kept is not None and fits else None

    def _tell(self, name: str, answer: Resolution) -> None:
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


# What the frontier asks about names before a host has its turn: the look-up holds no place.
#
#     addresses = Addresses(names, known, eased)
#     addresses.of("wiki")         # None: a look-up begins; known("wiki", "10.0.0.7") is called
# later
#     addresses.of("wiki")         # "10.0.0.7"
#
# Of several addresses it is the smallest, IPv4 before IPv6: the order of answers varies, this does
# not. A name that does not resolve is its own address; its fetch says what is wrong.


class Addresses:
    """``known(name, address)`` is called in the event loop that ran when of() was asked, ``eased``
    where it is not so crowded any more."""

    def __init__(
        self, names: DnsCache, known: Callable[[str, str], None], eased: Callable[[], None]
    ) -> None:
        self._names, self._tell = names, known
        names.heard, names.eased = self._heard, eased

    def book(self, own_address: Callable[[str], bool]) -> AddressBook:
        """For the frontier."""
        return AddressBook(self.of, own_address=own_address, crowded=lambda: self._names.crowded)

    def close(self) -> None:
        """Nothing is told after this; look-ups under way are not waited for."""
        self._names.close()

    def of(self, name: str) -> str | None:
        """The address, or None: then a look-up is under way."""
        literal = _text(name.removeprefix("[").removesuffix("]"))
        if literal is not None:
            return literal
        answer = self._names.known(name)
        if answer is None:
            self._names.look_up(name)
            return None
        return smallest(answer) or name

    def _heard(self, name: str, answer: Resolution) -> None:
        self._tell(name, smallest(answer) or name)


@lru_cache(4096)
def smallest(answer: Resolution) -> str | None:
    """None where there is none."""
    texts = [text for text in map(_text, answer.addresses) if text is not None]
    return min(texts, key=lambda text: (":" in text, text), default=None)


@lru_cache(4096)
def _text(address: str) -> str | None:
    """One spelling for each address; None for what is none."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return None
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped:
        parsed = parsed.ipv4_mapped
    return parsed.compressed


# Whose addresses a fetch needs: the host's, or its proxy's; and how libcurl is told of them.
#
# names_needed("http://wiki/a", None)                        # (Endpoint("wiki", 80),)
# names_needed("http://wiki/a", "http://proxy:3128")         # (Endpoint("proxy", 3128),)
# names_needed("http://wiki/a", "socks5://proxy:1080")       # both
# names_needed("http://10.0.0.7/", None)                     # ()

_PORTS = {"http:": 80, "https:": 443}
_GIVEN_ADDRESSES = frozenset({"socks4", "socks5"})
"""Proxies that are told an address: the name is looked up here (socks5h: by the proxy)."""
_LONGEST_REMEMBERED = 300


class Endpoint(NamedTuple):
    """As libcurl has it: where it keeps addresses, name and port are the key."""

    name: str
    port: int


def names_needed(url: str, proxy: str | None) -> tuple[Endpoint, ...]:
    """Without those that libcurl knows by itself. ``proxy``: "" or None for none.
    Raises BadUrl where it is no proxy."""
    end = url.find("/", 8)  # behind http:// and https://, so behind the authority
    prefix = url if end < 0 else url[:end]
    if len(prefix) > _LONGEST_REMEMBERED:
        return _of_prefix.__wrapped__(prefix, proxy)
    return _of_prefix(prefix, proxy)


@lru_cache(16_384)
def _of_prefix(prefix: str, proxy: str | None) -> tuple[Endpoint, ...]:
    needed = []
    if asks_itself(proxy):
        needed.append(_of_url(prefix))
    if proxy:
        asked = read_proxy(proxy)
        needed.append((asked.host, asked.port))
    return tuple(Endpoint(name, port) for name, port in needed if needs_look_up(name))


def asks_itself(proxy: str | None) -> bool:
    """Whether the name of the host is for us to look up, not for the proxy."""
    return not proxy or proxy.partition("://")[0].lower() in _GIVEN_ADDRESSES


def _of_url(url: str) -> tuple[str, int]:
    try:
        parsed = can_ada.parse(url)
    except (ValueError, TypeError):  # what is wrong with it, the fetch will say
        return "", 0
    return parsed.hostname, int(parsed.port or _PORTS.get(parsed.protocol, 0))


def needs_look_up(name: str) -> bool:
    """Not an address, and none of the names that libcurl never asks for: localhost (RFC 6761 6.3)
    is this machine, .onion (RFC 7686) nowhere."""
    labels = name.removesuffix(".").rpartition(".")
    if not name or name.startswith("[") or labels[2] in ("localhost", "onion"):
        return False
    try:
        ip_address(name)
    except ValueError:
        return True
    return False


def resolve_line(endpoint: Endpoint, addresses: Sequence[str]) -> str:
    """For RESOLVE. "+": libcurl forgets it after a while (DNS_CACHE_TIMEOUT)."""
    listed = ",".join(f"[{text}]" if ":" in text else text for text in addresses)
    return f"+{endpoint.name}:{endpoint.port}:{listed}"


# Is a host asked at its own address, or does a proxy ask it, that looks up the name itself?
#
# own_address = OwnAddress.from_settings(settings)
# own_address("http://wiki/robots.txt")      # False: for LARM_SITES_FILE has a proxy for it
#
# A proxy that a Request of a foreign spider names is not seen here: the name of its host is looked
# up
# once for nothing.


class OwnAddress:
    """``proxies`` of the environment, by scheme, as HttpProxyMiddleware has them."""

    def __init__(self, sites: Sites, proxies: dict[str, str]) -> None:
        self._sites, self._proxies = sites, proxies

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Raises ConfigError."""
        enabled = options.as_boolean("HTTPPROXY_ENABLED", settings.get("HTTPPROXY_ENABLED", True))
        return cls(Sites.from_settings(settings), getproxies() if enabled else {})

    def __call__(self, url: str) -> bool:
        """Not for what is no name either. ``url`` without userinfo."""
        site = self._sites.for_url(url)
        proxy = None if site is None else site.options.proxy
        text = self._of_environment(url) if proxy is None else proxy.url
        return asks_itself(text) and bool(names_needed(url, None))

    def _of_environment(self, url: str) -> str | None:
        if not self._proxies:
            return None
        parts = urlsplit(url)
        proxy = self._proxies.get(parts.scheme)
        return None if proxy is None or proxy_bypass(parts.hostname or "") else proxy
