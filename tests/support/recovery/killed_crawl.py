"""Crawls the site again and again, each run ended by a kill, until one ends by itself.

Between two runs it compares the commits of the killed run with the server's log. At the end it
compares all stored data with the served data.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import resource
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import TimeoutExpired
from types import TracebackType
from typing import Any, Self

import tantivy

from larmspider.errors import CrawlDirError
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import Counts, FetchRecord, UrlState, url_key
from larmspider.index.version import open_index
from larmspider.urls.canonical import canonicalize
from larmspider.workdir.frames import open_stored, stored_size
from tests.support.crawling import begin, body_of, records
from tests.support.forking import Forked
from tests.support.recovery.kill_points import POINTS
from tests.support.servers.scripted import ScriptedServer
from tests.support.servers.threaded import ThreadedServer

SETTINGS = {
    "DOWNLOAD_DELAY": "0",
    "LARM_DELAY_RESPONSE_FACTOR": "0",
    "CONCURRENT_REQUESTS_PER_DOMAIN": "2",
    "LARM_CHECKPOINT_SECS": "0.1",
    "LARM_RETRY_TIMES": "1",
    "LARM_PROBE_SECS": "60",  # a probe that is cut off on a busy machine is fetched again
    "LARM_BACKOFF_SECS": "0.05",
    "DOWNLOAD_MAXSIZE": "200000",
    "LARM_PAGEFILE_BYTES": "1000000",
    "LARM_INDEX_HEAP_BYTES": "15000000",
    "LARM_SITEMAPS": "no",
    "LARM_TRAPS": "off",
    "LARM_WEB": "no",  # it keeps nothing that could be lost, and is a quarter of a start
}
RETRIES = 1
RUN_SECS = 300.0
FINAL = (UrlState.STORED, UrlState.FAILED, UrlState.REFUSED)
MID_BODY = "mid-body"
RANDOM = "random"
_GOING_ON = re.compile(
    r"Continuing .*: (\d+) URLs? discovered, (\d+) stored, (\d+) refused, (\d+) failed,"
    r" (\d+) to fetch"
)


@dataclass(frozen=True, slots=True)
class Kill:
    """Where to end a run: ``after`` as in kill_points.py; seconds for a random moment."""

    point: str
    after: float = 0.0


def kills(chance: random.Random) -> Iterator[Kill]:
    """Without end: every named point in turn, random moments between them."""
    while True:
        for point in chance.sample([*POINTS, MID_BODY], k=len(POINTS) + 1):
            if point.startswith("during"):
                after = chance.uniform(0.05, 40 if "index" in point else 8)
            elif "recover" in point or point == "opened":
                after = 0
            elif "commit" in point or point == "positions-named":
                after = chance.randrange(4)
            else:
                after = chance.randrange(80)
            yield Kill(point, after)
            if chance.random() < 0.4:
                yield Kill(RANDOM, chance.uniform(0.0, 0.7))


@dataclass
class Report:
    """The observations of all runs; ``refetched`` and ``exposed`` have a number for each kill."""

    killed: Counter[str] = field(default_factory=Counter)
    refetched: list[int] = field(default_factory=list)
    exposed: list[int] = field(default_factory=list)
    """Requested URLs that were not committed at the time of the kill."""


class KilledCrawl:
    """One crawl in ``directory``/crawl."""

    def __init__(self, site: Site, directory: Path, **settings: str) -> None:
        self.site = site
        self.settings = SETTINGS | settings
        self.directory = directory
        self.crawl = directory / "crawl"
        self.keys = {url: url_key(canonicalize(url)) for url in site.answers}
        self.report = Report()
        self.log = ""
        """The output of the last run. Its file is not in ``directory``, where the disk may be
        full."""
        self._said = directory.parent / f"{directory.name}.said"
        self._final: set[str] = set()
        self._counts: Counts | None = None

    def run(self, kill: Kill | None, *, file_limit: int = 0, may_break: bool = False) -> bool:
        """One run; whether it ended by itself and complete. Checks what it asked for against the
        last commit, and what it committed.

        ``file_limit``: bytes that no file may exceed, 0 for none; ``may_break``: exit status 1 is
        an end as good as a kill.
        """
        before = Counter(self.site.seen)
        if kill is not None and kill.point == MID_BODY:
            skip = int(kill.after)
        else:
            skip = 0
        process = self.process_of(kill, file_limit)
        if kill is not None and kill.point == MID_BODY:
            self.wait_for(process, sum(before.values()) + skip + 1)
            self.site.in_mid_body = process.kill
        elif kill is not None and kill.point == RANDOM:
            self.wait_for(process, sum(before.values()) + 1)
            time.sleep(kill.after)
            process.kill()
        try:
            process.wait(RUN_SECS)
        finally:
            self.site.in_mid_body = None
            process.kill()
        self.site.wait_until_left()
        self.log = log = self._said.read_text("utf-8")
        statuses = {0, -signal.SIGKILL, -signal.SIGALRM, 1 if may_break else 0}
        assert process.returncode in statuses, f"status {process.returncode}\n{log}"
        self._check_start(log)
        asked = self.site.seen - before
        again = {url for url in asked if before[url]}
        assert not again & self._final, "committed URLs are fetched again"
        for url, times in asked.items():
            attempts = 1 + RETRIES if "/broken/" in url else 1
            assert times <= attempts, f"{url} was fetched {times} times in one run"
        if self.report.exposed:
            assert len(again) <= self.report.exposed[-1]
            self.report.refetched.append(len(again))
        if process.returncode == 0:
            return True
        assert kill is not None or may_break, f"it ended with {process.returncode}: {log}"
        self.report.killed[kill.point if kill else "broken"] += 1
        self.check_commit()
        return False

    def start_fails(self, expected: int = 1) -> str:
        """Start a run that must be refused with a status, and return the line that says why."""
        process = self.process_of(None, 0)
        status, self.log = process.wait(RUN_SECS), self._said.read_text("utf-8")
        assert status == expected, self.log
        return self.log.strip().split("\n")[-1]

    def process_of(self, kill: Kill | None, file_limit: int) -> Forked:
        options = [f"-s{name}={value}" for name, value in self.settings.items()]
        command = ["crawl", "intranet", *options]
        command += ["-a", f"start={self.site.start}", "-a", r"restrict=http://127\.1\..*"]
        with self._said.open("w") as out:
            process = begin(
                *command,
                cwd=self.directory,
                out=out,
                settings_module="tests.support.recovery.kill_points",
                KILL_POINT=kill.point if kill else "",
                KILL_AFTER=str(kill.after) if kill else "0",
            )
        if file_limit:
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (file_limit, file_limit))
        return process

    def wait_for(self, process: Forked, requests: int) -> None:
        """Wait until the site has had this number of requests, or the run is over."""
        while sum(self.site.seen.values()) < requests and process.poll() is None:
            time.sleep(0.002)

    def _check_start(self, log: str) -> None:
        """The run said what the last one had committed."""
        found = _GOING_ON.search(log)
        if found and self._counts:
            c = self._counts
            said = tuple(map(int, found.groups()))
            assert said == (c.discovered, c.stored, c.refused, c.failed, c.queued)

    def check_commit(self) -> None:
        """Right after a kill: the frontier is whole, and the logs hold what it says is stored."""
        self._final = set()
        self._counts = None
        if not (self.crawl / "frontier" / "data.mdb").exists():
            self.report.exposed.append(len(self.site.seen))
            return
        backend = LmdbBackend(self.crawl / "frontier")
        try:
            positions = backend.recover().positions
            counts = backend.counts()
            assert counts == backend.audit(), "counters and records agree"
            c = counts
            assert c.discovered == c.stored + c.queued + c.refused + c.failed
            states = dict(zip(self.keys, backend.check(list(self.keys.values())), strict=True))
        finally:
            backend.close()
        self._counts = counts
        self._final = {url for url, state in states.items() if state in FINAL}
        self.report.exposed.append(len(set(self.site.seen) - self._final))
        position = positions.get("PageFilesPipeline", b"0 0 0").split()[2]
        log = self.crawl / "store.log"
        committed = b""
        with suppress(FileNotFoundError), open_stored(log) as file:
            committed = file.read(int(position))
        lines = committed.decode().split("\n")
        assert lines.pop() == "", "a position is the end of a record"
        written = Counter(line.split("\t")[1] for line in lines)
        assert written == Counter(self._final), (
            f"only in store.log {written - Counter(self._final)},"
            f" only in the frontier {Counter(self._final) - written}"
        )

    def check_end(self) -> None:
        """Everything that the site has is stored exactly once, byte for byte."""
        self._check_page_files()
        self._check_logs()
        self._check_index()
        backend = LmdbBackend(self.crawl / "frontier")
        try:
            backend.recover()
            assert backend.counts() == backend.audit()
            errors = sum(answer.status >= 400 for answer in self.site.answers.values())
            assert backend.counts() == Counts(
                discovered=len(self.site.answers) + len(self.site.private),
                stored=len(self.site.answers) - errors,
                failed=errors,
                refused=len(self.site.private),
            )
        finally:
            backend.close()

    def _check_page_files(self) -> None:
        stored = records(self.crawl / "store.log")
        assert Counter(line["url"] for line in stored) == Counter(list(self.site.answers))
        ends: dict[str, int] = {}
        for line in stored:
            assert line["http-code"] == str(self.site.answers[line["url"]].status)
            assert body_of(self.crawl, line) == self.site.answers[line["url"]].body
            assert int(line["offset"]) == ends.get(line["page-file"], 0), "nothing between bodies"
            ends[line["page-file"]] = int(line["offset"]) + int(line["size"])
        found = self.crawl.glob("pagefile_*")
        paths = {path.with_name(path.name.removesuffix(".zst")) for path in found}
        sizes = {path.stem[9:]: stored_size(path) for path in paths}
        assert sizes == ends

    def _check_logs(self) -> None:
        links = Counter((r["from-page"], r["to-page"]) for r in records(self.crawl / "links.log"))
        answers = self.site.answers.items()
        assert links == Counter((url, to) for url, answer in answers for to in answer.links)
        fetched = records(self.crawl / "fetch.log")
        asked = [*self.site.answers, *self.site.private]
        assert Counter(line["url"] for line in fetched) == Counter(asked)

    def _check_index(self) -> None:
        index, _ = open_index(self.crawl / "index")
        index.reload()
        searcher = index.searcher()
        assert searcher.num_docs == len(self.site.pages)
        for url in self.site.pages:
            query = tantivy.Query.term_query(index.schema, "key", canonicalize(url))
            assert searcher.search(query, 2).count == 1, url


# A crawl in a process of its own, beside which the test goes on.


WAIT_SECS = 120.0
QUICK = {
    "DOWNLOAD_DELAY": "0",
    "LARM_DELAY_RESPONSE_FACTOR": "0",
    "CONCURRENT_REQUESTS_PER_DOMAIN": "8",
    "LARM_CHECKPOINT_SECS": "0.1",
    "LARM_SITEMAPS": "no",
    "LARM_TRAPS": "off",
    "LARM_LANGUAGES": "",
}


def wait_until(true: Callable[[], bool], what: str) -> None:
    """Look every 10 ms, for WAIT_SECS at most."""
    end = time.monotonic() + WAIT_SECS
    while not true():
        assert time.monotonic() < end, f"timeout: {what}"
        time.sleep(0.01)


class RunningCrawl:
    """``scrapy crawl intranet`` into ``folder``/crawl, from its start until it has ended.

    ``settings_module`` may lie in ``folder``; keywords are settings.
    """

    def __init__(
        self,
        start: str,
        folder: Path,
        *,
        settings_module: str = "larmspider.settings",
        **settings: str,
    ) -> None:
        self.crawl = folder / "crawl"
        options = [f"-s{name}={value}" for name, value in ({**QUICK} | settings).items()]
        command = ["crawl", "intranet", "-a", f"start={start}", *options]
        self._said = folder / "said"
        with self._said.open("w") as out:
            self.process = begin(*command, cwd=folder, out=out, settings_module=settings_module)
        self.err = ""

    def end(self, timeout: float = WAIT_SECS) -> int:
        """Its exit status, once it has ended."""
        status = self.process.wait(timeout)
        self.err = self.said
        return status

    @property
    def said(self) -> str:
        """Its output so far."""
        return self._said.read_text("utf-8")

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()


MOST_KILLS = 8


def run_through_kills(server: ScriptedServer, start: str, folder: Path, **settings: str) -> None:
    """``scrapy crawl intranet`` into ``folder``/crawl again and again until it ends by itself:
    killed each time after 5 to 30 requests, MOST_KILLS times at most and once at least."""
    chance, said = random.Random(19), folder / "said"
    command = ["crawl", "intranet", "-a", f"start={start}"]
    command += [f"-s{name}={value}" for name, value in settings.items()]
    for run in range(MOST_KILLS + 1):
        asked = len(server.log) + chance.randrange(5, 30)
        with said.open("w") as out:
            process = begin(*command, cwd=folder, out=out)
            while process.poll() is None and len(server.log) < asked:
                with suppress(TimeoutExpired):
                    process.wait(0.01)
            if run < MOST_KILLS:
                process.kill()
            process.wait(WAIT_SECS)
        if process.returncode == 0:
            break
    assert process.returncode == 0, said.read_text("utf-8")
    assert run, "it was never killed"


def visit(crawl: Path, url: str) -> FetchRecord | None:
    """The committed record of a URL's end."""
    try:
        with FrontierReader(crawl / "frontier") as frontier:
            return frontier.visit(url_key(canonicalize(url)))
    except CrawlDirError:
        return None  # the crawl is only just beginning


