"""Crawls that the version before began are gone on with: their directory, and their Redis."""

from __future__ import annotations

import base64
import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from scrapy.settings import Settings

from larmspider.commands.workers import Command
from larmspider.workdir.directory import ClusterDirectory
from tests.support.crawling import Ran, scrapy
from tests.support.servers.redis import REDIS_SERVER, RedisServer
from tests.support.servers.scripted import Reply, Request, ScriptedServer

pytestmark = pytest.mark.acceptance
EARLIER = Path(__file__).parent / "earlier"
PAGES = 24
HOSTS = ("http://wiki.example/", "http://archive.example/")
SITE = {f"{host}{page}" for host in HOSTS for page in ("", *(f"p{n}.html" for n in range(PAGES)))}


def page(request: Request) -> Reply:
    """What the site's proxy answers: a tree of pages, each with two links, on two hosts."""
    name = request.target.rpartition("/")[2]
    if name == "robots.txt":
        return Reply(404)
    number = int(name[1:-5]) if name else -1
    links = range(8) if number < 0 else (2 * number + 1, 2 * number + 2)
    body = f"<title>Page {name}</title>"
    body += "".join(f"<a href=/p{n}.html>to {n}</a>" for n in links if n < PAGES)
    if number < 0:
        body += f"<a href={HOSTS[1]}>archive</a>"
    return Reply(200, {"Content-Type": "text/html; charset=utf-8"}, body.encode())


def crawl(folder: Path, *options: str) -> Ran:
    """Goes on with ``folder``/crawl; both hosts are reached through the server as their proxy."""
    with ScriptedServer({"*": page}) as server:
        sites = folder / "sites.toml"
        proxy = server.url("/").rstrip("/")
        sites.write_text(f'[[site]]\nhosts = "*:*"\nproxy = "{proxy}"\n')
        settings = {
            "LARM_SITES_FILE": sites,
            "DOWNLOAD_DELAY": 0,
            "LARM_DELAY_RESPONSE_FACTOR": 0,
            "LARM_CHECKPOINT_SECS": 0.4,
            "LARM_WEB": "no",
            "LARM_LEASE_SECS": 2,
        }
        return scrapy(
            *("crawl", "intranet", "-a", f"start={HOSTS[0]}"),
            *("-a", r"restrict=http://[^/]*\.example/.*"),
            *(f"-s{name}={value}" for name, value in settings.items()),
            *options,
            cwd=folder,
        )


def stored(log: Path) -> Counter[str]:
    return Counter(line.split("\t")[1] for line in log.read_text("utf-8").splitlines())


def test_a_crawl_directory_of_the_version_before_is_gone_on_with(tmp_path: Path) -> None:
    """Every page is stored once; those that were there before are not fetched again. And so is
    one that this version has gone on with."""
    shutil.copytree(EARLIER / "alone", tmp_path / "crawl")
    before = stored(tmp_path / "crawl" / "store.log")
    assert 0 < len(before) < len(SITE)
    ran = crawl(tmp_path)
    assert ran.status == 0, ran.err
    assert "LARM_CANONICAL_RULES=always); other rules need a new crawl" in ran.err
    assert stored(tmp_path / "crawl" / "store.log") == Counter(SITE)
    again = crawl(tmp_path)
    assert again.status == 0, again.err
    assert stored(tmp_path / "crawl" / "store.log") == Counter(SITE)


def test_commands_read_a_crawl_directory_of_the_version_before(tmp_path: Path) -> None:
    """Also while nothing has gone on with it: what its last checkpoint committed."""
    shutil.copytree(EARLIER / "alone", tmp_path / "crawl")
    found = scrapy("search", "--json", "archive.example", cwd=tmp_path)
    assert found.status == 0, found.err
    assert found.json["total"] > 0
    hosts = scrapy("hosts", "--json", cwd=tmp_path)
    assert {row["host"] for row in hosts.json["hosts"]} == {"wiki.example:80", "archive.example:80"}
    links = scrapy("links", "--broken", "--json", cwd=tmp_path)
    assert links.status == 0, links.err
    explained = scrapy("explain", "--json", HOSTS[0], cwd=tmp_path)
    assert explained.status == 0, explained.err
    assert "other filters" not in explained.out


@pytest.mark.skipif(REDIS_SERVER is None, reason="needs Debian's redis-server")
def test_a_redis_of_the_version_before_is_gone_on_with(tmp_path: Path) -> None:
    """The worker that died comes back under its name and fetches what is left."""
    shutil.copytree(EARLIER / "shared", tmp_path / "crawl")
    log = tmp_path / "crawl" / "one" / "store.log"
    assert 0 < len(stored(log)) < len(SITE)
    with RedisServer() as server:
        client = server.client()
        for key, value in json.loads((EARLIER / "redis.json").read_text("utf-8")).items():
            client.restore(key, 0, base64.b64decode(value))
        options = ("-s", f"REDIS_URL={server.url}", "-s", "LARM_WORKER=one", "-s", "LARM_BLOCKS=16")
        ran = crawl(tmp_path, *options)
    assert ran.status == 0, ran.err
    assert stored(log) == Counter(SITE)


def test_a_directory_of_workers_of_the_version_before_is_accepted(tmp_path: Path) -> None:
    """By `scrapy workers` itself, before it starts any."""
    shutil.copytree(EARLIER / "shared", tmp_path / "crawl")
    command = Command()
    command.settings = Settings({"LARM_DIR": str(tmp_path / "crawl")})
    command.settings.setmodule("larmspider.settings", priority="default")
    scope = {"start": HOSTS[0], "restrict": r"http://[^/]*\.example/.*"}
    ClusterDirectory.from_crawler(command._as_each("intranet", scope)).check()
