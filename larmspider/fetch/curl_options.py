"""The libcurl options that are the same for every fetch of a crawl."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import can_ada
import pycurl

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.fetch import errors
from larmspider.fetch.decoding import ACCEPTED
from larmspider.fetch.limits import LONGEST_MS, Limits
from larmspider.requests import WITHOUT_SECRETS

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.settings import BaseSettings

    from larmspider.fetch.transfer import Transfer


_BITS = {"negotiate": pycurl.VERSION_SPNEGO, "ntlm": pycurl.VERSION_NTLM}
"""Methods of authentication that a libcurl may lack, and their feature bits."""


def check_method(method: str, where: str, features: int | None = None) -> None:
    """Raise ConfigError if libcurl lacks ``method`` (Credentials.method), so that a crawl fails at
    its start. ``features`` are feature bits (curl_version_info), by default libcurl's own."""
    version = pycurl.version_info()
    needed = _BITS.get(method, 0)
    if needed and not (version[4] if features is None else features) & needed:
        raise ConfigError(
            f"{where} = {method!r} is not possible: the libcurl in use ({version[1]}) is built"
            f" without it; `curl -V` lists the features of another one, against which pycurl can be"
            " built from source"
        )


_ACCEPT_ENCODING = b"Accept-Encoding: " + ACCEPTED.encode()
_NOT_OURS = frozenset({b"Proxy-Authorization", b"Content-Length"})
"""Headers of a Request that are for the proxy, or that libcurl makes."""
_SECRET = frozenset({b"Authorization", b"Cookie", b"Cookie2"})
"""Headers that a Request without secrets may not have. Scrapy's own middlewares add them
(http_user, COOKIES_ENABLED)."""

_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
"""Methods that have a body, were it empty."""
_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods that may be sent twice (RFC 9110 9.2.1)."""
_BREAK = re.compile(rb"[\r\n\0]")
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110 5.6.2."""
_PLAIN = re.compile(r"https?://[!\"$-.0-9:;<=>A-~]+(?:[/?][!\"$-~]*)?")
"""Printable ASCII, neither userinfo nor fragment."""


def set_option(transfer: Transfer, option: int, value: Any) -> None:
    """Set an option that does not have this value from the fetch before."""
    if transfer.set.get(option) != value:
        transfer.set[option] = value
        transfer.curl.setopt(option, value)


def apply_request(transfer: Transfer, request: Request) -> None:
    """Set URL, method, headers and body, and remove libcurl's own headers. Raises BadUrl for a
    request that cannot be sent."""
    curl, method, body = transfer.curl, request.method, request.body
    curl.setopt(pycurl.URL, url_for_curl(request.url))
    if method != "GET" or body:
        _set_method(transfer, method, body)
    transfer.sent = header_lines(request, decode=transfer.decode)
    set_option(transfer, pycurl.HTTPHEADER, transfer.sent)


def _set_method(transfer: Transfer, method: str, body: bytes) -> None:
    curl = transfer.curl
    transfer.dirty = True
    if method == "HEAD":
        curl.setopt(pycurl.NOBODY, 1)
        return
    if method not in _SAFE:
        # libcurl repeats a request by itself if a kept connection does not answer
        curl.setopt(pycurl.FRESH_CONNECT, 1)
    if body or method in _WITH_BODY:
        curl.setopt(pycurl.POST, 1)
        curl.setopt(pycurl.POSTFIELDS, body)
    if not method.isascii() or not method.isprintable() or " " in method:
        raise errors.BadUrl(f"{method[:20]!r} is not a method")
    curl.setopt(pycurl.CUSTOMREQUEST, method)


def header_lines(request: Request, *, decode: bool) -> list[bytes]:
    """Lines for HTTPHEADER: ``Name:`` turns off libcurl's own header, ``Name;`` has an empty value.
    Raises BadUrl for a line break inside a header and a name that is not a token. Requests share
    the returned list."""
    headers = tuple([(name, tuple(values)) for name, values in dict.items(request.headers)])
    if WITHOUT_SECRETS in request.meta:
        headers = tuple([one for one in headers if one[0] not in _SECRET])
    has_body = bool(request.body) or request.method in _WITH_BODY
    return _header_lines(headers, has_body, decode)


