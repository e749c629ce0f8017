"""scrapy search, explain and page: answers, and one clear line for what cannot be answered."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.intranet.serve import DemoServer
from tests.support.crawling import crawl, scrapy


@pytest.fixture(scope="module")
def server() -> Iterator[DemoServer]:
    with DemoServer() as running:
        yield running


@pytest.fixture(scope="module")
def folder(server: DemoServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the demo was crawled, with a host rule."""
    folder = tmp_path_factory.mktemp("commands")
    (folder / "hosts.properties").write_text("synonym(localhost)=127.0.0.1\n")
    ran = crawl(server.url, folder, hostresolver="hosts.properties")
    assert ran.status == 0, ran.err
    return folder


def test_page_prints_the_bytes_that_were_served(server: DemoServer, folder: Path) -> None:
    """By any spelling of the URL; --json gives its record."""
    url = server.at("/WIKI/default.htm?PHPSESSID=1#top")
    ran = scrapy("page", url, cwd=folder)
    assert ran.status == 0
    site = Path(__file__).parents[2] / "examples" / "intranet" / "site"
    assert ran.out == (site / "wiki" / "index.html").read_text("utf-8")
    record = scrapy("page", url, "--json", cwd=folder).json
    assert (record["status"], record["title"], record["mime"]) == (200, "Wiki", "text/html")


def test_search_marks_the_words(folder: Path) -> None:
    """As text with the number of pages found; as JSON with an escaped snippet."""
    ran = scrapy("search", "-n", "1", "Reisekosten", cwd=folder)
    assert ran.status == 0
    assert "Travel expenses" in ran.out
    assert "*Reisekosten*" in ran.out
    assert re.search(r"^1 page found in [\d.]+ ms$", ran.out, re.MULTILINE)
    found = scrapy("search", "Reisekosten", "--json", cwd=folder).json
    assert found["total"] == 1
    assert "<b>Reisekosten</b>" in found["hits"][0]["snippet"]


def test_search_is_narrowed_and_counted(folder: Path) -> None:
    """By host, kind, language and date; --json has the counts."""
    some = scrapy(
        "search", "wiki", "--host=127.0.0.1", "--type", "html", "--type", "pdf", "--lang=de",
        "--since", "day", "--json", cwd=folder,
    ).json  # fmt: skip
    assert {hit["language"] for hit in some["hits"]} == {"de"}
    assert some["facets"]["language"]["en"] > some["total"] == some["facets"]["host"]["127.0.0.1"]
    assert some["filters"]["type"] == ["html", "pdf"]
    assert scrapy("search", "wiki", "--host=localhost", "--json", cwd=folder).json["total"] == 0


def test_search_says_what_may_have_been_meant(folder: Path) -> None:
    """On a line of its own, and in the JSON."""
    ran = scrapy("search", "expences", cwd=folder)
    assert re.search(r"^Did you mean: expenses  \(\d+ found\)$", ran.out, re.MULTILINE)
    found = scrapy("search", "expences", "--json", cwd=folder).json["suggestion"]
    assert (found["query"], found["total"] > 0) == ("expenses", True)
    assert "Did you mean" not in scrapy("search", "expenses", cwd=folder).out


def test_search_pages_through_results(folder: Path) -> None:
    """-n and --offset."""
    every = [
        h["url"] for h in scrapy("search", "siren", "--json", "-n", "6", cwd=folder).json["hits"]
    ]
    some = scrapy("search", "siren", "--json", "-n", "2", "--offset", "3", cwd=folder).json["hits"]
    assert [hit["url"] for hit in some] == every[3:5]


