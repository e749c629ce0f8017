"""Commands that only read a crawl need no secret of its sites file; a crawl does, and says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.crawling import crawl_with, scrapy
from tests.support.servers.scripted import ScriptedServer

pytestmark = pytest.mark.acceptance

SITES = """
[[site]]
hosts = "127.0.0.1:*"
scheme = "http"
auth = "basic"
user = "joe"
password_env = "WIKI_PASSWORD"
"""
COMMANDS = (
    ["report"], ["explain", "{url}"], ["deletes"], ["hosts"], ["links"],
    ["search", "word"], ["page", "{url}"], ["export", "pages", "pages.csv"], ["traps"], ["outbox"],
    ["reindex"], ["compact"], ["remove", "{url}gone"],
)  # fmt: skip


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A crawl with a password that is not set any more."""
    folder = tmp_path_factory.mktemp("secret")
    page = {"/": "<title>t</title>a word <a href=/none>b</a>"}
    with ScriptedServer(page) as server, pytest.MonkeyPatch.context() as m:
        m.setenv("WIKI_PASSWORD", "canary-7d1f")
        ran = crawl_with(SITES, server.url("/"), folder)
        assert ran.status == 0, ran.err
        m.delenv("WIKI_PASSWORD")
        yield folder, server.url("/")


def options_of(folder: Path) -> list[str]:
    return ["-s", f"LARM_SITES_FILE={folder / 'sites.toml'}"]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_needs_no_secret(crawled: tuple[Path, str], command: list[str]) -> None:
    folder, url = crawled
    words = [word.format(url=url) for word in command]
    ran = scrapy(words[0], *options_of(folder), *words[1:], cwd=folder)
    assert ran.status == 0, ran.err
    assert "WIKI" not in ran.err
    assert "password" not in ran.err
    if command[0] == "explain":
        assert "password_env names an environment variable that is not set" in ran.out
        assert "not fetched without this" in ran.out


@pytest.mark.parametrize("command", [["crawl", "intranet"], ["fetch"]])
def test_who_fetches_is_told(crawled: tuple[Path, str], command: list[str]) -> None:
    """One line, status 2, and nothing is changed."""
    folder, url = crawled
    before = {path: path.stat().st_mtime_ns for path in (folder / "crawl").rglob("*.log")}
    begun = ["-a", f"start={url}"] if command[0] == "crawl" else [url]
    ran = scrapy(*command, *options_of(folder), *begun, cwd=folder)
    assert "password_env names an environment variable that is not set" in ran.err
    assert ran.status == (2 if command[0] == "crawl" else ran.status)
    assert "Traceback" not in ran.err or command[0] != "crawl"
    assert before == {path: path.stat().st_mtime_ns for path in (folder / "crawl").rglob("*.log")}
