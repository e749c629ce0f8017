"""Pages that are stored again, or taken out: what is read is what a fresh crawl would have."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from larmspider.crawl.reader import CrawlDir
from larmspider.extraction.processes.process import Readers
from larmspider.extraction.texts.language import Languages
from larmspider.index.anchors import AnchorTable
from larmspider.items import Kept, Link, Page
from larmspider.pipelines.reextract import reextracted
from larmspider.search.searcher import Searcher
from tests.support.stored_crawl import StoredCrawl

URLS = [f"http://{host}/{page}" for host in ("a", "b") for page in range(3)]
TEXTS = ["", "home", "next page", "home page"]


@dataclass(frozen=True)
class Version:
    """A server's page under a URL."""

    word: int
    links: Sequence[tuple[int, int]]

    def page(self, url: str) -> Page:
        links = [
            Link(URLS[to], URLS[to], anchor=TEXTS[text], exact=URLS[to]) for to, text in self.links
        ]
        links.append(Link("mailto:x@h", rejected_by="normalize"))
        text = f"word{self.word}"
        page = Page(url, url, body=text.encode(), text=text, mime="text/html")
        page.exact, page.links = url, links if self.links else []
        return page


LINKS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 5), st.builds(Version, st.integers(0, 3), LINKS)),
        st.tuples(st.integers(0, 5), st.none()),
        st.sampled_from(["checkpoint", "look", "crash"]),
    ),
    max_size=16,
)


def _page(number: int, version: Version | None) -> Page | None:
    return None if version is None else version.page(URLS[number])


def known(path: Path) -> dict[str, Any]:
    """Everything readable about a crawl, by the index of the logs and by the logs alone."""
    crawl = CrawlDir(path)
    found: dict[str, Any] = {
        "pages": sorted((page.url, crawl.body(page)) for page in crawl.pages()),
        "stored": {url for url in URLS if crawl.stored(url)},
        "searched": _searched(path),
    }
    with closing(AnchorTable(path / "index" / "anchors")) as table:
        found["anchors"] = dict(zip(URLS, table.links_to(URLS), strict=True))
    with crawl.logs.index() as index:
        if index is not None:
            found["targets"] = {
                key: (target.pages, _lines(crawl, target.offsets))
                for key, target in index.targets()
            }
            found["totals"] = [index.state()[name] for name in ("links", "pairs")]
            found["hosts"] = [host for host in index.most_linked_hosts() if host.links]
            found["between hosts"] = index.host_links()
    found["out"] = {url: crawl.logs.links_from(url, 99) for url in URLS}
    found["in"] = {
        url: sorted({fields[0] for fields in crawl.logs.links_to(url)} - {url}) for url in URLS
    }
    return found


def _lines(crawl: CrawlDir, offsets: Sequence[int]) -> list[list[str] | None]:
    return sorted(crawl.logs.records_at("links.log", offsets), key=str)


def _searched(path: Path) -> dict[str, list[str]]:
    searcher = Searcher.open(path / "index")
    words = [*(f"word{n}" for n in range(4)), "home", "next", "page"]
    return {word: sorted(hit.url for hit in searcher.search(word).hits) for word in words}


def few(number: int) -> settings:
    return settings(max_examples=number, phases=(Phase.explicit, Phase.generate))


@pytest.mark.acceptance
@few(6)
@given(STEPS)
def test_what_is_read_is_what_a_fresh_crawl_would_have(steps: Sequence[Any]) -> None:
    """After any versions and removals, with crashes between: what a crash took back is fetched
    again."""
    check(steps)


@pytest.mark.acceptance
@few(50)
@given(STEPS)
def test_so_it_is_after_many_more(steps: Sequence[Any]) -> None:
    check(steps)


def check(steps: Sequence[Any]) -> None:
    with TemporaryDirectory() as folder:
        crawl = StoredCrawl(Path(folder, "crawl"), refresh=True)
        last: dict[int, Version | None] = {}
        since: set[int] = set()
        for step in steps:
            if step == "checkpoint":
                crawl.checkpoint()
                since.clear()
            elif step == "look":
                crawl.look()
            elif step == "crash":
                crawl.close()
                crawl.open()
                for number in sorted(since):
                    crawl.store(URLS[number], _page(number, last[number]))
            else:
                number, version = step
                last[number] = version
                since.add(number)
                crawl.store(URLS[number], _page(number, version))
        crawl.end()
        fresh = StoredCrawl(Path(folder, "fresh"), refresh=False)
        for number, version in last.items():
            if version is not None:
                fresh.store(URLS[number], _page(number, version))
        fresh.end()
        for _ in range(2):
            parts = [known(one.path) for one in (crawl, fresh)]
            both = [name for name in parts[0] if name in parts[1]]
            for name in both:
                assert parts[0][name] == parts[1][name], name
            for one in (crawl, fresh):
                one.look()
        assert "targets" in both


def test_an_index_of_the_page_files_has_the_last_versions(tmp_path: Path) -> None:
    """With the times of their fetches, and nothing that was taken out."""
    crawl = StoredCrawl(tmp_path / "crawl", refresh=True)
    for number, word in ((0, 1), (1, 1), (0, 2), (2, 1), (2, None), (3, 1), (3, None), (3, 2)):
        version = None if word is None else Version(word, [])
        crawl.store(URLS[number], _page(number, version))
        kept = Kept(URLS[1], URLS[1], URLS[1], "", 0, 0, "not-modified", "", crawl.clock, 304)
        for store in crawl.stores:
            store.process_item(kept)
    crawl.end()
    with closing(Readers()) as readers:
        _, documents = reextracted(crawl.path, CrawlDir(crawl.path).forms, readers, Languages(()))
        found = {key: stored for key, stored in documents if stored is not None}
    assert {key: stored.body for key, stored in found.items()} == {
        URLS[0]: "word2", URLS[1]: "word1", URLS[3]: "word2",
    }  # fmt: skip
    times = [found[URLS[number]].fetched.timestamp() for number in (0, 1, 3)]
    assert times == [1_003.0, 1_002.0, 1_008.0]
