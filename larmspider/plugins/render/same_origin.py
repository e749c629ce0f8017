"""The same-origin policy of rendered pages: requests with credentials, and readable answers.

    asking = Asking(url, page=("https", "app.example", 443))
    asking.with_credentials         # False unless url is of the page's origin, or of `allowed`
    asking.redirected("https://other.example/")
    answer_headers(asking, response.headers)      # for the browser; None: withhold the answer

The rules come from the Fetch Standard (4.4 HTTP-redirect fetch, 4.10 CORS check). The crawl follows
redirects itself, and Chromium sees an answer at the URL that the page named first. This module
therefore checks each answer behind a redirect to another origin; Chromium checks all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from larmspider.fetch.sites.lookup import Origin, origin_of
from larmspider.fetch.sites.model import origin_text

if TYPE_CHECKING:
    from scrapy.http import Headers

ANY = "*"
OPAQUE = "null"
"""An origin that is like no other: a sandboxed frame, a data: URL, a redirect between strangers."""
FRAME = "document"
SCRIPT = "script"
ALLOW_ORIGIN = "access-control-allow-origin"
ALLOW_CREDENTIALS = "access-control-allow-credentials"
_SCRIPTS = (b"javascript", b"ecmascript")


def is_script(headers: Headers) -> bool:
    """Whether an answer says that it is JavaScript."""
    content_type = (headers.get("Content-Type") or b"").lower()
    return any(word in content_type for word in _SCRIPTS)


@dataclass(slots=True)
class Asking:
    """One request of a rendered page, redirect by redirect.

    ``page`` is the page's origin, ``allowed`` are other origins from its site's ``render_origins``.
    ``kind`` is Chromium's: document (a frame), script, fetch or xhr. ``origin`` is the header
    Origin that Chromium adds to a request with a CORS check, else "".
    ``by_page``: a document of the page's own origin sends it, not a frame of another origin.
    """

    url: str
    page: Origin | None
    allowed: frozenset[Origin] = frozenset()
    kind: str = "fetch"
    origin: str = ""
    by_page: bool = True
    crossed: bool = False
    """Whether a redirect has led from one origin to another."""
    tainted: bool = False
    """Whether an origin other than the asker's has chosen where to redirect to."""
    first: Origin | None = None
    """The origin at which Chromium sees the answer."""
    asker: str = ""
    """The origin of the document or worker that asks."""

    def __post_init__(self) -> None:
        self.first = origin_of(self.url)
        if self.by_page and self.page is not None:
            # a data: worker, or a sandboxed frame, of the page
            self.by_page = self.origin in ("", origin_text(self.page))
            self.asker = self.origin or origin_text(self.page)
        else:
            self.by_page = False
            self.asker = self.origin or (origin_text(self.first) if self.first else OPAQUE)

    @property
    def with_credentials(self) -> bool:
        """Whether the request may carry the sites file's secrets for the host of its URL."""
        if not self.by_page or self.tainted:
            return False
        at = origin_of(self.url)
        return at is not None and (at == self.page or at in self.allowed)

    @property
    def sent_origin(self) -> str:
        """The header Origin of the request; "": none."""
        if self.tainted:
            return OPAQUE
        named = self.origin or (self.asker if self.crossed else "")
        at = origin_of(self.url)
        return "" if at is None or named == origin_text(at) else named

    @property
    def shares(self) -> tuple[str, str, str]:
        """A key: requests with the same key get the same answer from a server."""
        credentials = origin_text(self.page) if self.with_credentials and self.page else ""
        return self.url, credentials, self.sent_origin

    def redirected(self, url: str) -> None:
        """The server redirects to ``url``."""
        was, at = origin_of(self.url), origin_of(url)
        if was != at:
            self.crossed = True
            if was is None or origin_text(was) != self.asker:
                self.tainted = True
        self.url = url


def answer_headers(asking: Asking, headers: Headers) -> dict[str, str] | None:
    """The CORS headers of the answer for Chromium; None: the page may not have the answer.

    Playwright adds a permissive ``Access-Control-Allow-Origin`` if there is none. The answer
    therefore always has one: the origin of the URL itself. No CORS check accepts that, as browsers
    make the check for other origins only.
    """
    named = b", ".join(headers.getlist("Access-Control-Allow-Origin")).decode("latin-1").strip()
    kept = {ALLOW_ORIGIN: named or _none(asking)}
    if (value := headers.get("Access-Control-Allow-Credentials")) is not None:
        kept[ALLOW_CREDENTIALS] = value.decode("latin-1")
    if not asking.crossed:
        return kept
    fits = named in (ANY, OPAQUE if asking.tainted else asking.asker)
    if asking.first is not None and origin_text(asking.first) == asking.asker:
        # Chromium takes the answer for one of the asker's own origin, and checks nothing
        classic = asking.kind == SCRIPT and is_script(headers)
        return kept if fits or classic else None
    if not fits:
        return {ALLOW_ORIGIN: _none(asking)}
    if named != ANY:
        kept[ALLOW_ORIGIN] = asking.origin or named
    return kept


def _none(asking: Asking) -> str:
    return origin_text(asking.first) if asking.first is not None else "http://invalid"
