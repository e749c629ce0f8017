"""A crawl of Debian's Python and PostgreSQL documentation, beside wget2's of the same sites."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from larmspider.urls.canonical import canonicalize
from tests.support.crawling import Ran, body_of, crawl, records, scrapy
from tests.support.servers.nginx import NGINX, Nginx, docs_site

pytestmark = pytest.mark.acceptance
WGET2 = shutil.which("wget2")
SITES = {"127.0.0.1": "python3.11-doc", "127.0.0.2": "postgresql-doc-15"}


@pytest.fixture(scope="module")
def documentation() -> Iterator[Nginx]:
    if NGINX is None:
        pytest.skip("nginx is not installed (Debian package nginx-light)")
    with Nginx({address: docs_site(package) for address, package in SITES.items()}) as nginx:
        yield nginx


@pytest.fixture(scope="module")
def documentation_crawl(
    documentation: Nginx, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Ran, Path]:
    """Both sites in one crawl: what the command said, and its directory."""
    folder = tmp_path_factory.mktemp("docs")
    seeds = " ".join(documentation.url(address) for address in SITES)
    return crawl(seeds, folder, timeout=300), folder / "crawl"


def html(directory: Path) -> list[dict[str, str]]:
    lines = records(directory / "store.log")
    return [line for line in lines if line["http-code"] == "200" and "html" in line["mime-type"]]


def test_stores_the_pages_that_wget2_stores(
    documentation: Nginx, documentation_crawl: tuple[Ran, Path], tmp_path: Path
) -> None:
    """The same HTML pages from the same server, up to canonical form."""
    if WGET2 is None:
        pytest.skip("wget2 is not installed (Debian package wget2)")
    seeds = [documentation.url(address) for address in SITES]
    options = ["--recursive", "--level=inf", "--no-robots", "--quiet", "--no-verbose"]
    subprocess.run([WGET2, *options, *seeds], cwd=tmp_path, timeout=300, check=False)
    theirs = {
        canonicalize(documentation.url(address, f"/{path.relative_to(tmp_path / address)}"))
        for address in SITES
        for path in (tmp_path / address).rglob("*.html")
    }
    ours = [line["url-normalized"] for line in html(documentation_crawl[1])]
    assert len(ours) == len(set(ours)), "each page once"
    assert len(ours) > 1_500
    assert set(ours) == theirs


def test_every_body_is_the_file_on_disk(
    documentation: Nginx, documentation_crawl: tuple[Ran, Path]
) -> None:
    """Byte for byte, of every page stored with status 200."""
    directory = documentation_crawl[1]
    for line in records(directory / "store.log"):
        if line["http-code"] != "200":
            continue
        host, _, path = line["url"].removeprefix("http://").partition("/")
        file = docs_site(SITES[host.partition(":")[0]]) / (path or "index.html")
        assert body_of(directory, line) == file.read_bytes(), line["url"]


def test_every_line_has_its_fields(documentation_crawl: tuple[Ran, Path]) -> None:
    """Ten in store.log, five in links.log: on every line."""
    for name, tabs in (("store.log", 9), ("links.log", 4)):
        lines = (documentation_crawl[1] / name).read_bytes().split(b"\n")
        assert lines.pop() == b""
        assert {line.count(b"\t") for line in lines} == {tabs}


def test_page_files_keep_their_limit(documentation_crawl: tuple[Ran, Path]) -> None:
    """50 MB each, and more than one."""
    sizes = [path.stat().st_size for path in documentation_crawl[1].glob("pagefile_*.pfl")]
    assert len(sizes) > 1
    assert max(sizes) <= 50_000_000
    assert sum(sizes) == sum(
        int(line["size"]) for line in records(documentation_crawl[1] / "store.log")
    )


def test_the_terminal_says_what_was_stored(documentation_crawl: tuple[Ran, Path]) -> None:
    """The last lines: stored, rejected by filter, failed, and where."""
    ran, directory = documentation_crawl
    assert ran.status == 0, ran.err
    stored = sum(one["http-code"] < "4" for one in records(directory / "store.log"))
    lines = ran.out.splitlines()
    first = [line.split()[0] for line in lines]
    assert first[:5] == ["ended", "stored", "rejected", "failed", "known"]
    assert first[5:] in ([], ["duplicates"])
    assert f"{stored:,} pages" in lines[1]
    assert str(directory) in lines[1]
    assert "scope" in lines[2]


def test_the_index_finds_them(documentation_crawl: tuple[Ran, Path]) -> None:
    """Pages of both sites, through the command."""
    for query, path in (("os.path.join", "library/os.path.html"), ("vacuum analyze", "sql-vacuum")):
        ran = scrapy("search", query, "--json", cwd=documentation_crawl[1].parent)
        assert ran.status == 0
        assert any(path in hit["url"] for hit in ran.json["hits"][:3]), ran.out
