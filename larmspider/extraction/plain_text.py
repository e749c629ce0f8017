"""Plain text: the body is the text, its first line the title. The Page has no links.

Codes for a printer or a terminal are not text: letters that are struck twice, as in manual pages,
and the codes of colours, as in logs. Other control characters part words. The source of a manual
page is read as it is shown (roff.py).
"""

from __future__ import annotations

import re

from larmspider.extraction import roff
from larmspider.extraction.body_type import TERMINAL_CODES
from larmspider.extraction.pages.page_builder import MAX_TITLE, one_line, page_text
from larmspider.extraction.texts.charset import decode
from larmspider.items import Page

_LINE = 200
_STRUCK = re.compile("[^\n]\b")
_CODE = re.compile(TERMINAL_CODES)
_MARKS = re.compile("[\0-\x08\x0e-\x1f]+")


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    text, charset = decode(body, content_type)
    if "\b" in text:
        text = _STRUCK.sub("", text)
    if _MARKS.search(text):
        text = _MARKS.sub(" ", _CODE.sub("", text))
    title = ""
    if roff.is_manual(text):
        shown, title = roff.shown(text)
        text = shown or text
    page = Page(url, body=body, charset=charset, text=page_text([text]))
    page.title = one_line(title, MAX_TITLE) or first_line(text)
    return page


def first_line(text: str) -> str:
    """The first line with a letter or digit; "" if it is too long for a title."""
    for line in text[: 10 * _LINE].splitlines():
        if any(map(str.isalnum, line)):
            return one_line(line, MAX_TITLE) if len(line) <= _LINE else ""
    return ""