@lru_cache(16)  # most requests of a crawl have the same headers
def _header_lines(
    headers: tuple[tuple[bytes, tuple[bytes, ...]], ...], has_body: bool, decode: bool
) -> list[bytes]:
    lines = []
    for name, values in headers:
        if not _TOKEN.fullmatch(name):
            raise errors.BadUrl("a header whose name is not a token")
        if name not in _NOT_OURS:
            lines += [
                b"%b: %b" % (name, value) if value.strip() else name + b";" for value in values
            ]
    if _BREAK.search(b"\t".join(lines)):
        raise errors.BadUrl("a header with a line break or a NUL")
    values_of = dict(headers).get  # names are in their normal form
    if not values_of(b"User-Agent"):
        lines.append(b"User-Agent:")
    if not values_of(b"Accept"):
        lines.append(b"Accept:")
    if decode and values_of(b"Accept-Encoding") is None:
        lines.append(_ACCEPT_ENCODING)
    if has_body:
        lines.append(b"Expect:")
        if not values_of(b"Content-Type"):
            lines.append(b"Content-Type:")
    return lines


def url_for_curl(url: str) -> str:
    """``url`` with its host in ASCII and without fragment and userinfo; path and query stay.

    Credentials come from LARM_SITES_FILE or a header, bound to a host. Raises BadUrl where there is
    no host.
    """
    if _PLAIN.fullmatch(url):
        return url
    scheme, _, rest = url.partition("://")
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    authority, target = rest[:end], rest[end:].partition("#")[0]
    if not authority:
        raise errors.BadUrl("a URL without a host")
    if authority.isascii() and "@" not in authority and target.isascii() and " " not in target:
        return f"{scheme}://{authority}{target}" if "#" in rest else url
    try:
        parsed = can_ada.parse(url)
    except (ValueError, UnicodeError):
        raise errors.BadUrl("not a URL with a host") from None
    if not target.isascii() or " " in target:
        target = parsed.pathname + parsed.search
    return f"{scheme}://{parsed.host}{target}"


ACCEPTED = "an IP address, or one and a port as in ('10.0.0.7', 0)"


def bind_address_from(settings: BaseSettings) -> tuple[str, int] | None:
    """DOWNLOAD_BIND_ADDRESS; None: any. Raises ConfigError."""
    value = settings.get("DOWNLOAD_BIND_ADDRESS")
    if not value:
        return None
    try:
        return read_bind_address(value)
    except (ValueError, TypeError):
        raise ConfigError(f"DOWNLOAD_BIND_ADDRESS={value}: expected {ACCEPTED}") from None


def read_bind_address(value: Any) -> tuple[str, int]:
    """``value``: an address, or an address and a port (0: any), in Scrapy's forms. Raises
    ValueError or TypeError, also for a name: libcurl would block while it looks the name up."""
    host, port = (value, 0) if isinstance(value, str) else value
    if not isinstance(host, str) or isinstance(port, bool) or not isinstance(port, int):
        raise ValueError
    if not 0 <= port < 65_536:
        raise ValueError
    ip_address(host)
    return host, port


def apply_bind_address(transfer: Transfer, value: Any) -> None:
    """Set where connections come from. Raises BadUrl."""
    try:
        host, port = read_bind_address(value)
    except (ValueError, TypeError):
        raise errors.BadUrl(f"no bindaddress: expected {ACCEPTED}") from None
    transfer.dirty = True
    transfer.curl.setopt(pycurl.INTERFACE, f"host!{host}")
    if port:
        transfer.curl.setopt(pycurl.LOCALPORT, port)


_KEPT_ADDRESS_SECS = 600
"""libcurl's own cache of addresses, which it is given for each fetch (dns.py)."""
_SUPPRESS_CONNECT_HEADERS = 265  # no name in pycurl 7.49
_TLS_MIN = {
    "TLSv1.0": pycurl.SSLVERSION_TLSv1_0,
    "TLSv1.1": pycurl.SSLVERSION_TLSv1_1,
    "TLSv1.2": pycurl.SSLVERSION_TLSv1_2,
    "TLSv1.3": pycurl.SSLVERSION_TLSv1_3,
}
_TLS_MAX = {
    "TLSv1.0": pycurl.SSLVERSION_MAX_TLSv1_0,
    "TLSv1.1": pycurl.SSLVERSION_MAX_TLSv1_1,
    "TLSv1.2": pycurl.SSLVERSION_MAX_TLSv1_2,
    "TLSv1.3": pycurl.SSLVERSION_MAX_TLSv1_3,
}
_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora; what pycurl's wheel looks for
    "/etc/ssl/cert.pem",  # Alpine, macOS
)


