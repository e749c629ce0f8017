"""Markdown: the text as it stands; the first heading is the title."""

from __future__ import annotations

import re

from larmspider.extraction.charset import decode
from larmspider.extraction.documents.reading import DocumentBuilder
from larmspider.extraction.documents.text import text_page
from larmspider.items import Page

_HEADING = re.compile(r"^(?:#{1,6}[ \t]+(\S.{0,500})|(\S.{0,500})\n(?:=+|-+)[ \t]*$)", re.MULTILINE)
_LINK = re.compile(r"\[([^\]\n]{0,500})\]\(<?([^\s()<>]{1,4000})")
_REFERENCE = re.compile(r"^ {0,3}\[([^\]\n]{1,500})\]:[ \t]*<?([^\s<>]{1,4000})", re.MULTILINE)


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    text, charset = decode(body, content_type)
    builder = DocumentBuilder()
    if found := _HEADING.search(text):
        builder.title = (found[1] or found[2]).rstrip("# \t\r")
    for anchor, target in (*_LINK.findall(text), *_REFERENCE.findall(text)):
        builder.add_link(target, anchor)
    return text_page(text, charset, url, builder)
