"""The text of a page as Markdown, by section, for programs and assistants.

parts = html_parts(html_blocks(markup), document.sections)   # headings, lists, code
parts = text_parts(document.text, document.sections)         # of other documents
window(parts, 0, 20_000)                                     # the first 20,000 characters
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from larmspider.items import Section
from larmspider.reports.stored_copy import Block

GAP = "\n\n"
"""Stands between two parts."""
_NEAR = 200
"""Characters before a limit in which a line or word ends, at which the text is cut."""
_LEVEL = 2
"""The level of a section whose markup does not say one."""
_TICKS = re.compile(r"`{3,}")


@dataclass(frozen=True, slots=True)
class Part:
    """A section: ``anchor`` is "" if no link leads to it, ``level`` 0 without a heading.
    ``text`` begins with the heading."""

    anchor: str
    heading: str
    level: int
    text: str


@dataclass(slots=True)
class _Draft:
    anchor: str = ""
    heading: str = ""
    level: int = 0
    lines: list[str] = field(default_factory=list)
    in_list: bool = False

    def add(self, block: Block) -> None:
        in_list = block.kind != "h" and block.level > 0
        if self.lines and not (in_list and self.in_list):
            self.lines.append("")
        self.lines.append(_markdown(block))
        self.in_list = in_list

    @property
    def part(self) -> Part:
        return Part(self.anchor, self.heading, self.level, "\n".join(self.lines))


def html_parts(blocks: Iterable[Block], sections: Sequence[Section]) -> list[Part]:
    """The parts of a page: one begins with each heading, and with each section of the index, whose
    anchor counts before the heading's own."""
    blocks = list(blocks)
    anchors = _anchors(blocks, sections)
    drafts, level = [_Draft()], _LEVEL - 1
    for number, block in enumerate(blocks):
        is_heading = block.kind == "h"
        if is_heading or number in anchors:
            if is_heading:
                level = block.level
            own = level if is_heading else level + 1
            drafts.append(_Draft(anchors.get(number, block.anchor), block.text, own))
        drafts[-1].add(block)
    return [draft.part for draft in drafts if draft.lines]


def text_parts(text: str, sections: Sequence[Section]) -> list[Part]:
    """The parts of a text without markup: its pages, or the sections of the index."""
    if "\f" in text:
        pages = enumerate(text.split("\f"), 1)
        return [Part(f"page={n}", "", 0, page.strip()) for n, page in pages if page.strip()]
    found, end = list[Part](), len(text)
    for start, anchor, heading in reversed(sections):
        own, end = text[start:end].strip(), start
        if heading and own.startswith(heading):
            own = own[len(heading) :].strip()
        head = f"{'#' * _LEVEL} {heading}" if heading else ""
        found.append(Part(anchor, heading, _LEVEL, GAP.join(filter(None, (head, own)))))
    if (first := text[:end].strip()) or not found:
        found.append(Part("", "", 0, first))
    return found[::-1]


def within(parts: Sequence[Part], anchor: str) -> list[Part]:
    """The section with this anchor and its subsections; empty where there is none."""
    found = list[Part]()
    for part in parts:
        if found and (not part.level or part.level <= found[0].level):
            break
        if found or part.anchor == anchor:
            found.append(part)
    return found


class Window(NamedTuple):
    """Some of the parts; the last one may be cut off. ``next``: the place of the next character,
    None at the end. ``whole``: the length of all parts, including the gaps between them."""

    parts: list[Part]
    next: int | None
    whole: int


def window(parts: Sequence[Part], start: int, most: int) -> Window:
    """At most ``most`` characters from ``start`` on. The window ends earlier if a line or a word
    ends shortly before."""
    whole = sum(len(part.text) for part in parts) + len(GAP) * max(0, len(parts) - 1)
    found, at, last = list[Part](), 0, start + most
    for part in parts:
        own, end = part.text, at + len(part.text)
        if end > start and at < last:
            text = own[max(0, start - at) : last - at]
            if end > last:
                text = text[: _break(text)]
                last = max(at, start) + len(text)
            found.append(replace(part, text=text))
        at = end + len(GAP)
    return Window(found, last if last < whole else None, whole)


def _break(text: str) -> int:
    """The place at which a text that is too long is cut."""
    for mark in ("\n", " "):
        if (place := text.rfind(mark, len(text) - _NEAR)) >= 0:
            return place + 1
    return len(text)


def _markdown(block: Block) -> str:
    if block.kind == "h":
        return f"{'#' * block.level} {block.text}"
    text = block.text
    if block.kind == "pre":
        fence = "`" * max([3, *(len(found) + 1 for found in _TICKS.findall(text))])
        text = f"{fence}\n{text}\n{fence}"
    if not block.level:
        return text
    indent = "  " * (block.level - 1)
    first = f"{block.mark} " if block.mark else "  "
    return "\n".join(_indented(text.split("\n"), indent + first, indent + "  "))


def _indented(lines: Iterable[str], first: str, later: str) -> Iterator[str]:
    front = first
    for line in lines:
        yield front + line
        front = later


def _anchors(blocks: Sequence[Block], sections: Sequence[Section]) -> dict[int, str]:
    """The anchors of the blocks that begin a section. Both are in the order of the page; a section
    begins with its heading."""
    by_word: dict[str, list[int]] = {}
    for number, block in enumerate(blocks):
        by_word.setdefault(_first_word(block.text), []).append(number)
    found, after = dict[int, str](), -1
    for section in sections:
        heading = " ".join(section.heading.split())
        if not heading or not section.anchor:
            continue
        for number in by_word.get(_first_word(heading), ()):
            if number > after and " ".join(blocks[number].text.split()).startswith(heading):
                found[number], after = section.anchor, number
                break
    return found


def _first_word(text: str) -> str:
    return next(iter(text.split(maxsplit=1)), "")
