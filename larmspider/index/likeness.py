"""Sets the likeness of pages (copies.py) and removes navigation from their main text.

The process of simhasher.py computes both::

    comparison = Comparison(pages, simhasher.submit)
    comparison.settle()                 # waits; now all pages have a likeness

Texts of a host that begin alike are navigation: they move from the main text to the text around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import TypeAlias

from larmspider.index.outside_links import LEAST_TEXT
from larmspider.index.page import IndexedPage
from larmspider.index.schema import REST_LIMIT, first_sentence
from larmspider.index.sections import kept_breaks, kept_sections

Compared: TypeAlias = tuple[int, list[tuple[int, int]]]
Simhashes: TypeAlias = Callable[[Sequence[tuple[str, str]]], Future[list[Compared]]]
"""Takes the simhash of each text of a host, a signed number of 64 bits, in another thread, and says
where in the text navigation begins and ends."""

_LEAST_LEFT = 30  # characters of a main text beside a table of contents


class Comparison:
    """Pages and their documents whose long texts are with the simhasher."""

    def __init__(self, pages: Iterable[IndexedPage], simhashes: Simhashes) -> None:
        asked: list[tuple[str, str]] = []
        self._texts: list[tuple[IndexedPage, bool]] = []
        """Documents, and whether each also needs a simhash of its text outside of links."""
        for text in (one for page in pages for one in page.documents):
            if text.likeness is None and len(text.compared) >= LEAST_TEXT:
                asked.append((_host_of(text), text.compared))
                if text.outside:
                    asked.append(("", text.outside))
                self._texts.append((text, bool(text.outside)))
        self._answer = simhashes(asked)

    @property
    def done(self) -> bool:
        return self._answer.done()

    def settle(self) -> None:
        """Wait for the likeness of each text. May be called twice."""
        found = iter(self._answer.result())
        for text, is_apart in self._texts:
            likeness, navigation = next(found)
            apart = next(found)[0] if is_apart else text.apart
            if text.likeness is None:
                text.outside, text.apart = None, apart
                text.likeness = likeness ^ (apart or 0)
                _move(text, navigation)


def _host_of(text: IndexedPage) -> str:
    """The host whose pages are searched for common navigation; "" for no host."""
    is_page = text.mime == "text/html" and text.container is None
    return text.host if is_page else ""


def _move(text: IndexedPage, spans: Sequence[tuple[int, int]]) -> None:
    """Move spans from the main text, and from a table of contents, to the text around it."""
    if not spans:
        return
    whole, body = text.compared, text.body
    own = [(start, min(end, len(body))) for start, end in spans if start < len(body)]
    left = _without(body, own)
    if len(whole) - sum(end - start for start, end in spans) < LEAST_TEXT:
        return
    if own and len(left) < _LEAST_LEFT:
        return
    moved = [whole[start:end] for start, end in spans]
    text.rest = " ".join([text.rest, *moved])[:REST_LIMIT].strip()
    text.body = left
    if text.contents is not None:
        at = len(body) + 1
        listed = [(max(0, start - at), end - at) for start, end in spans if end > at]
        text.contents = _without(text.contents, listed)
    if text.sections is not None:
        text.sections = kept_sections(body, own, text.sections)
    if text.breaks is not None:
        text.breaks = kept_breaks(body, own, text.breaks)
    if body.startswith(text.description):  # the page gives none
        text.description = first_sentence(left)


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    starts, ends = [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(text)]
    return "".join(text[a:b] for a, b in zip(starts, ends, strict=True)).strip()
