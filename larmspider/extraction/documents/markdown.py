"""Markdown: the text as it stands, the first heading as title, the links of CommonMark.

Read are links, references, URLs in angle brackets, anchors of HTML, and bare URLs as GitHub reads
them. Marks of headings, lists and emphasis stay in the text; front matter is text; links of wikis
(``[[page]]``) are no links.
"""

from __future__ import annotations

import html
import re

from larmspider.extraction.documents.reading import DocumentBuilder, urls_in
from larmspider.extraction.documents.text_page import text_page
from larmspider.extraction.texts.charset import decode
from larmspider.items import Page

_HEADING = re.compile(r"^(?:#{1,6}[ \t]+(\S.{0,500})|(\S.{0,500})\n(?:=+|-+)[ \t]*$)", re.MULTILINE)
_PLAIN = r"(?:[^\s()<>\\]|\\.)"
_NESTED = rf"(?:{_PLAIN}|\((?:{_PLAIN}|\({_PLAIN}{{0,500}}+\)){{0,500}}+\))"
_TARGET = rf"(?:<([^<>\n]{{1,4000}})>|({_NESTED}{{1,4000}}+))"
"""A destination (CommonMark 6.3): in angle brackets, or without a space, its brackets closed."""
_LINK = re.compile(rf"\]\([ \t]*+\n?[ \t]*+{_TARGET}")
_REFERENCE = re.compile(
    r"^ {0,3}\[([^\]\n]{1,500})\]:[ \t]*+\n?[ \t]*+(?:<([^<>\n]{1,4000})>|(\S{1,4000}))",
    re.MULTILINE,
)
_AUTOLINK = re.compile(r"<((?:https?|ftp)://[^\s<>]{1,4000})>")
_ANCHOR = re.compile(
    r"<a\s(?:[^<>]{0,500}?\s)?href\s*=\s*(?:\"([^\"<>]{1,4000})\"|'([^'<>]{1,4000})'|([^\s\"'<>]{1,4000}))",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_LONGEST_TEXT = 500
"""Characters of a link's text."""


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    text, charset = decode(body, content_type)
    builder = DocumentBuilder()
    rest = add_links(text, builder)
    urls = (found.rstrip("~") for found in urls_in(html.unescape(rest)))
    return text_page(text, charset, url, builder, urls=urls)


def add_links(text: str, builder: DocumentBuilder) -> str:
    """Add the links that markup makes, and the first heading as title; ``text`` without them."""
    if not builder.title and (found := _HEADING.search(text)):
        builder.title = (found[1] or found[2]).rstrip("# \t\r")
    for found in _LINK.finditer(text):
        builder.add_link(_target(found[1] or found[2]), _text_before(text, found.start()))
    for found in _REFERENCE.finditer(text):
        builder.add_link(_target(found[2] or found[3]), found[1])
    for found in _AUTOLINK.finditer(text):
        builder.add_link(found[1])
    for found in _ANCHOR.finditer(text):
        builder.add_link(html.unescape(found[1] or found[2] or found[3]))
    for pattern in (_LINK, _REFERENCE, _AUTOLINK, _ANCHOR):
        text = pattern.sub(" ", text)
    return text


def _target(written: str) -> str:
    return html.unescape(_ESCAPE.sub(r"\1", written))


def _text_before(text: str, end: int) -> str:
    """The text of the link whose closing bracket is at ``end``, or of an image in it."""
    start = text.rfind("[", max(0, end - _LONGEST_TEXT), end)
    return text[start + 1 : end].partition("]")[0] if start >= 0 else ""
