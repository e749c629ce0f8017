"""The Page of a format whose text is searched as it stands."""

from __future__ import annotations

from collections.abc import Iterable

from larmspider.extraction.documents.reading import DocumentBuilder
from larmspider.extraction.pages.page_builder import CUT, MAX_TEXT
from larmspider.items import Page


def text_page(
    text: str, charset: str | None, url: str, builder: DocumentBuilder, urls: Iterable[str]
) -> Page:
    """The Page of ``text``, with ``urls`` as links beside the links of ``builder``, each once."""
    known = {link[0] for link in builder.links}
    for target in urls:
        if target not in known:
            known.add(target)
            builder.add_link(target)
    builder.pieces.append(text[:MAX_TEXT])
    page = builder.page(url)
    page.charset = charset
    if len(text) > MAX_TEXT:
        page.unread = CUT
    return page
