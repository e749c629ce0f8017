"""Addresses that must not be fetched from, by any name: cloud metadata, "this host".

    deny = DenyAddresses(["169.254.0.0/16"], allow=["169.254.10.0/24"])
    deny.reason("169.254.169.254")     # "169.254.169.254 is in 169.254.0.0/16"
    deny.reason("169.254.10.1")        # None

Each connection is checked after resolution, so that no name, redirect or disguised number evades
the check. An IPv4 address inside an IPv6 one (::ffff:a.b.c.d and ::a.b.c.d, RFC 4291 2.5.5;
6to4, RFC 3056; NAT64, RFC 6052 2.1) counts as the IPv4 address. Local NAT64 (RFC 8215) does not fix
its place in 64:ff9b:1::/48: all places of RFC 6052 2.2 are checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import TYPE_CHECKING, Self, TypeAlias

from larmspider import options
from larmspider.errors import ConfigError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

Network: TypeAlias = IPv4Network | IPv6Network
_NAT64 = IPv6Network("64:ff9b::/96")
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = IPv6Network("::/96")
_NOT_COMPATIBLE = (IPv6Address("::"), IPv6Address("::1"))


class DenyAddresses:
    """``allow`` wins over ``deny``. Networks in CIDR notation, or single addresses. A network with
    a port (``127.0.0.0/8:6379``, ``[::1]:6379``) is denied at this port, whatever is allowed."""

    def __init__(self, deny: Iterable[str], allow: Iterable[str] = ()) -> None:
        denied = [_with_port(text) for text in deny]
        self.deny = [network for network, port in denied if not port]
        self.ports = [(network, port) for network, port in denied if port]
        self.allow = [_network(text) for text in allow]
        self.reason = lru_cache(4096)(self._reason)
        """Why this address, as text, is denied; None if it is not."""

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        lists = []
        for name in ("LARM_DENY_ADDRESSES", "LARM_ALLOW_ADDRESSES"):
            lists.append(options.strings(settings, name))
            for text in lists[-1]:
                try:
                    _with_port(text)
                except ValueError as error:
                    raise ConfigError(
                        f"{name}: {text}: expected an address, or a network such as"
                        f" 169.254.0.0/16 ({error})"
                    ) from None
        return cls(*lists)

    def _reason(self, address: str, at: int = 0) -> str | None:
        try:
            parsed = plain_address(address)
        except ValueError:
            return f"{address} is not an IP address"
        for network, port in self.ports:
            if at == port and parsed in network:
                return f"{parsed} is in {network}, denied at port {port}"
        if any(parsed in network for network in self.allow):
            return None
        for meant in (parsed, ip_address(address.partition("%")[0]), *_behind_nat(parsed)):
            for network in self.deny:
                if meant in network:
                    return f"{meant} is in {network}"
        return None


def plain_address(text: str) -> IPv4Address | IPv6Address:
    """The address without zone, and as IPv4 if it stands for IPv4. Raises ValueError for any other
    text."""
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address):
        inside = address.ipv4_mapped or address.sixtofour
        embeds = address in _NAT64 or address in _COMPATIBLE
        if inside is None and embeds and address not in _NOT_COMPATIBLE:
            inside = IPv4Address(int(address) & 0xFFFFFFFF)
        return inside or address
    return address


def _behind_nat(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses that ``address`` may stand for. A prefix may have 96 bits; or 64, 56 or 48
    bits, if the byte at bit 64 and all bytes after the IPv4 address are zero."""
    if not isinstance(address, IPv6Address) or address not in _LOCAL_NAT64:
        return
    number = int(address)
    found = [number & 0xFFFFFFFF]
    without = (number >> 64) << 56 | (number & (1 << 56) - 1)  # 120 bits: the byte at 64 is gone
    for prefix in (64, 56, 48):
        behind = 120 - prefix - 32
        if not without & (1 << behind) - 1:
            found.append(without >> behind & 0xFFFFFFFF)
    # 0.0.0.0/8 is this host only without a NAT; most often it is zeros read as an address
    yield from (IPv4Address(one) for one in found if one >> 24)


def _with_port(text: str) -> tuple[Network, int]:
    """A network and its port, 0 for all."""
    found = re.fullmatch(r"\s*(?:\[([^\]]+)\]|([\d.]+(?:/\d+)?)):(\d{1,5})\s*", text)
    if found is None:
        return _network(text), 0
    if not 0 < int(found[3]) < 65_536:
        raise ValueError(f"{found[3]} is not a port")
    return _network(found[1] or found[2]), int(found[3])


def _network(text: str) -> Network:
    network = ip_network(text.strip(), strict=False)
    mapped = isinstance(network, IPv6Network) and network.network_address.ipv4_mapped
    if mapped and network.prefixlen >= 96:
        return IPv4Network((mapped, network.prefixlen - 96))
    return network