def counts(crawl: Path) -> Counts:
    """Committed counters of all URLs."""
    with FrontierReader(crawl / "frontier") as frontier:
        return frontier.counts()


def description(crawl: Path) -> dict[str, Any]:
    """crawl.json."""
    found: dict[str, Any] = json.loads((crawl / "crawl.json").read_text("utf-8"))
    return found


# A site of 1,000 pages over 40 hosts, whose every byte is known beforehand.


HOSTS = 40
PAGES = 1000
REDIRECTS = 60
MISSING = 40
BROKEN = 3
PRIVATE = 20
_HTML = "text/html; charset=utf-8"
_ROBOTS = b"User-agent: *\nDisallow: /private/\n"


@dataclass(slots=True)
class Resolution:
    """The answer for a URL, and the links that a crawler finds in it, in order."""

    status: int
    body: bytes
    links: list[str] = field(default_factory=list)
    location: str = ""


class Site(ThreadedServer):
    """Serves it from one thread with an event loop. ``seen`` counts the requests."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[str, Resolution] = {}
        self.private: set[str] = set()
        self.seen: Counter[str] = Counter()
        self.in_mid_body: Callable[[], None] | None = None
        """Called once by the server when half of some body is sent."""
        self._hosts: list[str] = []

    @property
    def start(self) -> str:
        """The seed."""
        return self._page(0)

    @property
    def pages(self) -> dict[str, Resolution]:
        """The pages that belong into the index: answered with 200."""
        return {url: answer for url, answer in self.answers.items() if answer.status == 200}

    def _page(self, number: int) -> str:
        return f"{self._hosts[number % HOSTS]}/p/{number}.html"

    def _build(self) -> None:
        chance = random.Random(7)
        extra: dict[int, list[str]] = {}

        def link_to(url: str) -> None:
            extra.setdefault(chance.randrange(PAGES), []).append(url)

        for number in range(REDIRECTS):
            url = f"{chance.choice(self._hosts)}/moved/{number}"
            target = self._page(chance.randrange(PAGES))
            self.answers[url] = Resolution(301, b"", [target], target)
            link_to(url)
        for number in range(MISSING):
            url = f"{chance.choice(self._hosts)}/missing/{number}"
            self.answers[url] = Resolution(404, b"not here\n" * chance.randrange(1, 9))
            link_to(url)
        for number in range(BROKEN):
            url = f"{self._hosts[number]}/broken/{number}"
            self.answers[url] = Resolution(500, b"broken\n")
            link_to(url)
        for number in range(PRIVATE):
            url = f"{chance.choice(self._hosts)}/private/{number}"
            self.private.add(url)
            link_to(url)
        for number in range(PAGES):
            links = [self._page(child) for child in (2 * number + 1, 2 * number + 2)]
            links = [*links[: max(0, PAGES - 2 * number - 1)], *extra.get(number, [])]
            links += [self._page(chance.randrange(PAGES)) for _ in range(chance.randrange(8))]
            words = "river ship harbour crane " * chance.choice((1, 10, 100, 100, 2000))
            body = f"<html><title>page {number}</title><p>{words}</p>" + "".join(
                f'<a href="{url}">to {at}</a>\n' for at, url in enumerate(links)
            )
            self.answers[self._page(number)] = Resolution(200, body.encode(), links)

    async def listen(self) -> list[asyncio.Server]:
        servers = []
        for number in range(HOSTS):
            server = await asyncio.start_server(self.accept, f"127.1.0.{number + 1}", 0)
            servers.append(server)
            address, port = server.sockets[0].getsockname()
            self._hosts.append(f"http://{address}:{port}")
        self._build()
        return servers

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address, port = writer.get_extra_info("sockname")
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode("latin-1")
            await self._answer(writer, f"http://{address}:{port}{path}")

    async def _answer(self, writer: asyncio.StreamWriter, url: str) -> None:
        if url.endswith("/robots.txt"):
            answer = Resolution(200, _ROBOTS)
        else:
            self.seen[url] += 1
            answer = self.answers.get(url) or Resolution(599, b"nobody links here")
        head = f"HTTP/1.1 {answer.status} X\r\nContent-Type: {_HTML}\r\n"
        if answer.location:
            head += f"Location: {answer.location}\r\n"
        head += f"Content-Length: {len(answer.body)}\r\n\r\n"
        half = len(answer.body) // 2
        writer.write(head.encode() + answer.body[:half])
        if self.in_mid_body is not None and half > 1000:
            await writer.drain()
            await asyncio.sleep(0.02)  # so that the crawler reads the half
            if self.in_mid_body is not None:
                call, self.in_mid_body = self.in_mid_body, None
                call()
        writer.write(answer.body[half:])
        await writer.drain()
