"""Who may ask for what, and the headers that every answer has.

- The Host header names this machine: a page elsewhere whose name is made to point here (DNS
  rebinding) asks with its own. Addresses pass, for they cannot be made to point anywhere.
- Reading is GET and HEAD. Whatever changes something is POST, by somebody signed in, from a form of
  ours (a token in it, and an Origin that is this Host), or by a script that sends the token as
  ``Authorization: Bearer``, which no form can.
- Nothing but what comes from here may run, load or frame: the policy below.
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

# The token that control asks for: LARM_WEB_TOKEN, or one of our own, kept in LARM_DIR/web.token.
#
# The file is its owner's alone (mode 0600), so who may read the crawl's directory as that user may
# control the crawl.

TOKEN_FILE = "web.token"  # noqa: S105 - the name of a file
SHORTEST = 16


def checked_token(token: str) -> str:
    """A token of the settings. Raises ConfigError, which does not show it."""
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(
            f"LARM_WEB_TOKEN: expected at least {SHORTEST} printable ASCII characters, no spaces"
        )
    return token


def kept_token(directory: Path) -> str:
    """The one in the directory, made if there is none. Of workers that start together all have
    that of the first."""
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
    """The one in the directory; "" where there is none, or this user may not read it."""
    try:
        token = (directory / TOKEN_FILE).read_text("ascii").strip()
    except (OSError, ValueError):
        return ""
    return token if len(token) >= SHORTEST else ""


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
"""Paths that need no token, wherever the server is bound."""
_NAME = r"[^\s\[\]@/?#\\:]+"
_HOST = re.compile(rf"(?:\[([^\s\[\]@/?#\\]+)\]|({_NAME}))(?::[0-9]{{0,5}})?")
"""RFC 9110 7.2: a host and maybe a port, no user name."""


def is_host_name(text: str) -> bool:
    """Whether a Host header could have it, before a port."""
    return re.fullmatch(_NAME, text) is not None


class Guard:
    """``names`` are accepted in Host beside addresses and localhost. With ``closed`` reading needs
    the token too, but for paths that begin with one of ``open_paths``."""

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
        """Its name: browsers keep cookies by host, and two crawls may be served on two ports."""

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
        """In constant time."""
        return hmac.compare_digest(token.encode("utf-8", "replace"), self._token)

    def signed_in(self, cookies: Mapping[str, str], authorization: str = "") -> bool:
        """By the cookie that the login gives, or as a script, by the token itself."""
        kind, _, token = authorization.partition(" ")
        if kind.lower() == "bearer" and self.is_token(token.strip()):
            return True
        cookie = cookies.get(self.cookie, "")
        return hmac.compare_digest(cookie.encode("utf-8", "replace"), self.session.encode())

    def may_read(self, path: str, *, signed_in: bool) -> bool:
        """Whether a page may be seen."""
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
        """Why a request comes from a page of another origin; browsers say so with every POST."""
        origin, host = headers.get("Origin"), headers.get("Host", "")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return "it comes from a page of another origin"
        if headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            return "it comes from a page of another site"
        return None
