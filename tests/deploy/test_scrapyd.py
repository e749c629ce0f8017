"""A real scrapyd runs the project from its egg: deploy, schedule, list, cancel, go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.crawling import PROJECT as CHECKOUT
from tests.support.deploy.jobs import PAGES, everything, job, lines, stored, wait_for
from tests.support.recovery.killed_crawl import wait_until
from tests.support.servers.scrapyd import Scrapyd

pytestmark = pytest.mark.acceptance

PROJECT = "larmspider"


@pytest.fixture(scope="module")
def node(egg: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scrapyd]:
    """One with version 1 of the project."""
    with Scrapyd(tmp_path_factory.mktemp("node")) as node:
        assert node.add_version(PROJECT, "1", egg)["spiders"] == 1
        yield node


def test_deployed_project_and_spider_are_listed(node):
    assert node.read("listprojects")["projects"] == [PROJECT]
    assert node.read("listversions", project=PROJECT)["versions"] == ["1"]
    assert node.read("listspiders", project=PROJECT)["spiders"] == ["intranet"]


def test_nothing_is_told_without_the_password(node):
    """Neither of the interface nor of the logs."""
    for path in ("/daemonstatus.json", "/listjobs.json", "/logs/", "/jobs"):
        for wrong in ("", "guess"):
            assert node.get(path, password=wrong)[0] == 401, path


def test_a_scheduled_job_crawls_what_start_and_restrict_say(node, site, tmp_path):
    """And its log says from which egg, into which directory, and how it ended."""
    one = job(node, site, tmp_path / "crawl")
    wait_until(lambda: node.state(one) == "running", "it runs")
    listed = node.read("listjobs", project=PROJECT)["running"]
    assert [(entry["id"], entry["spider"]) for entry in listed] == [(one, "intranet")]
    site.hurried = True
    wait_for(node, one, "finished")
    assert Counter(stored(tmp_path / "crawl")) == everything(site)
    assert not site.requests("/private/x")
    log = node.log(one)
    assert f"from {node.folder}/eggs/larmspider/1.egg; LARM_DIR is {tmp_path / 'crawl'}" in log
    assert "is relative" not in log
    assert "is not what runs" not in log
    assert f"stored      {PAGES + 1} pages" in log


def test_a_cancelled_job_goes_on_where_it_was(node, site, tmp_path):
    """cancel.json is one SIGINT; the same schedule.json again, under a newer version even."""
    crawl = tmp_path / "crawl"
    first = job(node, site, crawl)
    wait_until(lambda: lines(crawl / "store.log") >= 5, "five pages are stored")
    assert node.call("cancel", project=PROJECT, job=first)["prevstate"] == "running"
    wait_for(node, first, "finished")
    kept = stored(crawl)
    assert 5 <= len(kept) <= PAGES
    log = node.log(first)
    assert "ended       shutdown" in log
    assert "Traceback" not in log
    end = next(
        line
        for line in node.own_log().splitlines()
        if "Process " in line and first in line and "started" not in line
    )
    assert "Process finished" in end

    site.hurried = True
    second = job(node, site, crawl)
    wait_for(node, second, "finished")
    assert f"Continuing the crawl in {crawl}" in node.log(second)
    after = stored(crawl)
    assert after[: len(kept)] == kept
    assert Counter(after) == everything(site)
    asked = Counter(request.path for request in site.log)
    assert all(asked[f"/p/{n}"] <= 2 for n in range(PAGES))
    assert asked.total() <= PAGES + 4 + 2  # robots.txt and the two that were under way


def test_sigterm_ends_a_job_as_cleanly(node, site, tmp_path):
    """The signal that systemd sends to scrapyd and all of its jobs."""
    crawl = tmp_path / "crawl"
    one = job(node, site, crawl)
    wait_until(lambda: lines(crawl / "store.log") >= 2, "two pages are stored")
    node.call("cancel", project=PROJECT, job=one, signal="TERM")
    wait_for(node, one, "finished")
    assert "ended       shutdown" in node.log(one)
    site.hurried = True
    again = job(node, site, crawl)
    wait_for(node, again, "finished")
    assert Counter(stored(crawl)) == everything(site)


def test_a_job_cancelled_twice_loses_nothing_either(node, site, tmp_path):
    """The second signal ends it at once, without a last checkpoint."""
    crawl = tmp_path / "crawl"
    one = job(node, site, crawl)
    wait_until(lambda: lines(crawl / "store.log") >= 2, "two pages are stored")
    for _ in range(2):
        node.call("cancel", project=PROJECT, job=one)
    wait_for(node, one, "finished")
    site.hurried = True
    again = job(node, site, crawl)
    wait_for(node, again, "finished")
    assert Counter(stored(crawl)) == everything(site)


def test_a_newer_version_goes_on_with_the_crawl_of_an_older_one(scrapyd, site, egg, tmp_path):
    """Deployed while the old one runs, whose egg is deleted under it."""
    node = scrapyd()
    node.add_version(PROJECT, "1", egg)
    crawl = tmp_path / "crawl"
    one = job(node, site, crawl)
    wait_until(lambda: lines(crawl / "store.log") >= 2, "two pages are stored")
    node.add_version(PROJECT, "2", egg)
    node.call("delversion", project=PROJECT, version="1")
    assert node.read("listversions", project=PROJECT)["versions"] == ["2"]
    count = lines(crawl / "store.log")
    wait_until(lambda: lines(crawl / "store.log") > count, "the old one goes on")
    node.call("cancel", project=PROJECT, job=one)
    wait_for(node, one, "finished")
    assert "Traceback" not in node.log(one)
    site.hurried = True
    again = job(node, site, crawl)
    wait_for(node, again, "finished")
    assert f"{node.folder}/eggs/larmspider/2.egg; LARM_DIR is {crawl}" in node.log(again)
    assert Counter(stored(crawl)) == everything(site)


def test_a_job_without_a_directory_says_where_it_writes(node, site):
    """The default, crawl, is below scrapyd's working directory, for each job the same."""
    site.hurried = True
    one = job(node, site, "crawl", jobid="mine")
    assert one == "mine"
    wait_for(node, one, "finished")
    assert "WARNING: LARM_DIR=crawl is relative" in node.log(one)
    assert f"LARM_DIR is {node.folder / 'crawl'}" in node.log(one)
    assert Counter(stored(node.folder / "crawl")) == everything(site)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"start": ""}, "No seed: give -a start=URL"),
        ({"sart": "http://h/", "start": "http://h/"}, "unknown argument sart: did you mean start?"),
    ],
)
def test_why_a_job_was_refused_stands_in_its_log(node, how, said):
    """scrapyd shows no standard error but in its own log, on its own disk."""
    one = node.schedule("intranet", **how)
    wait_for(node, one, "finished")
    assert said in node.log(one)


def test_two_jobs_in_one_directory_are_one_too_many(node, site, tmp_path):
    """The second is refused, and the first not disturbed."""
    crawl = tmp_path / "crawl"
    first = job(node, site, crawl)
    wait_until(lambda: lines(crawl / "store.log") >= 1, "a page is stored")
    second = job(node, site, crawl)
    wait_for(node, second, "finished")
    assert f"LARM_DIR={crawl} is in use" in node.log(second)
    site.hurried = True
    wait_for(node, first, "finished")
    assert Counter(stored(crawl)) == everything(site)


def test_a_job_says_that_an_installed_package_hides_its_egg(scrapyd, site, egg, tmp_path):
    """Python finds installed packages, or packages on PYTHONPATH, before the egg."""
    node = scrapyd(environment={"PYTHONPATH": str(CHECKOUT)})
    node.add_version(PROJECT, "1", egg)
    site.hurried = True
    one = job(node, site, tmp_path / "crawl")
    wait_for(node, one, "finished")
    log = node.log(one)
    assert f"from {CHECKOUT / 'larmspider'}; LARM_DIR is" in log
    assert f"WARNING: The egg {node.folder}/eggs/larmspider/1.egg is not the code that runs" in log
