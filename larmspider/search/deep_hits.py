"""Of a long page the section that answers a query, so that a link leads there.

Which of the sections that the index keeps (index/sections.py) a hit is about is asked of the few
pages that are shown::

    snippet, section = passage_of(stored, maker)
    section.anchor, section.heading      # ("str.join", "str.join(iterable)")
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from larmspider.items import Section
from larmspider.search.rerank import lower_of

if TYPE_CHECKING:
    from larmspider.search.snippets import Snippet, SnippetMaker

HEAD = 200
"""Characters at the beginning of a page, whose section is the page."""
_LOOKED_AT = 2_000  # characters of a section whose heading has the words


def passage_of(stored: dict[str, Any], maker: SnippetMaker) -> tuple[Snippet, Section | None]:
    """The snippet of a page, and the section that it stands in; None: the page as a whole.

    A section whose heading names what is looked for counts more than the passage with most of the
    words. Of words that the page's title has, no heading need have any.
    """
    body, description = stored["body"], stored["description"]
    sections: Sequence[Sequence[Any]] = stored.get("sections", ())
    left = maker.not_in(stored["title"]) if sections else []
    if left and (at := _named(left, sections)) is not None:
        start = sections[at][0]
        return _found(maker.snippet(body[start : start + _LOOKED_AT], description), sections[at])
    snippet = maker.snippet(body, description, lambda: lower_of(stored))
    if not left or snippet.start < 0:
        return snippet, None
    at = bisect_right(sections, snippet.start, key=lambda section: section[0]) - 1
    return _found(snippet, sections[at]) if at >= 0 else (snippet, None)


def _named(words: Iterable[str], sections: Sequence[Sequence[Any]]) -> int | None:
    """Of sections that with the shortest heading and anchor that have all the words."""
    names = [f"{heading} {anchor}" for _, anchor, heading in sections]
    everything = "\n".join(names).lower()
    if any(word not in everything for word in words):
        return None
    lower = [(len(name), number, name.lower()) for number, name in enumerate(names)]
    found = [one for one in lower if all(word in one[2] for word in words)]
    return min(found)[1] if found else None


def _found(snippet: Snippet, section: Sequence[Any]) -> tuple[Snippet, Section | None]:
    return snippet, Section(*section) if section[0] >= HEAD else None
