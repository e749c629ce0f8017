"""RTF, by striprtf; HYPERLINK fields are links."""

from __future__ import annotations

import re

from striprtf import striprtf

from larmspider.extraction.documents.reading import DocumentBuilder, Unread, keeping
from larmspider.items import Outcome, Page

_LINK = re.compile(r"HYPERLINK\s+\"([^\"\\]+)\"")
_INFO = re.compile(r"\{\\(title|author)\s+([^{}]{1,1000})\}")


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    text = body.decode("latin-1")  # what is beyond ASCII is escaped
    if not text.startswith("{\\rtf"):
        raise Unread(Outcome.DAMAGED, "it does not begin as RTF does")
    builder = DocumentBuilder()
    for name, value in _INFO.findall(text[:65_536]):
        shown = _text_of("{\\rtf1 " + value + "}")
        if name == "title":
            builder.title = builder.title or shown
        else:
            builder.author = builder.author or shown
    for target in _LINK.findall(text):
        builder.add_link(target)
    builder.note()
    with keeping(builder, url):
        try:
            builder.add(_text_of(text))
        except (ValueError, IndexError, LookupError) as error:
            raise Unread(Outcome.DAMAGED, f"striprtf cannot read it: {error}") from None
    return builder.page(url)


def _text_of(rtf: str) -> str:
    return str(striprtf.rtf_to_text(rtf, errors="ignore"))  # type: ignore[no-untyped-call]
