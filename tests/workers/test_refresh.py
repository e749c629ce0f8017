"""Workers visit pages again: each once, whichever worker has them, and what they hold together is
what a fresh crawl of the same sites holds."""

from __future__ import annotations

import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from larmspider.cluster.redis_server import PrivateRedis
from larmspider.frontier.storage.records import UrlState
from larmspider.workdir.directory import locked, waited_for
from larmspider.workdir.manifest import LOCK
from tests.support.crawling import crawl, scrapy
from tests.support.servers.scripted import Reply
from tests.support.workers.visited_again import Crew, held, six_hosts

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(
        shutil.which("redis-server") is None,
        reason="redis-server is not installed (Debian: redis-server)",
    ),
]


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    with six_hosts(tmp_path) as crew:
        yield crew


def check_as_fresh(crew: Crew, tmp_path: Path) -> None:
    fresh = crawl(crew.sites.servers[0].url("/"), tmp_path, restrict=r"http://127\.60\.[0-9.]+:.*")
    assert fresh.status == 0, fresh.err
    crew.sites.asked()
    assert crew.held() == held(tmp_path / "crawl")


def test_each_page_is_visited_once_and_all_is_as_in_a_fresh_crawl(
    crew: Crew, tmp_path: Path
) -> None:
    assert crew.run().status == 0
    assert crew.sites.asked().keys() == crew.sites.urls
    for number, pages in enumerate(crew.sites.pages):
        pages["/p0"] = f"changed on {number} <a href=/new>new</a> <a href=/p2>two</a>"
        pages["/new"] = f"new on {number}"
    crew.days = 1
    done = crew.run("all")
    assert done.status == 0, done.err
    asked = crew.sites.asked()
    assert asked.keys() == crew.sites.urls
    again = {url for url, number in asked.items() if number > 1}
    assert all(url.endswith(("/p0", "/p1", "/p2")) for url in again), "what changes is learned"
    check_as_fresh(crew, tmp_path)
    crew.days = 2
    done = crew.run("all", number=3, LARM_REFRESH_RUN="evening")
    assert done.status == 0, done.err
    assert crew.sites.asked() == Counter(crew.sites.urls)
    assert "refresh     0 changed, 0 new, 42 as before" in done.out
    assert "42 requests for known pages; 0 known pages not visited" in done.out
    late = crew.run("all", number=2, LARM_REFRESH_RUN="evening")
    assert late.status == 0, late.err
    assert not crew.sites.asked(), "workers of a run that come after its end"
    crew.days = 2.01
    done = crew.run("due")
    assert done.status == 0, done.err
    assert not crew.sites.asked(), "no page is visited twice within an hour"
    assert "0 requests for known pages; 42 known pages not visited" in done.out


def test_a_worker_is_killed_in_mid_refresh(crew: Crew, tmp_path: Path) -> None:
    """Nothing is lost, stored twice or taken out twice; what the worker that was killed had not
    committed, or was to take out once its host's canaries were asked, is visited again."""
    assert crew.run(number=3).status == 0
    gone = set()
    for number, pages in enumerate(crew.sites.pages):
        pages["/p0"] = f"changed on {number} <a href=/new>new</a>"
        pages["/new"], pages["/p4"] = f"new on {number}", ""
        gone.add(crew.sites.servers[number].url("/p4"))
    crew.sites.asked()
    crew.days, crew.sites.delay = 1, 2.0  # a host's pages take 14 s
    running = crew.begin("all", 3, CONCURRENT_REQUESTS_PER_DOMAIN="1")
    try:
        end = time.monotonic() + 300
        while not (holder := crew.holding(gone)):
            assert running.poll() is None, (crew.folder / "out").read_text()
            assert time.monotonic() < end
            time.sleep(0.05)
        crew.kill(running, holder)
        crew.sites.delay = 0.0
        assert running.wait(400) == 0, (crew.folder / "out").read_text()
    finally:
        if running.poll() is None:
            running.kill()
        running.wait()
    asked = crew.sites.asked()
    assert asked.keys() == crew.sites.urls, "also those that are gone"
    assert Counter(crew.deleted()) == Counter(gone)
    crew.sites.named = [[path for path in named if path != "/p4"] for named in crew.sites.named]
    for pages in crew.sites.pages:
        del pages["/p4"]
    crew.days = 2
    assert crew.run("all", number=3).status == 0
    check_as_fresh(crew, tmp_path)
    assert Counter(crew.deleted()) == Counter(gone)


