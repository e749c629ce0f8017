"""Addresses of host names, each looked up in a separate thread, so that none holds up another.

    cache = DnsCache(patience=10.0, ttl=300.0)
    cache.known("wiki")                    # None
    found = await cache.look_up("wiki")    # Resolution(addresses=("10.0.0.7",))
    cache.known("wiki")                    # the same, for ttl seconds

The system's resolver (getaddrinfo: hosts file, nsswitch.conf) may be silent for 30 s. libcurl asks
it in 20 threads, while each name holds a slot: behind 60 silent names none of 30 good names was
fetched in 22 s; here all are in 3 s (tests/hostile/test_cases.py). The threads are daemons, unlike
the threads of an executor, so that a silent resolver does not delay a stop.
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
from scrapy.utils.misc import load_object

from larmspider import options
from larmspider.fetch.limits import Limits
from larmspider.fetch.no_proxy import NoProxy
from larmspider.fetch.proxies import read_proxy
from larmspider.fetch.sites.lookup import Sites

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings


_FINAL = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})
"""Errors of getaddrinfo() for a name that does not exist; others mean that no server answered."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """``addresses`` in the order in which to try them; where there are none, ``problem`` says why.

    ``final``: a DNS server said that the name has no address.
    """

    addresses: tuple[str, ...] = ()
    problem: str = ""
    final: bool = False


def resolve(name: str) -> Resolution:
    """Ask the system; blocks. Addresses with a zone (fe80::1%eth0), which RESOLVE of libcurl does
    not take, are left out."""
    try:
        # as bytes: Python's IDNA codec refuses names that DNS allows
        found = socket.getaddrinfo(name.encode("ascii"), None, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:  # ValueError: not ASCII, or a NUL
        final = isinstance(error, ValueError) or error.errno in _FINAL
        return Resolution(problem=f"Could not resolve host: {name}", final=final)
    texts = dict.fromkeys(str(address[0]) for *_, address in found)
    addresses = tuple(text for text in texts if "%" not in text)
    if not addresses:
        return Resolution(problem=f"Could not resolve host: {name}: no address without a zone")
    return Resolution(addresses)


MAX_LOOK_UPS = 32
"""Look-ups under way, without look-ups that take longer than SLOW_SECS."""
MAX_THREADS = 256
SLOW_SECS = 0.5
FAILED_SECS = 3.0
"""A name without an address is looked up again after this: less than the wait before a retry."""
STALE_SECS = 86_400.0
"""Seconds for which an address can serve while no resolver answers (RFC 8767 5)."""
STALE_AGAIN_SECS = 30.0
"""Seconds until the next look-up of a name with a stale address."""
MAX_NAMES = 16_384
_STACK_BYTES = 512 * 1024


@dataclass(slots=True)
class _Entry:
    """``resolution`` is fresh until ``fresh_until`` and of no use from ``stale_until`` on."""

    resolution: Resolution
    fresh_until: float
    stale_until: float


@dataclass(slots=True)
class _Waiting:
    future: asyncio.Future[Resolution]
    timer: asyncio.TimerHandle


class DnsCache:
    """Used in one event loop; ``resolve`` runs in threads. Times in seconds: ``patience`` is how
    long a look-up may take, from ``slow`` on it makes room for another."""

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
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._waiting: dict[str, _Waiting] = {}
        self._queue: deque[str] = deque()
        self._threads: dict[str, asyncio.TimerHandle] = {}
        self._prompt: set[str] = set()
        """Names whose thread is not slow yet."""
        self._closed = False
        self.on_resolved: Callable[[str, Resolution], None] | None = None
        self.on_capacity: Callable[[], None] | None = None
        """Called when a look-up has become slow, so that ``saturated`` may have ended."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """One cache for the crawl."""
        cache = cls._of_crawler.get(crawler)
        if not isinstance(cache, cls) or cache._closed:
            limits = Limits.from_settings(crawler.settings)
            cache = cls._of_crawler[crawler] = cls(limits.connect_secs, limits.dns_secs)
        return cache

    def __repr__(self) -> str:
        waiting = f"{len(self._waiting)} waiting, {len(self._queue)} queued"
        return f"<DnsCache {waiting}, {len(self._prompt)} of {len(self._threads)} threads prompt>"

    @property
    def saturated(self) -> bool:
        """Whether a further look-up would have to wait."""
        return bool(self._queue) or not self._has_room()

    def known(self, name: str) -> Resolution | None:
        """The fresh entry of ``name``, if there is one."""
        entry = self._entries.get(name)
        return entry.resolution if entry is not None and self._clock() < entry.fresh_until else None

    def look_up(self, name: str) -> asyncio.Future[Resolution]:
        """Look ``name`` up again. One look-up serves all waiting callers, so shield the awaited
        object. Ends after ``patience`` seconds, or after ``slow`` seconds if a stale address can be
        used.
        """
        waiting = self._waiting.get(name)
        if waiting is not None:
            return waiting.future
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Resolution] = loop.create_future()
        if self._closed:
            future.set_result(Resolution(problem="the crawl has ended"))
            return future
        wait = self._patience if self._stale(name) is None else min(self._slow, self._patience)
        self._waiting[name] = _Waiting(future, loop.call_later(wait, self._give_up, name))
        if name not in self._threads:  # one may hang since an earlier look-up of the name
            self._queue.append(name)
            self._start()
        return future

    def close(self) -> None:
        """Cancel all waiters; threads under way continue."""
        self._closed = True
        for waiting in self._waiting.values():
            waiting.timer.cancel()
            waiting.future.cancel()
        for timer in self._threads.values():
            timer.cancel()
        self._waiting.clear()
        self._queue.clear()

    def _has_room(self) -> bool:
        return len(self._prompt) < MAX_LOOK_UPS and len(self._threads) < MAX_THREADS

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        while self._queue and self._has_room():
            name = self._queue.popleft()
            if name not in self._waiting or name in self._threads:
                continue  # given up while it was queued
            self._threads[name] = loop.call_later(self._slow, self._is_slow, name)
            self._prompt.add(name)
            thread = threading.Thread(
                target=self._run, args=(loop, name), name="look-up", daemon=True
            )
            before = threading.stack_size(_STACK_BYTES)
            try:
                thread.start()
            except RuntimeError as error:
                self._finish(name, Resolution(problem=f"{name} cannot be looked up: {error}"))
            finally:
                threading.stack_size(before)

    def _run(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        """Resolve a name, in a thread."""
        resolution = self._resolve(name)
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._finish, name, resolution)

    def _is_slow(self, name: str) -> None:
        self._prompt.discard(name)
        self._start()
        if self.on_capacity is not None:
            self.on_capacity()

    def _finish(self, name: str, resolution: Resolution) -> None:
        self._threads.pop(name).cancel()
        self._prompt.discard(name)
        if self._closed:
            return
        if not resolution.addresses and not resolution.final:
            resolution = self._stale(name) or resolution
        self._store(name, resolution)
        self._start()

    def _give_up(self, name: str) -> None:
        problem = f"no DNS server answered for {name} (LARM_CONNECT_TIMEOUT_SECS)"
        self._store(name, self._stale(name) or Resolution(problem=problem))

    def _stale(self, name: str) -> Resolution | None:
        """The addresses that ``name`` had before, if they are not too old to serve."""
        entry = self._entries.get(name)
        if entry is None or not entry.resolution.addresses or self._clock() >= entry.stale_until:
            return None
        return entry.resolution

    def _store(self, name: str, resolution: Resolution) -> None:
        """Keep ``resolution`` and pass it to its waiters."""
        now, entry = self._clock(), self._entries.pop(name, None)
        if entry is not None and entry.resolution is resolution:
            entry.fresh_until = min(now + STALE_AGAIN_SECS, entry.stale_until)
        else:
            ttl = self._ttl if resolution.addresses else FAILED_SECS
            entry = _Entry(resolution, now + ttl, now + max(ttl, STALE_SECS))
        self._entries[name] = entry
        if len(self._entries) > MAX_NAMES:
            self._entries.popitem(last=False)
        waiting = self._waiting.pop(name, None)
        if waiting is not None:
            waiting.timer.cancel()
            if not waiting.future.done():
                waiting.future.set_result(resolution)
        if self.on_resolved is not None:
            self.on_resolved(name, resolution)


class Addresses:
    """The address by which the frontier groups a host, known before the host gets a slot.

        addresses = Addresses(cache, on_address, on_capacity)
        addresses.of("wiki")         # None; on_address("wiki", "10.0.0.7") is called later
        addresses.of("wiki")         # "10.0.0.7"

    A host with several addresses counts by the smallest, IPv4 before IPv6, because their order
    varies. A name that does not resolve is its own address; its fetch reports the fault.
    """

    def __init__(
        self,
        cache: DnsCache,
        on_address: Callable[[str, str], None],
        on_capacity: Callable[[], None],
    ) -> None:
        self._cache = cache
        cache.on_resolved = lambda name, found: on_address(name, smallest(found) or name)
        cache.on_capacity = on_capacity

    def saturated(self) -> bool:
        """Whether every resolver thread is busy."""
        return self._cache.saturated

    def close(self) -> None:
        """Stop. No callback is called after this."""
        self._cache.close()

    def of(self, name: str) -> str | None:
        """The address, or None while it is looked up."""
        literal = _spelling(name.removeprefix("[").removesuffix("]"))
        if literal is not None:
            return literal
        found = self._cache.known(name)
        if found is None:
            self._cache.look_up(name)
            return None
        return smallest(found) or name


@lru_cache(4096)
def smallest(resolution: Resolution) -> str | None:
    """The smallest address, or None."""
    texts = [text for text in map(_spelling, resolution.addresses) if text is not None]
    return min(texts, key=lambda text: (":" in text, text), default=None)


@lru_cache(4096)
def _spelling(address: str) -> str | None:
    """The one spelling of an address; None for a text that is not an address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return None
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped:
        parsed = parsed.ipv4_mapped
    return parsed.compressed


