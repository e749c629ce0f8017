"""Requests and what the frontier keeps of them.

A page's Request is made anew from a few fields when its turn comes. A foreign spider's Request
(callback, method, headers, body, meta, ...) is kept whole, as msgpack, so that it survives a
restart; never by pickle, so one whose meta holds anything but plain data cannot be kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgpack
from scrapy import Request
from scrapy.utils.request import request_from_dict

if TYPE_CHECKING:
    from scrapy import Spider

LEASE = "larm_lease"
"""Request.meta: the frontier's lease, from next_request() until the URL has its final state."""
REQUEUED = "larm_requeued"
"""Request.meta: the lease was given back, so that Scrapy need not schedule the Request again."""
SAME_PAGE = "larm_same_page"
"""Request.meta: a redirect led from one spelling of a page to another; fetched although known."""
_RUNTIME = (LEASE, REQUEUED, "download_started", "download_latency", "download_slot")


def page_request(
    spider: Spider,
    url: str,
    *,
    normalized: str | None = None,
    from_page: str = "",
    link_type: int = 0,
    depth: int = 0,
    redirects: int = 0,
) -> Request:
    """The Request for one page. Its meta carries what the Page will need to know of its origin.

    Every status is a Page, so Scrapy follows no redirect of it and drops no error. Breadth first
    under Scrapy's own scheduler too: the deeper, the later.
    """
    meta = {
        "normalized": normalized,
        "from_page": from_page,
        "link_type": link_type,
        "depth": depth,
        "redirects": redirects,
        "dont_redirect": True,
        "handle_httpstatus_all": True,
    }
    errback = getattr(spider, "fetch_failed", None)
    return Request(url, errback=errback, meta=meta, priority=-depth)


def is_page_request(request: Request, spider: Spider) -> bool:
    """Whether page_request() could make it again from the frontier's fields alone."""
    return (
        request.callback is None
        and request.method == "GET"
        and not request.body
        and not request.headers
        and not request.cookies
        and not request.cb_kwargs
        and not request.dont_filter
        and "from_page" in request.meta
        and request.errback == getattr(spider, "fetch_failed", None)
    )


def pack_request(request: Request, spider: Spider) -> bytes:
    """The whole Request. Raises ValueError, saying why, for one that cannot be kept."""
    data = request.to_dict(spider=spider)  # ValueError: a callback that is no method of the spider
    data["meta"] = {name: value for name, value in request.meta.items() if name not in _RUNTIME}
    try:
        packed: bytes = msgpack.packb(data, strict_types=True)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"it holds what is no plain data: {error}") from None
    return packed


def unpack_request(payload: bytes, spider: Spider) -> Request:
    """The reverse. Raises ValueError where the spider lacks a method that it names."""
    data: dict[str, Any] = msgpack.unpackb(payload, strict_map_key=False)
    try:
        return request_from_dict(data, spider=spider)
    except (AttributeError, TypeError, KeyError) as error:
        raise ValueError(str(error)) from None