def test_pages_that_an_operator_takes_out_while_workers_watch(crew: Crew) -> None:
    """Each page is due and visited once; a removed page leaves the directory that has it, and one
    log says so."""
    assert crew.run().status == 0
    crew.sites.asked()
    one, host = crew.sites.servers[0].url("/p1"), crew.sites.servers[3].url("/")
    crew.days = 1
    running = crew.begin("watch", 3, LARM_REFRESH_PER_DAY="1000", LARM_WEB="yes")
    try:
        end = time.monotonic() + 120
        seen: Counter[str] = Counter()
        while seen.keys() != crew.sites.urls:
            assert time.monotonic() < end, (crew.folder / "out").read_text()
            time.sleep(0.2)
            seen += crew.sites.asked()
        assert max(seen.values()) == 1
        for what, pages in ((one, 1), (f"{host}.*", 6)):
            done = scrapy("remove", what, "--yes", cwd=crew.folder)
            assert (done.status, "removed" in done.out) == (0, True), done.out + done.err
            assert f"{pages} page" in done.out, done.out
        time.sleep(2)
    finally:
        running.send_signal(signal.SIGTERM)
        assert running.wait(120) == 0, (crew.folder / "out").read_text()
    gone = {url for url in crew.sites.urls if url == one or url.startswith(host)}
    bodies, documents, _ = crew.held()
    assert bodies.keys() == crew.sites.urls - gone
    assert documents == Counter(bodies.keys())
    assert Counter(crew.deleted()) == Counter(gone)


def test_pages_that_an_operator_takes_out_while_no_worker_runs(crew: Crew, tmp_path: Path) -> None:
    """They leave every directory that has some, at once; no worker fetches them until that is
    undone, and an erased page is on no disk any more."""
    assert crew.run(number=3).status == 0
    crew.sites.asked()
    each, where = r"http://127\.60\.[0-9.]+:[0-9]+/p1", crew.folder
    gone = {server.url("/p1") for server in crew.sites.servers}
    dry = scrapy("remove", each, cwd=where)
    assert (dry.status, "6 stored pages and 0 further URLs" in dry.out) == (0, True), dry.err
    assert (crew.held()[0].keys(), crew.deleted()) == (crew.sites.urls, [])
    done = scrapy("remove", each, "--yes", cwd=where)
    assert (done.status, "6 pages removed" in done.out) == (0, True), done.out + done.err
    bodies, documents, _ = crew.held()
    assert bodies.keys() == crew.sites.urls - gone
    assert documents == Counter(bodies.keys())
    assert Counter(crew.deleted()) == Counter(gone)
    assert {crew.state(url) for url in gone} == {UrlState.REFUSED}
    crew.days = 1
    again = crew.run("all", number=3)
    assert again.status == 0, again.err
    assert crew.sites.asked() == Counter(crew.sites.urls - gone)
    done = scrapy("remove", each, "--undo", cwd=where)
    assert (done.status, "6 URLs queued again" in done.out) == (0, True), done.out + done.err
    assert crew.run(number=2).status == 0
    assert crew.sites.asked() == Counter(gone)
    check_as_fresh(crew, tmp_path)
    texts = [f"text 1 of {number} on".encode() for number in range(6)]
    done = scrapy("remove", each, "--yes", "--erase", cwd=where)
    assert (done.status, "given back" in done.out) == (0, True), done.out + done.err
    files = [file.read_bytes() for file in crew.path.glob("*-*/pagefile_*.pfl")]
    assert not [text for text in texts for body in files if text in body]
    crew.days = 2
    again = crew.run("all", number=3)
    assert again.status == 0, again.err
    assert crew.held()[0].keys() == crew.sites.urls - gone