_PORTS = {"http:": 80, "https:": 443}
_GIVEN_ADDRESSES = frozenset({"socks4", "socks5"})
"""Proxies that want an address, so that the name is looked up here (socks5h: by the proxy)."""
_LONGEST_REMEMBERED = 300


class Endpoint(NamedTuple):
    """The key of libcurl's own cache of addresses."""

    name: str
    port: int


def names_needed(url: str, proxy: str | None) -> tuple[Endpoint, ...]:
    """The names whose addresses a fetch of ``url`` needs, without names that libcurl knows itself.

        names_needed("http://wiki/a", None)                        # (Endpoint("wiki", 80),)
        names_needed("http://wiki/a", "http://proxy:3128")         # (Endpoint("proxy", 3128),)
        names_needed("http://wiki/a", "socks5://proxy:1080")       # both
        names_needed("http://10.0.0.7/", None)                     # ()

    ``proxy``: "" or None for none. Raises BadUrl for a text that is not a proxy.
    """
    end = url.find("/", 8)  # after http:// and https://, so after the authority
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
    """Whether the host's name is looked up here, not by the proxy."""
    return not proxy or proxy.partition("://")[0].lower() in _GIVEN_ADDRESSES


def _of_url(url: str) -> tuple[str, int]:
    try:
        parsed = can_ada.parse(url)
    except (ValueError, TypeError):  # the fetch reports the fault
        return "", 0
    return parsed.hostname, int(parsed.port or _PORTS.get(parsed.protocol, 0))


