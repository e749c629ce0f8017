"""scrapy report: a crawl in one page that needs nothing else."""

from __future__ import annotations

import re
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from scrapy.settings import Settings

from examples.intranet.expected import load
from examples.intranet.serve import DemoServer
from larmspider import stats
from larmspider.crawl.log_index.builder import bring_up_to_date
from larmspider.crawl.reader import CrawlDir
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.records import host_of
from larmspider.index.schema import FILES
from larmspider.items import Outcome
from larmspider.learned.factory import politeness_from
from larmspider.learned.revisits.host import HostKnowledge
from larmspider.learned.revisits.revisiting import Purpose
from larmspider.reports.crawl_report import crawl_report
from larmspider.reports.documents import OTHER, REFUSED
from larmspider.status.totals import Totals
from larmspider.web.render import report_page
from tests.support.crawling import Ran, crawl, environment, scrapy
from tests.support.pseudo_terminal import PseudoTerminal


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Where a crawl of the demo intranet lies, and the demo's URL."""
    folder = tmp_path_factory.mktemp("report")
    with DemoServer() as server:
        assert crawl(server.url, folder, LARM_MONITOR_SECS="0.2").status == 0
        totals = Totals.read(folder / "crawl")
        more = {
            stats.EXTRACTION_UNREAD.format(outcome=Outcome.ENCRYPTED): 2,
            stats.REFRESH.format(seen="same"): 40,
            stats.REFRESH_REQUESTS: 41,
            stats.REFRESH_NOT_ASKED: 1_200,
            stats.REFRESH_SPENT.format(purpose=Purpose.VISIT): 30,
            stats.REFRESH_SPENT.format(purpose=Purpose.SECOND_LOOK): 8,
            stats.REFRESH_SPENT.format(purpose=Purpose.PROOF): 7,
            stats.REFRESH_SPENT.format(purpose=Purpose.OTHER): 5,
        }
        Totals(1, {**totals.counters, **more}).write(folder / "crawl")
        _visited_again(folder / "crawl", host_of(server.url))
        return folder, server.url


