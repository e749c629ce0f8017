"""``no_proxy`` of the environment: which hosts get requests without the proxy of ``http_proxy``.

    direct = NoProxy("localhost, .intra.example, 10.0.0.0/8, wiki:8080")
    direct("http://wiki:8080/")        # True
    direct("http://wiki/")             # False: another port
    direct("http://10.1.2.3/")         # True

An entry is a host, which stands for its subdomains too, an address, a network, or ``*``. A host or
address may have a port, as in curl and Go; Python and Scrapy know neither ports nor networks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Self
from urllib.parse import urlsplit
from urllib.request import getproxies

from larmspider.urls.schemes import DEFAULT_PORTS

_PORT = re.compile(r"(.*?):([0-9]{1,5})")


class NoProxy:
    """An entry that makes no sense matches no host."""

    def __init__(self, text: str) -> None:
        self._all = False
        self._hosts: list[tuple[str, int | None]] = []
        self._networks: list[tuple[IPv4Network | IPv6Network, int | None]] = []
        for entry in re.split(r"[\s,]+", text.lower()):
            if entry == "*":
                self._all = True
            elif entry:
                self._add(entry)

    @classmethod
    def from_environment(cls, proxies: Mapping[str, str] | None = None) -> Self:
        """The exceptions in ``no_proxy``, else in ``NO_PROXY``."""
        return cls((getproxies() if proxies is None else proxies).get("no", ""))

    def __bool__(self) -> bool:
        return bool(self._all or self._hosts or self._networks)

    def __call__(self, url: str) -> bool:
        """Whether ``url`` is fetched directly."""
        if self._all:
            return True
        if not self:
            return False
        try:
            parts = urlsplit(url)
            host, port = _plain(parts.hostname or ""), parts.port
        except ValueError:
            return False
        port = port or DEFAULT_PORTS.get(parts.scheme)
        address = _address(host)
        return any(
            only in (None, port) and (host == name or host.endswith(f".{name}"))
            for name, only in self._hosts
        ) or any(
            only in (None, port) and address is not None and address in network
            for network, only in self._networks
        )

    def _add(self, entry: str) -> None:
        port = None
        if (found := _PORT.fullmatch(entry)) and (":" not in found[1] or found[1].endswith("]")):
            entry, port = found[1], int(found[2])
        name = _plain(entry)
        try:
            self._networks.append((ip_network(name, strict=False), port))
        except ValueError:
            if name and "/" not in name:
                self._hosts.append((name, port))


def _plain(host: str) -> str:
    """A host without brackets, ``*.`` or a dot before it, and the dot at its end."""
    return host.strip("[]").removeprefix("*").strip(".")


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