def needs_look_up(name: str) -> bool:
    """Whether ``name`` is neither an address nor a name that libcurl never asks for: localhost
    (RFC 6761 6.3) is this machine, .onion (RFC 7686) nowhere."""
    labels = name.removesuffix(".").rpartition(".")
    if not name or name.startswith("[") or labels[2] in ("localhost", "onion"):
        return False
    try:
        ip_address(name)
    except ValueError:
        return True
    return False


def resolve_line(endpoint: Endpoint, addresses: Sequence[str]) -> str:
    """A line for RESOLVE; with "+" libcurl forgets it after DNS_CACHE_TIMEOUT."""
    listed = ",".join(f"[{text}]" if ":" in text else text for text in addresses)
    return f"+{endpoint.name}:{endpoint.port}:{listed}"


class OwnAddress:
    """Whether a fetch connects to the host's own address, or a proxy looks the name up.

        own_address = OwnAddress.from_settings(settings)
        own_address("http://wiki/robots.txt")      # False: LARM_SITES_FILE has a proxy for it

    ``proxies`` of the environment by scheme, as HttpProxyMiddleware has them. A proxy in a
    Request's meta is not known here: the host is then looked up once without need. A download
    handler that asks no server (``asks_servers``) needs no address.
    """

    def __init__(self, sites: Sites, proxies: dict[str, str], *, needed: bool = True) -> None:
        self._sites, self._proxies, self._needed = sites, proxies, needed
        self._is_direct = NoProxy.from_environment(proxies)

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        enabled = options.as_boolean("HTTPPROXY_ENABLED", settings.get("HTTPPROXY_ENABLED", True))
        handler = load_object(settings.getdict("DOWNLOAD_HANDLERS").get("http") or object)
        needed = getattr(handler, "asks_servers", True)
        return cls(Sites.from_settings(settings), getproxies() if enabled else {}, needed=needed)

    def __call__(self, url: str) -> bool:
        """Whether the host of ``url`` has to be looked up; False for an address. ``url`` has no
        userinfo."""
        if not self._needed:
            return False
        site = self._sites.for_url(url)
        proxy = None if site is None else site.options.proxy
        text = self._of_environment(url) if proxy is None else proxy.url
        return asks_itself(text) and bool(names_needed(url, None))

    def _of_environment(self, url: str) -> str | None:
        if not self._proxies:
            return None
        parts = urlsplit(url)
        proxy = self._proxies.get(parts.scheme)
        if proxy is None or self._is_direct(url):
            return None
        return None if proxy_bypass(parts.hostname or "") else proxy
