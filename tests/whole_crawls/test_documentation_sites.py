"""A crawl of Debian's Python and PostgreSQL documentation, beside wget2's of the same sites."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from larmspider.urls.canonical import canonicalize
from tests.support.crawling import Ran, body_of, crawl, records, scrapy
from tests.support.servers.docs_sites import docs_site
from tests.support.servers.nginx import NGINX, Nginx

WGET2 = shutil.which("wget2")
SITES = {"127.0.0.1": "python3.11-doc", "127.0.0.2": "postgresql-doc-15"}


@pytest.fixture(scope="module")
def server() -> Iterator[Nginx]:
    if NGINX is None:
        pytest.skip("nginx is not installed (Debian package nginx-light)")
    with Nginx({address: docs_site(package) for address, package in SITES.items()}) as nginx:
        yield nginx


@pytest.fixture(scope="module")
def crawled(server: Nginx, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, Path]:
    """Both sites in one crawl: what the command said, and its directory."""
    folder = tmp_path_factory.mktemp("docs")
    seeds = " ".join(server.url(address) for address in SITES)
    return crawl(seeds, folder, timeout=300), folder / "crawl"


def html(directory: Path) -> list[dict[str, str]]:
    lines = records(directory / "store.log")
    return [line for line in lines if line["http-code"] == "200" and "html" in line["mime-type"]]


def test_stores_the_pages_that_wget2_stores(
    server: Nginx, crawled: tuple[Ran, Path], tmp_path: Path
) -> None:
    """The same HTML pages from the same server, up to canonical form."""
    if WGET2 is None:
        pytest.skip("wget2 is not installed (Debian package wget2)")
    seeds = [server.url(address) for address in SITES]
    options = ["--recursive", "--level=inf", "--no-robots", "--quiet", "--no-verbose"]
    subprocess.run([WGET2, *options, *seeds], cwd=tmp_path, timeout=300, check=False)
    theirs = {
        canonicalize(server.url(address, f"/{path.relative_to(tmp_path / address)}"))
        for address in SITES
        for path in (tmp_path / address).rglob("*.html")
    }
    ours = [line["url-normalized"] for line in html(crawled[1])]
    assert len(ours) == len(set(ours)), "each page once"
    assert len(ours) > 1_500
    assert set(ours) == theirs


def test_every_body_is_the_file_on_disk(server: Nginx, crawled: tuple[Ran, Path]) -> None:
    """Byte for byte, of every page stored with status 200."""
    directory = crawled[1]
    for line in records(directory / "store.log"):
        if line["http-code"] != "200":
            continue
        host, _, path = line["url"].removeprefix("http://").partition("/")
        file = docs_site(SITES[host.partition(":")[0]]) / (path or "index.html")
        assert body_of(directory, line) == file.read_bytes(), line["url"]


def test_every_line_has_its_fields(crawled: tuple[Ran, Path]) -> None:
    """Ten in store.log, five in links.log: on every line."""
    for name, tabs in (("store.log", 9), ("links.log", 4)):
        lines = (crawled[1] / name).read_bytes().split(b"\n")
        assert lines.pop() == b""
        assert {line.count(b"\t") for line in lines} == {tabs}


def test_page_files_keep_their_limit(crawled: tuple[Ran, Path]) -> None:
    """50 MB each, and more than one."""
    sizes = [path.stat().st_size for path in crawled[1].glob("pagefile_*.pfl")]
    assert len(sizes) > 1
    assert max(sizes) <= 50_000_000
    assert sum(sizes) == sum(int(line["size"]) for line in records(crawled[1] / "store.log"))


def test_the_terminal_says_what_was_stored(crawled: tuple[Ran, Path]) -> None:
    """The last lines: stored, rejected by filter, failed, and where."""
    ran, directory = crawled
    assert ran.status == 0, ran.err
    stored = len(records(directory / "store.log"))
    lines = ran.out.splitlines()
    assert [line.split()[0] for line in lines] == ["ended", "stored", "rejected", "failed", "in"]
    assert f"{stored:,} pages" in lines[1]
    assert str(directory) in lines[1]
    assert "scope" in lines[2]


def test_the_index_finds_them(crawled: tuple[Ran, Path]) -> None:
    """Pages of both sites, through the command."""
    for query, path in (("os.path.join", "library/os.path.html"), ("vacuum analyze", "sql-vacuum")):
        ran = scrapy("search", query, "--json", cwd=crawled[1].parent)
        assert ran.status == 0
        assert any(path in hit["url"] for hit in ran.json["hits"][:3]), ran.out
