"""The demo intranet, crawled as ``make crawl`` does: exactly what its expected.toml lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest
from scrapy.settings import Settings

from examples.intranet.expected import Expected, load
from examples.intranet.serve import DemoServer
from larmspider.crawl.reader import CrawlDir
from larmspider.reports.explain import explain
from tests.support.crawling import Ran, crawl, records, scrapy


@pytest.fixture(scope="module")
def server() -> Iterator[DemoServer]:
    with DemoServer() as running:
        yield running


@pytest.fixture(scope="module")
def expected() -> Expected:
    return load()


@pytest.fixture(scope="module")
def crawled(server: DemoServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, Path]:
    """The result of the command, and the folder in which it ran."""
    folder = tmp_path_factory.mktemp("demo")
    return crawl(server.url, folder, LARM_FILTER_LOGS="yes"), folder


@pytest.fixture(scope="module")
def stored(crawled: tuple[Ran, Path]) -> list[dict[str, str]]:
    return records(crawled[1] / "crawl" / "store.log")


def path_of(server: DemoServer, url: str) -> str:
    """Path and query of a URL of the demo; any other URL as it is."""
    return "/" + url.removeprefix(server.url) if url.startswith(server.url) else url


def test_stores_exactly_what_is_listed(
    server: DemoServer, expected: Expected, stored: list[dict[str, str]]
) -> None:
    """Every page once, with its status; nothing else."""
    fetched = [(path_of(server, line["url"]), int(line["http-code"])) for line in stored]
    assert expected.differences(fetched) == []


def test_titles_and_types_are_those_of_the_pages(
    server: DemoServer, expected: Expected, stored: list[dict[str, str]]
) -> None:
    """Umlauts, Cyrillic in two charsets, entities and line breaks in titles included."""
    for line in stored:
        key = expected.path_of(path_of(server, line["url"]))
        assert key is not None
        page = expected.stored[key]
        assert line["mime-type"] == page.mime, key
        if page.title is not None:
            assert line["title"] == page.title, key


def test_refuses_exactly_what_is_listed(
    server: DemoServer, expected: Expected, crawled: tuple[Ran, Path]
) -> None:
    """Each link's first rejection is by the filter that the list names; unlisted ones are known."""
    directory = crawled[1] / "crawl"
    crawl_dir = CrawlDir(directory)
    settings = Settings()
    settings.setmodule("larmspider.settings")
    settings.setdict(crawl_dir.settings)
    pages = {line["url-normalized"] for line in records(directory / "store.log")}
    links = {
        (line["to-page"], line["to-page-normalized"]) for line in records(directory / "links.log")
    }
    refused = {link for link, normalized in links if normalized not in pages}
    seen = set()
    for link in refused:
        path = path_of(server, link)
        by = expected.refused_by(path)
        assert by is not None, f"refused, but not listed: {path}"
        assert explain(link, settings, crawl_dir).rejected_by == by, path
        begins = [key for key in expected.refused if key[-1] == "*" and path.startswith(key[:-1])]
        seen.update(begins or [path])
    assert seen == set(expected.refused)


def test_robots_refusals_never_reach_the_server(server: DemoServer, crawled: object) -> None:
    """Paths that robots.txt disallows are not requested."""
    asked = [access.path for access in server.log]
    assert "/robots.txt" in asked
    assert not any(path.startswith("/private/") and "phone-list" not in path for path in asked)


def test_searches_find_their_pages(
    server: DemoServer, expected: Expected, crawled: tuple[Ran, Path]
) -> None:
    """Words of three languages, also of a PDF's and other documents' link texts."""
    for query, paths in expected.searches.items():
        ran = scrapy("search", query, "--json", cwd=crawled[1])
        found = {path_of(server, hit["url"]) for hit in ran.json["hits"]}
        for path in paths:
            assert found & {path, *expected.stored[path].spellings}, (query, path)


def test_noindex_pages_are_stored_but_not_found(
    server: DemoServer, expected: Expected, stored: list[dict[str, str]], crawled: tuple[Ran, Path]
) -> None:
    """They stay out of the index only."""
    hidden = [page.title for page in expected.stored.values() if page.noindex]
    assert hidden
    assert set(hidden) <= {line["title"] for line in stored}
    for title in hidden:
        ran = scrapy("search", f"title:{title}", "--json", cwd=crawled[1])
        assert title not in {hit["title"] for hit in ran.json["hits"]}


def test_a_documents_link_texts_find_it(server: DemoServer, crawled: tuple[Ran, Path]) -> None:
    """The PDF is found by the words of the links to it."""
    ran = scrapy("search", "data sheet siren-h4.pdf", "--json", cwd=crawled[1])
    assert urljoin(server.url, "/files/siren-h4.pdf") in {hit["url"] for hit in ran.json["hits"]}


def test_redirects_are_links_of_type_2(
    server: DemoServer, expected: Expected, crawled: tuple[Ran, Path]
) -> None:
    """Each redirect, by status or meta refresh, is in links.log with its target."""
    lines = records(crawled[1] / "crawl" / "links.log")
    redirects = {
        path_of(server, line["from-page"]): path_of(server, line["to-page"])
        for line in lines
        if line["link-type"] == "2"
    }
    listed = {path: page.to for path, page in expected.stored.items() if page.to is not None}
    assert {path: redirects.get(path) for path in listed} == listed


def test_filter_logs_have_a_verdict_for_each_link(crawled: tuple[Ran, Path]) -> None:
    """URL, verdict, reason; a reason exactly where it is reject."""
    logs = sorted((crawled[1] / "crawl").glob("*Filter.log"))
    names = [path.stem for path in logs]
    assert names == [
        "DepthFilter", "KnownPathsFilter", "LengthFilter", "NofollowFilter", "NormalizeFilter",
        "RemovedFilter", "ScopeFilter", "SeenFilter", "TrapsFilter", "VisitedFilter",
    ]  # fmt: skip
    for path in logs:
        for line in path.read_text("utf-8").splitlines():
            _, verdict, reason = line.split("\t")
            assert verdict in ("pass", "reject")
            assert bool(reason) is (verdict == "reject")


def test_known_links_are_settled_before_the_filters_by_url(crawled: tuple[Ran, Path]) -> None:
    """Those filters are asked once about a URL that they let through."""
    crawl = crawled[1] / "crawl"
    verdicts = (crawl / "SeenFilter.log").read_text("utf-8").splitlines()
    settled = {line.split("\t")[0] for line in verdicts if line.endswith("\treject\tknown")}
    passed = (crawl / "ScopeFilter.log").read_text("utf-8").splitlines()
    asked = Counter(line.split("\t")[0] for line in passed if line.split("\t")[1] == "pass")
    assert len(settled) > 20
    assert sum(asked[url] for url in settled) < 2 * len(settled) < len(verdicts)


def test_monitor_log_explains_its_columns(crawled: tuple[Ran, Path]) -> None:
    """The first line names them; the last has the totals."""
    lines = [
        line.split("\t")
        for line in (crawled[1] / "crawl" / "Monitor.log").read_text("utf-8").splitlines()
    ]
    assert lines[0][:4] == ["time", "pages", "pages/s", "bytes"]
    assert {len(line) for line in lines} == {11}
    last = dict(zip(lines[0], lines[-1], strict=True))
    assert (last["pages"], last["queued"], last["in-flight"]) == ("63", "0", "0")
