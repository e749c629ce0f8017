"""Workers visit pages again: each once, whichever worker has them, and what they hold together is
what a fresh crawl of the same sites holds."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import redis

from larmspider.cluster.redis_server import PrivateRedis
from larmspider.crawl.worker_dirs import open_crawl
from larmspider.frontier.storage.records import UrlState, url_key
from larmspider.index.rebuild import stored_documents
from tests.support.crawling import FAST, Ran, begin, crawl, records, scrapy
from tests.support.forking import Forked
from tests.support.servers.scripted import Reply, Request, Resolution, ScriptedServer

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(
        shutil.which("redis-server") is None,
        reason="redis-server is not installed (Debian: redis-server)",
    ),
]
DAY = 86_400.0
SETTINGS = FAST | {
    "LARM_MONITOR_SECS": "1",
    "LARM_LEASE_SECS": "12",
    "LARM_CHECKPOINT_SECS": "0.3",
}


@dataclass
class Sites:
    """Hosts with pages by path, "" for one that is gone; the first start page names all hosts, each
    one its ``named`` pages."""

    servers: list[ScriptedServer]
    pages: list[dict[str, str]]
    named: list[list[str]] = field(default_factory=list)
    delay: float = 0.0

    def __post_init__(self) -> None:
        self.named = [list(pages) for pages in self.pages]
        for number, server in enumerate(self.servers):
            server.routes["*"] = lambda request, number=number: self.answer(number, request)

    def answer(self, number: int, request: Request) -> Resolution:
        if request.path == "/robots.txt":
            return Reply(404)
        html = {"Content-Type": "text/html"}
        if request.path == "/":
            links = "".join(f"<a href={path}>{path[1:]}</a> " for path in self.named[number])
            links += "".join(f"<a href={one.url('/')}>{at}</a>" for at, one in self._others(number))
            return Reply(200, html, f"start {links}".encode(), self.delay)
        text = self.pages[number].get(request.path)
        if not text:
            return Reply(404 if text is None else 410, {}, b"nothing here")
        body = f"<title>{request.path}</title><p>{text} on {number}</p>"
        return Reply(200, html, body.encode(), self.delay)

    def _others(self, number: int) -> list[tuple[int, ScriptedServer]]:
        return list(enumerate(self.servers)) if number == 0 else []

    def asked(self) -> Counter[str]:
        found = Counter(
            server.url(one.path)
            for server in self.servers
            for one in server.log
            if one.path != "/robots.txt" and not one.path.startswith("/larmspider-")
        )
        for server in self.servers:
            server.log.clear()
        return found

    @property
    def urls(self) -> set[str]:
        return {
            server.url(path)
            for server, pages in zip(self.servers, self.pages, strict=True)
            for path in ("/", *pages)
        }


class Crew:
    """``days``: how far the clocks of the crawl are ahead."""

    def __init__(self, sites: Sites, folder: Path) -> None:
        self.sites, self.folder, self.days = sites, folder, 0.0
        self._runs = 0

    @property
    def path(self) -> Path:
        return self.folder / "crawl"

    def run(self, refresh: str = "", number: int = 2, **settings: str) -> Ran:
        words = self._command(refresh, number, settings)
        return scrapy(*words, cwd=self.folder, settings_module=f"ahead{self._runs}", timeout=300)

    def begin(self, refresh: str, number: int, **settings: str) -> Forked:
        """The same, beside the test."""
        words = self._command(refresh, number, settings)
        with (self.folder / "out").open("ab") as out:
            return begin(*words, cwd=self.folder, settings_module=f"ahead{self._runs}", out=out)

    def kill(self, supervisor: Forked, name: str) -> None:
        """SIGKILL for a worker, which the supervisor starts again."""
        children = Path(f"/proc/{supervisor.pid}/task/{supervisor.pid}/children").read_text()
        for pid in map(int, children.split()):
            if f"LARM_WORKER={name}" in Path(f"/proc/{pid}/cmdline").read_text().split("\0"):
                os.kill(pid, signal.SIGKILL)
                return
        raise AssertionError(f"{name} does not run")

    def names(self) -> list[str]:
        return sorted(path.parent.name for path in self.path.glob("*/fetch.log"))

    def fetches(self, name: str) -> int:
        """Lines in the fetch.log of a worker."""
        return len((self.path / name / "fetch.log").read_bytes().splitlines())

    def deleted(self) -> list[str]:
        """URLs in the deleted.log of all workers."""
        logs = self.path.glob("*/deleted.log")
        return [record["url"] for log in logs for record in records(log)]

    def _command(self, refresh: str, number: int, settings: dict[str, str]) -> list[str]:
        self._runs += 1
        # a name of its own: Python takes a file of the same second and size for the one before
        (self.folder / f"ahead{self._runs}.py").write_text(
            "import time\nfrom larmspider.settings import *\n"
            f"def FRONTIER_CLOCK(): return time.time() + {self.days * DAY}\n"
        )
        words = ["workers", "-n", str(number), "-a", f"start={self.sites.servers[0].url('/')}"]
        words += ["-a", r"restrict=http://127\.60\.[0-9.]+:.*"]
        for name, value in {**SETTINGS, **settings}.items():
            words += ["-s" if name.isupper() else "-a", f"{name}={value}"]
        return [*words, *(["-a", f"refresh={refresh}"] if refresh else [])]

    def state(self, url: str) -> UrlState:
        with open_crawl(self.path).frontier() as frontier:
            assert frontier is not None
            return frontier.state(url_key(url))

    def held(self) -> tuple[dict[str, bytes], Counter[str], Counter[tuple[str, str]]]:
        return held(self.path)


def held(path: Path) -> tuple[dict[str, bytes], Counter[str], Counter[tuple[str, str]]]:
    """Bodies by URL, documents of all indexes, links of all logs."""
    found = open_crawl(path)
    bodies = {page.exact: found.body(page) for page in found.pages()}
    documents: Counter[str] = Counter()
    links: Counter[tuple[str, str]] = Counter()
    for part in found.parts:
        if part.index_dir.exists():
            documents.update(key for key, stored in stored_documents(part.index_dir)[1] if stored)
        links.update((fields[0], fields[1]) for fields in part.logs.links())
    return bodies, documents, links


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    with ExitStack() as stack:
        servers = [
            stack.enter_context(ScriptedServer({}, f"127.60.0.{number + 1}")) for number in range(6)
        ]
        texts = [
            {f"/p{n}": f"text {n} of {number}" for n in range(5)} for number in range(len(servers))
        ]
        folder = tmp_path / "many"
        folder.mkdir()
        yield Crew(Sites(servers, texts), folder)


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
    assert "refresh   0 changed, 0 new, 42 as before" in done.out
    assert "42 requests for known pages; 0 pages not asked for" in done.out
    late = crew.run("all", number=2, LARM_REFRESH_RUN="evening")
    assert late.status == 0, late.err
    assert not crew.sites.asked(), "workers of a run that come after its end"
    crew.days = 2.01
    done = crew.run("due")
    assert done.status == 0, done.err
    assert not crew.sites.asked(), "no page is visited twice within an hour"
    assert "0 requests for known pages; 42 pages not asked for" in done.out


def test_a_worker_is_killed_in_mid_refresh(crew: Crew, tmp_path: Path) -> None:
    """Nothing is lost, stored twice or taken out twice; what the worker that was killed had not
    committed, or was to take out, is visited again."""
    assert crew.run(number=3).status == 0
    gone = set()
    for number, pages in enumerate(crew.sites.pages):
        pages["/p0"] = f"changed on {number} <a href=/new>new</a>"
        pages["/new"], pages["/p4"] = f"new on {number}", ""
        gone.add(crew.sites.servers[number].url("/p4"))
    crew.sites.asked()
    crew.days, crew.sites.delay = 1, 2.0  # a host's pages take 14 s
    before = {name: crew.fetches(name) for name in crew.names()}
    running = crew.begin("all", 3, CONCURRENT_REQUESTS_PER_DOMAIN="1")
    try:
        end = time.monotonic() + 300
        while not (begun := [name for name in before if crew.fetches(name) > before[name] + 1]):
            assert running.poll() is None, (crew.folder / "out").read_text()
            assert time.monotonic() < end
            time.sleep(0.05)
        crew.kill(running, begun[0])
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
    """Each page is due and visited once; what is removed leaves the directory that has it, and one
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
            assert (done.status, "taken out" in done.out) == (0, True), done.out + done.err
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
    """They leave every directory that has some, at once; nobody fetches them until that is undone,
    and what is erased is on no disk any more."""
    assert crew.run(number=3).status == 0
    crew.sites.asked()
    each, where = r"http://127\.60\.[0-9.]+:[0-9]+/p1", crew.folder
    gone = {server.url("/p1") for server in crew.sites.servers}
    dry = scrapy("remove", each, cwd=where)
    assert (dry.status, "6 stored pages and 0 further URLs" in dry.out) == (0, True), dry.err
    assert (crew.held()[0].keys(), crew.deleted()) == (crew.sites.urls, [])
    done = scrapy("remove", each, "--yes", cwd=where)
    assert (done.status, "6 pages taken out" in done.out) == (0, True), done.out + done.err
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


