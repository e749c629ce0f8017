"""Checks who may read and control, and sets the headers of every response.

- The Host header must name this machine: DNS rebinding makes a foreign name point here, and its
  pages send that name. Addresses pass, because they cannot be rebound.
- GET and HEAD only read. A change needs a POST by a signed-in user from a form of this server (CSRF
  token, Origin equal to Host). A script may also send the token as ``Authorization: Bearer``, which
  no form can send.
- Wrong tokens and cookies are counted by address, and in all (tries.py). Requests of a valid
  session, and requests with the key of this server's own clients, are neither counted nor limited.
- A session is random. It ends after SESSION_SECS, when it is not used for long, by signing out, and
  when its user's role or password changes. It is valid only with the Host header of its sign-in: a
  cookie goes to every port of a host, and is useless there.
- The Content-Security-Policy lets pages load only what this server sends.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import re
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from larmspider.errors import ConfigError
from larmspider.files import replace_file
from larmspider.web.reader import EDITOR, OPERATOR_ROLE, READER, Reader
from larmspider.web.tries import Tries

TOKEN_FILE = "web.token"  # noqa: S105 - the name of a file
"""A file in LARM_DIR, mode 0600: the token of a crawl without LARM_WEB_TOKEN."""
MIN_TOKEN = 16


def checked_token(token: str) -> str:
    """``token`` of the settings. Raises ConfigError, whose text does not contain it."""
    if len(token) < MIN_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(
            f"LARM_WEB_TOKEN: expected at least {MIN_TOKEN} printable ASCII characters, no spaces"
        )
    return token


def stored_token(directory: Path) -> str:
    """The token in the directory, created if missing. Workers that start together all use the
    first worker's token."""
    if token := found_token(directory):
        return token
    path = directory / TOKEN_FILE
    draft = path.with_name(f"{TOKEN_FILE}.{os.getpid()}")
    replace_file(draft, secrets.token_urlsafe(24).encode() + b"\n", private=True)
    try:
        os.link(draft, path)
    except FileExistsError:
        if not found_token(directory):
            draft.replace(path)  # the existing file has no valid token
    finally:
        draft.unlink(missing_ok=True)
    return found_token(directory)


def found_token(directory: Path) -> str:
    """The token in the directory; "" if it is missing, or this user may not read it."""
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
SEARCH_PATH = "/search"
OPEN = ("/healthz", "/login", "/static/")
"""Paths that need no token, whatever address the server listens on."""
_NAME = r"[^\s\[\]@/?#\\:]+"
_HOST = re.compile(rf"(?:\[([^\s\[\]@/?#\\]+)\]|({_NAME}))(?::[0-9]{{0,5}})?")
"""RFC 9110 7.2: a host and maybe a port, no user name."""


def is_host_name(text: str) -> bool:
    """Whether ``text`` can be the host of a Host header."""
    return re.fullmatch(_NAME, text) is not None


SESSION_SECS = 12 * 3600.0
MAX_SESSIONS = 10_000
"""Most sessions. A further one ends the oldest."""
MAX_OWN_SESSIONS = 20
"""Sessions of one person; one more ends the oldest of them."""


OPERATE, EDIT, READ, PUSH, SEARCH = "operate", "edit", "read", "push", "search"
"""Scopes of a token: everything; changing and starting crawls; reading the pages of crawls; sending
documents; the search alone."""
_ALLOWS = {
    OPERATE: {OPERATE, EDIT, READ, PUSH, SEARCH},
    EDIT: {EDIT, SEARCH},
    READ: {READ, SEARCH},
    PUSH: {PUSH},
    SEARCH: {SEARCH},
}


@dataclass(frozen=True, slots=True)
class Identity:
    """The name of a user or token, for logs, and what it may do. ``principals`` decide which
    documents are seen. ``mark`` names the password or token that a session goes by."""

    name: str
    scope: str = OPERATE
    principals: frozenset[str] = frozenset()
    mark: str = ""

    def may(self, scope: str) -> bool:
        return scope in _ALLOWS[self.scope]

    @property
    def role(self) -> str:
        return {OPERATE: OPERATOR_ROLE, EDIT: EDITOR}.get(self.scope, READER)


OPERATOR = Identity("operator")
"""The holder of the only token of a crawl, and commands of the crawl's own user."""


