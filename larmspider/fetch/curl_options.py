"""The libcurl options that are the same for every fetch of a crawl."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pycurl

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.fetch.limits import LONGEST_MS, Limits

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_KEPT_ADDRESS_SECS = 600
"""libcurl's own cache of addresses, which it is given for each fetch (names.py)."""
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

    No setting of the environment counts (http_proxy is HttpProxyMiddleware's), no .netrc, no
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
    """OpenSSL's list; "DEFAULT" for its own. Raises ConfigError where no cipher is in it."""
    value = options.text(settings, "DOWNLOADER_CLIENT_TLS_CIPHERS") or "DEFAULT"
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).set_ciphers(value)
    except (ssl.SSLError, ValueError):
        raise ConfigError(
            f"DOWNLOADER_CLIENT_TLS_CIPHERS={value} is not accepted: a list of ciphers as for"
            " `openssl ciphers` is"
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
            raise ConfigError(f"{name}={value} is not accepted: one of {', '.join(known)} is")
    if least and most and list(_TLS_MIN).index(least) > list(_TLS_MIN).index(most):
        raise ConfigError(
            f"DOWNLOAD_TLS_MAX_VERSION={most} is not accepted: no less than"
            f" DOWNLOAD_TLS_MIN_VERSION={least} is"
        )
    version = _TLS_MIN[least] if least else pycurl.SSLVERSION_DEFAULT
    return int(version | (_TLS_MAX[most] if most else 0))
