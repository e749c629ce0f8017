"""Identifies readers: a reverse proxy in front names the groups of people that a request belongs
to.

    LARM_SEARCH_GROUPS = {"staff": ["*.hr.example", "file://"]}
    LARM_SEARCH_GROUPS_HEADER = "X-Forwarded-Groups"
    LARM_SEARCH_USER_HEADER = "X-Forwarded-User"
    LARM_TRUSTED_PROXIES = ["127.0.0.1"]

Pages of files, and of hosts that got credentials, are for signed-in users, and for groups that name
these hosts. The header is ignored if it comes from other addresses.
"""

from __future__ import annotations

import ipaddress
import json
import logging
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
from larmspider.web.reader import Reader, checked_groups, checked_name

if TYPE_CHECKING:
    from aiohttp import web

    from larmspider.options import Settings

logger = logging.getLogger(__name__)

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Readers:
    """``groups``: patterns of hosts by the name of a group. The request header ``header`` names the
    reader's groups, ``user_header`` the reader. Both count only if they come from ``proxies``."""

    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    header: str = ""
    proxies: Collection[Network] = ()
    user_header: str = ""

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Raises ConfigError."""
        proxies = tuple(map(_network, options.strings(settings, "LARM_TRUSTED_PROXIES")))
        header, user_header = (
            _header(settings, name, example, proxies)
            for name, example in (
                ("LARM_SEARCH_GROUPS_HEADER", "X-Forwarded-Groups"),
                ("LARM_SEARCH_USER_HEADER", "X-Forwarded-User"),
            )
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
        return cls(groups, header, proxies, user_header)

    def said_of(self, request: web.Request) -> Reader | None:
        """The reader whom a trusted proxy names. None if no proxy names one, if the name cannot be
        used, or if the header is empty (Apache sends it empty before a sign-in). A header that
        comes twice is ignored, because one of the two may be the client's own."""
        sent = [
            request.headers.getall(header, []) if header else []
            for header in (self.header, self.user_header)
        ]
        if not any(sent) or max(map(len, sent)) > 1 or not self._trusts(request.remote or ""):
            return None
        groups, user = ([_decoded(text) for text in one] for one in sent)
        try:
            found = [name for text in groups for part in text.split(",") if (name := part.strip())]
            principals = checked_groups(found, "a person")
            names = [checked_name(text.strip(), "user") for text in user if text.strip()]
        except ConfigError as error:
            logger.warning("A header of a proxy is not believed: %s", error)
            return None
        if user and not (names or principals):
            return None
        name = names[0] if names else ""
        return Reader(name, principals=principals | {f"user:{one}" for one in names})

    def client(self, remote: str, forwarded: str) -> str:
        """The address of a client: ``remote``, or the address that trusted proxies name in
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


def _header(settings: Settings, name: str, example: str, proxies: Collection[Network]) -> str:
    header = options.text(settings, name)
    if header and not _HEADER.fullmatch(header):
        raise ConfigError(f"{name}={header}: expected the name of a header such as {example}")
    if header and not proxies:
        raise ConfigError(
            f"{name}={header}: anybody can send it; set LARM_TRUSTED_PROXIES to the addresses of"
            " the proxies that may"
        )
    return header


def _decoded(text: str) -> str:
    """A header in UTF-8, as proxies send names: aiohttp keeps bytes that are not as surrogates."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


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