class Provider(NamedTuple):
    """A session at a provider: its number there, and the token that ends it."""

    number: str
    subject: str
    token: str


@dataclass(slots=True)
class Session:
    """A signed-in browser: its forms send back ``csrf``. ``host`` is the Host header of the
    sign-in, ``ends`` and ``used`` are times of the guard's clock. An operator who looks at the
    search as another person has ``seen_as``."""

    csrf: str
    host: str
    ends: float
    identity: Identity = OPERATOR
    used: float = 0.0
    provider: Provider | None = None
    seen_as: Reader | None = None


@dataclass(frozen=True, slots=True)
class Proof:
    """The sender of a request: a browser with a ``session``, or a ``script`` with a token.
    ``wait``: the seconds until its address may try again, after wrong or unchecked tokens.
    ``stale``: its cookie has no session."""

    session: Session | None = None
    script: Identity | None = None
    wait: float = 0.0
    stale: bool = False

    @property
    def identity(self) -> Identity | None:
        return self.script if self.session is None else self.session.identity

    def may(self, scope: str) -> bool:
        """Whether the sender may do what needs this scope."""
        return self.identity is not None and self.identity.may(scope)

    @property
    def signed_in(self) -> bool:
        """Whether the sender may do everything."""
        return self.may(OPERATE)

    @property
    def reads(self) -> bool:
        """Whether the sender may read the pages of crawls."""
        return self.may(READ)

    @property
    def pushes(self) -> bool:
        """Whether the sender may send documents."""
        return self.may(PUSH)

    @property
    def who(self) -> str:
        """The name for logs; "" without a proof."""
        return "" if self.identity is None else self.identity.name


