"""A small crawl that is kept with the tests of its release (docs/internals/formats.md).

    python -m tests.support.recovery.kept_crawl tests/recovery/crawl-1.0.tar.xz

Its host is reached through a server of the test as its proxy, so that the crawl can go on later.
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.crawling import Ran, scrapy
from tests.support.servers.scripted import Reply, Request, ScriptedServer

START = "http://wiki.example/"
PAGES = {"/": "Start", "/a.html": "Zebra crossing", "/b.html": "Quagga", "/c/": "Okapi"}
SETTINGS = {
    "LARM_SITES_FILE": "sites.toml",
    "DOWNLOAD_DELAY": 0,
    "LARM_DELAY_RESPONSE_FACTOR": 0,
    "LARM_WEB": "no",
}


def _page(request: Request) -> Reply:
    path = "/" + request.target.partition("//")[2].partition("/")[2]
    if path not in PAGES:
        return Reply(404)
    links = "".join(f"<a href={other}>about {name}</a> " for other, name in PAGES.items())
    body = f"<title>{PAGES[path]}</title><p>{PAGES[path]} in a few words. {links}"
    return Reply(200, {"Content-Type": "text/html; charset=utf-8"}, body.encode())


def crawl(folder: Path, *options: str) -> tuple[Ran, list[str]]:
    """Crawl into ``folder``/crawl, or go on there: how that went, and the URLs asked for."""
    with ScriptedServer({"*": _page}) as server:
        proxy = server.url("/").rstrip("/")
        (folder / "sites.toml").write_text(f'[[site]]\nhosts = "*:*"\nproxy = "{proxy}"\n')
        ran = scrapy(
            *("crawl", "intranet", "-a", f"start={START}"),
            *(f"-s{name}={value}" for name, value in SETTINGS.items()),
            *options,
            cwd=folder,
        )
        return ran, [request.target for request in server.log]


def keep(archive: Path) -> None:
    """Make the crawl of this release."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        ran, _ = crawl(folder)
        if ran.status:
            raise SystemExit(ran.err)
        with tarfile.open(archive, "w:xz", preset=9) as tar:
            tar.add(folder / "crawl", "crawl")


def unpack(archive: Path, folder: Path) -> Path:
    """The crawl of a release, in ``folder``."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder / "crawl"


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
