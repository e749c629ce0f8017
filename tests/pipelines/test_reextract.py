"""larmspider/pipelines/reextract.py: stored pages are read again."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest
from scrapy.http import Headers

from larmspider.errors import ConfigError
from larmspider.extraction.pages.html import extract
from larmspider.extraction.processes.process import Readers
from larmspider.extraction.texts.language import Languages
from larmspider.index.rebuild import rebuild
from larmspider.index.schema import FILES
from larmspider.index.version import restricted_of
from larmspider.items import Link, Page
from larmspider.pipelines.fetch_log import remarks_in
from larmspider.pipelines.reextract import link_texts, linking_pages, reextracted
from larmspider.search.searcher import Searcher
from larmspider.urls.canonical import Canonicalizer
from tests.support.stored_crawl import OPEN, OWN, StoredCrawl, linked

FORMS = Canonicalizer().forms
LATIN2 = Headers({"Content-Type": "text/plain; charset=iso-8859-2"})


def _again(path: Path, *only: str) -> dict[str, dict[str, object] | None]:
    with Readers() as readers:
        total, found = reextracted(path, FORMS, readers, Languages(()), only)
        pages = dict(found)
    assert total >= len(pages)
    return pages


def test_an_index_is_made_from_page_files(tmp_path: Path) -> None:
    """As the old one: the same pages with their texts, titles and times."""
    crawl = StoredCrawl(tmp_path / "crawl", refresh=False)
    for name in "abc":
        url, body = f"http://h/{name}", b"<title>Page %b</title><p>word %b" % ((name.encode(),) * 2)
        page = extract(body, url, "text/html")
        page.body, page.mime = body, "text/html"
        crawl.store(url, page)
    crawl.end()
    old, pages = Searcher.open(crawl.path / "index"), _again(crawl.path)
    assert len(pages) == old.count() == 3
    for key, stored in pages.items():
        page = old.get(key)
        assert stored is not None
        assert page is not None
        assert (stored.url, stored.title, stored.body) == (page.url, page.title, page.text)
        assert (stored.size, stored.mime) == (page.size, page.mime)
        assert abs(stored.fetched.timestamp() - page.fetched) < 0.01


def test_what_only_headers_said_is_known_by_the_logs(tmp_path: Path) -> None:
    """noindex, a charset, why a document has no body; those in another language stay out, too."""
    crawl = StoredCrawl(tmp_path / "crawl", refresh=False)
    czech = "Žluťoučký kůň".encode("iso-8859-2")
    pdf = "application/pdf"
    for name, fields in {
        "hidden": {"noindex": True, "body": b"hidden"},
        "latin2": {"charset": "iso-8859-2", "headers": LATIN2, "body": czech},
        "large": {"mime": pdf, "unread": "too-large: too large to read"},
        "german": {"mime": "text/html", "body": b"<html lang=de><p>" + 99 * b"Wort "},
    }.items():
        crawl.store(f"http://h/{name}", Page(f"http://h/{name}", **{"mime": "text/plain"} | fields))  # type: ignore[arg-type]
    crawl.end()
    found = _again(crawl.path, "en")
    assert found["http://h/hidden"] is None
    assert found["http://h/german"] is None
    latin2, large = found["http://h/latin2"], found["http://h/large"]
    assert latin2 is not None
    assert latin2.body == "Žluťoučký kůň"
    assert large is not None
    assert large.description == "too-large: too large to read"


@pytest.mark.parametrize(
    ("message", "remarks"),
    [
        ("", (False, "", "")),
        ("noindex", (True, "", "")),
        ("charset=koi8-r", (False, "koi8-r", "")),
        ("noindex; charset=koi8-r; damaged: no PDF", (True, "koi8-r", "damaged: no PDF")),
        ("encrypted: needs a password", (False, "", "encrypted: needs a password")),
        ("noindexed; redirect loop: http://h/?noindex", (False, "", "")),
    ],
)
def test_remarks_are_read_back(message: str, remarks: tuple[bool, str, str]) -> None:
    assert remarks_in(message) == remarks


def test_an_index_that_is_gone_has_its_link_texts_again(tmp_path: Path) -> None:
    """By links.log, of the last version of each page."""
    crawl = StoredCrawl(tmp_path / "crawl", refresh=True)
    target = "http://h/target"
    crawl.store(target, Page(target, mime="text/plain", body=b"x"))
    for text in ("zebra", "quagga"):
        links = [Link(target, target, anchor=text, exact=target)]
        crawl.store("http://h/", Page("http://h/", mime="text/plain", body=b"y", links=links))
    crawl.end()
    index = crawl.path / "index"
    shutil.rmtree(index)
    with Readers() as readers:
        again = reextracted(crawl.path, FORMS, readers, Languages(()))
        rebuild(index, again, partial(link_texts, crawl.path, FORMS))
    searcher = Searcher.open(index)
    found = [[hit.url for hit in searcher.search(word).hits] for word in ("quagga", "zebra")]
    assert found == [[target], []]


def test_without_page_files_nothing_is_read(tmp_path: Path) -> None:
    crawl = StoredCrawl(tmp_path / "crawl", refresh=False)
    crawl.store("http://h/", Page("http://h/", mime="text/plain", body=b"text"))
    crawl.end()
    with (crawl.path / "pagefile_0.pfl").open("r+b") as file:
        file.truncate(2)
    with pytest.raises(ConfigError, match=r"pagefile_0\.pfl is gone or cut short: expected"):
        _again(crawl.path)


@pytest.mark.parametrize("gone", [True, False])
def test_a_new_index_has_no_link_texts_of_restricted_pages_for_others(
    tmp_path: Path, gone: bool
) -> None:
    """The texts come from links.log where the index is gone, and from the index where it was made
    before the host was restricted. Pages of the host itself keep their texts."""
    crawl = linked(tmp_path / "crawl")
    index = crawl.path / "index"
    if gone:
        shutil.rmtree(index)
    with Readers() as readers:
        again = reextracted(crawl.path, FORMS, readers, Languages(()))
        rebuild(
            index,
            again,
            partial(link_texts, crawl.path, FORMS),
            restricted=["http://hr"],
            pages=partial(linking_pages, crawl.path, FORMS),
        )
    searcher = Searcher.open(index)
    for word, urls in (("canary", [OWN]), ("finch", []), ("robin", [OWN, OPEN])):
        assert sorted(hit.url for hit in searcher.search(word).hits) == urls, word
    assert restricted_of(index) == (FILES, "http://hr")
