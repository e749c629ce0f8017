"""Requests, and their form in the frontier.

The Request of a page is rebuilt from a few fields when its turn comes. A foreign spider's Request
(callback, method, headers, body, meta, ...) is kept whole, as msgpack, so that it survives a
restart; never as pickle, so its meta may hold plain data only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgpack
from scrapy import Request
from scrapy.utils.request import request_from_dict

from larmspider.items import REDIRECT

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.http import Response

    from larmspider.items import Link, Page

LEASE = "larm_lease"
"""Request.meta: the frontier's lease, from next_request() until it ends (scheduler/leases.py)."""
SAME_PAGE = "larm_same_page"
"""Request.meta: a redirect led from one spelling of a page to another; fetched although known."""
URL = "larm_url"
"""Request.meta: the URL to which larmspider's other fields belong. A spider that makes a Request
with ``meta=response.meta`` passes them on to another URL, for which they mean nothing."""
SEED = "larm_seed"
"""Request.meta: a seed. Scrapy marks seeds dont_filter; even so a later run of the same crawl does
not fetch them again."""
TIMING = "larm_timing"
"""Request.meta, after the fetch: seconds from its start until each step was done (dns, connect,
tls, first_byte, total), 0.0 for steps that were not needed, as on a reused connection."""
VALIDATORS = "larm_validators"
"""Request.meta, after the fetch: headers that make the next request for this URL a conditional one
(RFC 9110 13.1), If-None-Match and If-Modified-Since; empty where the response allows none."""
TOO_LARGE = "larm_too_large"
"""A flag of a Response: a document whose body was dropped because it is larger than allowed."""
BLOB = "larm_blob"
"""Request.meta, after the fetch: the body, if it is too large for memory (fetch/blobs.py)."""
CUT_BYTES = "larm_cut_bytes"
"""Request.meta: the number of bytes after which the body is cut, as if it were whole."""
WITHOUT_SECRETS = "larm_without_secrets"
"""Request.meta: credentials, cookies, headers and client certificates of the sites file are not
sent, nor are Authorization and Cookie from any other source."""
NOTHING_SECRET = {WITHOUT_SECRETS: True, "dont_merge_cookies": True, "dont_cache": True}
"""Request.meta for a URL that another origin has named: the request has nothing that identifies us.
Its cookies are not kept (COOKIES_ENABLED), and its answer serves no other request
(HTTPCACHE_ENABLED)."""
_RUNTIME = (
    LEASE,
    SEED,
    BLOB,
    TIMING,
    VALIDATORS,
    "download_started",
    "download_latency",
    "download_slot",
)
_VERBATIM = "verbatim_url"
"""Request.meta: Scrapy takes the URL as it is. Escaping it is half of the cost of a Request."""
_IS_ESCAPED = re.compile(
    r"https?://[a-z0-9.-]+(?::(?:[1-5][0-9]{4}|[1-9][0-9]{0,3}))?/[A-Za-z0-9%/._~!$&()*+,;=:@-]*+"
    r"(?:\?[A-Za-z0-9%/._~!$&()*+,;=:@?-]++)?"
).fullmatch
"""Matches URLs that Scrapy's escaping does not change; it misses some of them."""
MAX_NUMBER = 0xFFFF
"""The largest depth and number of redirects in the frontier."""
_MAX = {"link_type": 0xFF, "depth": MAX_NUMBER, "redirects": MAX_NUMBER}
_PAGE_META = frozenset(
    (
        "normalized",
        "exact",
        "from_page",
        "link_type",
        "depth",
        "redirects",
        SAME_PAGE,
        URL,
        *_RUNTIME,
    )
) | {"dont_redirect", "handle_httpstatus_all"}


def page_request(
    spider: Spider,
    url: str,
    *,
    normalized: str | None = None,
    exact: str | None = None,
    from_page: str = "",
    link_type: int = 0,
    depth: int = 0,
    redirects: int = 0,
) -> Request:
    """The Request for one page, with the origin of the Page in its meta.

    Every status is a Page, so Scrapy follows no redirect of it and drops no error. Breadth first
    under Scrapy's own scheduler too: the deeper, the later.
    """
    meta = {
        "normalized": normalized,
        "exact": exact,
        "from_page": from_page,
        "link_type": link_type,
        "depth": depth,
        "redirects": redirects,
        "dont_redirect": True,
        "handle_httpstatus_all": True,
    }
    errback = getattr(spider, "fetch_failed", None)
    if _IS_ESCAPED(url):
        meta[_VERBATIM] = True
    request = Request(url, errback=errback, meta=meta, priority=-depth)
    request.meta.pop(_VERBATIM, None)  # another URL may take its place
    request.meta[URL] = request.url  # in Scrapy's spelling
    return request


