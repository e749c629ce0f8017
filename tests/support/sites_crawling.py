"""Crawls with a sites file, and what they stored."""

from __future__ import annotations

from pathlib import Path

from tests.support.crawling import Ran, crawl, records

PAGES = {
    "/index.html": "<title>start</title><a href=a.html>a</a> <a href=b.html>b</a>",
    "/a.html": "<title>a</title>",
    "/b.html": "<title>b</title>",
    "/robots.txt": "User-agent: *\nDisallow: /none",
}


def folder_with_pages(folder: Path) -> Path:
    folder.mkdir()
    for path, text in PAGES.items():
        (folder / path.lstrip("/")).write_text(text)
    return folder


def crawl_with(sites: str, start: str, cwd: Path, **settings: str) -> Ran:
    (cwd / "sites.toml").write_text(sites)
    (cwd / "sites.toml").chmod(0o600)
    return crawl(start, cwd, LARM_SITES_FILE=str(cwd / "sites.toml"), **settings)


def stored(cwd: Path) -> dict[str, str]:
    """Title of each page stored, by the path of its URL; others than 200 as their status."""
    return {
        "/" + record["url"].split("/", 3)[3]: record["title"]
        if record["http-code"] == "200"
        else record["http-code"]
        for record in records(cwd / "crawl" / "store.log")
    }


GIVE_UP = {"LARM_RETRY_TIMES": "0", "LARM_HOST_MAX_FAILURES": "1", "LARM_HOST_MAX_PARKS": "0"}
"""At once, on a host that cannot be asked for its robots.txt."""

ALL = {"/": "start", "/a.html": "a", "/b.html": "b"}