def setup_from_settings(settings: BaseSettings, limits: Limits) -> Callable[[pycurl.Curl], None]:
    """A function that prepares a fresh handle. Raises ConfigError.

    Nothing of the environment counts (http_proxy is HttpProxyMiddleware's), no .netrc, no
    cookies; libcurl follows no redirect.
    """
    if not pycurl.version_info()[4] & pycurl.VERSION_ASYNCHDNS:
        raise ConfigError(
            "this libcurl resolves names without threads, which would stop the crawl for each:"
            " install pycurl's wheel, or a libcurl built with a threaded resolver or c-ares"
        )
    http2 = options.boolean(settings, "LARM_HTTP2")
    verify = options.scrapys_boolean(settings, "DOWNLOAD_VERIFY_CERTIFICATES")
    tls = _tls_versions(settings)
    ciphers = _ciphers(settings)
    bundle = ca_bundle() if verify else None
    fixed = [
        (pycurl.NOSIGNAL, 1),
        (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
        (pycurl.FOLLOWLOCATION, 0),
        (pycurl.HTTP09_ALLOWED, 0),
        (pycurl.PATH_AS_IS, 1),
        (pycurl.USERAGENT, ""),  # pycurl names itself, to a proxy too
        (pycurl.PROXY, ""),
        (pycurl.NOPROXY, ""),
        (_SUPPRESS_CONNECT_HEADERS, 1),
        (
            pycurl.HTTP_VERSION,
            pycurl.CURL_HTTP_VERSION_2TLS if http2 else pycurl.CURL_HTTP_VERSION_1_1,
        ),
        (pycurl.CONNECTTIMEOUT_MS, int(min(limits.connect_secs * 1000, LONGEST_MS))),
        (pycurl.LOW_SPEED_LIMIT, limits.low_speed_bytes),
        (pycurl.LOW_SPEED_TIME, limits.low_speed_secs if limits.low_speed_bytes else 0),
        (pycurl.DNS_CACHE_TIMEOUT, _KEPT_ADDRESS_SECS),
        (pycurl.SSL_VERIFYPEER, int(verify)),
        (pycurl.SSL_VERIFYHOST, 2 if verify else 0),
        (pycurl.SSLVERSION, tls),
    ]
    if ciphers != "DEFAULT":
        fixed.append((pycurl.SSL_CIPHER_LIST, ciphers))
    if bundle:
        fixed.append((pycurl.CAINFO, bundle))

    def setup(curl: pycurl.Curl) -> None:
        for option, value in fixed:
            curl.setopt(option, value)

    return setup


def ca_bundle() -> str | None:
    """The system's certificates (SSL_CERT_FILE first, as for OpenSSL); None: libcurl's own."""
    for path in (ssl.get_default_verify_paths().cafile, *_BUNDLES):
        if path and Path(path).is_file():
            return path
    return None


def _ciphers(settings: BaseSettings) -> str:
    """OpenSSL's list; "DEFAULT" for its own. Raises ConfigError if no cipher is in it."""
    value = options.text(settings, "DOWNLOADER_CLIENT_TLS_CIPHERS") or "DEFAULT"
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).set_ciphers(value)
    except (ssl.SSLError, ValueError):
        raise ConfigError(
            f"DOWNLOADER_CLIENT_TLS_CIPHERS={value}: expected a list of ciphers as for"
            " `openssl ciphers`"
        ) from None
    return value


def _tls_versions(settings: BaseSettings) -> int:
    least = settings.get("DOWNLOAD_TLS_MIN_VERSION")
    most = settings.get("DOWNLOAD_TLS_MAX_VERSION")
    for name, value, known in (
        ("DOWNLOAD_TLS_MIN_VERSION", least, _TLS_MIN),
        ("DOWNLOAD_TLS_MAX_VERSION", most, _TLS_MAX),
    ):
        if value is not None and value not in known:
            raise ConfigError(f"{name}={value}: expected one of {', '.join(known)}")
    if least and most and list(_TLS_MIN).index(least) > list(_TLS_MIN).index(most):
        raise ConfigError(
            f"DOWNLOAD_TLS_MAX_VERSION={most}: expected DOWNLOAD_TLS_MIN_VERSION={least} or newer"
        )
    version = _TLS_MIN[least] if least else pycurl.SSLVERSION_DEFAULT
    return int(version | (_TLS_MAX[most] if most else 0))
