"""Tables as text, CSV and TSV: the text as it stands. A URL ends where its field ends (RFC 4180).

a;http://wiki/plan;2          http://wiki/plan
"see http://wiki/x, please"   http://wiki/x

The separator is found by the first lines. No row is a title, and no formula is computed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from larmspider.extraction.documents.reading import DocumentBuilder, urls_in_value
from larmspider.extraction.documents.text_page import text_page
from larmspider.extraction.texts.charset import decode
from larmspider.items import Page

_DELIMITERS = ",;\t|"
_HEAD_CHARS = 4_096
"""Characters in which the delimiter is looked for: the most frequent one beside quoted fields."""
_QUOTED = re.compile(r'"[^"]*+(?:""[^"]*+)*+"?')


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    text, charset = decode(body, content_type)
    return text_page(text, charset, url, DocumentBuilder(), urls=_urls(text))


def _urls(text: str) -> Iterator[str]:
    head = _QUOTED.sub("", text[:_HEAD_CHARS])
    # a URL may have a comma or semicolon of its own, a separator is in each line
    lines = [line for line in head.splitlines() if line.strip()] or [""]
    counts = {one: sum(one in line for line in lines) for one in _DELIMITERS}
    delimiter = max(_DELIMITERS, key=lambda one: counts[one])
    field = re.compile(rf'"([^"]*+(?:""[^"]*+)*+)"?|([^"\r\n{re.escape(delimiter)}]++)')
    for found in field.finditer(text):
        value = found[1].replace('""', '"') if found[1] is not None else found[2]
        if "://" in value:
            yield from urls_in_value(value)
