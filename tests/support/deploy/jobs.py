"""A site that is slow until it has to hurry, and jobs of scrapyd that crawl it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.support.crawling import FAST, records
from tests.support.recovery.killed_crawl import wait_until
from tests.support.servers.scrapyd import Scrapyd
from tests.support.servers.scripted import Reply, Request, ScriptedServer

PAGES = 24
QUICK = 6


class SlowSite(ScriptedServer):
    """PAGES pages; all but the first QUICK take 3 s each until it is ``hurried``. /private/ is
    outside of the scope that jobs here have."""

    def __init__(self) -> None:
        links = "".join(f"<a href=/p/{n}>{n}</a>" for n in range(PAGES))
        super().__init__({"/": f"<a href=/private/x>x</a>{links}", "*": self._page})
        self.hurried = False

    def _page(self, request: Request) -> Reply:
        slow = not self.hurried and request.path in {f"/p/{n}" for n in range(QUICK, PAGES)}
        return Reply(
            404 if request.path == "/robots.txt" else 200,
            {"Content-Type": "text/html"},
            b"<title>one</title>",
            delay=3.0 if slow else 0.0,
        )


def job(node: Scrapyd, site: SlowSite, larm_dir: Path | str, **more: str) -> str:
    settings = {
        **FAST,
        "LARM_DIR": str(larm_dir),
        "LARM_CHECKPOINT_SECS": "0.1",
        "CONCURRENT_REQUESTS_PER_DOMAIN": "2",
    }
    scope = f"{site.url()}(p/.*)?"
    return node.schedule("intranet", settings, start=site.url(), restrict=scope, **more)


def wait_for(node: Scrapyd, job: str, state: str) -> None:
    wait_until(lambda: node.state(job) == state, f"{job} is {node.state(job)}, not {state}")


def stored(larm_dir: Path) -> list[str]:
    path = larm_dir / "store.log"
    return [record["url"] for record in records(path)] if path.exists() else []


def lines(path: Path) -> int:
    """The number of lines of a file that is being written."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def everything(site: SlowSite) -> Counter[str]:
    """The URLs that store.log must have, each once."""
    return Counter([site.url(), *(site.url(f"/p/{n}") for n in range(PAGES))])