def test_workers_that_start_wait_for_a_command_that_changes_the_crawl(crew: Crew) -> None:
    """In the directories that it has; it refuses where they were first."""
    assert crew.run().status == 0
    crew.sites.asked()
    names, crew.days = crew.names(), 1
    with ExitStack() as change:
        change.enter_context(waited_for(crew.path / LOCK))
        change.enter_context(PrivateRedis(crew.path / "redis"))
        for name in names:
            change.enter_context(locked(crew.path / name / LOCK))
        running = crew.begin("all", 2)
        out, end = crew.folder / "out", time.monotonic() + 120
        while "Waiting for a command that changes the crawl" not in out.read_text():
            assert running.poll() is None, out.read_text()
            assert time.monotonic() < end
            time.sleep(0.05)
    assert running.wait(300) == 0, out.read_text()
    assert crew.sites.asked() == Counter(crew.sites.urls)
    assert crew.names() == names
    with locked(crew.path / "redis" / LOCK):
        done = scrapy("remove", "http://127.60.0.1.*", "--yes", cwd=crew.folder)
    assert (done.status, "is starting or ending" in done.err) == (1, True), done.err
    assert not crew.deleted()


def test_a_refresh_of_workers_that_cannot_be_is_one_line(crew: Crew) -> None:
    """And nothing is changed."""
    new = crew.run("all")
    assert (new.status, "expected a crawl that has ended" in new.err) == (2, True), new.err
    assert not crew.path.exists()
    stopped = crew.run(CLOSESPIDER_PAGECOUNT="1", CONCURRENT_REQUESTS="1")
    assert "still queued" in stopped.out, stopped.out + stopped.err
    early = crew.run("all")
    assert (early.status, "has not ended yet" in early.err) == (2, True), early.err
    assert crew.run(LARM_MAX_PAGES="3").status == 0, "an end, as of one process"
    for refresh, said in (
        ("al", "index, or a regular expression"),
        ("index", "expected the command scrapy crawl, or scrapy reindex"),
        (r"http://nowhere/.*", "no page of the crawl"),
    ):
        refused = crew.run(refresh, LARM_MAX_PAGES="3")
        assert (refused.status, said in refused.err) == (2, True), refused.err
    both = crew.run("all", fresh="force")
    assert (both.status, "refresh=all and fresh=force" in both.err) == (2, True), both.err
    crew.sites.asked()
    file = next(one for one in crew.path.glob("*/pagefile_0.pfl") if one.stat().st_size)
    file.rename(crew.folder / "away")
    gone = crew.run("all")
    assert (gone.status, f"{file} is gone" in gone.err) == (2, True), gone.err
    (crew.folder / "away").rename(file)
    assert not crew.sites.asked()
    assert crew.held()[0], "nothing is deleted"


def test_hosts_that_move_between_workers_leave_or_are_listed(crew: Crew) -> None:
    """Hosts 0 to 2 move to 3 to 5. A worker that has one of both hosts cannot know whether the new
    pages are stored: then the old ones stay, and the list says so."""
    sites, servers = crew.sites, crew.sites.servers
    for number in range(3):
        sites.pages[number + 3] = dict(sites.pages[number])
    assert crew.run().status == 0
    answer = sites.answer
    for number in range(3):
        servers[number].routes["*"] = lambda request, number=number: (
            answer(number, request)
            if request.path == "/robots.txt"
            else Reply(301, {"Location": servers[number + 3].url(request.path)})
        )
    for crew.days in (1, 2.2, 7, 9):  # a gap of more than 7 days is a jump of the clock
        assert crew.run("all").status == 0
    said = scrapy(
        "deletes", "--dir", "crawl", "-n", "99", cwd=crew.folder, settings_module=crew.module
    ).out
    gone = set(crew.deleted())
    for number in range(3):
        old, new = servers[number], servers[number + 3]
        name = old.url("").removeprefix("http://").rstrip("/")
        for path in ("/", *sites.pages[number]):
            is_listed = f"{new.url(path)} belongs to another worker" in said
            assert (old.url(path) in gone) != is_listed, [path, said]
            assert crew.state(new.url(path)) is UrlState.STORED
        assert f"{name} moved to" in said or f"{name}: 6 pages wait" in said, said
