"""Makes the Scrapy Response of a finished transfer, as Scrapy's own handlers do, and its timing.

The class is chosen by content type, and where that says nothing by name and body; the choice by
content type is remembered (6 us less a page).
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING

import pycurl
from scrapy.http import Response
from scrapy.responsetypes import responsetypes

from larmspider.requests import TIMING, VALIDATORS

if TYPE_CHECKING:
    from scrapy import Request

    from larmspider.fetch.response_head import ResponseHead
    from larmspider.fetch.transfer import Transfer


_VALIDATORS = ((b"Etag", "If-None-Match"), (b"Last-Modified", "If-Modified-Since"))


def response_of(transfer: Transfer, request: Request, flags: list[str]) -> Response:
    """Raises BadResponse where the head is none."""
    head = transfer.finish_head()
    body = transfer.body
    url = request.url
    if "#" in url:
        url = url.partition("#")[0]
    address = transfer.curl.getinfo(pycurl.PRIMARY_IP)
    response = _class_of(head, url, body)(
        url,
        head.status,
        body=body,
        flags=flags,
        ip_address=_ip_address(address) if address else None,
        protocol=head.protocol,
    )
    response.headers = head.headers
    request.meta[VALIDATORS] = {
        name: values[-1]
        for source, name in _VALIDATORS
        if (values := dict.get(head.headers, source))
    }
    return response


def set_timing(transfer: Transfer, request: Request, waited: float = 0.0) -> None:
    """download_latency as Scrapy has it, until the answer begins, and all steps as TIMING.

    ``waited``: for the addresses of names, before libcurl began.
    """

    def later(seconds: float) -> float:
        return waited + seconds if seconds else seconds  # 0.0: it never came to that

    info = transfer.curl.getinfo
    first_byte = later(info(pycurl.STARTTRANSFER_TIME))
    meta = request.meta
    meta["download_latency"] = first_byte
    meta[TIMING] = {
        "dns": waited + info(pycurl.NAMELOOKUP_TIME),
        "connect": later(info(pycurl.CONNECT_TIME)),
        "tls": later(info(pycurl.APPCONNECT_TIME)),
        "first_byte": first_byte,
        "total": later(info(pycurl.TOTAL_TIME)),
    }


def _class_of(head: ResponseHead, url: str, body: bytes) -> type[Response]:
    types = dict.get(head.headers, b"Content-Type")
    if types and not dict.__contains__(head.headers, b"Content-Encoding"):
        cls = _class_of_type(types[-1])
        if cls is not Response:
            return cls
    return responsetypes.from_args(headers=head.headers, url=url, body=body)


@lru_cache(256)
def _class_of_type(content_type: bytes) -> type[Response]:
    return responsetypes.from_content_type(content_type)


@lru_cache(4096)
def _ip_address(text: str) -> IPv4Address | IPv6Address:
    return ip_address(text)
