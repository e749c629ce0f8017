"""scrapy search, explain and page: answers, and one clear line for what cannot be answered."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from examples.intranet.serve import DemoServer
from larmspider.commands.control import _form as control_form
from larmspider.errors import ConfigError
from larmspider.files import lock
from larmspider.pipelines.records import open_appending
from tests.support.crawling import FAST, PROJECT, crawl, scrapy
from tests.support.servers.scripted import ScriptedServer

HEAP = "LARM_INDEX_HEAP_BYTES=5000000000: expected an integer from 15000000 to 4294967295"


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


@pytest.mark.parametrize(
    "command", [("reindex",), ("crawl", "intranet", "-a", "refresh=index")], ids="+".join
)
def test_the_index_is_made_anew(folder: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    """By either word: one of another format, of this one, or one that is gone."""
    crawl = shutil.copytree(folder / "crawl", tmp_path / "crawl")
    meta = crawl / "index" / "larmspider-index.json"
    meta.write_text('{"format": 2, "stemmer": "english"}')
    ran = scrapy("search", "Reisekosten", cwd=tmp_path)
    assert ran.status == 2
    assert "scrapy reindex rebuilds it" in ran.err
    for _ in range(2):
        ran = scrapy(*command, cwd=tmp_path)
        assert ran.status == 0, ran.err
        assert f"{crawl}: search index rebuilt, " in ran.out
        assert "Rebuilding the search index" in ran.err
        assert scrapy("search", "Reisekosten", "--json", cwd=tmp_path).json["total"] == 1
        shutil.rmtree(crawl / "index")
    with lock(crawl / "lock"):
        ran = scrapy(*command, cwd=tmp_path)
    assert (ran.status, "is in use" in ran.err) == (1, True)
    for file in crawl.glob("pagefile_*"):
        file.unlink()
    ran = scrapy(*command, cwd=tmp_path)
    assert (ran.status, "pagefile_0.pfl is gone" in ran.err) == (2, True)


def test_reindex_makes_the_indexes_of_all_workers_anew(folder: Path, tmp_path: Path) -> None:
    """The one whose pages a search lacks is named."""
    for worker in ("w1", "w2"):
        shutil.copytree(folder / "crawl", tmp_path / "crawl" / worker)
    manifest = json.loads((folder / "crawl" / "crawl.json").read_text()) | {"workers": {}}
    (tmp_path / "crawl" / "crawl.json").write_text(json.dumps(manifest))
    meta = tmp_path / "crawl" / "w1" / "index" / "larmspider-index.json"
    meta.write_text('{"format": 2, "stemmer": "english"}')
    ran = scrapy("search", "Reisekosten", cwd=tmp_path)
    assert (ran.status, "w1/index: the search index has format 2" in ran.err) == (1, True)
    assert "Reisekosten" in ran.out  # of the other one
    ran = scrapy("reindex", "--json", cwd=tmp_path)
    assert ran.status == 0, ran.err
    assert set(ran.json["pages"]) == {str(tmp_path / "crawl" / worker) for worker in ("w1", "w2")}
    assert scrapy("search", "Reisekosten", "--json", cwd=tmp_path).json["total"] == 1


def test_a_log_that_is_damaged_in_the_middle_is_named(folder: Path, tmp_path: Path) -> None:
    """Each time; what is behind the damage is read, and the status is 1."""
    crawl = shutil.copytree(folder / "crawl", tmp_path / "crawl")
    lines = (crawl / "links.log").read_bytes().splitlines(keepends=True)
    (crawl / "links.log").unlink()
    file = open_appending(crawl / "links.log", compressed=True)
    for at in range(0, len(lines), 9):
        file.write(b"".join(lines[at : at + 9]))
        file.flush()
    file.close()
    assert scrapy("links", cwd=tmp_path).status == 0
    shutil.rmtree(crawl / "logs.idx")
    packed = crawl / "links.log.zst"
    sound = packed.read_bytes()
    data = bytearray(sound)
    data[60] ^= 0x55
    packed.write_bytes(data)
    for _ in range(2):
        ran = scrapy("links", "--json", cwd=tmp_path)
        assert ran.status == 1
        assert f"{packed}: damaged at byte 0: " in ran.err
        assert ran.json["links"] == len(lines) - 10, "and the one that touches it"
    packed.write_bytes(sound)
    ran = scrapy("links", "--json", cwd=tmp_path)
    assert (ran.status, ran.json["links"]) == (0, len(lines)), "it was repaired"


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
    assert ran.out.startswith("Showing results for expenses. Almost nothing was found for expences")
    ran = scrapy("search", "expences", "--exact", cwd=folder)
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


@pytest.mark.acceptance
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
        "normalize", "length", "removed", "known-paths", "scope", "traps", "language",
        "nofollow", "depth", "visited", "robots",
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
    """Its own file may be another one now, or gone: its copy is used, with a message."""
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
        (["search", "x", "-n", "0"], 2, "-n 0: expected an integer"),
        (["search", "x", "-n", "1000000"], 2, "-n 1000000: expected"),
        (["search", "x", "--offset", "-1"], 2, "--offset -1: expected"),
        (["search", "x", "--type", "exe"], 2, "type 'exe' is unknown; expected one of html, text"),
        (["search", "x", "--since", "2026"], 2, "date '2026' is unknown; expected day, week"),
        (["search", "x", "--lang", "?"], 2, "language '?' is not a language"),
        (["hosts", "-n", "0"], 2, "-n 0: expected an integer"),
        (["hosts", "-n", "-3"], 2, "-n -3: expected"),
        (["search", "x", "-s", "LARM_DIR=nowhere"], 2, "is not a directory"),
        (["search", "x", "--dir", "."], 2, "is not a crawl's directory: it has no crawl.json"),
        (["search", "x", "-s", "LARM_DRI=crawl"], 2, "LARM_DRI is not a setting"),
        (["reindex", "-s", "LARM_INDEX_HEAP_BYTES=5000000000"], 2, HEAP),
        (["compact", "-s", "LARM_INDEX_HEAP_BYTES=5000000000"], 2, HEAP),
        (["compact", "-s", "LARM_INDEX_HEAP_BYTES=1"], 2, "from 15000000 to"),
        (["page", "http://127.0.0.1/none"], 1, "http://127.0.0.1/none is not stored"),
        (["page", "mailto:x"], 2, "mailto:x"),
        (["page", "http://a/", "http://b/"], 2, "exactly one URL"),
        (["explain"], 2, "exactly one URL"),
        (["explain", "http://h/", "--dir", "broken"], 1, "crawl.json cannot be read"),
        (
            ["explain", "http://h/", "--dir", "future"],
            2,
            "crawl.json has format 99, this larmspider reads 2",
        ),
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


@pytest.mark.acceptance
@pytest.mark.parametrize("name", ["nowhere", "foreign", "file"])
def test_no_command_reads_a_directory_without_a_crawl(name: str, tmp_path: Path) -> None:
    """One line, status 2, and nothing is made."""
    (tmp_path / "foreign").mkdir()
    for path in (tmp_path / "foreign" / "letter.txt", tmp_path / "file"):
        path.write_text("of another program")
    before = sorted(tmp_path.rglob("*"))
    url = "http://127.0.0.1/"
    for command in (
        ["compact"], ["control"], ["control", "pause"], ["deletes"], ["explain", url], ["export"],
        ["hosts"], ["links", url], ["links", "--broken"], ["merge", "made"], ["outbox"],
        ["outbox", "--fill", "SqlReceiver"], ["outbox", "--retry-dead"], ["page", url],
        ["outbox", "--seen-by", "anna"],
        ["reindex"], ["remove", "--yes", url], ["report"], ["search", "x"], ["serve"], ["traps"],
        ["verify"], ["verify", "--repair"],
    ):  # fmt: skip
        ran = scrapy(*command, "--dir", name, cwd=tmp_path, timeout=60)
        assert (ran.status, len(ran.err.splitlines()), ran.out) == (2, 1, ""), (command, ran)
    ran = scrapy("workers", "--rebuild", "-s", f"LARM_DIR={name}", cwd=tmp_path)
    assert (ran.status, len(ran.err.splitlines())) == (2, 1)
    assert sorted(tmp_path.rglob("*")) == before


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


# Where scrapy crawl says how it ended: on the terminal, and in LOG_FILE where there is one.


def test_the_summary_is_in_the_log_file_too(scripted_server, tmp_path):
    server: ScriptedServer = scripted_server({"/": "<p>hello"})
    ran = crawl(server.url(), tmp_path, LOG_FILE="log")
    assert ran.status == 0
    log = (tmp_path / "log").read_text("utf-8")
    for line in ran.out.splitlines():
        assert f"INFO: {line}" in log


def test_what_was_refused_is_in_the_log_file_too(tmp_path):
    ran = crawl("gopher://h/", tmp_path, LOG_FILE="log")
    assert ran.status == 2
    assert f"CRITICAL: {ran.err.removeprefix('scrapy crawl: ').strip()}" in (
        tmp_path / "log"
    ).read_text("utf-8")


@pytest.mark.acceptance
def test_a_crawl_whose_reader_has_left_ends_well(scripted_server, tmp_path: Path):
    """scrapyd, which reads a job's output, may be gone before its jobs."""
    server: ScriptedServer = scripted_server({"/": "<p>hello"})
    command = [sys.executable, "-m", "scrapy", "crawl", "intranet", "-a", f"start={server.url()}"]
    for name, value in {**FAST, "LOG_FILE": "log"}.items():
        command += ["-s", f"{name}={value}"]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=os.environ
            | {"SCRAPY_SETTINGS_MODULE": "larmspider.settings", "PYTHONPATH": str(PROJECT)},
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "stored      1 page," in (tmp_path / "log").read_text("utf-8")