def test_a_crawl_of_an_earlier_version_is_visited_again(crew: Crew) -> None:
    """Redis has nothing of its visits; whose directories are elsewhere is told so."""
    assert crew.run().status == 0
    crew.sites.asked()
    with PrivateRedis(crew.path / "redis") as server, redis.Redis.from_url(server.url) as client:
        for key in [*client.scan_iter("intranet:visits:*", count=1000)]:
            client.delete(key)
    crew.days = 1
    folders = [(path, crew.folder / path.name) for path in crew.path.glob("*-*")]
    for path, away in folders:
        path.rename(away)
    refused = crew.run("all")
    assert (refused.status, "begin where these are" in refused.err) == (2, True), refused.err
    for path, away in folders:
        away.rename(path)
    done = crew.run("all", number=3)
    assert done.status == 0, done.err
    assert crew.sites.asked() == Counter(crew.sites.urls)
    assert "refresh   0 changed, 0 new, 36 as before" in done.out
    assert len(crew.held()[0]) == 36


def test_a_refresh_of_workers_that_cannot_be_is_one_line(crew: Crew) -> None:
    """And nothing is changed."""
    new = crew.run("all")
    assert (new.status, "expected a crawl that has ended" in new.err) == (2, True), new.err
    assert not crew.path.exists()
    assert crew.run(LARM_MAX_PAGES="3").status == 0
    for refresh, said in (
        ("al", "index, or a regular expression"),
        ("index", "expected the command scrapy crawl, or scrapy reindex"),
        (r"http://nowhere/.*", "no page of the crawl"),
    ):
        refused = crew.run(refresh, LARM_MAX_PAGES="3")
        assert (refused.status, said in refused.err) == (2, True), refused.err
    both = crew.run("all", fresh="force")
    assert (both.status, "refresh=all and fresh=force" in both.err) == (2, True), both.err
    assert crew.held()[0], "nothing is deleted"
