"""Crawls the site again and again, each run ended by a kill, until one ends by itself.

Between two runs it reads what the killed one had committed and holds it against the server's log;
at the end it holds everything that is stored against what was served.
"""

from __future__ import annotations

import random
import re
import resource
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import tantivy

from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.records import Counts, UrlState, url_key
from larmspider.index.version import open_index
from larmspider.urls.canonical import canonicalize
from tests.support.crawling import begin, body_of, records
from tests.support.forking import Forked
from tests.support.recovery.kill_points import POINTS
from tests.support.recovery.site import BROKEN, Site

SETTINGS = {
    "DOWNLOAD_DELAY": "0",
    "LARM_DELAY_RESPONSE_FACTOR": "0",
    "CONCURRENT_REQUESTS_PER_DOMAIN": "2",
    "LARM_CHECKPOINT_SECS": "0.1",
    "LARM_RETRY_TIMES": "1",
    "LARM_BACKOFF_SECS": "0.05",
    "DOWNLOAD_MAXSIZE": "200000",
    "LARM_PAGEFILE_BYTES": "1000000",
    "LARM_INDEX_HEAP_BYTES": "15000000",
    "LARM_WEB": "no",  # it keeps nothing that could be lost, and is a quarter of a start
}
RETRIES = 1
RUN_SECS = 120.0
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
    """What was seen over all runs; ``refetched`` and ``exposed`` have a number for each kill."""

    killed: Counter[str] = field(default_factory=Counter)
    refetched: list[int] = field(default_factory=list)
    exposed: list[int] = field(default_factory=list)
    """Of the URLs asked for so far, those that were not committed when the kill came."""


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
        """What the last run said. Its file is not in ``directory``, where the disk may be full."""
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
        process = self._process(kill, file_limit)
        if kill is not None and kill.point == MID_BODY:
            self._wait_for(process, sum(before.values()) + skip + 1)
            self.site.in_mid_body = process.kill
        elif kill is not None and kill.point == RANDOM:
            self._wait_for(process, sum(before.values()) + 1)
            time.sleep(kill.after)
            process.kill()
        try:
            process.wait(RUN_SECS)
        finally:
            self.site.in_mid_body = None
            process.kill()
        self.log = log = self._said.read_text("utf-8")
        statuses = {0, -signal.SIGKILL, -signal.SIGALRM, 1 if may_break else 0}
        assert process.returncode in statuses, log
        self._check_start(log)
        asked = self.site.seen - before
        again = {url for url in asked if before[url]}
        assert not again & self._final, "what was committed is fetched again"
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
        self._check_commit()
        return False

    def start_fails(self) -> str:
        """A run that must be refused with status 1: the line that says why."""
        process = self._process(None, 0)
        status, self.log = process.wait(RUN_SECS), self._said.read_text("utf-8")
        assert status == 1, self.log
        return self.log.strip().split("\n")[-1]

    def _process(self, kill: Kill | None, file_limit: int) -> Forked:
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

    def _wait_for(self, process: Forked, requests: int) -> None:
        """Until the site has had so many requests, or the run is over."""
        while sum(self.site.seen.values()) < requests and process.poll() is None:
            time.sleep(0.002)

    def _check_start(self, log: str) -> None:
        """The run said what the last one had committed."""
        found = _GOING_ON.search(log)
        if found and self._counts:
            c = self._counts
            said = tuple(map(int, found.groups()))
            assert said == (c.discovered, c.stored, c.refused, c.failed, c.queued)

    def _check_commit(self) -> None:
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
        committed = (log.read_bytes() if log.exists() else b"")[: int(position)]
        lines = committed.decode().split("\n")
        assert lines.pop() == "", "a position is the end of a record"
        assert Counter(line.split("\t")[1] for line in lines) == Counter(self._final)

    def check_end(self) -> None:
        """Everything that the site has is stored exactly once, byte for byte."""
        self._check_page_files()
        self._check_logs()
        self._check_index()
        backend = LmdbBackend(self.crawl / "frontier")
        try:
            backend.recover()
            assert backend.counts() == backend.audit()
            assert backend.counts() == Counts(
                discovered=len(self.site.answers) + len(self.site.private),
                stored=len(self.site.answers) - BROKEN,
                failed=BROKEN,
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
        sizes = {path.stem[9:]: path.stat().st_size for path in self.crawl.glob("*.pfl")}
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
