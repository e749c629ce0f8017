"""Sign-in by a form: the next request, the cookies, and whether a page shows that it has ended.

    session = sessions.of_url("https://wiki.example/")      # None: its host has no login
    session.step                     # GET /login, then POST with its hidden fields, then GET ...
    session.answered(response, now)  # None: so far so good; or why the host has to wait
    session.is_turned_away(page)     # the login form, or a redirect to it, where a page should be

One Session an origin, in memory alone: cookies and hidden fields are in no log and in no file. All
steps stay on the origin. The text ``login_check`` of the sites file proves that the crawl is signed
in. A page without this text may be turned away. The crawl then fetches the page that followed the
form (``home``): it tells an expired login from a page that is not for this user. Sign-ins are at
least AGAIN_SECS apart.
"""

from __future__ import annotations

import re
from enum import Enum
from html import escape
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self
from urllib.parse import parse_qsl, urlencode, urlsplit
from weakref import WeakKeyDictionary

import lxml.html
from lxml import etree
from scrapy.http import TextResponse

from larmspider.extraction.pages.markup_guard import MAX_BYTES, has_many_attributes, is_large
from larmspider.fetch.sites.cookies import OriginCookies
from larmspider.fetch.sites.lookup import Origin, Sites, origin_of
from larmspider.urls.resolve import location_of, resolve

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from larmspider.fetch.sites.model import Login, Site

AGAIN_SECS = 600.0
"""Seconds between two attempts to sign in."""
MAX_FAILURES = 3
"""Attempts without a form, after which the host is given up in this run."""
MAX_HOPS = 5
"""Redirects in a row."""
MAX_SUSPECTS = 10_000
"""URLs of pages that were turned away and are remembered."""
MAX_IN_VAIN = 20
"""Pages that only looked as if they were turned away; then a link to the form says no more."""
_FORM = re.compile(rb"<form[\s>/]", re.IGNORECASE)
_ENDED = (401, 403)
_COOKIES = (b"Set-Cookie", b"Set-Cookie2")


class Purpose(Enum):
    FORM = "form"
    """The page with the form."""
    SUBMIT = "submit"
    PROOF = "proof"
    """A page that shows whether the crawl is signed in."""


class Step(NamedTuple):
    """One request of a sign-in. ``body`` is the form's body, and holds the secret."""

    purpose: Purpose
    url: str
    body: str | None = None
    form_url: str = ""
    hops: int = 0

    def __repr__(self) -> str:
        return f"<Step {self.purpose.value}>"


class Trouble(NamedTuple):
    """The host has to wait; ``until`` is inf if only a new run tries again."""

    until: float
    reason: str


