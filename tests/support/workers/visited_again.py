"""Workers that visit again the pages of sites which change, with clocks that are days ahead.

sites = Sites(servers, [{"/p0": "text"}, ...])
crew = Crew(sites, folder)
crew.run()                                     # the first crawl
crew.days = 1
crew.run("all", number=3)
assert crew.held() == held(a_fresh_crawl)
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from larmspider.crawl.worker_dirs import open_crawl
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import UrlState, url_key
from larmspider.index.rebuild import stored_documents
from tests.support.crawling import FAST, Ran, begin, records, scrapy
from tests.support.forking import Forked
from tests.support.servers.scripted import Reply, Request, ScriptedServer

DAY = 86_400.0
SETTINGS = FAST | {
    "LARM_MONITOR_SECS": "1",
    "LARM_LEASE_SECS": "12",
    "LARM_CHECKPOINT_SECS": "0.3",
}
"""Settings of all runs."""


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

    def answer(self, number: int, request: Request) -> Reply:
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

    def bodies(self) -> dict[str, bytes]:
        """The bodies of existing pages, by URL."""
        return {
            server.url(path): reply.body
            for number, server in enumerate(self.servers)
            for path in ("/", *self.pages[number])
            if (reply := self.answer(number, Request(0.0, "GET", path, {}))).status == 200
        }


class Crew:
    """``days``: how far the clocks of the crawl are ahead; ``settings``: the module that the runs
    begin with, ``variables`` of their environment."""

    def __init__(self, sites: Sites, folder: Path) -> None:
        self.sites, self.folder, self.days = sites, folder, 0.0
        self.settings, self.variables = "larmspider.settings", dict[str, str]()
        self._runs = 0

    @property
    def path(self) -> Path:
        return self.folder / "crawl"

    @property
    def module(self) -> str:
        """The settings of the last run."""
        return f"ahead{self._runs}"

    def run(self, refresh: str = "", number: int = 2, **settings: str) -> Ran:
        words = self._command(refresh, number, settings)
        return scrapy(*words, cwd=self.folder, settings_module=f"ahead{self._runs}", timeout=300)

    def begin(self, refresh: str, number: int, **settings: str) -> Forked:
        """The same, beside the test."""
        words = self._command(refresh, number, settings)
        with (self.folder / "out").open("ab") as out:
            return begin(
                *words, cwd=self.folder, settings_module=f"ahead{self._runs}", out=out,
                **self.variables,
            )  # fmt: skip

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

    def holding(self, gone: Collection[str]) -> str:
        """A worker whose last checkpoint has one of these pages, which is gone, and waits for its
        host's canaries."""
        for name in self.names():
            with FrontierReader(self.path / name / "frontier") as frontier:
                visits = [frontier.visit(url_key(url)) for url in gone]
            if any(visit is not None and visit.missing_as for visit in visits):
                return name
        return ""

    def deleted(self) -> list[str]:
        """URLs in the deleted.log of all workers."""
        logs = self.path.glob("*/deleted.log")
        return [record["url"] for log in logs for record in records(log)]

    def _command(self, refresh: str, number: int, settings: dict[str, str]) -> list[str]:
        self._runs += 1
        # a name of its own: Python takes a file of the same second and size for the one before
        (self.folder / f"ahead{self._runs}.py").write_text(
            f"import time\nfrom {self.settings} import *\n"
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


@contextmanager
def six_hosts(folder: Path) -> Iterator[Crew]:
    """Six hosts of six pages."""
    with ExitStack() as stack:
        servers = [
            stack.enter_context(ScriptedServer({}, f"127.60.0.{number + 1}")) for number in range(6)
        ]
        texts = [
            {f"/p{n}": f"text {n} of {number}" for n in range(5)} for number in range(len(servers))
        ]
        (folder / "many").mkdir()
        yield Crew(Sites(servers, texts), folder / "many")