# scrapy hosts: what an operator asks first.


HTML = {"Content-Type": "text/html"}


@pytest.fixture
def hosts_folder(scripted_server: Callable[..., ScriptedServer], tmp_path: Path) -> Path:
    """A crawl of a host with two pages, one that asks for time, and one that is not there."""
    slow = scripted_server(
        {
            "/robots.txt": (200, {}, b"User-agent: *\nCrawl-delay: 0.3\nDisallow: /private\n"),
            "/": (200, HTML, b"<a href=/private>private</a>"),
        },
        host="127.0.0.2",
    )
    links = f"<a href=/a>a</a><a href={slow.url('/')}>b</a><a href=http://127.0.0.3:9/>c</a>"
    server = scripted_server({"/": (200, HTML, links.encode()), "/a": (200, HTML, b"")})
    ran = crawl(
        server.url("/"),
        tmp_path,
        restrict="http://.*",
        LARM_HOST_MAX_FAILURES="1",
        LARM_HOST_MAX_PARKS="0",
    )
    assert ran.status == 0, ran.err
    return tmp_path


def test_lists_state_counts_delay_and_reason(hosts_folder: Path) -> None:
    """A row a host; --json gives the same with names."""
    hosts = {row["host"]: row for row in scrapy("hosts", "--json", cwd=hosts_folder).json["hosts"]}
    assert len(hosts) == 3
    good = next(row for host, row in hosts.items() if host.startswith("127.0.0.1:"))
    assert (good["state"], good["stored"], good["queued"]) == ("ready", 2, 0)
    slow = next(row for host, row in hosts.items() if host.startswith("127.0.0.2:"))
    assert (slow["stored"], slow["refused"]) == (1, 1)
    assert (slow["delay"], slow["delay_rule"]) == (0.3, "robots.txt Crawl-delay")
    dead = hosts["127.0.0.3:9"]
    assert (dead["state"], dead["queued"], dead["next_time"]) == ("parked", 1, None)
    assert "refused" in dead["reason"]


