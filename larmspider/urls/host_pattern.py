"""Patterns for hosts: ``*.intra.example``, and bound to scheme and port, ``https://wiki:8443``.

>>> bool(host_matcher("*.intra.example", "10.1.*")("wiki.intra.example"))
True
>>> pattern = HostPattern.parse("https://*.intra.example")
>>> pattern.matches("https", "wiki.intra.example", 443)
True
>>> pattern.matches("https", "wiki.intra.example", 8443)
False

Every pattern for hosts in settings and files is matched by ``host_matcher``. A HostPattern without
a port stands for the default port of its scheme; ``wiki:*`` is any port.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from typing import Self

from larmspider.errors import ConfigError
from larmspider.urls.host_resolver import canonical_host
from larmspider.urls.schemes import DEFAULT_PORTS

_ACCEPTED = (
    "expected host, host:port or scheme://host:port, with * and ? in the host (punycode for"
    " other letters), * for any port, and without user name, path and query"
)
_PATTERN = re.compile(
    r"(?:([a-z][a-z0-9+.-]*)://)?(\[[0-9a-f:.]+\]|[^\x00-\x20/\\@#%:\[\]]+)(?::([1-9][0-9]{0,4}|\*))?/?",
    re.IGNORECASE,
)
_WITH_WILDCARDS = re.compile(r"[a-z0-9_.*?-]+")
_ADDRESS = re.compile(r"[0-9.*?]*[0-9][0-9.*?]*")
_LARGEST_PORT = 65_535
_IPV6_BRACKET = re.compile(r"\[(?=[0-9a-f.*?]*:[0-9a-f:.*?]*\])", re.IGNORECASE)


@lru_cache(16_384)
def host_matcher(*patterns: str) -> Callable[[str], object]:
    """A function that says whether a host matches one of ``patterns``, ignoring case.

    ``*`` stands for any characters, dots among them, ``?`` for one, ``[ab]`` for one of these; the
    brackets of an IPv6 address stand for themselves.
    """
    expressions = [translate(_IPV6_BRACKET.sub("[[]", pattern)) for pattern in patterns]
    return re.compile("|".join(expressions) or "(?!)", re.IGNORECASE).match


@dataclass(frozen=True)
class HostPattern:
    """``scheme``: None if the pattern has none. ``port``: None stands for the scheme's default
    port, 0 for any port."""

    host: str
    scheme: str | None = None
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ConfigError for a pattern that could never match."""
        found = _PATTERN.fullmatch(text)
        if found is None or (found[1] or "http").lower() not in DEFAULT_PORTS:
            shown = f"***@{text.rpartition('@')[2]}" if "@" in text else text
            raise ConfigError(f"{shown!a} is not a pattern for hosts: {_ACCEPTED}")
        scheme, host, port = found.groups()
        if "*" in host or "?" in host:
            host = host.lower().removesuffix(".")
            if not _WITH_WILDCARDS.fullmatch(host):
                raise ConfigError(f"{text!a} is not a pattern for hosts: {_ACCEPTED}")
        else:
            canonical = canonical_host(host)
            if canonical is None:
                raise ConfigError(f"{text!a} is not a pattern for hosts: {_ACCEPTED}")
            host = canonical
        number = None if port is None else 0 if port == "*" else int(port)
        if number is not None and number > _LARGEST_PORT:
            raise ConfigError(
                f"{text!a} is not a pattern for hosts: ports go up to {_LARGEST_PORT}"
            )
        return cls(host, scheme.lower() if scheme else None, number)

    @property
    def is_bounded(self) -> bool:
        """Whether the owner of a matching name also owns its last label, or the name is an address.

        ``wiki*`` is unbounded: any person can register wiki.elsewhere.example.
        """
        label = self.host.rpartition(".")[2]
        return bool(_ADDRESS.fullmatch(self.host)) or not ("*" in label or "?" in label)

    def matches(self, scheme: str, host: str, port: int) -> bool:
        """``host`` as can_ada writes it, without a dot at its end."""
        return (
            self.scheme in (None, scheme)
            and (port == DEFAULT_PORTS.get(scheme) if self.port is None else self.port in (0, port))
            and host_matcher(self.host)(host) is not None
            # an address matches addresses alone: 10.1.* is not 10.1.example
            and (not _ADDRESS.fullmatch(self.host) or _ADDRESS.fullmatch(host) is not None)
        )

    def __str__(self) -> str:
        scheme = f"{self.scheme}://" if self.scheme else ""
        port = "" if self.port is None else ":*" if self.port == 0 else f":{self.port}"
        return f"{scheme}{self.host}{port}"