def link_request(spider: Spider, link: Link, page: Page) -> Request:
    """The Request for a link of a page."""
    redirect = link.type == REDIRECT
    request = page_request(
        spider,
        link.url,
        normalized=link.normalized,
        exact=link.exact,
        from_page=page.url,
        link_type=link.type,
        depth=page.depth if redirect else page.depth + 1,
        redirects=page.redirects + 1 if redirect else 0,
    )
    if redirect and (link.exact or link.normalized) == (page.exact or page.normalized):
        request.meta[SAME_PAGE] = True
    return request


def origin_of(request: Request) -> dict[str, Any]:
    """Where the page was found, as keywords of Frontier.entry(). Values of other types, which a
    spider may keep in Request.meta under the same names, are left out."""
    found: dict[str, Any] = {}
    for name, most in _MAX.items():
        number = request.meta.get(name)
        if isinstance(number, int) and 0 <= number <= most:
            found[name] = int(number)
    if isinstance(from_page := request.meta.get("from_page"), str):
        found["from_page"] = from_page
    return found


def normalized_of(request: Request, forms: Callable[[str], tuple[str, str]]) -> str:
    """The canonical form of the URL, kept in Request.meta["normalized"]; the exact form is in
    "exact". Raises InvalidURL.

    Fields in the meta that belong to another URL are removed, except the depth, which continues.
    """
    meta = request.meta
    if meta.get(URL) != request.url:
        if URL in meta and "from_page" in meta:  # page_request() set these
            meta.pop("dont_redirect", None)
            meta.pop("handle_httpstatus_all", None)
        if URL in meta:
            for name in ("from_page", "link_type", "redirects", SAME_PAGE):
                meta.pop(name, None)
        meta["normalized"] = None
        meta[URL] = request.url
    if meta.get("normalized") is None or meta.get("exact") is None:
        meta["normalized"], meta["exact"] = forms(request.url)
    normalized: str = meta["normalized"]
    return normalized


def count_depth(request: Request, response: Response) -> None:
    """Set Request.meta["depth"] to the depth of ``response`` plus one, unless page_request() has
    set it: a redirect is not a step."""
    meta = request.meta
    if meta.get(URL) != request.url or meta.get("from_page") != response.url:
        parent = {} if response.request is None else origin_of(response.request)
        meta["depth"] = min(parent.get("depth", 0) + 1, MAX_NUMBER)


def is_page_request(request: Request, spider: Spider) -> bool:
    """Whether page_request() can rebuild ``request`` from the frontier's fields."""
    return (
        request.callback is None
        and request.method == "GET"
        and not request.body
        and not request.headers
        and not request.cookies
        and not request.cb_kwargs
        and not request.dont_filter
        and isinstance(request.meta.get("from_page"), str)
        and request.meta.get("handle_httpstatus_all") is True
        and request.meta.get(URL) == request.url
        and request.meta.keys() <= _PAGE_META
        and request.errback == getattr(spider, "fetch_failed", None)
    )


def is_of_page(request: Request) -> bool:
    """Whether page_request() made it: the response becomes a Page of any size."""
    return request.method == "GET" and "from_page" in request.meta


def pack_request(request: Request, spider: Spider) -> bytes:
    """The whole Request as msgpack. Raises ValueError, with the reason, if it cannot be kept."""
    data = request.to_dict(spider=spider)  # ValueError: the callback is not a method of the spider
    meta = {name: value for name, value in request.meta.items() if name not in _RUNTIME}
    if isinstance(meta.get("bindaddress"), tuple):
        meta["bindaddress"] = list(meta["bindaddress"])  # Scrapy's (host, port)
    data["meta"] = meta
    try:
        packed: bytes = msgpack.packb(data, strict_types=True)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"not plain data: {error}") from None
    return packed


def unpack_request(payload: bytes, spider: Spider) -> Request:
    """Undo pack_request(). Raises ValueError if the spider lacks a method that is named."""
    data: dict[str, Any] = msgpack.unpackb(payload, strict_map_key=False)
    try:
        return request_from_dict(data, spider=spider)
    except (AttributeError, TypeError, KeyError) as error:
        raise ValueError(str(error)) from None
