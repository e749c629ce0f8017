"""Hands a host's settings to libcurl: a Site becomes options of an easy handle.

    site = sites.for_url(url)
    if site is not None:
        apply_site(curl, site, url, headers)
    ...                       # the transfer
    curl.reset()              # before the handle serves another origin

A handle that carried a Site serves that Site only, until it is reset (Transfer.dirty): pycurl
cannot unset options singly, and a reset also drops Digest's nonces. libcurl itself reuses no
connection with other credentials, certificates or proxy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pycurl

from larmspider.fetch.sites.lookup import origin_of
from larmspider.fetch.sites.model import ClientCertificate, Credentials, Proxy, Site, SiteOptions

_BEARER = 1 << 6
"""CURLAUTH_BEARER, which pycurl does not name."""

_METHODS = {
    "basic": pycurl.HTTPAUTH_BASIC,
    "digest": pycurl.HTTPAUTH_DIGEST,
    "negotiate": pycurl.HTTPAUTH_NEGOTIATE,
    "ntlm": pycurl.HTTPAUTH_NTLM,
    "bearer": _BEARER,
}
_TLS = {
    "1.0": pycurl.SSLVERSION_TLSv1_0,
    "1.1": pycurl.SSLVERSION_TLSv1_1,
    "1.2": pycurl.SSLVERSION_TLSv1_2,
    "1.3": pycurl.SSLVERSION_TLSv1_3,
}
_OLD_TLS = ("1.0", "1.1")
_OLD_CIPHERS = "DEFAULT:@SECLEVEL=0"
"""OpenSSL 3 speaks TLS 1.0 and 1.1 at this security level only."""


def apply_site(
    curl: pycurl.Curl,
    site: Site,
    url: str,
    headers: Sequence[bytes] = (),
    *,
    proxy: bool = True,
) -> None:
    """Set the options of ``site`` over the existing ones; ``url`` is the URL to fetch.

    ``headers`` are the request's, as lines for libcurl (``Name: value``). HTTPHEADER becomes these
    and the site's; if both have a name, the request's is sent, but both cookies. Without ``proxy``
    the site's is left out. Raises ValueError, with nothing set, if ``url`` is of another origin.
    """
    if origin_of(url) != site.origin:
        raise ValueError(f"a site of {site.origin} does not apply to a URL of {origin_of(url)}")
    options = site.options
    if options.credentials is not None:
        _apply_credentials(curl, options.credentials)
    if options.headers or options.cookies or options.login:
        curl.setopt(pycurl.HTTPHEADER, list(_with_site_headers(options, headers)))
    if options.client_certificate is not None:
        _apply_client_certificate(curl, options.client_certificate)
    if options.ca_file is not None:
        curl.setopt(pycurl.CAINFO, str(options.ca_file))
    if options.tls_min is not None:
        curl.setopt(pycurl.SSLVERSION, _TLS[options.tls_min])
        if options.tls_min in _OLD_TLS:
            curl.setopt(pycurl.SSL_CIPHER_LIST, _OLD_CIPHERS)
    if options.verify is not None:
        curl.setopt(pycurl.SSL_VERIFYPEER, int(options.verify))
        curl.setopt(pycurl.SSL_VERIFYHOST, 2 * int(options.verify))
    if proxy and options.proxy is not None:
        _apply_proxy(curl, options.proxy)


def _apply_credentials(curl: pycurl.Curl, credentials: Credentials) -> None:
    curl.setopt(pycurl.HTTPAUTH, _METHODS[credentials.method])
    if credentials.token is not None:
        curl.setopt(pycurl.XOAUTH2_BEARER, credentials.token.reveal())
    elif credentials.user is None or credentials.password is None:
        curl.setopt(
            pycurl.USERPWD, ":"
        )  # libcurl authenticates only with a user name, were it empty
    else:
        curl.setopt(pycurl.USERNAME, credentials.user.reveal().encode())
        curl.setopt(pycurl.PASSWORD, credentials.password.reveal().encode())


def _apply_client_certificate(curl: pycurl.Curl, client: ClientCertificate) -> None:
    curl.setopt(pycurl.SSLCERT, str(client.certificate))
    curl.setopt(pycurl.SSLKEY, str(client.key))
    if client.password is not None:
        curl.setopt(pycurl.KEYPASSWD, client.password.reveal().encode())


def _apply_proxy(curl: pycurl.Curl, proxy: Proxy) -> None:
    # credentials that a request's proxy may have left
    for option in (pycurl.PROXYUSERNAME, pycurl.PROXYPASSWORD, pycurl.PROXYHEADER):
        curl.unsetopt(option)
    curl.setopt(pycurl.PROXY, proxy.url)
    curl.setopt(pycurl.NOPROXY, "")  # else the environment's no_proxy counts
    curl.setopt(pycurl.PROXYAUTH, _METHODS[proxy.method])
    if proxy.ca_file is not None:
        curl.setopt(pycurl.PROXY_CAINFO, str(proxy.ca_file))
    if proxy.method == "negotiate":
        curl.setopt(pycurl.PROXYUSERPWD, ":")
    elif proxy.user is not None and proxy.password is not None:
        curl.setopt(pycurl.PROXYUSERNAME, proxy.user.reveal().encode())
        curl.setopt(pycurl.PROXYPASSWORD, proxy.password.reveal().encode())


def _with_site_headers(options: SiteOptions, headers: Sequence[bytes]) -> Iterator[bytes]:
    cookies = [f"{name}={value.reveal()}".encode() for name, value in options.cookies or ()]
    taken = set()
    for line in headers:
        name, _, value = line.partition(b":")
        if value or name.endswith(b";"):  # "Name;" sends it empty, "Name:" turns off libcurl's own
            taken.add(name.rstrip(b";").lower())
        if name.lower() == b"cookie":
            cookies.insert(0, value.strip())
        else:
            yield line
    for text, secret in options.headers or ():
        if text.lower().encode() not in taken:
            yield f"{text}: {secret.reveal()}".encode()
    if cookies:
        yield b"Cookie: " + b"; ".join(cookies)
