"""Schemes of the sources that are no web sites. Each has a connector (fetch/connector.py).

>>> scheme_of("smb://nas/share/plan.odt").port
445

``file://`` is one of them in everything but its host: all files have the host ``file://``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scheme:
    """``smb://server:port/share/folder/file``: the path of a folder ends in a slash.

    ``folds_case``: names that differ in case alone are one document.
    """

    name: str
    port: int
    folds_case: bool = False
    has_tls: bool = False


WEB_PORTS = {"http": 80, "https": 443}
DEFAULT_PORTS = dict(WEB_PORTS)
"""Default ports by scheme; other schemes are not fetched from a server."""
CONNECTED: dict[str, Scheme] = {}
"""All schemes with a server, by name."""
PORTS = {f"{name}:": f":{port}" for name, port in WEB_PORTS.items()}
"""The end of a host's name in the frontier, by the beginning of a URL."""


def register(scheme: Scheme) -> None:
    """Make the URLs of a connector known; a scheme may be registered again."""
    CONNECTED[scheme.name] = scheme
    DEFAULT_PORTS[scheme.name] = scheme.port
    PORTS[f"{scheme.name}:"] = f":{scheme.port}"


for _scheme in (Scheme("smb", 445, folds_case=True), Scheme("imaps", 993, has_tls=True)):
    register(_scheme)


def has_tls(scheme: str) -> bool:
    """Whether the server shows a certificate."""
    return scheme == "https" or (scheme in CONNECTED and CONNECTED[scheme].has_tls)


def scheme_of(url: str) -> Scheme | None:
    """The scheme of a URL with a connector and a server; None for web sites and local files."""
    return CONNECTED.get(url.partition("://")[0].lower()) if "://" in url else None


def is_source(url: str) -> bool:
    """Whether ``url``, in canonical form or as it is fetched, belongs to a source that is no web
    site: a file of this machine, or a URL with a connector."""
    return url.startswith("file:") or url.partition("://")[0] in CONNECTED


def is_source_folder(url: str) -> bool:
    """Whether ``url`` names a folder of a source, or a part of its list."""
    return is_source(url) and url.partition("?")[0].endswith("/")


def is_same_source(url: str, other: str) -> bool:
    """Whether both URLs have the same scheme, of a source that is no web site."""
    return is_source(url) and url.partition(":")[0] == other.partition(":")[0]