def test_sorts_and_cuts(hosts_folder: Path) -> None:
    """--sort by any column, counts largest first; -n the first ones."""
    by_stored = scrapy("hosts", "--sort", "stored", "-n", "1", "--json", cwd=hosts_folder).json[
        "hosts"
    ]
    assert [row["stored"] for row in by_stored] == [2]
    text = scrapy("hosts", "--sort", "queued", cwd=hosts_folder).out.splitlines()
    assert text[0].split()[:2] == ["host", "state"]
    assert text[1].startswith("127.0.0.3:9 ")
    assert "parked" in text[1]
    row = scrapy("hosts", "--json", cwd=hosts_folder).json["hosts"][0]
    assert (row["next_time"], row["next"]) == (None, "The crawl does not run.")


def test_a_host_that_was_given_up_is_explained(hosts_folder: Path) -> None:
    """scrapy explain says why the URL is not fetched yet."""
    explained = scrapy("explain", "http://127.0.0.3:9/", cwd=hosts_folder).out
    assert "frontier     URL: queued" in explained
    assert "parked" in explained
    assert "not fetched in this run" in explained


@pytest.mark.parametrize("arguments", [["--sort", "size"], ["x"]])
def test_bad_arguments(hosts_folder: Path, arguments: list[str]) -> None:
    """One line, status 2."""
    ran = scrapy("hosts", *arguments, cwd=hosts_folder)
    assert ran.status == 2
    assert len(ran.err.splitlines()) == 1


# scrapy links: what intranet editors ask for first.


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
def test_bad_arguments_of_links(demo: tuple[Path, str], arguments: list[str]) -> None:
    """One line, status 2."""
    ran = scrapy("links", *arguments, cwd=demo[0])
    assert ran.status == 2
    assert len(ran.err.splitlines()) == 1


