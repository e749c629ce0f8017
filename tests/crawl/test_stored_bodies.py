"""Bodies are found by URL and SHA-1 in page files that the crawl goes on writing."""

from __future__ import annotations

from hashlib import sha1
from pathlib import Path

from scrapy.utils.test import get_crawler

from larmspider.crawl.stored_bodies import StoredBodies
from larmspider.items import Page
from larmspider.pipelines.page_files import PageFilesPipeline

URLS = ["http://h/a", "http://me@h/b", "http://h/t%09b", "http://h/\u202ec"]


def test_finds_the_version_that_is_asked_for(tmp_path: Path) -> None:
    settings = {"LARM_DIR": str(tmp_path), "DOWNLOAD_MAXSIZE": 9_999}
    store = PageFilesPipeline.from_crawler(get_crawler(settings_dict=settings))
    store.open_spider()
    bodies = StoredBodies(tmp_path)
    versions = []
    for version in range(3):
        for url in URLS:
            versions.append((url, f"{version} of {url}".encode()))
            store.write(Page(url, body=versions[-1][1], mime="text/html"))
        url, body = versions[0]
        assert bodies.find(url, sha1(body, usedforsecurity=False).digest()) is None or version
        store.flush()
        for url, body in versions:
            digest = sha1(body, usedforsecurity=False).digest()
            assert bodies.find(url, digest) == ("text/html", body)
    assert bodies.find("http://h/a", b"another") is None
    assert bodies.find("http://h/none", sha1(b"", usedforsecurity=False).digest()) is None
    store.close_spider()