class Session:
    """``proof`` counts the proofs that the crawl is signed in."""

    def __init__(self, origin: Origin, login: Login) -> None:
        scheme, host, port = origin
        self.origin, self.login = origin, login
        self.url = resolve(f"{scheme}://{host}:{port}/", login.url) or ""
        self.step: Step | None = Step(Purpose.FORM, self.url)
        self.is_out = False
        """Whether the request of the step is under way."""
        self.proof = 0
        self._cookies = OriginCookies(self.origin[0], self.origin[1])
        self._home = ""
        self._tried = -inf
        self._failures = 0
        self._suspects: set[str] = set()
        self._in_vain = 0
        parts = urlsplit(self.url)
        self._path, self._query = parts.path, parse_qsl(parts.query, keep_blank_values=True)
        hints = parts.query.split("&") if parts.query else [parts.path]
        self._hints = [hint.encode() for hint in hints]

    def __repr__(self) -> str:
        return f"<Session {self.url} proved {self.proof} times>"

    # cookies

    def cookies_for(self, url: str) -> bytes:
        """The value of a Cookie header; b"" for none."""
        return self._cookies.header(url)

    def take_cookies(self, response: Response, url: str) -> None:
        """Keep the cookies that are set, and take them from the response: stores and logs have
        them from nowhere else."""
        headers = response.headers
        if any(name in headers for name in _COOKIES):
            self._cookies.take(headers.getlist(b"Set-Cookie"), url)
            for name in _COOKIES:
                headers.pop(name, None)
            received = getattr(headers, "received", None)
            if received:
                headers.received = [line for line in received if not _sets_cookie(line)]  # type: ignore[attr-defined]

    # signing in

    def released(self) -> None:
        """The step was not sent, and will be."""
        self.is_out = False

    def failed(self) -> None:
        """A step failed or got a server error: the sign-in restarts when the host is due."""
        self.is_out = False
        if self.step is not None and (self.step.form_url or self.step.purpose is Purpose.FORM):
            self._restart()

    def _restart(self) -> None:
        self.step = Step(Purpose.FORM, self.url)
        self._cookies = OriginCookies(self.origin[0], self.origin[1])

    def answered(self, response: Response, now: float) -> Trouble | None:
        """Go on to the step that follows from the answer; ``step`` is None when signed in. Returns
        why the host has to wait, if it has to."""
        step, self.is_out = self.step, False
        assert step is not None
        if 300 <= response.status < 400 and "Location" in response.headers:
            return self._redirected(step, response, now)
        if step.purpose is Purpose.FORM:
            return self._submit(response, now)
        if self._is_proof(response):
            self._proved(step, response)
            return None
        if step.purpose is Purpose.PROOF and not step.form_url:
            return self._expired(now)
        if _form_in(response, self.login) is not None:
            return self._wait(inf, "login refused: the form came back: wrong user or password?")
        where = f"HTTP {response.status}, and " if response.status != 200 else ""
        text = f"{where}not the text of login_check, {self.login.check!r}"
        return self._wait(inf, f"login not proved: after the form came {text}")

    def _redirected(self, step: Step, response: Response, now: float) -> Trouble | None:
        target = resolve(response.url, location_of(response.headers["Location"] or b"")) or ""
        if step.hops >= MAX_HOPS:
            return self._again_later(now, f"more than {MAX_HOPS} redirects in a row")
        if origin_of(target) != self.origin:
            found = origin_of(target)
            to = f"{found[0]}://{found[1]}:{found[2]}" if found else "no web page"
            return self._again_later(now, f"it redirects to another origin, {to}")
        purpose = Purpose.PROOF if step.purpose is Purpose.SUBMIT else step.purpose
        self.step = Step(purpose, target, None, step.form_url, step.hops + 1)
        return None

    def _submit(self, response: Response, now: float) -> Trouble | None:
        if self._is_proof(response):
            text = (
                f"{self.login.check!r}, the text of login_check, is in the page with the form, too"
            )
            return self._wait(inf, f"login not proved: {text}")
        form = _form_in(response, self.login)
        if form is None:
            names = ", ".join(name for name, _ in self.login.fields)
            what = f"HTTP {response.status}, " if response.status != 200 else ""
            return self._again_later(now, f"{what}no form with the fields {names}")
        action = resolve(response.url, form.get("action") or response.url) or ""
        if form.method.upper() != "POST":
            return self._again_later(now, "its form is not a POST, so the secret would be in a URL")
        if origin_of(action) != self.origin:
            return self._again_later(now, "its form goes to another origin")
        body = urlencode(_filled(form, self.login), encoding=_encoding(response))
        self.step = Step(Purpose.SUBMIT, action, body, response.url)
        self._tried = now
        return None

    def _proved(self, step: Step, response: Response) -> None:
        if step.purpose is Purpose.PROOF:
            self._home = response.url
        if step.form_url and self._home:
            self._suspects.clear()  # the login had expired: that is why they were turned away
        self.step = None
        self.proof += 1
        self._failures = 0

    def _expired(self, now: float) -> Trouble | None:
        """Sign in again, not before AGAIN_SECS have passed."""
        self._restart()
        self._in_vain = 0
        if now < self._tried + AGAIN_SECS:
            return Trouble(self._tried + AGAIN_SECS, "login expired, soon after it was made")
        return None

    def _again_later(self, now: float, what: str) -> Trouble:
        self._failures += 1
        spent = self._failures > MAX_FAILURES
        wait = AGAIN_SECS * 2 ** (self._failures - 1)
        return self._wait(inf if spent else now + wait, f"login at {self._path}: {what}")

    def _wait(self, until: float, reason: str) -> Trouble:
        self._restart()
        if until == inf:
            self._failures = 0
        return Trouble(until, reason)

    # pages

    def is_turned_away(self, response: Response) -> bool:
        """Whether a signed-out user may see this answer in place of the page. Takes 1 us for a page
        with the text of ``login_check``."""
        if 300 <= response.status < 400:
            target = response.headers.get("Location")
            url = resolve(response.url, location_of(target)) if target else None
            return url is not None and self._is_login(url)
        if not _is_html(response) or self._is_proof(response):
            return False
        if response.status in _ENDED or _form_in(response, self.login) is not None:
            return True
        body = response.body
        return self._in_vain < MAX_IN_VAIN and all(
            hint in body or escape(hint.decode()).encode() in body for hint in self._hints
        )

    def turned_away(self, url: str, proof: int, now: float) -> Trouble | bool | None:
        """A page was turned away. ``proof``: the number of proofs of the session when its request
        was sent. Returns True if the page is to be retried once the session is proved. Returns a
        Trouble if the page is to be retried after its host has waited. Returns False if the page is
        not for this user: it was turned away before, although the session was valid."""
        if proof != self.proof or self.step is not None:
            return True
        if url in self._suspects:
            self._in_vain += 1
            return False
        if len(self._suspects) < MAX_SUSPECTS:
            self._suspects.add(url)
        if self._home:
            self.step = Step(Purpose.PROOF, self._home)
            return True
        return self._expired(now) or True

    def was_well(self, url: str) -> None:
        """A page was not turned away."""
        self._suspects.discard(url)

    def is_final(self, response: Response) -> bool:
        """Whether a page that is turned away for good has nothing of its own to show: it is the
        login form, or a redirect to it."""
        return response.status < 400 and (
            response.status >= 300 or _form_in(response, self.login) is not None
        )

    def _is_login(self, url: str) -> bool:
        parts = urlsplit(url)
        asked = parse_qsl(parts.query, keep_blank_values=True)
        return (
            origin_of(url) == self.origin
            and parts.path == self._path
            and all(pair in asked for pair in self._query)
        )

    def _is_proof(self, response: Response) -> bool:
        return self.login.check.encode(_encoding(response), "replace") in response.body