def _visited_again(crawl: Path, host: str) -> None:
    """As if pages had been visited again, some of them chosen at random."""
    backend = LmdbBackend(crawl / "frontier")
    positions = backend.recover().positions
    known = HostKnowledge(changes=2.0, exposure=4e7)
    known.checks.days = {int(time.time() // 86_400): [20, 19]}
    backend.put_note(f"refresh {host}", known.pack())
    backend.checkpoint(positions)
    backend.close()


@pytest.fixture(scope="module")
def page(demo: tuple[Path, str]) -> str:
    ran = scrapy("report", "--html", "report.html", cwd=demo[0])
    assert ran.status == 0, ran.err
    return (demo[0] / "report.html").read_text("utf-8")


def test_the_page_asks_nobody_for_anything(page: str) -> None:
    """No script, no style, image, font or frame of another place; its own policy says so too."""
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert not re.search(r"<(script|link|iframe|img|object|embed|base|form)\b", page)
    assert not re.search(r"\bsrc=|@import|url\(", page)
    for target in re.findall(r'href="([^"]*)"', page):
        assert target.startswith(("http://", "https://", "#")), target


def test_the_page_has_every_part(page: str, demo: tuple[Path, str]) -> None:
    """Totals, curves, hosts, refusals with examples, broken links with their pages, copies."""
    url = demo[1]
    for title in (
        "Curves", "Results", "Types", "Hosts", "Slowest hosts", "Rejected links, by rule",
        "Broken links, with the pages that carry them", "Same content", "Largest documents",
        "Most linked pages", "Documents that were not read", "Kept current",
    ):  # fmt: skip
        assert f"<h2>{title}</h2>" in page, title
    broken = page[page.index("<h2>Broken links") : page.index("<h2>Same content")]
    assert f"{url}wiki/Parking.html</a>" in broken
    assert f"{url}wiki/</a>" in broken
    assert page.count("<svg") >= 4
    assert '<td>encrypted</td><td class="num">2</td>' in page
    assert "19 of 20 pages chosen at random, and visited in the last 30 days, were as" in page
    assert "Revisits took 41 requests; 1,200 were saved" in page
    assert "Refreshes took 50 requests in all: 30 visits, 8 second looks, 7 proofs" in page


def test_refusals_are_those_of_the_crawl(demo: tuple[Path, str]) -> None:
    """By the rule in the demo's list, as far as it depends on the URL. Stored pages are the ones
    that the frontier has as stored; the answer of the failed URL has a line of its own."""
    folder, url = demo
    report = scrapy("report", "--json", cwd=folder).json
    expected = load()
    for row in report["refusals"]:
        if row["rule"] in (REFUSED, OTHER):
            continue
        for example in row["examples"]:
            path = (
                "/" + example["url"].removeprefix(url) if url in example["url"] else example["url"]
            )
            assert expected.refused_by(path) == row["rule"], path
            assert example["reason"]
            assert example["from_page"].startswith(url)
    refused = next(row for row in report["refusals"] if row["rule"] == REFUSED)
    assert refused["targets"] == 2
    assert report["counts"]["stored"] == 63
    assert (report["documents"]["count"], report["documents"]["of_failed"]) == (63, 2)
    assert report["unread"] == {"encrypted": 2, "no-text": 2}
    assert list(report["languages"].values()) == [{"en": 46, "de": 4, "ru": 3}]
    copies = report["duplicates"]["groups"]
    assert [group["copies"] for group in copies] == [2]


def test_languages_are_shown_beside_each_host(demo: tuple[Path, str]) -> None:
    """Also the languages of all files, and of a host that is an address of IPv6."""
    crawl = CrawlDir(demo[0] / "crawl")
    bring_up_to_date(crawl)
    settings = Settings()
    settings.setmodule("larmspider.settings")
    report = crawl_report(crawl, settings, politeness_from(settings))
    (row, *_), (counts, *_) = report.hosts, report.languages.values()
    index_name = row.host.partition(":")[0]
    for host, known in ((row.host, index_name), (FILES, FILES), ("[::1]:80", "::1")):
        shown = replace(report, hosts=[replace(row, host=host)], languages={known: counts})
        assert "<td>en 46, de 4, ru 3</td>" in report_page(shown, "crawl"), host


def test_the_essence_is_printed(demo: tuple[Path, str]) -> None:
    """Without an option."""
    out = scrapy("report", cwd=demo[0]).out
    assert "Finished at " in out
    assert re.search(r"^rejected by +traps: \d+ targets$", out, re.MULTILINE)
    assert re.search(rf"^refused by +{REFUSED}: 2 targets$", out, re.MULTILINE)
    assert re.search(r"^stored +63 documents, ", out, re.MULTILINE)
    assert re.search(r"^failed +2 last answers in the page files, ", out, re.MULTILINE)
    assert re.search(r"^same +1 page has the content of another page$", out, re.MULTILINE)
    assert re.search(r"^broken +404 \S+, on 1 page$", out, re.MULTILINE)
    assert re.search(r"^result +500: 1 fetch$|^result +500: \d+ fetches$", out, re.MULTILINE)
    assert re.search(r"^unread +encrypted: 2 documents$", out, re.MULTILINE)
    assert "2 targets in all" in out
    assert re.search(r"^fresh +\S+% of 63 pages are as stored \(estimate\)", out, re.MULTILINE)
    assert re.search(r"^visits +40 same; 41 requests, 1,200 saved$", out, re.MULTILINE)
    spent = r"^requests +50 requests in all: 30 visits, 8 second looks, 7 proofs, 5 other$"
    assert re.search(spent, out, re.MULTILINE)
    assert re.search(r"^due +0 now, .* later$", out, re.MULTILINE)
    assert re.search(r"^changes +127\.0\.0\.1:\d+: \S+ a day$", out, re.MULTILINE)


@pytest.mark.acceptance
@pytest.mark.parametrize("command", ["links", "report"])
def test_a_terminal_is_told_how_far_it_is(
    demo: tuple[Path, str], tmp_path: Path, command: str
) -> None:
    """While the logs are counted, up to the whole of them; then nothing of it is left."""
    shutil.copytree(demo[0] / "crawl", tmp_path / "crawl", ignore=shutil.ignore_patterns("logs.*"))
    arguments = [sys.executable, "-m", "scrapy", command]
    variables = environment(tmp_path, "larmspider.settings")
    for term, told in (("xterm", True), ("dumb", False)):
        with PseudoTerminal(arguments, tmp_path, {**variables, "TERM": term}) as terminal:
            assert terminal.wait() == 0
            shown = terminal.raw.decode()
            assert [text in shown for text in ("Counting links ...", "\x1b")] == [told, told]
            if term == "xterm":
                percents = [int(p) for p in re.findall(r"Counting links: (\d+)%", shown)]
                assert percents == sorted(percents)
                assert percents[-1] == 100
                assert ("Making the report ..." in shown) is (command == "report")
            assert "Counting" not in terminal.all
            assert "Making" not in terminal.all


@pytest.mark.parametrize(
    "arguments, status",
    [
        (["x"], 2),
        (["--html", "a", "--json"], 2),
        (["--html", "no/such/folder/r.html"], 2),
        (["--dir", "nowhere"], 2),
    ],
)
def test_bad_arguments(demo: tuple[Path, str], arguments: list[str], status: int) -> None:
    """One line each."""
    ran: Ran = scrapy("report", *arguments, cwd=demo[0])
    assert (ran.status, len(ran.err.splitlines())) == (status, 1)
