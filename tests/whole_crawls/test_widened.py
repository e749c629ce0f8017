"""A crawl continued with another scope, filter or seed fetches URLs that were outside before."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.crawling import Ran, begin, records
from tests.support.crawling import crawl as crawl_for_long
from tests.support.servers.redis import REDIS_SERVER, RedisServer
from tests.support.servers.scripted import ScriptedServer

Start = Callable[..., ScriptedServer]
SITE = {
    "/": "<a href=/in/a>a</a> <a href=/out/b>b</a> <a href=/out/c rel=nofollow>c</a>",
    "/in/a": "<a href=/out/d>d</a> <a href=/in/a?x=1>x</a>",
    "/in/a?x=1": "<meta name=robots content=nofollow><a href=/out/e>e</a>",
    "/out/b": "<a href=/out/f>f</a>",
    "/out/d": "d",
    "/out/f": "f",
    "/*": "never linked",
}
ALL = {"/", "/in/a", "/in/a?x=1", "/out/b", "/out/d", "/out/f"}
SEARCHING = """
import asyncio
from larmspider.control.link_replay import LinkReplay
from larmspider.settings import *
async def run(self, once=LinkReplay.run):
    await once(self)
    await asyncio.sleep(600)
LinkReplay.run = run
"""
"""The found URLs are queued, and the search is not over."""


def crawl(start: str, cwd: Path, **settings: str) -> Ran:
    """A search for links ends with a checkpoint."""
    return crawl_for_long(start, cwd, **{"LARM_CHECKPOINT_SECS": "0.2"} | settings)


def paths(folder: Path) -> list[str]:
    return sorted(
        "/" + record["url"].split("/", 3)[3] for record in records(folder / "crawl" / "store.log")
    )


def log_of(ran: Ran) -> str:
    return " ".join(ran.err.split())


def test_another_restrict_queues_what_was_rejected_before(
    scripted_server: Start, tmp_path: Path
) -> None:
    """Each URL once, nofollow obeyed, where they were found kept."""
    server = scripted_server(SITE)
    narrow, wide = r"http://[^/]*/(in/.*)?", r"http://[^/]*/.*"
    assert crawl(server.url("/"), tmp_path, restrict=narrow).status == 0
    assert paths(tmp_path) == ["/", "/in/a", "/in/a?x=1"]
    ran = crawl(server.url("/"), tmp_path, restrict=wide, resume="anyway")
    assert ran.status == 0, ran.err
    assert "2 links that were rejected before are queued" in log_of(ran)
    assert paths(tmp_path) == sorted(ALL)
    found_on = {r["url"]: r["from-page"] for r in records(tmp_path / "crawl" / "store.log")}
    assert found_on[server.url("/out/d")] == server.url("/in/a")
    assert "rejudge" not in json.loads((tmp_path / "crawl" / "crawl.json").read_text())
    assert len(server.log) == len(ALL) + 1, "and robots.txt: nothing twice"


@pytest.mark.acceptance
def test_a_search_that_is_killed_begins_again(scripted_server: Start, tmp_path: Path) -> None:
    """kill -9 while links are judged again, when some of what they lead to is stored: the same
    command judges all."""
    (tmp_path / "searching.py").write_text(SEARCHING)
    number = 600
    links = "".join(f"<a href=/in/{n}>{n}</a> " for n in range(number))
    site = {f"/in/{n}": f"<a href=/out/{n}>{n}</a>" for n in range(number)}
    site |= {f"/out/{n}": "out" for n in range(number)}
    server = scripted_server(site | {"/": links})
    narrow, wide = r"http://[^/]*/(in/.*)?", r"http://[^/]*/.*"
    assert crawl(server.url("/"), tmp_path, restrict=narrow).status == 0
    words = ["crawl", "intranet", "-a", f"start={server.url('/')}", "-a", f"restrict={wide}"]
    words += ["-a", "resume=anyway", "-sLARM_CHECKPOINT_SECS=0.2", "-sDOWNLOAD_DELAY=0"]
    words += ["-sLARM_DELAY_RESPONSE_FACTOR=0", "-sLARM_WEB=no"]
    with (tmp_path / "log").open("w") as log:
        process = begin(*words, cwd=tmp_path, out=log, settings_module="searching")
        try:
            end = time.monotonic() + 120
            while b"/out/" not in (tmp_path / "crawl" / "store.log").read_bytes():
                assert process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.05)
        finally:
            process.kill()
            process.wait()
    description = json.loads((tmp_path / "crawl" / "crawl.json").read_text())
    assert description["rejudge"], "it was under way"
    ran = crawl(server.url("/"), tmp_path, restrict=wide, resume="anyway")
    assert ran.status == 0, ran.err
    assert "are judged again" in log_of(ran)
    assert paths(tmp_path) == sorted({"/"} | site.keys())
    assert "rejudge" not in json.loads((tmp_path / "crawl" / "crawl.json").read_text())


@pytest.mark.acceptance
def test_a_narrower_scope_counts_the_pages_outside(scripted_server: Start, tmp_path: Path) -> None:
    """They stay stored; the same command judges nothing again. The logs are compressed."""
    server = scripted_server(SITE)
    narrow, wide = r"http://[^/]*/(in/.*)?", r"http://[^/]*/.*"
    assert crawl(server.url("/"), tmp_path, restrict=wide, LARM_COMPRESSION="zstd").status == 0
    again = crawl(server.url("/"), tmp_path, restrict=wide)
    assert "judged again" not in again.err
    ran = crawl(server.url("/"), tmp_path, restrict=narrow, resume="anyway")
    assert "0 links that were rejected before are queued; 3 of 6 stored pages are outside now" in (
        log_of(ran)
    )
    assert "There is no" not in ran.err
    assert paths(tmp_path) == sorted(ALL)


@pytest.mark.acceptance
def test_what_the_frontier_refused_for_scope_is_queued(
    scripted_server: Start, tmp_path: Path
) -> None:
    """It was queued, then the scope was narrowed, then widened."""
    server = scripted_server(SITE)
    wide = r"http://[^/]*/.*"
    assert crawl(server.url("/"), tmp_path, restrict=wide, LARM_MAX_PAGES="1").status == 0
    ran = crawl(server.url("/"), tmp_path, restrict=r"http://[^/]*/", resume="anyway")
    assert "2 refused (robots.txt," in ran.out
    ran = crawl(server.url("/"), tmp_path, restrict=wide, resume="anyway")
    assert "2 URLs that were refused for scope are queued" in log_of(ran)
    assert paths(tmp_path) == sorted(ALL)
    assert "known       6 URLs: 6 stored, 0 failed\n" in ran.out


@pytest.mark.acceptance
def test_another_seed_widens_the_scope(scripted_server: Start, tmp_path: Path) -> None:
    """Without restrict the hosts of the seeds are the scope."""
    other = scripted_server({"/": "other", "/deep": "deep"}, host="127.0.0.2")
    server = scripted_server({"/": f"<a href={other.url('/deep')}>deep</a>"})
    assert crawl(server.url("/"), tmp_path).status == 0
    ran = crawl(f"{server.url('/')} {other.url('/')}", tmp_path, resume="anyway")
    assert "1 link that was rejected before is queued" in log_of(ran)
    assert paths(tmp_path) == ["/", "/", "/deep"]


@pytest.mark.acceptance
@pytest.mark.skipif(REDIS_SERVER is None, reason="redis-server is not installed")
def test_each_worker_judges_its_own_links(scripted_server: Start, tmp_path: Path) -> None:
    """One that does not run is named; started too, it finds the rest. URLs that were refused for
    scope are queued."""
    deep = {"/": "<a href=/x>x</a>", "/x": "x"}
    other = scripted_server(deep, host="127.0.0.2")
    server = scripted_server(SITE | {"/in/a": f"<a href={other.url('/')}>o</a>"})
    narrow, wide = r"http://[^/]*/(in/.*)?", r"http://[^/]*/.*"
    with RedisServer("127.41.7.1") as redis:

        def run(worker: str, restrict: str) -> Ran:
            return crawl(
                server.url("/"), tmp_path, restrict=restrict, resume="anyway", REDIS_URL=redis.url,
                LARM_WORKER=worker, LARM_LEASE_SECS="15",
            )  # fmt: skip

        assert run("w1", narrow).status == 0
        assert run("w2", narrow).status == 0
        ran = run("w2", wide)
        assert "0 links that were rejected before are queued" in log_of(ran)
        assert "with resume=anyway: w1" in ran.err
        ran = run("w1", wide)
        assert "2 links that were rejected before are queued" in log_of(ran)
        assert "with resume=anyway" not in ran.err
        stored = {
            one["url"]
            for worker in ("w1", "w2")
            for one in records(tmp_path / "crawl" / worker / "store.log")
        }
        wanted = {server.url(path) for path in ("/", "/in/a", "/out/b", "/out/f")}
        assert stored == wanted | {other.url("/"), other.url("/x")}
        redis.client().flushall()