class Sessions:
    """The sessions of a crawl's hosts; ``any`` is False if no host has a login."""

    _of_crawler: ClassVar[WeakKeyDictionary[Crawler, Sessions]] = WeakKeyDictionary()

    def __init__(self, sites: Sites) -> None:
        self.sites, self.any = sites, sites.has_logins
        self._sessions: dict[Origin, Session] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler, sites: Sites | None = None) -> Self:
        """One object for the crawl."""
        found = cls._of_crawler.get(crawler)
        if not isinstance(found, cls):
            sites = sites or Sites.from_settings(crawler.settings)
            found = cls._of_crawler[crawler] = cls(sites)
        return found

    def of_url(self, url: str) -> Session | None:
        """None for a host without a login. 0.5 us."""
        return self.of_site(self.sites.for_url(url)) if self.any else None

    def of_site(self, site: Site | None) -> Session | None:
        if site is None or site.options.login is None:
            return None
        found = self._sessions.get(site.origin)
        if found is None:
            found = self._sessions[site.origin] = Session(site.origin, site.options.login)
        return found


def _form_in(response: Response, login: Login) -> Any:
    """The form with all fields of the login. None without such a form, and if the markup is so bad
    that reading takes long. Takes 1 us if a name is not in the page."""
    names, body = [name for name, _ in login.fields], response.body
    if not _is_html(response) or not all(escape(name).encode() in body for name in names):
        return None
    try:
        markup = body.decode(_encoding(response), "replace").encode("utf-8", "replace")
        if is_large(markup):  # its forms alone
            first = _FORM.search(markup)
            markup = markup[first.start() :][:MAX_BYTES] if first else b""
        if is_large(markup) or has_many_attributes(markup):
            return None
        root = lxml.html.document_fromstring(markup, parser=lxml.html.HTMLParser(encoding="utf-8"))
    except (etree.ParserError, etree.XMLSyntaxError, LookupError):
        return None
    return next((form for form in root.forms if set(names) <= set(form.fields.keys())), None)


def _filled(form: Any, login: Login) -> list[tuple[str, str]]:
    """The pairs that a browser would send: the fields as they stand (hidden and checked ones), our
    fields, and the first button with a name."""
    ours = {name: secret.reveal() for name, secret in login.fields}
    pairs = [(name, value) for name, value in form.form_values() if name not in ours]
    buttons = form.xpath(
        './/button[@name and not(@type="button" or @type="reset")]|.//input[@type="submit"][@name]'
    )
    if buttons and buttons[0].get("name") not in ours:
        pairs.append((buttons[0].get("name"), buttons[0].get("value") or ""))
    return [*pairs, *ours.items()]


def _is_html(response: Response) -> bool:
    content_type = response.headers.get("Content-Type") or b""
    return b"html" in content_type.lower()


def _encoding(response: Response) -> str:
    return response.encoding if isinstance(response, TextResponse) else "utf-8"


def _sets_cookie(line: bytes) -> bool:
    return line.partition(b":")[0].strip().lower() in (b"set-cookie", b"set-cookie2")
