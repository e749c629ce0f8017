"""larmspider/workdir/access.py: who may read what a crawl with credentials writes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scrapy.settings import Settings

from larmspider.errors import ConfigError
from larmspider.workdir.access import follow_mode, keep_private, mode_of
from larmspider.workdir.directory import CrawlDirectory
from larmspider.workdir.restricted import holds_credentials
from tests.support.crawling import Ran, crawl, scrapy
from tests.support.servers.scripted import ScriptedServer
from tests.support.web.crawling import Crawling, endless
from tests.support.web.serving import Served

Servers = Callable[..., ScriptedServer]
CREDENTIALS = """[[site]]
hosts = "http://127.0.0.1:*"
headers = { X-Word = "correct horse" }
"""
NONE = '[[site]]\nhosts = "http://127.0.0.1:*"\nproxy = ""\n'


@pytest.fixture(autouse=True)
def _restored_umask() -> Iterator[None]:
    """The umask of this process is restored after each test."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def the_umask() -> int:
    now = os.umask(0o022)
    os.umask(now)
    return now


def settings(folder: Path, sites: str = "", **changed: object) -> Settings:
    (folder / "sites.toml").write_text(sites)
    found = {"LARM_SITES_FILE": str(folder / "sites.toml"), "LARM_DIR": str(folder / "crawl")}
    return Settings({**found, **changed})


@pytest.mark.parametrize(
    "value, mode",
    [
        ("", None), (None, None), ("0700", 0o700), ("700", 0o700), ("0750", 0o750), (0o770, 0o770),
        ("0o755", 0o755), ("0777", 0o777),
    ],
)  # fmt: skip
def test_modes(value: object, mode: int | None) -> None:
    assert mode_of(Settings({"LARM_DIR_MODE": value})) == mode


@pytest.mark.parametrize("value", ["rwx", "0640", "0600", "0740", "0500", "07700", "-1", 750, "8"])
def test_what_is_no_mode_of_a_directory(value: object) -> None:
    """No user could look into it, or its own user could not write."""
    with pytest.raises(ConfigError, match=r"LARM_DIR_MODE=.*: expected an octal mode"):
        mode_of(Settings({"LARM_DIR_MODE": value}))


@pytest.mark.parametrize(
    "sites, mode, umask",
    [
        (CREDENTIALS, "", 0o077), (NONE, "", 0o022), (CREDENTIALS, "0750", 0o027),
        (NONE, "0750", 0o027), (CREDENTIALS, "0755", 0o022),
    ],
)  # fmt: skip
def test_the_umask_follows_credentials_and_mode(
    tmp_path: Path, sites: str, mode: str, umask: int
) -> None:
    """A proxy is no credential for a page."""
    keep_private(settings(tmp_path, sites, LARM_DIR_MODE=mode))
    assert the_umask() == umask
    os.umask(0o022)
    hosts = ["127.0.0.1"] if sites is CREDENTIALS else []
    manifest = {"credentials": hosts, "settings": {"LARM_DIR_MODE": mode}}
    follow_mode(manifest)
    assert the_umask() == umask


def test_a_crawl_that_had_credentials_stays_private(tmp_path: Path) -> None:
    """Without them in a later run; a fresh start forgets it."""
    (tmp_path / "crawl").mkdir(mode=0o700)
    (tmp_path / "crawl" / "crawl.json").write_text('{"credentials": ["wiki.example"]}')
    keep_private(settings(tmp_path, NONE, LARM_FRESH="force"))
    assert the_umask() == 0o022
    keep_private(settings(tmp_path, NONE, LARM_FRESH="no"))
    assert the_umask() == 0o077


