"""Of a [[site]]: how its servers are reached. Certificates, both sides', and the proxy."""

from __future__ import annotations

import re
import ssl
from pathlib import Path

from larmspider.fetch.curl_features import check_method
from larmspider.fetch.sites.fields import SiteTable
from larmspider.fetch.sites.model import ClientCertificate, Proxy
from larmspider.fetch.sites.site_credentials import check_text, check_user
from larmspider.urls.host_resolver import canonical_host

PROXY_METHODS = ("basic", "digest", "negotiate", "ntlm")
TLS_VERSIONS = ("1.0", "1.1", "1.2", "1.3")

_PROXY = re.compile(r"(https?|socks5h?)://(\[[0-9a-f:.]+\]|[^\x00-\x20/@:\[\]]+):(\d{1,5})/?")


def read_client_certificate(table: SiteTable) -> ClientCertificate | None:
    """From client_cert, client_key and client_key_password; the key must be the certificate's."""
    certificate, key = table.file("client_cert"), table.file("client_key")
    password = table.secret("client_key_password")
    if certificate is None:
        if key is not None or password is not None:
            raise table.refuse("client_cert", "is missing beside client_key")
        return None
    key = key or certificate
    try:
        # a password that is "" is never asked for at the terminal
        word = "" if password is None else password.reveal()
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key, word)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = getattr(error, "reason", None) or "not a certificate with its key"
        raise table.refuse(
            "client_cert",
            f"= '{certificate}' cannot be used with key '{key}' ({reason}): accepted are a"
            " certificate and its key in PEM, and client_key_password where the key is encrypted",
        ) from None
    table.secret_files.append(key)
    return ClientCertificate(certificate, key, password)


def read_ca_file(table: SiteTable, key: str = "ca_file") -> Path | None:
    """From ``key``: a file that holds a certificate at least."""
    path = table.file(key)
    if path is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or "no certificate"
            raise table.refuse(
                key, f"= '{path}' cannot be used ({reason}): certificates in PEM are accepted"
            ) from None
    return path


def read_tls_min(table: SiteTable) -> str | None:
    """From tls_min."""
    return table.text("tls_min", TLS_VERSIONS)


def read_proxy(table: SiteTable) -> Proxy | None:
    """From proxy, proxy_auth, proxy_user, proxy_password and proxy_ca_file."""
    url, method = table.text("proxy"), table.text("proxy_auth", PROXY_METHODS)
    user, password = table.secret("proxy_user"), table.secret("proxy_password")
    ca_file = read_ca_file(table, "proxy_ca_file")
    if not url:
        if any(value is not None for value in (method, user, password, ca_file)):
            raise table.refuse("proxy", "is missing or empty beside other keys of a proxy")
        return None if url is None else Proxy("")
    if "@" in url:
        raise table.refuse("proxy", "holds a user name: use proxy_user and proxy_password")
    found = _PROXY.fullmatch(url.lower())
    if found is None or canonical_host(found[2]) is None or not 0 < int(found[3]) < 65_536:
        raise table.refuse(
            "proxy",
            f"= {url!r} is not accepted: http://host:port, https://, socks5:// and socks5h:// are,"
            ' and "" for none',
        )
    if (user is None) != (password is None):
        raise table.refuse("proxy_user", "and proxy_password go together")
    if method is not None and (user is None) != (method == "negotiate"):
        needed = "neither proxy_user nor proxy_password" if user else "proxy_user, proxy_password"
        raise table.refuse("proxy_auth", f"= {method!r} goes with {needed}")
    if method is not None and found[1].startswith("socks"):
        raise table.refuse("proxy_auth", "is for proxies that speak http or https")
    if ca_file is not None and found[1] != "https":
        raise table.refuse("proxy_ca_file", "is for proxies that speak https")
    check_method(method or "basic", f"{table.where}: proxy_auth")
    check_user(table, "proxy_user", user, method or "basic")
    check_text(table, "proxy_password", password)
    return Proxy(f"{found[1]}://{found[2]}:{found[3]}", method or "basic", user, password, ca_file)
