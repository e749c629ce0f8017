"""scrapy links: what intranet editors ask for first."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from examples.intranet.serve import DemoServer
from tests.support.crawling import crawl, scrapy


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Where a crawl of the demo intranet lies, and the demo's URL."""
    folder = tmp_path_factory.mktemp("links")
    with DemoServer() as server:
        assert crawl(server.url, folder).status == 0
        return folder, server.url


def test_lists_broken_links_and_their_pages(demo: tuple[Path, str]) -> None:
    """As text, as JSON, as CSV."""
    folder, url = demo
    text = scrapy("links", "--broken", cwd=folder).out
    assert f'404      {url}wiki/Parking.html\n         on {url}wiki/  "Parking"' in text
    assert text.endswith("2 broken targets\n")
    broken = scrapy("links", "--broken", "--json", cwd=folder).json["broken"]
    assert {(link["result"], link["url"]) for link in broken} == {
        ("404", f"{url}wiki/Parking.html"), ("500", f"{url}reports/yearly")
    }  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(scrapy("links", "--broken", "--csv", cwd=folder).out)))
    assert {row["page"] for row in rows} == {f"{url}wiki/", url}


def test_lists_what_is_linked_most(demo: tuple[Path, str]) -> None:
    """Pages and hosts; -n the first ones."""
    folder, url = demo
    found = scrapy("links", "--json", "-n", "3", cwd=folder).json
    counts = [page["pages"] for page in found["pages"]]
    assert len(counts) == 3
    assert counts == sorted(counts, reverse=True)
    assert found["hosts"][0]["name"] == url.split("/")[2]
    assert found["hosts"][0]["from_others"] == 0
    assert url in scrapy("links", cwd=folder).out


@pytest.mark.parametrize("arguments", [["x"], ["-n", "0"], ["--csv", "--json"]])
def test_bad_arguments(demo: tuple[Path, str], arguments: list[str]) -> None:
    """One line, status 2."""
    ran = scrapy("links", *arguments, cwd=demo[0])
    assert ran.status == 2
    assert len(ran.err.splitlines()) == 1


def test_a_directory_without_links_is_told_in_one_line(tmp_path: Path) -> None:
    """Status 1."""
    (tmp_path / "crawl").mkdir()
    ran = scrapy("links", cwd=tmp_path)
    assert (ran.status, len(ran.err.splitlines())) == (1, 1)
    (tmp_path / "crawl" / "crawl.json").write_text('{"format": 1}')
    ran = scrapy("links", cwd=tmp_path)
    assert (ran.status, len(ran.err.splitlines())) == (1, 1)