def test_wider_modes_are_named_and_stay(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The directory, what is in it, and a feed that is there already."""
    (tmp_path / "crawl").mkdir()
    for name, mode in (("wide.log", 0o644), ("group.log", 0o640), ("own.log", 0o600)):
        (tmp_path / "crawl" / name).touch()
        (tmp_path / "crawl" / name).chmod(mode)
    (tmp_path / "pages.jsonl").touch()
    feeds = {str(tmp_path / "pages.jsonl"): {}, str(tmp_path / "none.jsonl"): {}, "s3://b/x": {}}
    keep_private(settings(tmp_path, CREDENTIALS, FEEDS=feeds))
    (said,) = caplog.messages
    for name in ("crawl (0755)", "wide.log (0644)", "group.log (0640)", "pages.jsonl (0644)"):
        assert name in said
    assert "own.log" not in said
    assert f"chmod -R go-rwx {tmp_path}/crawl" in said
    assert (tmp_path / "crawl").stat().st_mode & 0o777 == 0o755
    caplog.clear()
    keep_private(settings(tmp_path, CREDENTIALS, LARM_DIR_MODE="0750", FEEDS=feeds))
    assert "chmod -R g-w,o-rwx" in caplog.messages[0]
    assert "group.log" not in caplog.messages[0]


@pytest.mark.acceptance
@pytest.mark.parametrize("mode, others", [("", 0o077), ("0750", 0o027)])
def test_all_that_a_crawl_with_credentials_makes(
    scripted_server: Servers, tmp_path: Path, mode: str, others: int
) -> None:
    """Logs, page files, frontier, index, the index of the logs, feeds and reports, and what later
    commands write. With a mode that lets a group in, the group may read all but the token."""
    server = scripted_server({"/robots.txt": (404, {}, b""), "/": b"<a href=/x>x</a>", "/x": b"y"})
    (tmp_path / "sites.toml").write_text(CREDENTIALS)
    more = {"LARM_SITES_FILE": "sites.toml", "LARM_DIR_MODE": mode, "LARM_WEB": "yes"}
    more["LARM_COMPRESSION"] = "zstd"
    feeds = json.dumps({"pages.jsonl": {"format": "jsonlines"}})
    ran: Ran = crawl(server.url(), tmp_path, FEEDS=feeds, LARM_WEB_PORT="0", **more)
    assert ran.status == 0, ran.err
    assert scrapy("links", "--broken", cwd=tmp_path).status == 0
    assert scrapy("report", "--html", "report.html", cwd=tmp_path).status == 0
    for changes in (
        "deletes",
        f"remove --yes {server.url('/x')}",
        "compact",
        "reindex --from-page-files",
    ):
        assert scrapy(*changes.split(), cwd=tmp_path).status == 0
    made = [tmp_path / "crawl", tmp_path / "report.html", *(tmp_path / "crawl").rglob("*")]
    made.append(tmp_path / "pages.jsonl")
    assert len(made) > 30
    for path in made:
        found = path.stat().st_mode & 0o777
        assert not found & others, (path, oct(found))
        if mode and path.name != "web.token":
            assert found & 0o040, (path, oct(found))
    assert holds_credentials([tmp_path / "crawl"])


@pytest.mark.parametrize(("earlier", "now", "kept"), [
    (None, None, None), (["a"], None, ["a"]), (None, ["b"], ["b"]), (["a"], ["b"], ["a", "b"]),
])  # fmt: skip
def test_hosts_that_were_asked_with_credentials_are_kept(
    tmp_path: Path, earlier: object, now: object, kept: object
) -> None:
    """Over all runs."""
    for value in (earlier, now):
        manifest = {"format": 2, "identity": {}, "settings": {}, "stores": {}, "files": []}
        manifest |= {"credentials": value} if value else {}
        directory = CrawlDirectory(tmp_path / "crawl", manifest)
        directory.claim()
        directory.finish("finished")
    assert json.loads((tmp_path / "crawl" / "crawl.json").read_text()).get("credentials") == kept


@pytest.mark.acceptance
def test_pages_of_a_crawl_with_credentials_ask_for_the_token(
    scripted_server: Servers, tmp_path: Path
) -> None:
    """/metrics too; LARM_WEB_OPEN opens paths. An unreadable manifest counts as private."""
    server = scripted_server({"/robots.txt": (404, {}, b""), "*": endless()})
    (tmp_path / "sites.toml").write_text(CREDENTIALS)
    more = {"LARM_SITES_FILE": "sites.toml", "LARM_WEB_OPEN": "/search"}
    with Crawling(tmp_path, server.url("/"), **more) as running:
        for path in ("/", "/metrics", "/stats.json", "/hosts", "/url"):
            assert running.get(path).status == 401, path
            let_in = running.get(path, Authorization=f"Bearer {running.token}")
            assert let_in.status == 200, path
        assert running.get("/healthz").status == 200
        assert running.get("/search").status == 200
    assert re.search(r"X-Word|correct horse", running.said) is None
    with Served(tmp_path / "crawl") as site:
        assert site.source.is_private
        (tmp_path / "crawl" / "crawl.json").write_text("{")
        assert site.source.is_private


def test_who_has_no_token_cannot_serve_it(tmp_path: Path) -> None:
    """No page could be shown; a token in the settings is enough."""
    (tmp_path / "crawl").mkdir()
    manifest = {"format": 2, "credentials": ["wiki.example"], "settings": {}}
    (tmp_path / "crawl" / "crawl.json").write_text(json.dumps(manifest))
    refused = scrapy("serve", cwd=tmp_path)
    assert refused.status == 2
    assert "its pages ask for a token" in refused.err
    assert "set LARM_WEB_TOKEN" in refused.err
