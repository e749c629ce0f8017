"""Whose addresses a fetch needs: the host's, or its proxy's; and how libcurl is told of them.

names_needed("http://wiki/a", None)                        # (Endpoint("wiki", 80),)
names_needed("http://wiki/a", "http://proxy:3128")         # (Endpoint("proxy", 3128),)
names_needed("http://wiki/a", "socks5://proxy:1080")       # both
names_needed("http://10.0.0.7/", None)                     # ()
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple

import can_ada

from larmspider.fetch.proxy_url import read_proxy

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
