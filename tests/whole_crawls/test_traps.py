"""Sites without end in a whole crawl, with its default LARM_TRAPS."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from benchmarks import applications
from benchmarks.traps import MOST, PAGES, count, healthy
from tests.support.crawling import crawl, records, scrapy
from tests.support.servers.application import documents
from tests.support.servers.applications import APPLICATIONS, PublicInbox
from tests.support.servers.generators import CONTENT, answer
from tests.support.servers.redis import REDIS_SERVER, RedisServer
from tests.support.servers.scripted import ScriptedServer
from tests.support.workers.crew import Crew
from tests.support.workers.hosts import Hosts

pytestmark = pytest.mark.acceptance
NAMES = ("calendar by month", "sessions in queries", "filters")


def test_sites_without_end_are_held_and_others_lose_nothing(tmp_path: Path) -> None:
    """All thirteen: python -m benchmarks.traps."""
    found = count(tmp_path, NAMES, 3)
    assert (found.ran.status, found.missing) == (0, [])
    assert max(found.asked.values()) < MOST
    assert " URLs held: similar URLs had nothing new, or no end (LARM_TRAPS" in found.ran.out
    shown = scrapy("traps", "--json", cwd=tmp_path)
    traps = shown.json["traps"]
    views = {trap["name"] for trap in traps if trap["host"].startswith("127.0.3.")}
    assert all("do=" in name for name in views)
    assert len(views) < len(traps)
    assert all(1 <= len(trap["samples"]) <= 5 for trap in traps)
    assert any(sample["repeats"] for trap in traps for sample in trap["samples"])


@pytest.mark.parametrize("name", ["cgit", "datasette", "trac"])
def test_an_application_is_stored_and_its_crawl_ends(name: str, tmp_path: Path) -> None:
    """Its large classes have rules, and what is held is explained. In 300 documents: python -m
    benchmarks.applications."""
    app = APPLICATIONS[name](60)
    if app.missing():
        pytest.skip(app.wanted())
    with app:
        found = applications.count(app, tmp_path, "learn", "acting", most=1_500)
        documents = app.documents()
    assert len(found.stored) >= 0.98 * len(documents)
    assert found.quarantined == set()
    assert found.fetched < 1_000
    traps = scrapy("traps", "--json", cwd=tmp_path).json["traps"]
    large = [trap for trap in traps if trap["held"] > 100 and "/" in trap["name"]]
    if name == "cgit":
        assert large
        # of a class over all paths, what else is in it depends on the order of the fetches
        alone = [trap for trap in large if "/**" not in trap["name"]]
        assert all(trap["line"] or trap["no_line"].startswith("none: ") for trap in alone)
        assert all(trap["line"] or trap["no_line"] for trap in traps)
    sample = traps[0]["samples"][0]["url"]
    assert "frontier     URL: stored" in scrapy("explain", sample, cwd=tmp_path).out


def test_new_mails_of_an_archive_with_held_views_are_found_when_its_pages_are_due(
    tmp_path: Path,
) -> None:
    app = PublicInbox(60)
    if app.missing():
        pytest.skip(app.wanted())
    (tmp_path / "later.py").write_text(
        "import time\nfrom larmspider.settings import *\n"
        "def FRONTIER_CLOCK(): return time.time() + 2 * 86_400\n"
    )
    with app:
        found = applications.count(app, tmp_path, "learn", "acting", LARM_REFRESH_PER_DAY="500")
        assert len(found.stored) == 60
        assert scrapy("traps", "--json", cwd=tmp_path).json["traps"]
        app.deliver(documents(100), 60)
        again = crawl(
            app.seed,
            tmp_path,
            settings_module="later",
            refresh="due",
            LARM_TRAPS="learn",
            LARM_REFRESH_PER_DAY="500",
            LARM_KNOWN_PATHS_FILE=str(tmp_path / "known_paths.txt"),
            LARM_HOST_MAX_PAGES=str(applications.MOST),
        )
        assert again.status == 0, again.err
        stored = {app.document_of(one["url"]) for one in records(tmp_path / "crawl" / "store.log")}
        assert stored >= app.documents()
        assert len(app.documents()) == 100


@pytest.mark.skipif(REDIS_SERVER is None, reason="redis-server is not installed (Debian package)")
def test_workers_that_are_killed_while_they_learn_lose_and_double_nothing(tmp_path: Path) -> None:
    """Each of two workers is killed once, when both have stored 100 and 250 pages. The crawl ends,
    though it fetches uncommitted pages again."""
    with ExitStack() as running:
        redis = running.enter_context(RedisServer("127.32.0.9"))
        sites = [{"*": answer(name)} for name in NAMES]
        sites += [{"*": lambda request, n=n: healthy(n, request)} for n in range(3)]
        servers = [
            running.enter_context(ScriptedServer(site, host=f"127.0.4.{at + 1}"))
            for at, site in enumerate(sites)
        ]
        traps, others = servers[: len(NAMES)], servers[len(NAMES) :]
        seeds = [one.url("/") for one in traps] + [one.url("/page0") for one in others]
        wanted = {one.url(f"/page{at}") for one in others for at in range(PAGES)}
        wanted |= {one.url(f"/doc/{at}") for one in traps for at in range(CONTENT)}
        hosts = SimpleNamespace(
            seed=" ".join(seeds), restrict=r"http://127\.0\.4\..*", requests=list
        )
        own = {"LARM_TRAPS": "learn", "LARM_LEASE_SECS": "15", "DOWNLOAD_DELAY": "0"}
        crew = running.enter_context(Crew(cast("Hosts", hosts), redis, tmp_path, **own))
        crew.start("w1", "w2")
        for killed, pages in (("w1", 100), ("w2", 250)):
            crew.until(lambda pages=pages: crew.pages() >= pages, f"{pages} pages")
            crew.kill(killed)
            crew.start(killed)
        crew.end()
        stored = crew.stored()
    assert wanted <= stored.keys()
    assert [url for url, number in stored.items() if number > 1] == []
    found = scrapy("traps", "--json", cwd=tmp_path)
    assert {trap["host"].rpartition(".")[0] for trap in found.json["traps"]} == {"127.0.4"}
