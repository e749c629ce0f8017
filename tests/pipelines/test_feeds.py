"""larmspider/pipelines/feeds.py: what -O pages.jsonl and its like write."""

from __future__ import annotations

import csv
import json
from base64 import b64decode
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

import pytest
from scrapy.crawler import Crawler
from scrapy.http import Headers
from scrapy.settings import Settings
from scrapy.utils.misc import build_from_crawler, load_object

from larmspider import settings as defaults
from larmspider.items import FailedFetch, Link, Page, Removed

BODY = b"%PDF\xff\x00"
PAGE = Page(
    "http://h/a.pdf",
    "http://h/a.pdf",
    body=BODY,
    text="words of it",
    headers=Headers({"ETag": "1", "Via": ["a", "b\xe9"]}),
    links=[Link("http://h/b", "http://h/b", anchor="B", rejected_by="scope")],
)
FAILED = FailedFetch("http://h/c", "http://h/c", "http://h/", 0, 1, "dns", "no address", 1.0)


def feed(crawler: Crawler, format_: str, *items: Any) -> bytes:
    """What the exporter that settings.py names for a format makes of ``items``."""
    file = BytesIO()
    exporter = build_from_crawler(
        load_object(defaults.FEED_EXPORTERS[format_]), crawler, file, encoding="utf-8"
    )
    exporter.start_exporting()
    for item in items:
        exporter.export_item(item)
    exporter.finish_exporting()
    return file.getvalue()


@pytest.mark.parametrize("format_", ["jsonl", "json", "jl"])
def test_text_links_and_headers_of_a_page_are_in_json(
    crawler_for: Callable[..., Crawler], format_: str
) -> None:
    """The body is left out, where no setting wants it."""
    written = feed(crawler_for(), format_, PAGE)
    (page,) = json.loads(written) if format_ == "json" else map(json.loads, written.splitlines())
    assert (page["url"], page["text"], page["status"]) == (PAGE.url, "words of it", 200)
    assert page["links"][0] == {
        "url": "http://h/b", "normalized": "http://h/b", "type": 0, "anchor": "B", "exact": None,
        "nofollow": False, "rejected_by": "scope", "reason": "",
    }  # fmt: skip
    assert page["headers"] == [
        {"name": "Etag", "value": "1"},
        {"name": "Via", "value": "a"},
        {"name": "Via", "value": "b\xc3\xa9"},  # Headers made UTF-8 of it; read as Latin-1
    ]
    assert not {"body", "body_base64"} & page.keys()


def test_a_binary_body_is_intact_where_bodies_are_wanted(
    crawler_for: Callable[..., Crawler],
) -> None:
    page = json.loads(feed(crawler_for(LARM_FEED_BODIES="yes"), "jsonl", PAGE))
    assert b64decode(page["body_base64"]) == BODY
    assert "body" not in page


def test_csv_and_xml_hold_links_and_headers_too(crawler_for: Callable[..., Crawler]) -> None:
    crawler = crawler_for(LARM_FEED_BODIES=True)
    (row,) = csv.DictReader(feed(crawler, "csv", PAGE).decode().splitlines())
    assert json.loads(row["links"])[0]["url"] == "http://h/b"
    assert json.loads(row["headers"])[0] == {"name": "Etag", "value": "1"}
    assert b64decode(row["body_base64"]) == BODY
    item = ElementTree.fromstring(feed(crawler, "xml", PAGE)).find("item")
    assert item is not None
    assert item.findtext("links/value/url") == "http://h/b"
    assert item.findtext("headers/value/name") == "Etag"


def test_other_items_keep_their_fields(crawler_for: Callable[..., Crawler]) -> None:
    """Bytes, which JSON cannot hold, are in base64 whatever the setting."""
    written = feed(crawler_for(), "jsonl", FAILED, {"price": 1, "image": b"\xff"})
    failed, item = map(json.loads, written.splitlines())
    assert (failed["kind"], failed["message"]) == ("dns", "no address")
    assert item == {"price": 1, "image_base64": "/w=="}


def test_the_project_writes_its_feeds_by_these() -> None:
    settings = Settings()
    settings.setmodule(defaults)
    names = settings.getwithbase("FEED_EXPORTERS")
    assert {names[name] for name in ("json", "jsonlines", "jsonl", "jl", "csv", "xml")} == set(
        defaults.FEED_EXPORTERS.values()
    )


@pytest.mark.parametrize("format_", ["jsonl", "json", "csv"])
def test_a_feed_shows_what_it_holds(crawler_for: Callable[..., Crawler], format_: str) -> None:
    """Characters that turn or hide text are escapes; JSON means them when it is read."""
    title = "invoice\u202efdp.exe \u200b\N{SNOWMAN}"
    written = feed(crawler_for(), format_, Page("http://h/", "http://h/", title=title)).decode()
    assert "invoice\\u202efdp.exe \\u200b\N{SNOWMAN}" in written
    assert not {"\u202e", "\u200b"} & {*written}
    if format_ == "jsonl":
        assert json.loads(written)["title"] == title
    url = "http://h/\u202efdp"
    for item in (replace(FAILED, url=url), Removed(url, url, "gone \u200b", 1.0)):
        assert "h/\\u202efdp" in (written := feed(crawler_for(), format_, item).decode())
        assert not {"\u202e", "\u200b"} & {*written}


def test_a_spreadsheet_takes_no_cell_of_a_feed_for_a_formula(
    crawler_for: Callable[..., Crawler],
) -> None:
    """Whoever wrote the page; numbers and bodies stay as they are."""
    page = Page("http://h/", "http://h/", 200, title="=HYPERLINK(A1)", text="@x", body=b"\xfb\xef")
    crawler = crawler_for(LARM_FEED_BODIES=True)
    (row,) = csv.DictReader(feed(crawler, "csv", page).decode().splitlines())
    assert (row["title"], row["text"], row["status"]) == ("'=HYPERLINK(A1)", "'@x", "200")
    assert row["body_base64"] == "++8="
