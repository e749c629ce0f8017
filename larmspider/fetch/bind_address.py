"""meta["bindaddress"] and DOWNLOAD_BIND_ADDRESS as libcurl options: where connections come from."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import pycurl

from larmspider.errors import ConfigError
from larmspider.fetch import errors

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from larmspider.fetch.transfer import Transfer

ACCEPTED = "an IP address, or one and a port as in ('10.0.0.7', 0)"


def bind_address_from(settings: BaseSettings) -> tuple[str, int] | None:
    """DOWNLOAD_BIND_ADDRESS; None: any. Raises ConfigError."""
    value = settings.get("DOWNLOAD_BIND_ADDRESS")
    if not value:
        return None
    try:
        return read_bind_address(value)
    except (ValueError, TypeError):
        raise ConfigError(f"DOWNLOAD_BIND_ADDRESS={value} is not accepted: {ACCEPTED} is") from None


def read_bind_address(value: Any) -> tuple[str, int]:
    """``value``: an address, or an address and a port (0: any), as Scrapy takes them. ValueError:
    it is neither; a name would be looked up while everything waits."""
    host, port = (value, 0) if isinstance(value, str) else value
    if not isinstance(host, str) or isinstance(port, bool) or not isinstance(port, int):
        raise ValueError
    if not 0 <= port < 65_536:
        raise ValueError
    ip_address(host)
    return host, port


def apply_bind_address(transfer: Transfer, value: Any) -> None:
    """``value`` as read_bind_address() takes it. Raises BadUrl."""
    try:
        host, port = read_bind_address(value)
    except (ValueError, TypeError):
        raise errors.BadUrl(f"no bindaddress: {ACCEPTED} is accepted") from None
    transfer.dirty = True
    transfer.curl.setopt(pycurl.INTERFACE, f"host!{host}")
    if port:
        transfer.curl.setopt(pycurl.LOCALPORT, port)
