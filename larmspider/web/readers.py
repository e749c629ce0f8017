"""Identifies readers: a reverse proxy in front names the groups of people that a request belongs
to.

    LARM_SEARCH_GROUPS = {"staff": ["*.hr.example", "file://"]}
    LARM_SEARCH_GROUPS_HEADER = "X-Forwarded-Groups"
    LARM_TRUSTED_PROXIES = ["127.0.0.1"]

Pages of files, and of hosts that got credentials, are for signed-in users, and for groups that name
these hosts. The header is ignored if it comes from other addresses.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from larmspider import options
from larmspider.access.lists import ANYBODY, AUTHENTICATED, EVERYONE
from larmspider.errors import ConfigError
from larmspider.index.access import Access
from larmspider.index.schema import FILES
from larmspider.urls.host_pattern import HostPattern

if TYPE_CHECKING:
    from aiohttp import web

    from larmspider.options import Settings

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Readers:
    """``groups``: patterns of hosts by the name of a group. The request header ``header`` names the
    reader's groups, and counts only if it comes from ``proxies``."""

    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    header: str = ""
    proxies: Collection[Network] = ()

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Raises ConfigError."""
        header = options.text(settings, "LARM_SEARCH_GROUPS_HEADER")
        if header and not _HEADER.fullmatch(header):
            raise ConfigError(
                f"LARM_SEARCH_GROUPS_HEADER={header}: expected the name of a header such as"
                " X-Forwarded-Groups"
            )
        proxies = tuple(map(_network, options.strings(settings, "LARM_TRUSTED_PROXIES")))
        if header and not proxies:
            raise ConfigError(
                f"LARM_SEARCH_GROUPS_HEADER={header}: anybody can send it; set LARM_TRUSTED_PROXIES"
                " to the addresses of the proxies that may"
            )
        named = options.mapping(settings, "LARM_SEARCH_GROUPS")
        groups = {name: _hosts(name, of) for name, of in named.items()}
        if groups.keys() - {EVERYONE} and not header:
            shown = json.dumps(named, ensure_ascii=False)
            raise ConfigError(
                f"LARM_SEARCH_GROUPS={shown:.100}: nothing says who is in a group; set"
                " LARM_SEARCH_GROUPS_HEADER to the header in which a proxy names groups, and"
                " LARM_TRUSTED_PROXIES to its addresses"
            )
        return cls(groups, header, proxies)

    def groups_of(self, request: web.Request) -> list[str] | None:
        """The groups that a trusted proxy names; None where none does. A header that came twice is
        not believed: one of them may be the client's own."""
        sent = request.headers.getall(self.header, []) if self.header else []
        if len(sent) != 1 or not self._trusts(request.remote or ""):
            return None
        return [name for part in sent[0].split(",") if (name := part.strip())]

    def client(self, remote: str, forwarded: str) -> str:
        """The address of a client: ``remote``, or the one that trusted proxies name in
        X-Forwarded-For. Each proxy appends the address that it sees; earlier ones may be made
        up."""
        for said in reversed(forwarded.split(",")):
            if not self._trusts(remote):
                break
            try:
                remote = str(ipaddress.ip_address(said.strip().partition("%")[0]))
            except ValueError:  # also an address with a port, or a name: the proxy stands for it
                break
        return remote

    def _trusts(self, remote: str) -> bool:
        try:
            address = ipaddress.ip_address(remote.partition("%")[0])
        except ValueError:
            return False
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        return any(address in network for network in self.proxies)

    def access(
        self,
        restricted: tuple[str, ...],
        groups: Collection[str],
        principals: frozenset[str] = ANYBODY,
    ) -> Access:
        """The pages that a person with these groups and principals may see in a crawl with
        ``restricted`` hosts. LARM_SEARCH_GROUPS may also name everyone and authenticated."""
        named = {*groups, *(principals & {EVERYONE, AUTHENTICATED})}
        allowed = {host for name in named for host in self.groups.get(name, ())}
        return Access(restricted, tuple(sorted(allowed)), principals)


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise ConfigError(
            f"LARM_TRUSTED_PROXIES={text}: expected an address such as 127.0.0.1, or a network such"
            " as 10.1.0.0/16"
        ) from None


def _hosts(group: str, hosts: Any) -> tuple[str, ...]:
    found = [hosts] if isinstance(hosts, str) else hosts
    if not isinstance(found, list | tuple) or not all(isinstance(host, str) for host in found):
        raise ConfigError(
            f"LARM_SEARCH_GROUPS: {group}: expected a list of hosts such as"
            f' ["wiki.example", "*.hr.example", "{FILES}"]'
        )
    for host in found:
        if host != FILES:
            try:
                pattern = HostPattern.parse(host)
            except ConfigError as error:
                raise ConfigError(f"LARM_SEARCH_GROUPS: {group}: {error}") from None
            if pattern.scheme or pattern.port:  # the index knows pages by host names
                raise ConfigError(
                    f"LARM_SEARCH_GROUPS: {group}: {host}: a group is shown whole hosts, at all"
                    f" ports: expected the host without scheme and port, {pattern.host} or"
                    f" {pattern.host}:*"
                )
    return tuple(found)