def test_a_directory_without_links_is_told_in_one_line(tmp_path: Path) -> None:
    """Status 2 without a crawl, 1 without links."""
    (tmp_path / "crawl").mkdir()
    ran = scrapy("links", cwd=tmp_path)
    assert (ran.status, len(ran.err.splitlines())) == (2, 1)
    (tmp_path / "crawl" / "crawl.json").write_text('{"format": 2}')
    ran = scrapy("links", cwd=tmp_path)
    assert (ran.status, len(ran.err.splitlines())) == (1, 1)


# Imports of a command before it begins: Scrapy imports the modules of all commands for each.


IMPORT_ALL = """
import sys
from scrapy.utils.misc import walk_modules_iter
list(walk_modules_iter("larmspider.commands"))
print(*sys.modules)
"""


def test_no_command_imports_what_another_needs() -> None:
    """No web pages, Redis or PageRank: together they took a third of a start."""
    ran = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=True
    )
    imported = set(ran.stdout.split())
    assert {"larmspider.commands.serve", "larmspider.commands.workers"} <= imported
    assert not {"aiohttp", "jinja2", "prometheus_client", "redis", "numpy"} & imported


@pytest.mark.parametrize(
    "command",
    ["crawl", "search", "explain", "page", "hosts", "links", "report", "serve", "workers"],
)
def test_help_has_no_heading_in_the_middle_of_a_sentence(command: str, tmp_path: Path) -> None:
    """Scrapy takes a line of help that ends in a colon for a heading."""
    told = scrapy(command, "--help", cwd=tmp_path)
    assert told.status == 0, told.err
    headings = re.findall(r"^(.+)\n==+$", told.out, re.MULTILINE)
    assert headings == ["Usage", "Options"]


# scrapy control: orders to a running crawl.


@pytest.mark.parametrize(
    "arguments, form",
    [
        ("threads 32", {"threads": "32", "keep": "yes"}),
        ("threads default", {"threads": "", "keep": "yes"}),
        ("connections wiki:80 4", {"host": "wiki:80", "connections": "4", "keep": "yes"}),
        ("delay wiki:80 0.5", {"host": "wiki:80", "seconds": "0.5", "keep": "yes"}),
        ("delay wiki:80 default", {"host": "wiki:80", "seconds": "", "keep": "yes"}),
        ("slow default", {"factor": "1", "keep": "yes"}),
        ("pause-host wiki:80", {"host": "wiki:80"}),
        ("seeds http://a/ http://b/", {"urls": "http://a/ http://b/"}),
        ("pause", {}),
    ],
)
def test_what_an_act_sends(arguments: str, form: dict[str, str]) -> None:
    assert control_form(arguments.split(), this_run=False) == form


def test_an_act_for_this_run() -> None:
    assert control_form(["threads", "8"], this_run=True) == {"threads": "8", "keep": "no"}


@pytest.mark.parametrize(
    "arguments, this_run, words",
    [
        ("treads 3", False, "'treads' is not an act: expected one of threads, connections"),
        ("threads", False, "threads with 0 arguments: expected scrapy control threads THREADS"),
        ("delay 3", False, "expected scrapy control delay HOST SECONDS"),
        ("threads many", False, "threads 'many': expected a whole number from 1 to 10,000"),
        ("threads 0", False, "threads '0': expected a whole number from 1 to 10,000, or default"),
        ("connections wiki:80 1.5", False, "connections '1.5': expected a whole number from 1 to"),
        ("delay wiki:80 -1", False, "delay '-1': expected a number from 0 to 86,400, or default"),
        ("slow nan", False, "slow 'nan': expected a number from 0.01 to 1,000, or default"),
        ("pause", True, "--this-run: expected one of threads, connections, delay, slow, not pause"),
    ],
)
def test_what_is_no_act(arguments: str, this_run: bool, words: str) -> None:
    """Nothing is sent."""
    with pytest.raises(ConfigError, match=re.escape(words)):
        control_form(arguments.split(), this_run=this_run)


def test_a_crawl_that_does_not_run_cannot_be_controlled(folder: Path) -> None:
    """It says how the crawl ended; an unknown action is refused first."""
    ran = scrapy("control", "threads", "3", cwd=folder)
    assert ran.status == 1
    assert "Finished at" in ran.err
    assert "No crawl runs that could be controlled" in ran.err
    assert scrapy("control", "threads", cwd=folder).status == 2
    ran = scrapy("control", "delay", "wiki:80", "-1", cwd=folder)
    assert (ran.status, "delay '-1': expected a number" in ran.err) == (2, True), ran.err
