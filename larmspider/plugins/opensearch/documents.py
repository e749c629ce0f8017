"""The documents of pages in OpenSearch: the fields of our own index (index/schema.py).

    maker = DocumentMaker("english")
    page = page_of(entry)                              # None: no reader finds it
    for name, document in maker.documents(page, links, stamp): ...

OpenSearch searches the fields that Tantivy does, cut into the same words (index.json). From four
others, `STORED`, the whole document can be made again: ``page`` has the fields of an `IndexedPage`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from math import log2
from typing import Any

import msgspec

from larmspider.index.anchors import NO_LINKS, LinkTexts
from larmspider.index.page import IndexedPage
from larmspider.index.schema import (
    indexed_page,
    searched_fields,
    with_likeness,
    without_surrogates,
)
from larmspider.index.stems import Stems
from larmspider.items import Link, Page, Part, Section
from larmspider.pipelines.outbox.facts import FIELDS, PART_FIELDS
from larmspider.pipelines.outbox.spool import PAGE_FIELDS, Entry

_KEPT = tuple(name for name in PAGE_FIELDS if name in Page.__slots__)
_TIMES = ("fetched", "modified")
STORED = ("page", "link_texts", "stored", "slot")


def key_of(entry: Entry) -> str:
    """The key of a page (`Page.name`)."""
    found: str = entry.page["exact"] or entry.page.get("normalized") or entry.url
    return found


def document_id(key: str) -> str:
    """OpenSearch takes 512 bytes."""
    return sha256(key.encode("utf-8", "replace")).hexdigest()


def page_of(entry: Entry) -> IndexedPage | None:
    """The page as an index has it; None for one that no reader finds."""
    facts = entry.page.get("index") or {}
    if entry.removed is not None or "parts" not in facts:
        return None
    page = Page(entry.url, file_bytes=entry.size)
    for name in _KEPT:
        setattr(page, name, entry.page[name])
    for name in FIELDS:
        setattr(page, name, facts[name])
    page.sections = [Section(*section) for section in page.sections]
    page.parts = [Part(**dict(zip(PART_FIELDS, part, strict=True))) for part in facts["parts"]]
    urls, _, _, anchors = entry.page["links"]
    page.links = [Link(url, anchor=anchor) for url, anchor in zip(urls, anchors, strict=True)]
    return indexed_page(page, page.digest)


def page_in(source: Mapping[str, Any]) -> tuple[IndexedPage, LinkTexts]:
    """The page and its links in a stored document. Raises ValueError, KeyError or TypeError for
    one that is not ours."""
    kept = dict(source["page"])
    for name in _TIMES:
        if name in kept:
            kept[name] = datetime.fromisoformat(kept[name])
    links = source["link_texts"]
    return IndexedPage.of(kept), LinkTexts(links["texts"], links["number"])


class DocumentMaker:
    def __init__(self, stemmer: str) -> None:
        self._stems = Stems(stemmer)

    def documents(
        self, page: IndexedPage, links: LinkTexts, stamp: int, slot: Sequence[str]
    ) -> Iterator[tuple[str, bytes]]:
        """Key and JSON of the document of a page, then of each document in it. ``slot``: its terms
        (rights.py); without them only operators find the documents."""
        yield page.key, self._document(page, links, stamp, slot)
        for part in page.parts or ():
            yield part.key, self._document(part, NO_LINKS, stamp, slot)

    def _document(
        self, page: IndexedPage, links: LinkTexts, stamp: int, slot: Sequence[str]
    ) -> bytes:
        page = with_likeness(page, links)
        fields = searched_fields(page, links, self._stems)
        # our own index finds other forms of English words in its dictionary; here there is none
        fields.setdefault("body", " ".join(fields["exact"][1:]))
        fields["prior"] = log2(2 + fields["prior"])  # a score is multiplied by it
        if page.own:
            fields["own"] = page.own
        fields["page"] = page.fields()
        fields["link_texts"] = {"texts": links.texts, "number": links.number}
        fields["stored"] = stamp
        fields["slot"] = slot
        try:
            return msgspec.json.encode(fields)
        except UnicodeEncodeError:  # a lone surrogate
            return msgspec.json.encode(without_surrogates(fields))
