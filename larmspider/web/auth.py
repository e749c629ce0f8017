"""Who may read and control, and the headers that every response has.

- The Host header must name this machine: DNS rebinding makes a foreign name point here, and its
  pages send that name. Addresses pass, since they cannot be rebound.
- GET and HEAD only read. What changes something is a POST by somebody signed in, from a form of
  this server (CSRF token, Origin equal to Host), or by a script that sends the token as
  ``Authorization: Bearer``, which no form can.
- The Content-Security-Policy lets pages load only what this server sends.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import re
import secrets
from collections.abc import Collection, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from larmspider.errors import ConfigError
from larmspider.files import replace_file

TOKEN_FILE = "web.token"  # noqa: S105 - the name of a file
"""In LARM_DIR, mode 0600: the token of a crawl without LARM_WEB_TOKEN."""
MIN_TOKEN = 16


def checked_token(token: str) -> str:
    """``token`` of the settings. Raises ConfigError, whose text does not contain it."""
    if len(token) < MIN_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(
            f"LARM_WEB_TOKEN: expected at least {MIN_TOKEN} printable ASCII characters, no spaces"
        )
    return token


def stored_token(directory: Path) -> str:
    """The token in the directory, made if there is none. Workers that start together all use that
    of the first."""
    if token := found_token(directory):
        return token
    path = directory / TOKEN_FILE
    draft = path.with_name(f"{TOKEN_FILE}.{os.getpid()}")
    replace_file(draft, secrets.token_urlsafe(24).encode() + b"\n", private=True)
    try:
        os.link(draft, path)
    except FileExistsError:
        if not found_token(directory):
            draft.replace(path)  # what lies there is none
    finally:
        draft.unlink(missing_ok=True)
    return found_token(directory)


def found_token(directory: Path) -> str:
    """The token in the directory; "" if there is none, or this user may not read it."""
    try:
        token = (directory / TOKEN_FILE).read_text("ascii").strip()
    except (OSError, ValueError):
        return ""
    return token if len(token) >= MIN_TOKEN else ""


HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # not no-referrer: with it browsers send Origin: null with our own forms (Fetch, 3.2)
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "larmspider",
}
OPEN = ("/healthz", "/login", "/static/")
"""Paths that need no token, whatever address the server listens on."""
_NAME = r"[^\s\[\]@/?#\\:]+"
_HOST = re.compile(rf"(?:\[([^\s\[\]@/?#\\]+)\]|({_NAME}))(?::[0-9]{{0,5}})?")
"""RFC 9110 7.2: a host and maybe a port, no user name."""


def is_host_name(text: str) -> bool:
    """Whether ``text`` can be the host of a Host header."""
    return re.fullmatch(_NAME, text) is not None


class Guard:
    """``names``: hosts of this server, beside addresses and localhost. ``closed``: reading needs
    the token too, except for paths that begin with one of ``open_paths``."""

    def __init__(
        self,
        token: str,
        names: Collection[str] = (),
        *,
        closed: bool = False,
        open_paths: Collection[str] = (),
    ) -> None:
        self._token = token.encode()
        self._names = {name.lower().rstrip(".") for name in (*names, "localhost")}
        self._closed, self._open = closed, (*OPEN, *open_paths)
        self.session = self._derived(b"session")
        self.csrf = self._derived(b"csrf")
        self.cookie = f"larm_{self._derived(b'cookie')[:8]}"
        """Named by the token: cookies ignore ports, and two crawls may be served on one host."""

    def _derived(self, purpose: bytes) -> str:
        return hmac.new(self._token, b"larmspider " + purpose, hashlib.sha256).hexdigest()

    def accepts_host(self, host: str) -> bool:
        """Whether a Host header names this server."""
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = found[1] or found[2]
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name.lower().rstrip(".") in self._names
        return True

    def is_token(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self._token)

    def signed_in(self, cookies: Mapping[str, str], authorization: str = "") -> bool:
        """By the session cookie or, for scripts, by ``Authorization: Bearer TOKEN``."""
        kind, _, token = authorization.partition(" ")
        if kind.lower() == "bearer" and self.is_token(token.strip()):
            return True
        cookie = cookies.get(self.cookie, "")
        return hmac.compare_digest(cookie.encode("utf-8", "replace"), self.session.encode())

    def may_read(self, path: str, *, signed_in: bool) -> bool:
        return signed_in or not self._closed or path.startswith(self._open)

    def refuse_post(
        self, headers: Mapping[str, str], cookies: Mapping[str, str], csrf: str
    ) -> str | None:
        """Why this POST may not change anything; None where it may."""
        authorization = headers.get("Authorization", "")
        if reason := self.foreign(headers):
            return reason
        if not self.signed_in(cookies, authorization):
            return "sign in with the token first"
        if self.signed_in({}, authorization):
            return None
        if not hmac.compare_digest(csrf.encode("utf-8", "replace"), self.csrf.encode()):
            return "the form is not from this server, or too old: load the page again"
        return None

    @staticmethod
    def foreign(headers: Mapping[str, str]) -> str | None:
        """Why a request is known to come from a page of another origin; None where it is not."""
        origin, host = headers.get("Origin"), headers.get("Host", "")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return "it comes from a page of another origin"
        if headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            return "it comes from a page of another site"
        return None
