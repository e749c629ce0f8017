"""meta["bindaddress"] and DOWNLOAD_BIND_ADDRESS as libcurl options: where connections come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pycurl

if TYPE_CHECKING:
    from larmspider.fetch.transfer import Transfer


def apply_bind_address(transfer: Transfer, value: Any) -> None:
    """``value``: an address, or an address and a port (0: any), as Scrapy takes them."""
    host, port = (value, 0) if isinstance(value, str) else value
    transfer.dirty = True
    transfer.curl.setopt(pycurl.INTERFACE, f"host!{host}")
    if port:
        transfer.curl.setopt(pycurl.LOCALPORT, int(port))