def test_a_terminal_that_lacks_the_letters_shows_the_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As question marks; JSON escapes them, and bytes of an argument that are no text."""
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    ran = scrapy("search", "Flood", cwd=folder)
    assert (ran.status, "Flood warning" in ran.out) == (0, True), ran.err
    ran = scrapy("search", "ледоход", cwd=folder)
    assert (ran.status, "*???????*" in ran.out) == (0, True), ran.err
    ran = scrapy("search", "ледоход", "--json", cwd=folder)
    assert (ran.status, ran.json["query"]) == (0, "ледоход"), ran.err
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8")
    ran = scrapy("explain", os.fsdecode(b"http://h/\xff"), "--json", cwd=folder)
    assert (ran.status, ran.json["url"]) == (0, os.fsdecode(b"http://h/\xff")), ran.err


def test_explain_names_every_stage(server: DemoServer, folder: Path) -> None:
    """Canonical form, host rule, each filter, the robots line, the fetch and the first referrer."""
    url = server.at("/private/salaries.html").replace("127.0.0.1", "localhost")
    explained = scrapy("explain", url, "--json", cwd=folder).json
    assert explained["canonical"] == server.at("/private/salaries.html")
    assert "synonym(localhost)" in explained["host_rules"][0]
    assert "hosts.properties" in explained["host_rules"][0]
    stages = [verdict["stage"] for verdict in explained["verdicts"]]
    assert stages == [
        "normalize", "length", "known-paths", "scope", "traps", "nofollow", "depth", "visited",
        "robots",
    ]  # fmt: skip
    text = scrapy("explain", server.at("/private/salaries.html"), cwd=folder).out
    assert re.search(r"^robots +REJECT +line \d+: Disallow: /private/", text, re.MULTILINE)
    assert re.search(r"^frontier +URL: refused, robots.txt", text, re.MULTILINE)
    assert re.search(rf"^found on +{server.url}", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("rules", "note"),
    [("startsWith(www.)=\n", "has been changed"), (None, r"cannot be read \(No such file")],
)
def test_explain_goes_by_the_rules_of_the_crawl(
    server: DemoServer, folder: Path, rules: str | None, note: str
) -> None:
    """The file it ran with may be another one now, or gone: its copy is used, and that is told."""
    path = folder / "hosts.properties"
    before = path.read_text()
    path.unlink()
    if rules is not None:
        path.write_text(rules)
    url = server.at("/wiki/Parking.html").replace("127.0.0.1", "localhost")
    try:
        explained = scrapy("explain", url, cwd=folder)
        page = scrapy("page", url, cwd=folder)
    finally:
        path.write_text(before)
    assert explained.status == 0, explained.err
    assert re.search(rf"^note +{re.escape(str(path))} {note}", explained.out, re.MULTILINE)
    assert re.search(r"^host rule +.*rules/hosts.properties:1", explained.out, re.MULTILINE)
    assert page.status == 0
    assert not re.search(r"^note", scrapy("explain", url, cwd=folder).out, re.MULTILINE)


def test_explain_knows_what_was_fetched_when(server: DemoServer, folder: Path) -> None:
    """A page, a redirect and a seed."""
    page = scrapy("explain", server.at("/wiki/Parking.html"), "--json", cwd=folder).json
    assert page["fetched"]["result"] == "404"
    assert page["fetched"]["time"].endswith("Z")
    assert page["stored"]["title"] == "Not found"
    assert page["first_referrer"].startswith(server.url)
    seed = scrapy("explain", server.url, cwd=folder).out
    assert re.search(r"^found on +a seed$", seed, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["search", ""], 2, "the query is empty"),
        (["search", '"'], 2, "no word to look for"),
        (["search", "x", "-n", "0"], 2, "-n=0: expected an integer"),
        (["search", "x", "-n", "1000000"], 2, "-n=1000000: expected"),
        (["search", "x", "--offset", "-1"], 2, "--offset=-1: expected"),
        (["search", "x", "--type", "exe"], 2, "type 'exe' is unknown; expected one of html, text"),
        (["search", "x", "--since", "2026"], 2, "date '2026' is unknown; expected day, week"),
        (["search", "x", "--lang", "?"], 2, "language '?' is no language"),
        (["hosts", "-n", "0"], 2, "-n=0: expected an integer"),
        (["hosts", "-n", "-3"], 2, "-n=-3: expected"),
        (["search", "x", "-s", "LARM_DIR=nowhere"], 1, "is no directory"),
        (["search", "x", "--dir", "."], 1, "is not a crawl's directory: it has no crawl.json"),
        (["search", "x", "-s", "LARM_DRI=crawl"], 2, "LARM_DRI is no setting"),
        (["page", "http://127.0.0.1/none"], 1, "http://127.0.0.1/none is not stored"),
        (["page", "mailto:x"], 2, "mailto:x"),
        (["page", "http://a/", "http://b/"], 2, "exactly one URL"),
        (["explain"], 2, "exactly one URL"),
        (["explain", "http://h/", "--dir", "broken"], 1, "crawl.json cannot be read"),
        (["explain", "http://h/", "--dir", "future"], 1, "is not of format 1"),
    ],
)
def test_what_cannot_be_answered_is_one_clear_line(
    folder: Path, arguments: list[str], status: int, message: str
) -> None:
    """Exit status 1: not there; 2: the question is wrong."""
    for name, text in (("broken", "{"), ("future", json.dumps({"format": 99}))):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "crawl.json").write_text(text)
    ran = scrapy(*arguments, cwd=folder)
    assert ran.status == status
    assert ran.out == "" or ran.out.startswith("Usage")
    assert message in ran.err.splitlines()[-1]
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("command", ["search", "explain", "page", "hosts", "crawl"])
def test_help_names_the_options(folder: Path, command: str) -> None:
    """--help of each command."""
    ran = scrapy(command, "--help", cwd=folder)
    assert ran.status == 0
    assert ("--json" in ran.out) is (command != "crawl")


def test_a_page_file_cut_short_is_noticed(server: DemoServer, folder: Path) -> None:
    """Rather an error than half a page."""
    path = folder / "crawl" / "pagefile_0.pfl"
    data = path.read_bytes()
    path.write_bytes(data[:100])
    try:
        ran = scrapy("page", server.at("/wiki/Parking.html"), cwd=folder)
    finally:
        path.write_bytes(data)
    assert ran.status == 1
    assert "ends at 100" in ran.err
