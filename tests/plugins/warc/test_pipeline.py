"""larmspider/plugins/warc/pipeline.py and records.py, read by warcio and by FastWARC."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy.crawler import Crawler
from scrapy.http import Headers
from warcio.archiveiterator import ArchiveIterator

from larmspider.crawl.reader import CrawlDir, check_bodies
from larmspider.errors import CommittedGoneError, ConfigError, CrawlDirError
from larmspider.fetch.transfer import ReceivedHeaders
from larmspider.items import FRAME, REDIRECT, Link, Page, Removed
from larmspider.pipelines.page_files import PageFilesPipeline, stored_pages
from larmspider.plugins.warc import pipeline as warc
from larmspider.plugins.warc.pipeline import WarcPipeline, drop_records, fill_up, warc_files
from larmspider.plugins.warc.records import surt
from larmspider.settings import ITEM_PIPELINES
from larmspider.workdir.manifest import FORMAT
from tests.support.warcs import check, pages_in

WARC_PIPELINE = "larmspider.plugins.warc.pipeline.WarcPipeline"
IN_WARC = ITEM_PIPELINES | {WARC_PIPELINE: 150}
CrawlerFor = Callable[..., Crawler]
NOON = 1_700_000_000.0


def _store(crawler_for: CrawlerFor, *items: object, **settings: object) -> WarcPipeline:
    store = _open(crawler_for, **settings)
    for item in items:
        store.process_item(item)
    store.close_spider()
    return store


def _open(crawler_for: CrawlerFor, position: bytes | None = None, **settings: object) -> Any:
    store = WarcPipeline.from_crawler(crawler_for(**settings))
    if position is not None:
        store.recover(position)
    store.open_spider()
    return store


def _page(path: str, body: bytes = b"", **fields: Any) -> Page:
    return Page(f"http://h/{path}", body=body or path.encode(), fetched=NOON, **fields)


def _files(tmp_path: Path) -> list[Path]:
    return list(warc_files(tmp_path / "crawl" / "warc").values())


def _records(path: Path) -> Iterator[tuple[str, dict[str, str], bytes]]:
    with path.open("rb") as file:
        for record in ArchiveIterator(file, no_record_parse=True):
            yield record.rec_type, dict(record.rec_headers.headers), record.content_stream().read()


def _cdxj(path: Path) -> list[tuple[str, str, dict[str, str]]]:
    lines = path.with_name(path.name.replace(".warc.gz", ".cdxj")).read_text().splitlines()
    parts = (line.split(" ", 2) for line in lines)
    return [(key, stamp, json.loads(fields)) for key, stamp, fields in parts]


def _received(*lines: bytes, sent: tuple[bytes, ...] = (), **known: list[bytes]) -> ReceivedHeaders:
    headers = ReceivedHeaders()
    headers.received = [*(line + b"\r\n" for line in lines), b"\r\n", b"X-Trailer: 1\r\n"]
    headers.sent, headers.address = sent, "127.0.0.1"
    dict.update(headers, {name.encode(): values for name, values in known.items()})
    return headers


def test_a_page_is_a_response_a_request_and_its_links(
    crawler_for: CrawlerFor, tmp_path: Path
) -> None:
    """Heads as they came, the body as it is stored; what was said of the coded one is kept."""
    headers = _received(
        b"HTTP/1.1 200 Fine",
        b"content-TYPE: text/html",
        b"X-Folded: one",
        b"  two",
        b"Content-Encoding: gzip",
        b"Content-Length: 77",
        b"no header",
        sent=(b"User-Agent: larm", b"Accept:", b"X-Empty;"),
    )
    links = [
        Link("http://u:p@h/b"),
        Link("http://h/f\n", type=FRAME),
        Link("http://h/r", type=REDIRECT),
        Link("http://u:p@h/b", anchor="again"),
    ]
    page = _page("a?q=1", b"<p>body", headers=headers, links=links, from_page="http://h/")
    page.latency, page.mime = 0.25, "text/html"
    _store(crawler_for, page)
    (path,) = _files(tmp_path)
    info, response, request, metadata = _records(path)
    assert info[0] == "warcinfo"
    assert info[1]["WARC-Filename"] == path.name
    assert b"format: WARC File Format 1.1\r\n" in info[2]
    assert response[2] == (
        b"HTTP/1.1 200 Fine\r\ncontent-TYPE: text/html\r\nX-Folded: one two\r\n"
        b"X-Archive-Orig-Content-Encoding: gzip\r\nX-Archive-Orig-Content-Length: 77\r\n"
        b"Content-Length: 7\r\n\r\n<p>body"
    )
    assert response[1]["WARC-Target-URI"] == "http://h/a?q=1"
    assert response[1]["WARC-IP-Address"] == "127.0.0.1"
    assert response[1]["WARC-Date"] == "2023-11-14T22:13:20Z"
    assert request[2] == (
        b"GET /a?q=1 HTTP/1.1\r\nHost: h\r\nUser-Agent: larm\r\nX-Empty: \r\n\r\n"
    )
    assert request[1]["WARC-Concurrent-To"] == response[1]["WARC-Record-ID"]
    assert metadata[2] == (
        b"via: http://h/\r\nfetchTimeMs: 250\r\noutlink: http://h/b L a/@href\r\n"
        b"outlink: http://h/f E iframe/@src\r\noutlink: http://h/r R Location:\r\n"
    )
    ((key, stamp, fields),) = _cdxj(path)
    assert (key, stamp) == ("h)/a?q=1", "20231114221320")
    with path.open("rb") as file:
        file.seek(int(fields["offset"]))
        member = file.read(int(fields["length"]))
    assert gzip.decompress(member).endswith(b"<p>body\r\n\r\n")
    check(path)


@pytest.mark.parametrize(
    "line",
    [
        *(b"Set-Cookie: id=SECRET", b"Cookie: id=SECRET", b"Authorization: Basic SECRET"),
        *(b"Proxy-Authorization: SECRET", b"WWW-Authenticate: Negotiate SECRET"),
        *(b"X-Api-Key: SECRET", b"X-Auth-Token: SECRET", b"PRIVATE-TOKEN: SECRET"),
        *(b"X-CSRF: SECRET", b"X-Amz-Signature: SECRET", b"Location: http://me:SECRET@h/next"),
        b"X-Folded-Cookie: a\r\n SECRET",
    ],
)
def test_nothing_that_holds_credentials_is_written(
    crawler_for: CrawlerFor, tmp_path: Path, line: bytes
) -> None:
    """Neither in what was sent nor in what came, nor in a URL."""
    received = _received(b"HTTP/1.1 200 OK", *line.split(b"\r\n"), b"X-Author: me", sent=(line,))
    for number, headers in enumerate((received, Headers(dict([line.split(b": ", 1)])))):
        page = _page(str(number), headers=headers)
        page.url = page.url.replace("://", "://user:SECRET@")
        page.from_page = page.url
        _store(crawler_for, page)
    (path,) = _files(tmp_path)
    content = b"".join(block + repr(head).encode() for _, head, block in _records(path))
    assert b"SECRET" not in content
    assert b"X-Author: me" in content


def test_an_identical_body_is_a_revisit_also_in_a_later_run(
    crawler_for: CrawlerFor, tmp_path: Path
) -> None:
    """It names its original; an empty body is none. Readers find the body there."""
    _store(crawler_for, _page("a", b"same"), _page("b", b"same"), _page("c"))
    _store(crawler_for, _page("d", b"same"))
    (path,) = _files(tmp_path)
    revisits = [head for kind, head, _ in _records(path) if kind == "revisit"]
    assert [head["WARC-Target-URI"] for head in revisits] == ["http://h/b", "http://h/d"]
    assert {head["WARC-Refers-To-Target-URI"] for head in revisits} == {"http://h/a"}
    assert {head["WARC-Refers-To-Date"] for head in revisits} == {"2023-11-14T22:13:20Z"}
    keys = {key: fields["mime"] for key, _, fields in _cdxj(path)}
    assert (keys["h)/b"], keys["h)/c"]) == ("warc/revisit", "application/octet-stream")
    check(path)
    assert pages_in(path)["http://h/d"] == b"same"


def test_a_page_whose_record_is_lost_gets_another_record(
    crawler_for: CrawlerFor, tmp_path: Path
) -> None:
    """No later page refers to a record that cannot be read, and readers pass over what was cut."""
    store = _store(crawler_for, _page("a"), _page("b"), _page("c", bytes(range(256)) * 9))
    position, (path,) = store.flush(), _files(tmp_path)
    at = int(_cdxj(path)[1][2]["offset"])
    fill_up(path, at, path.stat().st_size)
    drop_records(path, {at, int(_cdxj(path)[2][2]["offset"])})
    again = _open(crawler_for, position)
    again.process_item(_page("b"))
    again.close_spider()
    assert pages_in(path) == {"http://h/a": b"a", "http://h/b": b"b"}
    assert "warc/revisit" not in {fields["mime"] for _, _, fields in _cdxj(path)}
    check(path)


def test_heads_of_other_ways_are_made_from_what_is_known(
    crawler_for: CrawlerFor, tmp_path: Path
) -> None:
    """Items of other spiders, HTTP/2, what Content-Encoding still holds, files."""
    two = _received(b"HTTP/2 404 ", b"content-encoding: utf-8", **{"Content-Encoding": [b"utf-8"]})
    rights: dict[bytes, list[bytes]] = {b"X-Document-Rights": [b"users"]}
    items = [
        {"url": "http://h/item", "body": "text", "mime": "text/plain", "fetched": NOON},
        _page("two", headers=two, status=404),
        Page("file:///srv/a b.txt", body=b"file", mime="text/plain", fetched=NOON),
        Page("smb://nas/s/a.txt", body=b"share", mime="text/plain", fetched=NOON, headers=rights),
        _page("big", unread="too-large: it has 9 bytes", mime="application/pdf"),
        Removed("http://h/two", "http://h/two", "gone", NOON),
    ]
    items[4].body = b""  # type: ignore[union-attr]
    _store(crawler_for, *items)
    (path,) = _files(tmp_path)
    found = [(kind, head, block) for kind, head, block in _records(path)]
    blocks = {head["WARC-Target-URI"]: block for kind, head, block in found if kind == "response"}
    assert blocks["http://h/item"].startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n")
    assert blocks["http://h/two"].startswith(
        b"HTTP/1.1 404\r\nX-Archive-Orig-content-encoding: utf-8\r\nContent-Encoding: utf-8\r\n"
    )
    heads = {(kind, head.get("WARC-Target-URI")): head for kind, head, _ in found}
    assert heads["response", "http://h/two"]["WARC-Protocol"] == "h2"
    assert heads["response", "http://h/big"]["WARC-Truncated"] == "length"
    assert heads["resource", "file:///srv/a%20b.txt"]["Content-Type"] == "text/plain"
    assert heads["resource", "smb://nas/s/a.txt"]["Content-Type"] == "text/plain"
    assert not any(b"X-Document-Rights" in block for _, _, block in found)
    assert found[-1][2] == b"removed: gone\r\n"
    check(path)


def test_files_are_full_at_their_limit(crawler_for: CrawlerFor, tmp_path: Path) -> None:
    """A page's records stay together, each file begins with a warcinfo and ends with a CDXJ that is
    sorted."""
    pages = [_page(f"{9 - n}", bytes([n]) * 100) for n in range(8)]
    _store(crawler_for, *pages, LARM_WARC_BYTES=2_000)
    paths = _files(tmp_path)
    assert len(paths) > 1
    assert [int(path.name[-13:-8]) for path in paths] == list(range(len(paths)))
    for path in paths:
        assert path.stat().st_size <= 2_000
        assert next(_records(path))[0] == "warcinfo"
        keys = [key for key, _, _ in _cdxj(path)]
        assert keys == sorted(keys)
        check(path)
    assert sum(len(_cdxj(path)) for path in paths) == 8


@pytest.mark.parametrize("after", ["whole", "torn"])
def test_goes_back_to_a_position(crawler_for: CrawlerFor, tmp_path: Path, after: str) -> None:
    """Later records are gone from WARC and CDXJ, further files are too; whether a CDXJ was sorted
    meanwhile, or its last line torn, does not matter."""
    store = _open(crawler_for, LARM_WARC_BYTES=2_500)
    for number in range(3):
        store.process_item(_page(f"{9 - number}"))
    position = store.flush()
    for number in range(3, 9):
        store.process_item(_page(f"{9 - number}"))
    store.close_spider()
    (first, *more) = _files(tmp_path)
    assert more
    if after == "torn":
        cdxj = first.with_name(first.name.replace(".warc.gz", ".cdxj"))
        cdxj.write_text(cdxj.read_text() + 'h)/x 20231114221320 {"url": "ht')
    again = _open(crawler_for, position, LARM_WARC_BYTES=2_500)
    again.process_item(_page("new", b"8"))
    again.close_spider()
    assert _files(tmp_path) == [first]
    check(first)
    assert pages_in(first) == {f"http://h/{n}": n.encode() for n in "987"} | {"http://h/new": b"8"}
    assert len(_cdxj(first)) == 4
    revisits = [head for kind, head, _ in _records(first) if kind == "revisit"]
    assert revisits[0]["WARC-Refers-To-Target-URI"] == "http://h/8"


def test_the_beginning_is_a_position_too(crawler_for: CrawlerFor, tmp_path: Path) -> None:
    """No checkpoint was taken: nothing stays. A file that was committed and is gone is named."""
    store = _store(crawler_for, _page("a"))
    position = store.flush()
    store.recover(b"")
    assert not list((tmp_path / "crawl" / "warc").iterdir())
    with pytest.raises(CommittedGoneError, match=r"warc/\*-00000.warc.gz is gone, \d+ bytes were"):
        store.recover(position)


def test_a_folder_that_cannot_be_written_is_refused(
    crawler_for: CrawlerFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is fetched: a file in its place, a full file system."""
    (tmp_path / "crawl").mkdir()
    (tmp_path / "crawl" / "warc").write_text("")
    with pytest.raises(ConfigError, match="crawl/warc cannot be written: Not a directory"):
        WarcPipeline.from_crawler(crawler_for())
    (tmp_path / "crawl" / "warc").unlink()
    monkeypatch.setattr(warc, "_FREE_BYTES", 1 << 60)
    with pytest.raises(ConfigError, match=r"crawl/warc is full: [\d,]+ bytes are free"):
        WarcPipeline.from_crawler(crawler_for())


