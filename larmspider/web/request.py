"""One request as a page sees it, and the page's reply.

    def hosts(ask: Ask) -> Reply:
        order = ask.choice("sort", ("queued", "host"))
        return ask.render("hosts.html", rows=sorted_rows(ask.source, order, ask.number("page", 1)))

What comes from the query is checked here: an unknown word or number is the default, not an error,
and texts are cut.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from larmspider.errors import LarmspiderError

if TYPE_CHECKING:
    from larmspider.status.crawl_view import Source
    from larmspider.status.numbers import Numbers
    from larmspider.status.status import Board
    from larmspider.web.render import Templates

MAX_TEXT = 8_192
"""Characters of a parameter; URLs are the longest."""
HTML = "text/html; charset=utf-8"
JSON = "application/json; charset=utf-8"


class Refused(LarmspiderError):  # noqa: N818 - what was done, not what went wrong
    """The request cannot be answered so; ``status`` is HTTP's."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Reply:
    """``headers`` stand in place of the ones that every answer has (guard.py)."""

    body: bytes
    content_type: str = HTML
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Saying:
    """What a POST did, and whether it did. ``typed``: what was sent, where it is still to be done,
    or to be mended, so that the form shows it again."""

    text: str
    good: bool
    typed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ask:
    """``query`` and ``path`` hold the parameters as they came; read them by the methods.

    ``origin`` is what stands before ``url``: http://127.0.0.1:8080, as the browser knows it.
    ``signed_in``: may control the crawl. ``csrf`` is what its forms have to send back. ``numbers``
    are those of the running crawl, for a page that asks for them (Page.live). ``said`` by
    the last POST.
    """

    source: Source
    board: Board
    templates: Templates
    url: str
    query: Mapping[str, str]
    path: Mapping[str, str]
    origin: str = ""
    signed_in: bool = False
    csrf: str = ""
    numbers: Numbers | None = None
    said: Saying | None = None

    def text(self, name: str, default: str = "", limit: int = MAX_TEXT) -> str:
        """A parameter of the query, without NUL and lone surrogates, at most ``limit`` long."""
        value = self.query.get(name, default)[:limit]
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "")

    def number(self, name: str, default: int, low: int = 1, high: int = 1_000_000) -> int:
        """A whole number of the query, brought into its range."""
        value = self.query.get(name, "")
        if not value.isascii() or not value.isdigit() or len(value) > 12:
            return default
        return min(high, max(low, int(value)))

    def choice(self, name: str, accepted: Collection[str], default: str = "") -> str:
        """One of the accepted words; else ``default``, or the first of them."""
        value = self.query.get(name, "")
        return value if value in accepted else default or next(iter(accepted))

    def render(self, template: str, status: int = 200, **values: Any) -> Reply:
        """A page from templates/, which gets ``ask`` and the values."""
        text = self.templates.render(template, ask=self, **values)
        return Reply(text.encode("utf-8", "replace"), status=status)


def json_reply(value: Any, status: int = 200) -> Reply:
    """``value`` as JSON, with no character that could end a script element."""
    text = json.dumps(value, ensure_ascii=True).replace("<", "\\u003c")
    return Reply(text.encode("ascii") + b"\n", JSON, status)
