"""A host that has moved to another one, path for path, from the crawl to the search."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.crawling import records, scrapy
from tests.support.servers.scripted import Reply, Request, ScriptedServer
from tests.whole_crawls.test_refresh import Crawl, Site

pytestmark = pytest.mark.acceptance
NAMES = ["a", "b", "c"]
SITES = """
[[site]]
hosts = "127.0.0.1:*"
scheme = "http"
headers = { PRIVATE-TOKEN = "of-the-old-host" }
"""


class Moving(Site):
    """``to``: where all its paths redirect, "" for none."""

    to = ""

    def answer(self, request: Request) -> Reply:
        if self.to and request.path != "/robots.txt":
            return Reply(301, {"Location": self.to + request.path})
        return super().answer(request)


def test_the_new_host_stays_restricted_and_gets_credentials_that_the_sites_file_has_for_it(
    tmp_path: Path,
) -> None:
    """A host for everybody moves to a restricted one: its pages are that host's now."""
    old, new = Moving(), Moving()
    old.pages = {f"/{name}": f"the text of {name}" for name in NAMES}
    new.pages = {f"/{name}": f"words about {name} for staff" for name in NAMES}
    old.first = new.first = list(old.pages)
    with (
        ScriptedServer({"*": old.answer}) as first,
        ScriptedServer({"*": new.answer}, host="127.0.0.2") as second,
    ):
        there = second.url("").removesuffix("/")
        crawl = Crawl(old, first, tmp_path)
        sites = tmp_path / "sites.toml"
        sites.write_text(SITES.replace("127.0.0.1", "127.0.0.2"))
        sites.chmod(0o600)
        crawl.begins = f"LARM_SITES_FILE = {str(sites)!r}\n"
        crawl.more = ["-a", r"restrict=http://127\.0\.0\.[12]:\d+/.*"]
        old.pages["/a"] += f" <a href={there}/>there</a>"
        assert crawl.run().status == 0
        old.to = there
        for crawl.days in (1, 2.1, 3.2):
            done = crawl.run("all")
            assert done.status == 0, done.err
        assert len(records(tmp_path / "crawl/deleted.log")) == 4, done.err
        assert all(one.headers.get("private-token") for one in second.log if one.path != "/x")
        assert not any(one.headers.get("private-token") for one in first.log)
    restricted = json.loads((tmp_path / "crawl/crawl.json").read_bytes())["credentials"]
    assert any("127.0.0.2" in host for host in restricted)
    assert not any("127.0.0.1" in host for host in restricted)


def test_pages_links_rights_and_credentials_of_a_host_that_has_moved(tmp_path: Path) -> None:
    old, new = Moving(**dict.fromkeys(NAMES, "")), Moving(**dict.fromkeys(NAMES, ""))
    for name in NAMES:
        old.pages[f"/{name}"] = f"the text of {name} on the old host"
        new.pages[f"/{name}"] = f"today's words about {name}"
    with (
        ScriptedServer({"*": old.answer}) as first,
        ScriptedServer({"*": new.answer}, host="127.0.0.2") as second,
    ):
        host, there = first.url("").removesuffix("/"), second.url("").removesuffix("/")
        crawl = Crawl(old, first, tmp_path)
        sites = tmp_path / "sites.toml"
        sites.write_text(SITES)
        sites.chmod(0o600)
        crawl.begins = f"LARM_SITES_FILE = {str(sites)!r}\n"
        crawl.more = ["-a", r"restrict=http://127\.0\.0\.[12]:\d+/.*"]
        done = crawl.run()
        assert done.status == 0, done.err
        assert first.log[-1].headers.get("private-token")
        old.to = there
        for crawl.days in (1, 2.1, 3.2):
            done = crawl.run("all")
            assert done.status == 0, done.err
            if "moved to" in done.err:
                break
        move = f"{host} moved to {there}: 4 pages".replace("http://", "")
        assert move in done.err
        gone = {line["url"] for line in records(tmp_path / "crawl/deleted.log")}
        assert gone == {first.url(path) for path in ("/", "/a", "/b", "/c")}
        sent = [one.headers.get("private-token") for one in second.log]
        assert sent
        assert not any(sent), "the new name is not in the sites file"
        restricted = json.loads((tmp_path / "crawl/crawl.json").read_bytes())["credentials"]
        assert "127.0.0.2" in restricted
    said = scrapy("deletes", "--dir", "crawl", cwd=tmp_path, settings_module=crawl.module)
    assert move in said.out
    said = scrapy("page", "--dir", "crawl", f"{there}/a", "--versions", cwd=tmp_path)
    assert f"at {host}/a" in said.out, said.out
    assert f"moved  from {host}/a" in said.out
    assert scrapy("reindex", "--dir", "crawl", cwd=tmp_path).status == 0
    restricted = json.loads((tmp_path / "crawl/crawl.json").read_bytes())["credentials"]
    assert "127.0.0.2" in restricted
    found = scrapy("search", "--dir", "crawl", "--json", "words about", cwd=tmp_path).json
    assert {hit["url"] for hit in found["hits"]} == {f"{there}/{name}" for name in NAMES}
    said = scrapy("explain", "--dir", "crawl", f"{there}/a", cwd=tmp_path)
    assert f"was {host}/a until" in said.out, said.out
    said = scrapy("explain", "--dir", "crawl", f"{host}/a", cwd=tmp_path)
    assert f"to {there}/a" in said.out, said.out
    assert "moved to" in said.out
