"""Workers of one crawl, each ``scrapy crawl intranet`` in a process of its own.

with Crew(hosts, redis, folder) as crew:
    crew.start("w1", "w2")
    crew.kill("w1")                  # SIGKILL
    crew.start("w1")                 # again, with the same directory
    crew.wait("w1", "w2")            # until they have ended by themselves
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from math import isnan
from pathlib import Path
from types import TracebackType
from typing import Self

from larmspider.frontier.frontier import LATE_SECS
from larmspider.frontier.storage.lmdb_env import LmdbFiles
from larmspider.frontier.storage.records import pack_positions, unpack_positions, url_key
from tests.support.crawling import begin, crawl, records
from tests.support.forking import Forked
from tests.support.servers.redis import RedisServer
from tests.support.workers.hosts import Asked, Hosts

LEASE_SECS = 3.0
DELAY_SECS = 0.2
"""Between two requests to a host."""
CLOCKS_SECS = 0.001
"""By which two readings of two clocks may differ."""
WAIT_SECS = 300.0
_STARTS = 5
TURNS = "tests.support.workers.turns"
SETTINGS = {
    "LARM_LEASE_SECS": str(LEASE_SECS),
    "LARM_CHECKPOINT_SECS": "0.5",
    "DOWNLOAD_DELAY": str(DELAY_SECS),
    "LARM_DELAY_RESPONSE_FACTOR": "0",
    "LARM_BACKOFF_SECS": "0.1",
    "CONCURRENT_REQUESTS": "32",
    "LARM_WEB": "no",
    "LARM_SITEMAPS": "no",
    "LARM_TRAPS": "off",
    "LARM_SEED_PATIENCE_SECS": "0",  # a busy machine with short leases begins late
}


class Crew:
    """``settings`` beside those above."""

    def __init__(self, hosts: Hosts, server: RedisServer, folder: Path, **settings: str) -> None:
        self.hosts, self.server, self.folder = hosts, server, folder
        self.settings = SETTINGS | settings
        self.workers: dict[str, Forked] = {}
        self._before = len(hosts.requests())
        self.hit: list[tuple[str, float, set[str]]] = []
        """Workers that were killed, stopped or late, when, and what they had committed by then."""

    @property
    def crawl(self) -> Path:
        return self.folder / "crawl"

    def start(
        self, *names: str, start: str | None = "", restrict: str | None = None, **settings: str
    ) -> None:
        """Begin, or begin again. Each names itself by a header From, and when a request's
        turn was by another one (turns.py). ``start`` and ``restrict``
        default to the hosts' own; ``start`` None: without."""
        seed = self.hosts.seed if start == "" else start
        for name in names:
            given = self.settings | {"REDIS_URL": self.server.url, "LARM_WORKER": name} | settings
            given["DEFAULT_REQUEST_HEADERS"] = json.dumps({"From": name})
            command = ["crawl", "intranet", "-a", f"restrict={restrict or self.hosts.restrict}"]
            command += [] if seed is None else ["-a", f"start={seed}"]
            command += [f"-s{key}={value}" for key, value in given.items()]
            with (self.folder / f"{name}.out").open("ab") as out:
                self.workers[name] = begin(
                    *command, cwd=self.folder, out=out, settings_module=TURNS
                )

    def said(self, name: str) -> str:
        """Its log."""
        return (self.folder / f"{name}.out").read_text()

    def text(self) -> str:
        """The logs of all."""
        return "".join(self.said(name) for name in self.workers)

    def signal(self, name: str, what: signal.Signals) -> float:
        """When it was sent, by time.monotonic()."""
        now = time.monotonic()
        self.workers[name].send_signal(what)
        if what in (signal.SIGKILL, signal.SIGSTOP):
            if what is signal.SIGKILL:
                self.workers[name].wait()
            self._note_hit(name, time.monotonic())
        return now

    def _note_hit(self, name: str, at: float) -> None:
        """Before it goes on, or another process has its directory."""
        self.hit.append((name, at, self.committed(name)))

    def kill(self, name: str) -> float:
        """SIGKILL; the time as above."""
        return self.signal(name, signal.SIGKILL)

    def wait(self, *names: str) -> list[int]:
        """Their exit statuses, when they have ended."""
        end = time.monotonic() + WAIT_SECS
        statuses = []
        for name in names or self.workers:
            try:
                statuses.append(self.workers[name].wait(max(0.1, end - time.monotonic())))
            except subprocess.TimeoutExpired:
                raise AssertionError(f"{name} did not end: {self.said(name)[-3000:]}") from None
        return statuses

    def end(self) -> None:
        """Until all have ended with status 0. Who was late to renew a lease, on a machine as busy
        as this one may be, is started again, as a supervisor does."""
        for _ in range(_STARTS):
            late = [name for name, status in zip(self.workers, self.wait(), strict=True) if status]
            for name in late:
                assert self.workers[name].returncode == 75, self.said(name)[-3000:]
                self._note_hit(name, time.monotonic())
                self.start(name)
            if not late:
                return
        raise AssertionError("they are late again and again")

    def until(self, true: Callable[[], bool], what: str) -> None:
        """Look every 20 ms."""
        end = time.monotonic() + WAIT_SECS
        while not true():
            assert time.monotonic() < end, f"timeout: {what}"
            time.sleep(0.02)

    def until_asked(self, number: int, who: str = "") -> None:
        """Wait until this number of requests was answered, of one worker or all."""

        def asked() -> bool:
            return sum(one.who == who or not who for one in self.requests()) >= number

        self.until(asked, f"{number} requests of {who or 'all'}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self.workers.values():
            if process.poll() is None:
                process.kill()
            process.wait()

    def requests(self) -> list[Asked]:
        """The requests to the hosts since this crew was made."""
        return self.hosts.requests()[self._before :]

    # what must be true at the end

    def stored(self) -> Counter[str]:
        """URLs in the page files of all workers."""
        logs = self.crawl.glob("*/store.log")
        return Counter(record["url"] for log in logs for record in records(log))

    def pages(self) -> int:
        """Lines of store.log so far: a worker may be writing its last one."""
        return sum(log.read_bytes().count(b"\n") for log in self.crawl.glob("*/store.log"))

    def check_stores(self) -> None:
        """Every page is stored exactly once over all shards."""
        stored = self.stored()
        missing = self.hosts.urls - stored.keys()
        assert not missing, f"{len(missing)} pages are missing: {sorted(missing)[:5]}"
        twice = sorted(url for url, number in stored.items() if number > 1)
        assert not twice, f"{len(twice)} pages are stored twice: {twice[:5]}"
        assert stored.keys() == self.hosts.urls

    def check_politeness(self) -> None:
        """As the function, over all workers."""
        check_politeness(self.requests(), float(self.settings["DOWNLOAD_DELAY"]))
        assert len({asked.host for asked in self.requests()}) == self.hosts.hosts

    def refetched(self) -> dict[str, list[Asked]]:
        """Pages with more than one request, and their requests."""
        by_url: dict[str, list[Asked]] = {}
        for asked in self.requests():
            if asked.path != "/robots.txt":
                by_url.setdefault(self.hosts.url(asked), []).append(asked)
        return {url: asked for url, asked in by_url.items() if len(asked) > 1}

    def check_refetched(self) -> None:
        """Only pages in flight in hit workers are fetched again."""
        excused = {url for hit in self.hit for url in self.in_flight(*hit)}
        other = {url: asked for url, asked in self.refetched().items() if url not in excused}
        assert not other, f"{other}; hits: {[(name, at) for name, at, _ in self.hit]}"

    def in_flight(self, name: str, at: float, committed: set[str]) -> set[str]:
        """Pages that a worker had asked for and not committed at a moment: what its fetches since
        the last checkpoint were for."""
        asked = (one for one in self.requests() if one.who == name and one.turn <= at)
        return {self.hosts.url(one) for one in asked} - committed

    def committed(self, name: str) -> set[str]:
        """Pages of its own in its last commit, as Redis has it: lines of its store.log."""
        with self.server.client() as client:
            packed = client.hget(f"intranet:{{crawl}}:commit:{name}", "positions")
        return self._stored_by(name, packed)

    def lose_commits(self) -> None:
        """After workers were killed and Redis has lost the crawl: a commit that Redis had and a
        worker's directory has not is gone, and its pages are fetched again."""
        for name in [name for name, _, _ in self.hit]:
            packed = None
            if (self.crawl / name / "frontier").exists():
                files = LmdbFiles(self.crawl / name / "frontier")
                try:
                    with files.env.begin() as txn:
                        packed = txn.get(b"positions", db=files.meta)
                finally:
                    files.close()
            self.hit.append((name, time.monotonic(), self._stored_by(name, packed)))

    def _stored_by(self, name: str, positions: bytes | None) -> set[str]:
        log = self.crawl / name / "store.log"
        if positions is None or not log.exists():
            return set()
        end = int(unpack_positions(positions)["PageFilesPipeline"].split()[-1])
        return {line.split(b"\t")[1].decode() for line in log.read_bytes()[:end].splitlines()}


def check_politeness(requests: Iterable[Asked], delay: float) -> None:
    """No host had two requests at once or sooner than ``delay`` allows, from any worker.

    The turns of the requests count, not their arrival: a request that was sent in time comes late
    if the machine is busy. A worker learns from the answer that a request has arrived, and assumes
    at most LATE_SECS after its turn. The next owner of a host only knows that the turn of another
    process' last request is over.
    """
    by_host: dict[str, list[Asked]] = {}
    for asked in requests:
        assert not isnan(asked.turn), f"no turn: {asked}"
        by_host.setdefault(asked.host, []).append(asked)
    for asked_of in by_host.values():
        for earlier, later in pairwise(sorted(asked_of, key=lambda one: one.turn)):
            known = earlier.turn
            if earlier.answered and earlier.process == later.process:
                known = min(earlier.end, earlier.turn + LATE_SECS)
            gap = later.turn - known
            assert gap >= delay - CLOCKS_SECS, f"{gap:.3f} s: {earlier}, {later}"
            together = earlier.answered and later.begin < earlier.end
            assert not together, f"at once: {earlier}, {later}"


# Makes the directory of a crawl of many workers out of ordinary crawls, one a worker.


def shared_crawl(folder: Path, workers: Mapping[str, str], **settings: str) -> Path:
    """``folder``/crawl, with a directory for each worker: its name and what it starts from, in
    the order in which they crawl."""
    root = folder / "crawl"
    for name, start in workers.items():
        ran = crawl(start, folder, LARM_DIR=f"crawl/{name}", **settings)
        assert ran.status == 0, ran.err
    describe(root, list(workers))
    return root


def describe(root: Path, names: list[str]) -> None:
    """crawl.json of LARM_DIR, with the seeds of all."""
    own = [json.loads((root / name / "crawl.json").read_text()) for name in names]
    seeds = [seed for description in own for seed in description["seeds"]]
    shared = own[0] | {"seeds": seeds, "workers": {"redis": "unix:///nowhere"}}
    (root / "crawl.json").write_text(json.dumps(shared))


def take_back_pages(shard: Path, count: int) -> None:
    """As if the last ``count`` pages had been stored after the last checkpoint."""
    log = shard / "store.log"
    lines = log.read_bytes().splitlines(keepends=True)
    late = [line["url-normalized"] for line in records(log)[-count:]]
    files = LmdbFiles(shard / "frontier")
    try:
        with files.env.begin(write=True) as txn:
            positions = unpack_positions(txn.get(b"positions", db=files.meta))
            number, length, end = map(int, positions["PageFilesPipeline"].split())
            end -= sum(len(line) for line in lines[-count:])
            positions["PageFilesPipeline"] = b"%d %d %d" % (number, length, end)
            txn.put(b"positions", pack_positions(positions), db=files.meta)
            for normalized in late:
                assert txn.delete(url_key(normalized), db=files.urls)
    finally:
        files.close()
