"""Patterns for hosts that are bound to scheme and port: ``*.intra.example:8443``, ``https://wiki``.

>>> pattern = HostPattern.parse("https://*.intra.example")
>>> pattern.matches("https", "wiki.intra.example", 443)
True
>>> pattern.matches("https", "wiki.intra.example", 8443)
False

``*`` stands for any characters, dots among them, ``?`` for one, as in LARM_HOST_RULES. Other than
there, a pattern without a port stands for the default port of its scheme; ``wiki:*`` is any port.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from larmspider.errors import ConfigError
from larmspider.urls.host_resolver import canonical_host

DEFAULT_PORTS = {"http": 80, "https": 443}
"""By scheme; other schemes are not fetched."""

_ACCEPTED = (
    "expected host, host:port or scheme://host:port, with * and ? in the host (punycode for"
    " other letters), * for any port, and without user name, path and query"
)
_PATTERN = re.compile(
    r"(?:(https?)://)?(\[[0-9a-f:.]+\]|[^\x00-\x20/\\@#%:\[\]]+)(?::([1-9][0-9]{0,4}|\*))?/?",
    re.IGNORECASE,
)
_WITH_WILDCARDS = re.compile(r"[a-z0-9_.*?-]+")
_ADDRESS = re.compile(r"[0-9.*?]*[0-9][0-9.*?]*")
_LARGEST_PORT = 65_535


@dataclass(frozen=True)
class HostPattern:
    """``scheme`` None: not said; ``port`` None: the default one, 0: any."""

    host: str
    scheme: str | None = None
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ConfigError for what could never match."""
        found = _PATTERN.fullmatch(text)
        if found is None:
            shown = f"***@{text.rpartition('@')[2]}" if "@" in text else text
            raise ConfigError(f"{shown!a} is no pattern for hosts: {_ACCEPTED}")
        scheme, host, port = found.groups()
        if "*" in host or "?" in host:
            host = host.lower().removesuffix(".")
            if not _WITH_WILDCARDS.fullmatch(host):
                raise ConfigError(f"{text!a} is no pattern for hosts: {_ACCEPTED}")
        else:
            canonical = canonical_host(host)
            if canonical is None:
                raise ConfigError(f"{text!a} is no pattern for hosts: {_ACCEPTED}")
            host = canonical
        number = None if port is None else 0 if port == "*" else int(port)
        if number is not None and number > _LARGEST_PORT:
            raise ConfigError(f"{text!a} is no pattern for hosts: ports go up to {_LARGEST_PORT}")
        return cls(host, scheme.lower() if scheme else None, number)

    @property
    def is_bounded(self) -> bool:
        """Whether whoever owns a name that matches owns its last label too, or it is an address.

        ``wiki*`` is not: anybody can have wiki.elsewhere.example.
        """
        label = self.host.rpartition(".")[2]
        return bool(_ADDRESS.fullmatch(self.host)) or not ("*" in label or "?" in label)

    def matches(self, scheme: str, host: str, port: int) -> bool:
        """``host`` as can_ada writes it, without a dot at its end."""
        return (
            self.scheme in (None, scheme)
            and (port == DEFAULT_PORTS.get(scheme) if self.port is None else self.port in (0, port))
            and self._host.fullmatch(host) is not None
        )

    @cached_property
    def _host(self) -> re.Pattern[str]:
        # An address can only be followed by more of an address: 10.1.* is not 10.1.example.
        any_one = "[0-9.]" if _ADDRESS.fullmatch(self.host) else "."
        wild = {"*": f"{any_one}*", "?": any_one}
        return re.compile("".join(wild.get(char) or re.escape(char) for char in self.host))

    def __str__(self) -> str:
        scheme = f"{self.scheme}://" if self.scheme else ""
        port = "" if self.port is None else ":*" if self.port == 0 else f":{self.port}"
        return f"{scheme}{self.host}{port}"