def test_a_full_disk_names_the_file_and_commits_nothing(
    crawler_for: CrawlerFor, tmp_path: Path
) -> None:
    """No position can be had once a write has failed."""
    folder = tmp_path / "crawl" / "warc"
    folder.mkdir(parents=True)
    (folder / "full-00000.warc.gz").symlink_to("/dev/full")
    store = _open(crawler_for)
    store.process_item(_page("a"))
    for _ in range(2):
        with pytest.raises(OSError, match=r"No space left on device: '.*/full-00000.warc.gz'"):
            store.flush()
    store.close_spider()


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://www.Example.com/", "com,example)/"),
        ("http://wiki:8080/A/B.html?b=2&A=1", "wiki:8080)/a/b.html?a=1&b=2"),
        ("https://h.example:443/a/", "example,h)/a"),
        ("http://[::1]:81/a", "[::1]:81)/a"),
        ("http://h", "h)/"),
        ("http://h/a b", "h)/a%20b"),
    ],
)
def test_keys_are_sorted_by_host(url: str, key: str) -> None:
    """As the package surt makes them, but for its rules about session ids and IPv6."""
    assert surt(url) == key


def test_bodies_are_read_back_from_warc_files(crawler_for: CrawlerFor, tmp_path: Path) -> None:
    """Bodies of responses, files and revisits, also of an earlier run; page files have none."""
    pages = [
        *(_page("a", b"same\r\n\r\n"), _page("b", b"same\r\n\r\n"), _page("c")),
        *(_page("big", os.urandom(300_000)), Page("file:///srv/d", body=b"\r\n\r\nd")),
        *(_page("e", b"same\r\n\r\n"), _page("none", unread="too-large: it has 9 bytes")),
    ]
    pages[-1].body = b""
    for batch in (pages[:3], pages[3:]):
        crawler = crawler_for(LARM_BODIES="warc", ITEM_PIPELINES=IN_WARC, LARM_WARC_BYTES=1000)
        stores: list[Any] = [
            kind.from_crawler(crawler) for kind in (WarcPipeline, PageFilesPipeline)
        ]
        for store in stores:
            store.open_spider()
        for page in batch:
            for store in stores:
                store.process_item(page)
        for store in stores:
            store.close_spider()
    crawl = tmp_path / "crawl"
    assert [body() for _, body in stored_pages(crawl)] == [page.body for page in pages]
    assert len({fields[8] for fields, _ in stored_pages(crawl)}) > 1
    assert not (crawl / "pagefile_0.pfl").stat().st_size
    _files(tmp_path)[0].unlink()
    with pytest.raises(CrawlDirError, match=r"/\*-00000.warc.gz: No such file"):
        next(stored_pages(crawl))[1]()


@pytest.mark.parametrize("order", [None, 300])
def test_bodies_in_warc_files_need_these(crawler_for: CrawlerFor, order: int | None) -> None:
    """Written before store.log names their places."""
    pipelines = IN_WARC | {WARC_PIPELINE: order}
    with pytest.raises(ConfigError, match="LARM_BODIES=warc: expected larmspider"):
        PageFilesPipeline.from_crawler(crawler_for(LARM_BODIES="warc", ITEM_PIPELINES=pipelines))


def test_a_crawl_without_page_files_says_so(tmp_path: Path) -> None:
    """Where bodies are to be read: scrapy page, reindex, export."""
    stores = {"larmspider.plugins.warc.pipeline.WarcPipeline": ["warc"]}
    (tmp_path / "crawl.json").write_text(json.dumps({"format": FORMAT, "stores": stores}))
    with pytest.raises(CrawlDirError, match="has no page files: PageFilesPipeline is not in the"):
        check_bodies(CrawlDir(tmp_path))
