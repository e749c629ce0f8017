"""The own words of a page that is mostly links: its text outside of links.

    outside_links(page)  # ["Printers - Intranet", " The one on the second floor ..."]; [] for most

A menu in a plain ``div`` is main text, and drowns the few words of the page's own. These words
decide whether the page is a copy (copies.py), and whether it is new to its host
(extraction/texts/novelty.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from larmspider.items import Page

LEAST_TEXT = 200
"""The least characters of a main text that is compared."""
MOSTLY_LINKS = 0.6
"""Share of a main text in links from which on the rest is the text of the page: with so much in
common, the simhashes of two pages differ in 19 bits."""
_NOWHERE = (1 << 62, 1 << 62)
_LONGEST_LINKS = 100  # characters of a main text for each link of a page that is mostly links
_MOST_LINKS = 10_000  # links of a page, which then takes 4 ms; one of Erlang's manuals has 5,000
_REACH = 500  # characters after a link in which the next one is looked for, at first
_MOST_IN_VAIN = 1_000_000  # looked through for links that are not there


def outside_links(page: Page) -> list[str]:
    """The title of a page that is mostly links, and the pieces of its main text outside of links;
    [] for any other page. Takes 0.3 us for each link of such a page."""
    rest, text, links = page.rest, page.text, page.links
    size = len(text) - sum([end - start for start, end in rest])
    if not LEAST_TEXT <= size <= _LONGEST_LINKS * len(links) or len(links) > _MOST_LINKS:
        return []
    anchors = [link.anchor for link in links if link.anchor]
    least = MOSTLY_LINKS * size
    if sum(map(len, anchors)) - (len(text) - size) <= least:
        return []
    outside = _between(text, anchors)
    if rest:
        outside = [*_without(outside, rest)]
    pieces = [text[start:end] for start, end in outside if end > start + 3]  # not " | "
    if sum(map(len, pieces)) >= size - least:
        return []
    return [page.title, *pieces]


def _between(text: str, anchors: Sequence[str]) -> list[tuple[int, int]]:
    """The spans of a text that lie outside of all anchors. The text has the anchors in this order,
    except for images and hidden text."""
    find, follows, outside = text.find, text.startswith, list[tuple[int, int]]()
    at = in_vain = 0
    reach = _REACH
    is_sure = True
    for anchor in anchors:
        if follows(anchor, at + 1):  # a space
            at += len(anchor) + 1
            reach, is_sure = _REACH, True
            continue
        found = find(anchor, at, at + reach + len(anchor))
        if found < 0 and not is_sure and (found := find(anchor, outside[-1][0], at)) >= 0:
            at, _ = outside.pop()  # the last one was taken for another place
        if found >= 0:
            outside.append((at, found))
            at, reach, is_sure = found + len(anchor), _REACH, False
            continue
        in_vain += reach
        reach += _REACH
        if in_vain > _MOST_IN_VAIN:
            break
    outside.append((at, len(text)))
    return outside


def _without(
    spans: Iterable[tuple[int, int]], others: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """The parts of ``spans`` outside of other spans. Both are sorted."""
    left = iter(others)
    begin, behind = next(left, _NOWHERE)
    for start, end in spans:
        while start < end:
            while behind <= start:
                begin, behind = next(left, _NOWHERE)
            if start < begin:
                yield start, min(end, begin)
            start = behind if begin < end else end
