"""Scrapy's download handler for http and https, on libcurl.

    DOWNLOAD_HANDLERS = {
        "http": "larmspider.fetch.curl_handler.CurlHandler",
        "https": "larmspider.fetch.curl_handler.CurlHandler",
    }

One crawl has one handler, for both schemes, with one multi handle (curl_loop.py). It follows no
redirect and keeps no cookies: middlewares and the frontier do that. It obeys a Request's method,
body, headers and meta: proxy, bindaddress, download_timeout, download_maxsize,
download_warnsize, download_fail_on_dataloss. larm_cut_bytes ends the body after this number of
bytes as if it were whole. Response.certificate is None. errors.py has the possible errors.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, ClassVar, Self
from weakref import WeakKeyDictionary

import pycurl
from scrapy.exceptions import NotConfigured, ResponseDataLossError
from scrapy.utils.asyncio import is_asyncio_available

from larmspider import options
from larmspider.fetch import errors
from larmspider.fetch.blobs import folder_of
from larmspider.fetch.curl_loop import CurlLoop, send_gate_of
from larmspider.fetch.curl_options import (
    apply_bind_address,
    apply_request,
    bind_address_from,
    set_option,
    setup_from_settings,
    url_for_curl,
)
from larmspider.fetch.deny_addresses import DenyAddresses
from larmspider.fetch.dns import DnsCache, names_needed, resolve_line
from larmspider.fetch.downloader import Listeners
from larmspider.fetch.limits import LONGEST_MS, Limits
from larmspider.fetch.proxies import apply_proxy, check_target
from larmspider.fetch.sites.curl import apply_site
from larmspider.fetch.sites.lookup import Sites
from larmspider.fetch.sites.session import Sessions
from larmspider.fetch.transfer import Transfer, response_of, set_timing
from larmspider.requests import BLOB, LEASE, TIMING, TOO_LARGE, WITHOUT_SECRETS, is_of_page

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from larmspider.fetch.sites.model import Site

logger = logging.getLogger(__name__)


# libcurl's result codes, as in curl.h of libcurl 8

_TOO_LARGE = 100  # CURLE_TOO_LARGE
_TLS = frozenset(
    {
        pycurl.E_SSL_CONNECT_ERROR,
        pycurl.E_SSL_ENGINE_NOTFOUND,
        pycurl.E_SSL_ENGINE_SETFAILED,
        pycurl.E_SSL_CERTPROBLEM,
        pycurl.E_SSL_CIPHER,
        pycurl.E_PEER_FAILED_VERIFICATION,
        pycurl.E_USE_SSL_FAILED,
        pycurl.E_SSL_ENGINE_INITFAILED,
        pycurl.E_SSL_CACERT_BADFILE,
        pycurl.E_SSL_SHUTDOWN_FAILED,
        pycurl.E_SSL_CRL_BADFILE,
        pycurl.E_SSL_ISSUER_ERROR,
        pycurl.E_SSL_PINNEDPUBKEYNOTMATCH,
        pycurl.E_SSL_INVALIDCERTSTATUS,
    }
)
_CLASSES: dict[int, type[Exception]] = {
    pycurl.E_UNSUPPORTED_PROTOCOL: errors.BadResponse,  # HTTP/0.9, HTTP/7
    pycurl.E_URL_MALFORMAT: errors.BadUrl,
    pycurl.E_COULDNT_RESOLVE_PROXY: errors.Unresolved,
    pycurl.E_COULDNT_RESOLVE_HOST: errors.Unresolved,
    pycurl.E_COULDNT_CONNECT: errors.Refused,
    pycurl.E_FTP_WEIRD_SERVER_REPLY: errors.BadResponse,  # CURLE_WEIRD_SERVER_REPLY
    pycurl.E_HTTP2: errors.BadResponse,
    92: errors.BadResponse,  # CURLE_HTTP2_STREAM
    pycurl.E_PARTIAL_FILE: errors.CutShort,
    pycurl.E_GOT_NOTHING: errors.ConnectionLost,
    pycurl.E_SEND_ERROR: errors.ConnectionLost,
    pycurl.E_RECV_ERROR: errors.ConnectionLost,
    pycurl.E_INTERFACE_FAILED: errors.Refused,
    97: errors.Refused,  # CURLE_PROXY
}


def error_of(
    code: int, words: str, limits: Limits, *, total_secs: float, elapsed: float, began: bool
) -> Exception:
    """The error for a result code, with libcurl's ``words`` where they name no more than host, port
    and cause. ``began``: the body was under way."""
    if code == pycurl.E_OPERATION_TIMEDOUT:
        return _timeout(words, limits, total_secs, elapsed)
    if code == pycurl.E_FILESIZE_EXCEEDED:
        return errors.TooBig("larger than the limit (DOWNLOAD_MAXSIZE)")
    if code == _TOO_LARGE or (code == pycurl.E_RECV_ERROR and "response headers" in words):
        words = words or "a header line over libcurl's limit of 100 KB"
        return errors.TooBig(f"{words} (LARM_HEADER_BYTES, LARM_HEADER_LINES)")
    if code in _TLS:
        return errors.TlsFailed(words or "no TLS connection")
    if words.startswith("CONNECT tunnel failed"):  # the proxy's status is in the words
        return errors.Refused(words)
    if code == pycurl.E_RECV_ERROR and "chunk" in words:
        return errors.BadBody(words)
    if code == pycurl.E_RECV_ERROR and began:
        return errors.CutShort(words)
    cls = _CLASSES.get(code, errors.BadResponse)
    return cls(words or pycurl.easy_strerror(code))


def _timeout(words: str, limits: Limits, total_secs: float, elapsed: float) -> Exception:
    if words.startswith("Operation too slow"):
        return errors.TooSlow(
            f"less than {limits.low_speed_bytes} bytes/s for {limits.low_speed_secs} s"
            " (LARM_LOW_SPEED_BYTES, LARM_LOW_SPEED_SECS)"
        )
    if elapsed < total_secs - 0.05:
        return errors.TimedOut(
            f"no connection within {limits.connect_secs:g} s (LARM_CONNECT_TIMEOUT_SECS)"
        )
    return errors.TimedOut(f"took longer than {total_secs:g} s (DOWNLOAD_TIMEOUT)")


class CurlHandler:
    """DOWNLOAD_HANDLERS. Raises NotConfigured where Scrapy does not run on asyncio."""

    lazy = False
    _of_crawler: ClassVar[WeakKeyDictionary[Crawler, CurlHandler]] = WeakKeyDictionary()

    def __init__(self, crawler: Crawler) -> None:
        if not is_asyncio_available():
            raise NotConfigured(
                "larmspider fetches on the asyncio event loop: set TWISTED_REACTOR to"
                " twisted.internet.asyncioreactor.AsyncioSelectorReactor, Scrapy's default"
            )
        settings = crawler.settings
        self._crawler = crawler
        self.limits = Limits.from_settings(settings)
        self._blobs = folder_of(settings, self.limits)
        self.deny = DenyAddresses.from_settings(settings)
        self.sites = Sites.for_fetching(settings)
        self.sessions = Sessions.from_crawler(crawler, self.sites)
        self.dns = DnsCache.from_crawler(crawler)
        self._setup = setup_from_settings(settings, self.limits)
        self._decode = options.scrapys_boolean(settings, "COMPRESSION_ENABLED")
        self._fail_on_dataloss = options.scrapys_boolean(settings, "DOWNLOAD_FAIL_ON_DATALOSS")
        self._bind = bind_address_from(settings)
        self._listeners = Listeners(crawler)
        self._idle: list[Transfer] = []
        self._loop: CurlLoop | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """One handler for both schemes."""
        handler = cls._of_crawler.get(crawler)
        if not isinstance(handler, cls):
            handler = cls._of_crawler[crawler] = cls(crawler)
        return handler

    async def download_request(self, request: Request) -> Response:
        """Raises an error with a kind (errors.py), or StopDownload(fail=True)."""
        if self._loop is None:
            self._loop = CurlLoop(self.limits.kept_connections, send_gate_of(self._crawler))
        site = self.sites.for_url(request.url, secrets=WITHOUT_SECRETS not in request.meta)
        url = url_for_curl(request.url)
        total = self.limits.total_of(request)
        lines, waited = await self._look_up(url, _proxy_of(request, site), total)
        session = None if site is None else self.sessions.of_site(site)
        transfer = self._take(site)
        try:
            self._prepare(transfer, request, site, lines, total - waited, waited)
            if session is not None and (lease := request.meta.get(LEASE)) is not None:
                lease.proof = session.proof
            try:
                code, words = await self._loop.start(transfer.curl)
            except asyncio.CancelledError:
                self._loop.cancel(transfer.curl)
                raise
            set_timing(transfer, request, waited)
            response = self._answer(transfer, request, code, words, total)
            if session is not None:
                session.take_cookies(response, request.url)
            return response
        except BaseException:
            transfer.dirty = True
            raise
        finally:
            transfer.end()
            self._idle.append(transfer)

    async def close(self) -> None:
        """Called once for each scheme."""
        if self._loop is not None:
            self._loop.close()  # before its handles
        self.dns.close()
        self._idle.clear()
        self._of_crawler.pop(self._crawler, None)  # a handler holds its crawler

    async def _look_up(self, url: str, proxy: str | None, total: float) -> tuple[list[str], float]:
        """Lines for RESOLVE and the seconds it took. Raises BadUrl, Unresolved, TimedOut."""
        lines, waited = [], 0.0
        for endpoint in names_needed(url, proxy):
            found = self.dns.known(endpoint.name)
            if found is None:
                began = time.monotonic()
                future = asyncio.shield(self.dns.look_up(endpoint.name))
                try:
                    found = await asyncio.wait_for(future, total - waited)
                except TimeoutError:
                    raise errors.TimedOut(
                        f"took longer than {total:g} s (DOWNLOAD_TIMEOUT)"
                    ) from None
                waited += time.monotonic() - began
            if not found.addresses:
                raise errors.Unresolved(found.problem)
            lines.append(resolve_line(endpoint, found.addresses))
        return lines, waited

    def _take(self, site: Site | None) -> Transfer:
        """An idle handle, preferably one that served this site before (it may know the server's
        nonce), or a new handle."""
        idle = self._idle
        for index in range(len(idle) - 1, -1, -1):
            if idle[index].site is site:
                return idle.pop(index)
        transfer = (
            idle.pop()
            if idle
            else Transfer(self.limits, self.deny, self._setup, decode=self._decode)
        )
        transfer.dirty = True
        transfer.site = site
        return transfer

    def _prepare(
        self,
        transfer: Transfer,
        request: Request,
        site: Site | None,
        addresses: list[str],
        total: float,
        waited: float,
    ) -> None:
        """Set every option. ``total`` seconds are left, ``waited`` were spent on look-ups."""
        meta, limits = request.meta, self.limits
        max_bytes = int(meta.get("download_maxsize", limits.max_bytes) or 0)
        document_bytes = max_bytes if "download_maxsize" in meta else limits.document_bytes
        blobs = self._blobs if is_of_page(request) else None
        # the site's proxy replaces a proxy of the environment, but not the request's own
        own_proxy = _has_own_proxy(request)
        if own_proxy:
            transfer.dirty = True  # the handle may know the site's proxy, and its password
        transfer.begin(request, max_bytes, document_bytes, *self._listeners.now(), blobs)
        apply_request(transfer, request)
        if addresses:  # for each fetch, because libcurl forgets them after a while
            transfer.curl.setopt(pycurl.RESOLVE, addresses)
        set_option(transfer, pycurl.TIMEOUT_MS, int(min(max(1, total * 1000), LONGEST_MS)))
        if waited:
            transfer.dirty = True
            left = max(1, (limits.connect_secs - waited) * 1000)
            transfer.curl.setopt(pycurl.CONNECTTIMEOUT_MS, int(min(left, LONGEST_MS)))
        if WITHOUT_SECRETS in meta and self._has_doors(request.url):
            # a connection opened by Negotiate or NTLM keeps the rights of its user
            transfer.dirty = True
            transfer.curl.setopt(pycurl.FRESH_CONNECT, 1)
            transfer.curl.setopt(pycurl.FORBID_REUSE, 1)
        # the Content-Length of a HEAD describes a body that does not come
        largest = document_bytes if blobs is None else limits.blob_bytes
        set_option(transfer, pycurl.MAXFILESIZE_LARGE, 0 if transfer.no_body else largest)
        bind = meta.get("bindaddress") or self._bind
        if bind:
            apply_bind_address(transfer, bind)
        if meta.get("proxy"):
            transfer.dirty = True
            check_target(self.deny, request.url)
            apply_proxy(transfer.curl, request)
        if site is not None:
            headers = transfer.set.pop(pycurl.HTTPHEADER)  # the site's are among them now
            if site.options.proxy is not None and not own_proxy:
                check_target(self.deny, request.url)
            session = self.sessions.of_site(site)
            cookies = b"" if session is None else session.cookies_for(request.url)
            if cookies:
                headers = [*headers, b"Cookie: " + cookies]
            apply_site(transfer.curl, site, request.url, headers, proxy=not own_proxy)

    def _has_doors(self, url: str) -> bool:
        """Whether other requests for this host carry credentials."""
        site = self.sites.for_url(url)
        return site is not None and site.options.sends_credentials

    def _answer(
        self, transfer: Transfer, request: Request, code: int, words: str, total: float
    ) -> Response:
        flags: list[str] = []
        failed = transfer.stop is None and (code or transfer.error is not None)
        if failed and transfer.redirects():
            transfer.drop_body()  # a redirect counts without it
            flags.append("dataloss")
        elif failed:
            error = transfer.error or self._error(transfer, request, code, words, total)
            if isinstance(error, errors.TooBig) and transfer.is_document():
                transfer.drop_body()  # it is stored without it
                flags.append(TOO_LARGE)
            elif transfer.error is not None:
                raise error
            else:
                self._unless_dataloss(error, request, transfer)
                flags.append("dataloss")
        response = response_of(transfer, request, flags)
        stop = transfer.stop  # set by response_of() for a head without a body
        if stop is not None:
            response.flags.append("download_stopped")
        self._warn_if_large(transfer, request)
        if stop is not None and stop.fail:
            stop.response = response
            raise stop
        return response

    def _error(
        self, transfer: Transfer, request: Request, code: int, words: str, total: float
    ) -> Exception:
        if transfer.denied and not transfer.opened:
            return errors.DeniedAddress(f"{transfer.denied} (LARM_DENY_ADDRESSES)")
        if code == pycurl.E_FILESIZE_EXCEEDED and transfer.blobs is not None:
            return errors.TooBig("larger than the limit (LARM_BLOB_BYTES)")
        elapsed = request.meta[TIMING]["total"]
        began = transfer.head is not None
        return error_of(code, words, self.limits, total_secs=total, elapsed=elapsed, began=began)

    def _unless_dataloss(self, error: Exception, request: Request, transfer: Transfer) -> None:
        """Raise ``error``, unless a part of the body is there and Scrapy's setting wants it."""
        fail = request.meta.get("download_fail_on_dataloss", self._fail_on_dataloss)
        if fail or not isinstance(error, ResponseDataLossError) or transfer.head is None:
            raise error

    def _warn_if_large(self, transfer: Transfer, request: Request) -> None:
        limit = request.meta.get("download_warnsize", self.limits.warn_bytes)
        if limit and transfer.size > limit and BLOB not in request.meta:
            url = url_for_curl(request.url)
            logger.warning("%s has %d bytes (DOWNLOAD_WARNSIZE)", url, transfer.size)


def _has_own_proxy(request: Request) -> bool:
    """Whether the Request names a proxy, beyond the environment's proxy (HttpProxyMiddleware)."""
    return "proxy" in request.meta and "_scheme_proxy" not in request.meta


def _proxy_of(request: Request, site: Site | None) -> str | None:
    """The proxy that will be used."""
    if site is not None and site.options.proxy is not None and not _has_own_proxy(request):
        return site.options.proxy.url
    proxy = request.meta.get("proxy")
    return None if proxy is None else str(proxy)
