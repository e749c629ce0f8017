"""The crawl of three workers equals the crawl of one process, in every command and on every page of
``scrapy serve``. The workers hear late of the blocks that they get.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from larmspider.crawl.state import RunState, State
from larmspider.crawl.worker_dirs import open_crawl
from larmspider.workdir.directory import worker_dirs
from tests.support.crawling import FAST, crawl, scrapy
from tests.support.web.serving import Served
from tests.support.workers.crew import take_back_pages
from tests.support.workers.hosts import CrossLinked

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(
        shutil.which("redis-server") is None,
        reason="redis-server is not installed (Debian: redis-server)",
    ),
]
LATE_NEWS = "tests.support.workers.late_news"
HOSTS, PAGES = 8, 8
STORED = HOSTS * (PAGES + 2)
"""With the start page, and the answer of status 404."""
SETTINGS = FAST | {
    "LARM_MONITOR_SECS": "0.5",
    "LARM_LEASE_SECS": "15",
    "LARM_CHECKPOINT_SECS": "0.3",
    "DOWNLOAD_DELAY": "1",
    "LARM_SITEMAPS": "no",
    "LARM_TRAPS": "off",
}


@dataclass
class Both:
    """The same hosts, crawled by one process and by three; ``one`` and ``many`` hold a crawl."""

    sites: CrossLinked
    one: Path
    many: Path

    def ask(self, *words: str) -> tuple[Any, Any]:
        """The answers of a command with --json."""
        found = []
        for folder in (self.one, self.many):
            ran = scrapy(*words, "--json", cwd=folder)
            assert ran.status == 0, ran.err
            found.append(ran.json)
        return found[0], found[1]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("both")
    with CrossLinked(HOSTS, pages=PAGES, net="127.40.0") as sites:
        found = Both(sites, folder / "one", folder / "many")
        found.one.mkdir()
        found.many.mkdir()
        wanted = {"start": sites.seed, "restrict": sites.restrict}
        ran = crawl(sites.seed, found.one, restrict=sites.restrict, DOWNLOAD_DELAY="0")
        assert ran.status == 0, ran.err
        words = []
        for name, value in (SETTINGS | wanted).items():
            words += ["-s" if name.isupper() else "-a", f"{name}={value}"]
        ran = scrapy("workers", "-n", "3", *words, cwd=found.many, settings_module=LATE_NEWS)
        assert ran.status == 0, ran.err
        yield found


def test_more_than_one_worker_has_stored_pages(both: Both) -> None:
    """Else the rest of these tests proves little."""
    shards = open_crawl(both.many / "crawl").parts
    counts = [len(list(shard.pages())) for shard in shards]
    assert sum(counts) == STORED
    assert sorted(counts)[-2] > 0, counts


def test_broken_links_have_all_pages_that_carry_them(both: Both) -> None:
    """Each is on pages of another host, so mostly of another worker."""
    one, many = (answer["broken"] for answer in both.ask("links", "--broken"))
    assert {link["url"] for link in one} == set(both.sites.gone)
    assert _carried(many) == _carried(one)
    assert {len(pages) for _, pages in _carried(many).values()} == {PAGES}


def _carried(links: list[dict[str, Any]]) -> dict[str, tuple[int, frozenset[str]]]:
    return {
        link["url"]: (link["pages"], frozenset(carrier["page"] for carrier in link["carriers"]))
        for link in links
    }


def test_what_is_linked_most_is_counted_over_all(both: Both) -> None:
    one, many = both.ask("links", "-n", "100")
    for answer in (one, many):
        answer["pages"] = {page["url"]: page["pages"] for page in answer["pages"]}
        answer["hosts"] = sorted(tuple(host.values()) for host in answer["hosts"])
    assert many == one


_VARIES = ("time", "from_page", "link_type", "shard", "page_file", "offset")


@pytest.mark.parametrize("path", ["/", "/3", "/gone", "/private", "/never"])
def test_explain_gives_the_same_answers(both: Both, path: str) -> None:
    """State, verdicts, result, and that a page is known to link there."""
    one, many = both.ask("explain", both.sites.servers[-1].url(path))
    for answer in (one, many):
        answer["frontier"] = [line for line in answer["frontier"] if line.startswith("URL")]
        for part in ("fetched", "stored"):
            found = answer[part] or {}
            answer[part] = {name: found[name] for name in found if name not in _VARIES}
        answer["notes"] = [note for note in answer["notes"] if "REDIS_URL names it" not in note]
        answer["first_referrer"] = answer["first_referrer"] is not None
    assert many == one


def test_pages_are_given_by_whoever_stored_them(both: Both) -> None:
    for server in both.sites.servers:
        ran = scrapy("page", server.url("/5"), cwd=both.many)
        assert ran.out == server.routes["/5"][2].decode()


def test_hosts_are_the_same_with_the_same_counts(both: Both) -> None:
    one, many = (
        {
            row["host"]: [row[name] for name in ("queued", "stored", "failed", "refused")]
            for row in answer["hosts"]
        }
        for answer in both.ask("hosts")
    )
    assert many == one


def test_the_report_is_the_same(both: Both) -> None:
    """But for times, and for which of many pages is an example."""
    one, many = map(_report, both.ask("report"))
    assert many == one


def _report(found: dict[str, Any]) -> dict[str, Any]:
    return {
        "counts": found["counts"],
        "documents": [found["documents"][name] for name in ("count", "bytes", "types")],
        "results": {word: sums["times"] for word, sums in found["results"]},
        "fetched": found["runs"]["pages"],
        "hosts": {row["host"]: row["counts"]["stored"] for row in found["hosts"]},
        "refusals": {row["rule"]: (row["targets"], row["links"]) for row in found["refusals"]},
        "broken": found["broken_in_all"],
        "linked": {page["url"]: page["pages"] for page in found["linked"][:HOSTS]},
        "linked hosts": sorted(tuple(host.values()) for host in found["linked_hosts"]),
        "duplicates": found["duplicates"]["urls"],
        "state": found["condition"]["state"],
    }


def test_the_web_pages_are_the_same(both: Both) -> None:
    """Totals, hosts, links, search; and the Prometheus counters that do not count processes."""
    with Served(both.one / "crawl") as one, Served(both.many / "crawl") as many:
        for name in ("urls", "rejected_links", "failed_urls", "stored_urls"):
            found = [site.get("/stats.json").json[name] for site in (one, many)]
            assert {k: v for k, v in found[1].items() if v} == {
                k: v for k, v in found[0].items() if v
            }, name
        sentence = many.get("/stats.json").json["sentence"]
        assert sentence.startswith("3 workers ended this crawl here (finished) at ")
        found = [site.get("/search?q=words&format=json").json["total"] for site in (one, many)]
        assert found == [HOSTS * PAGES] * 2
        for folder in (both.one, both.many):
            assert scrapy("links", cwd=folder).status == 0  # both indexes of the logs are made
        found = [site.get("/links?format=json").json for site in (one, many)]
        assert _carried(found[1]["links"]) == _carried(found[0]["links"])
        assert found[1]["complete"]
        gone = both.sites.gone[3]
        assert f"{PAGES} pages" in many.get(f"/url?u={gone}").text
        host = both.sites.servers[3].url("/").split("/")[2]
        page = many.get(f"/hosts/{host}").text
        assert "All fetches as of" in page
        assert "/gone" in page, "among the failures and the recent fetches"
        wanted = ("larmspider_pages_total", "larmspider_links_total")
        metrics = [
            [line for line in site.get("/metrics").text.splitlines() if line.startswith(wanted)]
            for site in (one, many)
        ]
        assert metrics[0] == metrics[1]
        assert len(metrics[0]) == len(wanted)
        for path in ("/", "/hosts", "/links?show=hosts", "/control", "/healthz"):
            assert many.get(path).status == 200, path


def test_the_tail_of_a_worker_that_was_killed_counts_nowhere(both: Both, tmp_path: Path) -> None:
    """It never came back: what it had written after its last checkpoint is not shown."""
    shutil.copytree(both.many / "crawl", tmp_path / "crawl", ignore=shutil.ignore_patterns("redis"))
    root = tmp_path / "crawl"
    shard = max(worker_dirs(root), key=lambda path: (path / "store.log").stat().st_size)
    lost = [page.normalized for page in open_crawl(root).pages() if page.shard == str(shard)][-2:]
    take_back_pages(shard, 2)
    described = json.loads((shard / "crawl.json").read_text())
    del described["end"], described["ended"]
    (shard / "crawl.json").write_text(json.dumps(described))
    assert RunState.of(root).state is State.KILLED
    found = scrapy("report", "--json", cwd=tmp_path).json
    gone = sum(url.endswith("/gone") for url in lost)  # an error is not a document
    assert found["documents"]["count"] == STORED - HOSTS - 2 + gone
    with_words = [url for url in lost if url.rpartition("/")[2].isdigit()]
    with Served(root) as site:
        found = site.get("/search?q=words&format=json").json
        assert found["total"] == HOSTS * PAGES - len(with_words)
        for url in lost:
            assert site.get(f"/view?u={url}").status == 404
        assert site.get("/healthz").status == 503
    shutil.rmtree(root / "logs.idx")
    with suppress(FileNotFoundError):
        (shard / "frontier" / "data.mdb").unlink()
    assert len(list(open_crawl(root).pages())) < STORED - 2, "nothing is known of its checkpoints"