class Guard:
    """``token`` may be a function, if the token may change. ``names``: hosts of this server, apart
    from addresses and localhost. ``closed``: reading needs the token, too, except for paths that
    begin with one of ``open_paths``. It is a function if it may change. ``closed_pages``: the same
    for all pages except the search, which shows each reader only the pages that this reader may
    see. A session ends after ``session_secs``, or ``idle_secs`` after its last request."""

    def __init__(
        self,
        token: str | Callable[[], str],
        names: Collection[str] = (),
        *,
        closed: bool | Callable[[], bool] = False,
        closed_pages: Callable[[], bool] = lambda: False,
        open_paths: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
        tries: Tries | None = None,
        session_secs: float = SESSION_SECS,
        idle_secs: float = SESSION_SECS,
    ) -> None:
        self._session_secs, self._idle_secs = session_secs, idle_secs
        self.tries = Tries(clock=clock) if tries is None else tries
        self.key = secrets.token_urlsafe(32)
        """Commands of the crawl's user send it in place of the token. It cannot be guessed."""
        self._token = token if callable(token) else lambda: token
        self._names = {name.lower().rstrip(".") for name in (*names, "localhost")}
        self._closed = closed if callable(closed) else lambda: closed
        self._closed_pages = closed_pages
        self._open = (*OPEN, *open_paths)
        self._clock = clock
        self._sessions: dict[str, Session] = {}

    def begin_session(
        self, host: str, identity: Identity = OPERATOR, provider: Provider | None = None
    ) -> str:
        """The value of the cookie of a browser that has signed in."""
        own = [name for name, one in self._sessions.items() if one.identity.name == identity.name]
        for name in own[: max(0, len(own) - MAX_OWN_SESSIONS + 1)]:
            del self._sessions[name]
        while len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        name, now = secrets.token_urlsafe(32), self._clock()
        csrf, ends = secrets.token_hex(32), now + self._session_secs
        self._sessions[name] = Session(csrf, host.lower(), ends, identity, now, provider)
        return name

    def end_session(self, cookies: Mapping[str, str], host: str) -> None:
        self._sessions.pop(cookies.get(cookie_name(host), ""), None)
        self._sessions.pop(cookies.get(cookie_name(host, secure=True), ""), None)

    def end_sessions(self, chosen: Callable[[Session], bool]) -> int:
        """End all sessions that are ``chosen``. Returns their number."""
        ended = [name for name, one in self._sessions.items() if chosen(one)]
        for name in ended:
            del self._sessions[name]
        return len(ended)

    def names(self, mark: str) -> list[str]:
        """The names of the people with sessions of this mark."""
        found = (one.identity for one in self._sessions.values())
        return list(dict.fromkeys(one.name for one in found if one.mark == mark))

    def renew(self, name: str, mark: str, identity: Identity | None) -> None:
        """Give the sessions of a person another identity; None ends them."""
        for key, one in list(self._sessions.items()):
            if (one.identity.name, one.identity.mark) == (name, mark):
                if identity is None:
                    del self._sessions[key]
                else:
                    one.identity = identity

    def session(self, cookies: Mapping[str, str], host: str, *, use: bool = True) -> Session | None:
        """The session of a request, if it has a valid one. ``use``: the request extends the
        session."""
        for secure in (True, False):
            name = cookies.get(cookie_name(host, secure=secure), "")
            found, now = self._sessions.get(name), self._clock()
            if found is None or found.host != host.lower():
                continue
            fresh = now < found.ends and now < found.used + self._idle_secs
            if fresh and self.is_valid(found.identity):
                if use:
                    found.used = now
                return found
            del self._sessions[name]
        return None

    def is_valid(self, identity: Identity) -> bool:
        """Whether the sessions of this identity continue."""
        return True

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

    def identify(self, token: str) -> Identity | None:
        """The name and scope of a token; None for a wrong one."""
        actual = self._token()
        same = hmac.compare_digest(token.encode("utf-8", "replace"), actual.encode())
        return OPERATOR if same and actual else None

    def proof(
        self,
        headers: Mapping[str, str],
        cookies: Mapping[str, str],
        address: str,
        *,
        needed: bool = True,
    ) -> Proof:
        """The sender of a request, by the session cookie or, for scripts, by ``Authorization:
        Bearer TOKEN``. A wrong proof counts once a request. ``needed``: without a proof the request
        is refused; if not needed, the same wrong proof counts only once."""
        host = headers.get("Host", "")
        if (session := self.session(cookies, host)) is not None:
            return Proof(session)
        kind, _, token = headers.get("Authorization", "").partition(" ")
        token, bears = token.strip(), kind.lower() == "bearer"
        if bears and hmac.compare_digest(token.encode("utf-8", "replace"), self.key.encode()):
            return Proof(script=OPERATOR)
        names = (cookie_name(host), cookie_name(host, secure=True))
        wrong = next((cookies[name] for name in names if name in cookies), "")
        if not (bears or wrong):
            return Proof()
        wait = self.tries.wait(address)
        if not wait:
            if bears and (found := self.identify(token)) is not None:
                return Proof(script=found)
            wait = self.tries.failed(address, token if bears else wrong, again=needed)
        return Proof(wait=wait, stale=bool(wrong))

    def may_read(self, path: str, *, signed_in: bool) -> bool:
        if signed_in or path.startswith(self._open):
            return True
        is_search = path == SEARCH_PATH or path.startswith(f"{SEARCH_PATH}/")
        return not self._closed() and (is_search or not self._closed_pages())

    @staticmethod
    def refuse_post(proof: Proof, csrf: str) -> str | None:
        """Why a POST of this site's own origin may not change anything; None if it may."""
        if proof.session is None:
            return None if proof.script is not None else "sign in first"
        mark = csrf.encode("utf-8", "replace")
        if not hmac.compare_digest(mark, proof.session.csrf.encode()):
            return "the form is not from this server, or too old: load the page again"
        return None

    @staticmethod
    def foreign(headers: Mapping[str, str]) -> str | None:
        """Why a request must come from a page of another origin; None if nothing shows that."""
        origin, host = headers.get("Origin"), headers.get("Host", "")
        # a browser sends scheme and host alone, so that no parser is needed
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            return "it comes from a page of another origin"
        if headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            return "it comes from a page of another site"
        return None


def cookie_name(host: str, *, secure: bool = False) -> str:
    """The session cookie of the server that has this Host header: cookies ignore ports, so the name
    stands for name and port. Where browsers speak TLS they take a cookie of that prefix from this
    host alone (RFC 6265bis 4.1.3.2)."""
    server = hashlib.sha256(host.lower().encode("utf-8", "replace")).hexdigest()[:12]
    return f"{'__Host-' if secure else ''}larm_{server}"
