"""A crawl of one host without end, in process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from larmspider.extraction.pages import html
from larmspider.frontier.storage.records import FetchRecord, UrlState
from larmspider.items import REDIRECT, Link, Page
from larmspider.learned.learning import Learning
from larmspider.learned.traps.host_traps import Budgets
from larmspider.learned.traps.trap_watch import LEARN
from larmspider.urls.canonical import Canonicalizer
from larmspider.urls.host_resolver import HostResolver
from larmspider.urls.normalizer import UrlForms
from tests.support.frontier.memory_backend import Disk, MemoryBackend
from tests.support.frontier.simulation import Clock, build
from tests.support.servers.generators import document, page
from tests.support.servers.scripted import Reply

H = "http://h"


class Walk:
    """A crawl of one host, without network, filters and stores."""

    def __init__(
        self, site: Callable[[str], Reply], backend: Any = None, mode: str = LEARN,
        budgets: Budgets | None = None, not_traps: Path | None = None,
    ) -> None:  # fmt: skip
        self.site = site
        self.fetched: list[str] = []
        self.news: list[str] = []
        self.known: set[str] = {f"{H}/"}
        self.forms = UrlForms(Canonicalizer(), HostResolver())
        self.clock = Clock()
        backend = backend or MemoryBackend(Disk())
        learning = Learning(traps=mode, budgets=budgets or Budgets(), not_traps=not_traps)
        self.frontier = build(backend, self.clock, robots=False, delay=0.0, learning=learning)
        self.traps = self.frontier.traps

    def add(self, targets: list[str], page: Page, *, redirects: int = 0) -> None:
        names = [(f"{H}{target}", *self.forms(f"{H}{target}")) for target in targets]
        depth = page.depth + (not redirects)
        self.frontier.add(
            [
                self.frontier.entry(
                    url, normalized, exact=exact, from_page=page.url, depth=depth,
                    redirects=redirects,
                )
                for url, normalized, exact in names
            ]
        )  # fmt: skip

    def run(self, most: int = 600) -> Walk:
        """Fetch ``most`` pages at most."""
        if not self.frontier.backend.counts().discovered:
            self.frontier.add([self.frontier.entry(f"{H}/", f"{H}/")])
        while len(self.fetched) < most and not self.frontier.finished:
            lease = self.frontier.pop()
            if lease is None or lease.entry is None:
                self.clock.now += 1
                continue
            target = lease.url.removeprefix(H)
            self.fetched.append(target)
            reply = self.site(target)
            page = html.extract(reply.body, lease.url, "text/html")
            page.mime = "text/html"
            page.status, page.depth = reply.status, lease.entry.depth
            page.from_page = lease.entry.from_page
            if location := dict(reply.headers).get("Location"):
                page.links = [Link(f"{H}{location}", type=REDIRECT)]
                self.add([location], page, redirects=lease.entry.redirects + 1)
            else:
                found = [link for link in page.links if link.url.startswith(f"{H}/")]
                for link in found:
                    link.normalized = self.forms(link.url).normalized
                    link.rejected_by = "visited" if link.url in self.known else None
                    self.known.add(link.url)
                self.add([link.url.removeprefix(H) for link in found], page)
            self.news += [news for news in [self.traps.saw(lease.entry, page)] if news]
            self.frontier.answered(lease, 0.01)
            visit = FetchRecord(UrlState.STORED, 1.0, status=reply.status, url=lease.url)
            self.frontier.acknowledge(lease, visit)
        return self


def wiki(target: str) -> Reply:
    """Sixty pages, four views of each, and links to sixty pages that do not exist."""
    _, _, query = target.partition("?")
    asked = dict(one.split("=") for one in query.split("&")) if query else {"id": "0"}
    number, view = int(asked["id"]), asked.get("do", "show")
    others = [f"/wiki?id={n}" for n in (2 * number + 1, 2 * number + 2, 1000 + number)]
    views = [f"/wiki?do={do}&id={number}" for do in ("edit", "diff", "backlink", "index")]
    if number >= 60:
        reply = page("Wiki", "This topic does not exist yet.", *views)
        reply.status = 404
        return reply
    text = document(number) if view == "show" else f"You may not {view} this."
    return page("Wiki", text, *others, *views)


def folders(target: str) -> Reply:
    """Forty folders in each other, each listed in eight orders."""
    path = target.partition("?")[0]
    number = int(path.rpartition("-")[2].strip("/") or 0)
    inside = [f"{path}folder-{n}/" for n in (2 * number + 1, 2 * number + 2) if n < 40]
    orders = [f"{path}?C={by}&O={how}" for by in "NMSD" for how in "AD"]
    return page(f"Index of {path}", document(number), *inside, *orders)


def folders_and_news(target: str) -> Reply:
    """The same with ten news whose URLs have the parameters of the orders."""
    path, _, query = target.partition("?")
    if path == "/news/":
        return page("News", document(100 + int(query.partition("C=")[2].partition("&")[0])))
    reply = folders(target)
    if path == "/":
        reply.body += b"".join(b"<a href='/news/?C=%d&O=A'>%d</a> " % (n, n) for n in range(10))
    return reply


def repository(target: str) -> Reply:
    """Sixty files in ten revisions with the same text; files from number 60 on exist after their
    first request. Among their links the log has the fewest parameters. The second half of all files
    is raw."""
    if target == "/":
        shown = [f"/git?a=file&f=file{n}&h=hash{n}x0" for n in range(60)]
        return page("Files", "All of them.", *shown, *(f"/git?a=log&h=commit{n}" for n in range(9)))
    asked = dict(one.split("=") for one in target.partition("?")[2].split("&"))
    if asked["a"] == "log":
        return page("Log", document(1_000 + int(asked["h"].removeprefix("commit"))))
    name, number = asked["f"], int(asked["f"].removeprefix("file"))
    revisions = (f"/git?a=file&f={name}&h=hash{number}x{n}" for n in range(10))
    raw = [f"/git?a=raw&f={name}"] * (number >= 30)
    return page("File", document(number), *revisions, *raw)
