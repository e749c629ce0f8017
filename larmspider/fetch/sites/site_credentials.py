"""Of a [[site]]: what a request tells the server, by auth, user, password, token, cookies, headers.

Values are checked against the grammar of their header, so that none of them can end it early.
"""

from __future__ import annotations

import re

from larmspider.fetch.curl_features import check_method
from larmspider.fetch.sites.fields import SiteTable
from larmspider.fetch.sites.model import Credentials
from larmspider.fetch.sites.secret import Secret

METHODS = {
    "basic": ("user", "password"),
    "digest": ("user", "password"),
    "negotiate": (),
    "ntlm": ("user", "password"),
    "bearer": ("token",),
}
"""Values of auth, and the keys that go with each."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 5.6.2
_FIELD_VALUE = re.compile(r"[!-~](?:[ -~\t]*[!-~])?")  # RFC 9110 5.5, ASCII alone
_COOKIE_VALUE = re.compile(r'("?)[!#-+\--:<-\[\]-~]*\1')  # RFC 6265 4.1.1
_BEARER = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750 2.1
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NOT_BY_HAND = {
    "cookie": ": use cookies",
    "proxy-authorization": ": use proxy_user and proxy_password",
    **dict.fromkeys(("host", "connection", "content-length", "transfer-encoding"), ""),
}
"""Headers that have a key of their own, or that say how the request is sent."""


def read_credentials(table: SiteTable) -> Credentials | None:
    """From auth, user, password and token."""
    method = table.text("auth", tuple(METHODS))
    secrets = {key: table.secret(key) for key in ("user", "password", "token")}
    given = tuple(key for key, secret in secrets.items() if secret is not None)
    if method is None:
        if given:
            raise table.refuse(
                "auth", f"is missing: {given[0]} goes with one of {', '.join(METHODS)}"
            )
        return None
    check_method(method, f"{table.where}: auth")
    if given != METHODS[method]:
        needed = " and ".join(METHODS[method]) or "none of user, password, token (it has a ticket)"
        raise table.refuse("auth", f"= {method!r} goes with {needed}")
    check_user(table, "user", secrets["user"], method)
    check_text(table, "password", secrets["password"])
    token = secrets["token"]
    if token is not None and not _BEARER.fullmatch(token.reveal()):
        raise table.refuse("token", "is not accepted: letters, digits and -._~+/ are (RFC 6750)")
    return Credentials(method, **secrets)


def read_cookies(table: SiteTable) -> tuple[tuple[str, Secret], ...] | None:
    """From the table cookies."""
    return _pairs(table, "cookies", _COOKIE_VALUE)


def read_headers(table: SiteTable) -> tuple[tuple[str, Secret], ...] | None:
    """From the table headers."""
    headers = _pairs(table, "headers", _FIELD_VALUE)
    for name, _ in headers or ():
        hint = _NOT_BY_HAND.get(name.lower())
        if hint is not None:
            raise table.refuse(f"headers.{name}", f"is not accepted{hint}")
        if name.lower() == "authorization" and table.has("auth"):
            raise table.refuse(f"headers.{name}", "and auth are given: one of them is accepted")
    return headers


def check_user(table: SiteTable, key: str, user: Secret | None, method: str) -> None:
    """A user name is not empty, and has no colon where one ends it."""
    check_text(table, key, user)
    if user is not None and (not user.reveal() or (method == "basic" and ":" in user.reveal())):
        raise table.refuse(key, "is not accepted: it is empty or holds a colon (RFC 7617)")


def check_text(table: SiteTable, key: str, secret: Secret | None) -> None:
    """No control characters."""
    if secret is not None and _CONTROL.search(secret.reveal()):
        raise table.refuse(key, "is not accepted: it holds control characters")


def _pairs(
    table: SiteTable, key: str, value: re.Pattern[str]
) -> tuple[tuple[str, Secret], ...] | None:
    pairs = table.secrets(key)
    for name, secret in pairs or ():
        if not _TOKEN.fullmatch(name):
            raise table.refuse(key, "has a name that is not accepted: letters, digits and - are")
        if not value.fullmatch(secret.reveal()):
            raise table.refuse(
                f"{key}.{name}", "is not accepted: it holds a character that may not stand there"
            )
    return pairs
