"""Feeds (``-O pages.jsonl``): a line an item, with a page's text, links and headers.

Bytes that a text format cannot hold are written in base64, in a field x_base64. A page's body
is left out, because it is in the page files already, unless LARM_FEED_BODIES is on::

    {"url": "http://wiki/a.pdf", "status": 200, ..., "headers": [{"name": "ETag", "value": "1"}],
     "body_base64": "JVBERi0xLjcK..."}
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Self

from itemadapter import ItemAdapter
from scrapy import exporters

from larmspider import options
from larmspider.formatting import defused, escaped, json_escaped
from larmspider.items import FailedFetch, Kept, Page, Removed, Requisite, header_list

if TYPE_CHECKING:
    from io import BytesIO

    from scrapy.crawler import Crawler

_LEFT_OUT = frozenset((
    "headers", "links", "parts", "sections", "core", "contents",
    "stored_at", "body_file", "file_bytes", "requisites",
))  # fmt: skip
_NAMES = tuple(field.name for field in fields(Page) if field.name not in _LEFT_OUT)


def page_record(page: Page) -> dict[str, Any]:
    """The fields of a page as plain data; its body stays bytes."""
    record = {name: getattr(page, name) for name in _NAMES}
    return record | {
        "headers": header_list(page.headers),
        "links": [asdict(link) for link in page.links],
        "parts": [asdict(part) for part in page.parts],
    }


def feed_item(item: Any, *, bodies: bool) -> Any:
    """The form of ``item`` in a feed: `page_record` for a page, with its body only if ``bodies``. A
    field ``x`` with bytes becomes ``x_base64``."""
    if isinstance(item, Page):
        record: Mapping[str, Any] = page_record(item)
        if not bodies:
            del record["body"]  # type: ignore[attr-defined]
    else:
        record = ItemAdapter(item)
        if not any(isinstance(value, bytes) for value in record.values()):
            return item  # its fields may have serializers of their own
    return dict(_as_text(name, value) for name, value in record.items())


def _as_text(name: str, value: Any) -> tuple[str, Any]:
    if isinstance(value, bytes):
        return f"{name}_base64", b64encode(value).decode("ascii")
    return name, value


class _FeedItems:
    """Converts each item by `feed_item` for one of Scrapy's exporters."""

    def __init__(self, file: BytesIO, *, bodies: bool = False, **kwargs: Any) -> None:
        super().__init__(file, **kwargs)  # type: ignore[call-arg]
        self.bodies = bodies

    @classmethod
    def from_crawler(cls, crawler: Crawler, file: BytesIO, **kwargs: Any) -> Self:
        bodies = options.boolean(crawler.settings, "LARM_FEED_BODIES")
        return cls(file, bodies=bodies, **kwargs)

    def export_item(self, item: Any) -> None:
        if not isinstance(item, Kept | Requisite):  # nothing is new, or no page
            super().export_item(self.record(item))  # type: ignore[misc]

    def record(self, item: Any) -> Any:
        return feed_item(item, bodies=self.bodies)


class _JsonFeedItems(_FeedItems):
    """JSON is ASCII, unless FEED_EXPORT_ENCODING is set: then invisible characters are escapes."""

    def __init__(self, file: BytesIO, **kwargs: Any) -> None:
        super().__init__(file, **kwargs)
        encoder: Any = self.encoder  # type: ignore[attr-defined]
        if not encoder.ensure_ascii:
            encode = encoder.encode
            encoder.encode = lambda item: json_escaped(encode(item))


class JsonFeed(_JsonFeedItems, exporters.JsonItemExporter):
    """For ``-O pages.json``."""


class JsonLinesFeed(_JsonFeedItems, exporters.JsonLinesItemExporter):
    """For ``-O pages.jsonl``."""


class XmlFeed(_FeedItems, exporters.XmlItemExporter):
    """For ``-O pages.xml``; a line feed parts pages, for XML has no form feed."""

    def record(self, item: Any) -> Any:
        record = super().record(item)
        if isinstance(item, Page):
            record["text"] = record["text"].replace("\f", "\n")
        return record


class CsvFeed(_FeedItems, exporters.CsvItemExporter):
    """For ``-O pages.csv``: links, parts, rest, fields and headers are JSON in their cells,
    invisible characters are escaped, formulas have an apostrophe before them. A CSV file has the
    columns of its first item, so failed fetches fill only columns that pages have too."""

    def record(self, item: Any) -> Any:
        record = super().record(item)
        if isinstance(item, Page):
            for name in ("fields", "headers", "links", "parts", "rest"):
                record[name] = json.dumps(record[name])
        if isinstance(item, (Page, FailedFetch, Removed)):
            return {name: _cell(name, value) for name, value in ItemAdapter(record).items()}
        return record


def _cell(name: str, value: Any) -> Any:
    """base64 may begin with a plus sign, and holds nothing that a formula could do harm with."""
    if not isinstance(value, str) or name.endswith("_base64"):
        return value
    return escaped(defused(value))
