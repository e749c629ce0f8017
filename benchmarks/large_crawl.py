"""Makes the directory of a large crawl without crawling: 100,000 pages on 10,000 hosts in a minute.

    $ python -m benchmarks.large_crawl DIR --pages 100000 --hosts 10000 --links 40

The logs, page files and frontier are as a crawl leaves them that was stopped in between: a tenth of
the URLs is queued, one in 50 is gone, each 20th host is parked. Nothing is fetched, there is no
search index. Titles and link texts hold what a page that escapes nothing would run.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from pathlib import Path

from larmspider.formatting import utc
from larmspider.frontier.hosts import HostRecord, HostState, pack_host
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.records import FetchRecord, QueuedUrl, UrlState, url_key

BEGAN = 1_769_860_800.0
EVIL = '<script>document.title="ran"</script>'
ROBOTS = b"User-agent: *\nDisallow: /private/\nCrawl-delay: 1\n"


class LargeCrawl:
    """``url(n)`` of page ``n``: pages lie on hosts in turn."""

    def __init__(self, path: Path, pages: int, hosts: int, links: int) -> None:
        self.path, self.pages, self.hosts, self.links = path, pages, hosts, links
        self.random = random.Random(1)

    def host(self, number: int) -> str:
        return f"host{number % self.hosts}.example"

    def url(self, number: int) -> str:
        return f"http://{self.host(number)}/docs/section{number % 97}/page{number}.html"

    def is_broken(self, number: int) -> bool:
        return number % 50 == 7

    def write(self) -> None:
        self.path.mkdir(parents=True)
        seeds = [self.url(0)]
        settings = {"LARM_RESTRICT": r"http://host\d+\.example/.*", "ROBOTSTXT_OBEY": True}
        description = {"format": 2, "began": utc(BEGAN), "seeds": seeds, "settings": settings}
        (self.path / "crawl.json").write_text(json.dumps(description))
        self._frontier(self._logs())

    def _logs(self) -> dict[str, bytes]:
        """The positions of the stores."""
        with (
            (self.path / "store.log").open("w") as store,
            (self.path / "fetch.log").open("w") as fetches,
            (self.path / "links.log").open("w") as links,
            (self.path / "pagefile_0.pfl").open("wb") as bodies,
        ):
            for number in range(self.pages * 9 // 10):
                self._page(number, store, fetches, links, bodies)
            ends = {log: log.tell() for log in (store, fetches, links)}
            length = bodies.tell()
        return {
            "PageFilesPipeline": b"0 %d %d" % (length, ends[store]),
            "FetchLogPipeline": b"%d" % ends[fetches],
            "LinkLogPipeline": b"%d" % ends[links],
        }

    def _page(self, number, store, fetches, links, bodies) -> None:  # type: ignore[no-untyped-def]
        url, when = self.url(number), utc(BEGAN + number / 100)
        referrer = self.url(number // 2)
        status = 404 if self.is_broken(number) else 200
        body = f"<title>Page {number}</title><p>{EVIL}</p>".encode()
        store.write(
            f"{referrer}\t{url}\t{url}\t0\t{status}\ttext/html\t{len(body)}\t{EVIL} {number}\t0"
            f"\t{bodies.tell()}\n"
        )
        bodies.write(body)
        fetches.write(f"{when}\t{url}\t{url}\t{referrer}\t{status}\t{len(body)}\t12\t\n")
        for place in range(self.links):
            if place < self.links // 3:
                target = place  # the menu
            elif place < self.links * 2 // 3:
                target = number + self.hosts * (place - 5)  # of the same host
            else:
                target = self.random.randrange(self.pages)
            to = self.url(target % self.pages)
            links.write(f"{url}\t{to}\t{to}\t0\tlink {place} {EVIL if place == 3 else ''}\n")

    def _frontier(self, positions: dict[str, bytes]) -> None:
        backend = LmdbBackend(self.path / "frontier")
        backend.recover()
        done = self.pages * 9 // 10
        for start in range(0, self.pages, 20_000):
            numbers = range(start, min(start + 20_000, self.pages))
            backend.add([self._entry(number) for number in numbers])
            for number in numbers[: max(0, done - start)]:
                backend.pop(f"{self.host(number)}:80", 0.0)
            backend.acknowledge([self._visit(number) for number in numbers[: max(0, done - start)]])
            backend.checkpoint(positions)
        records = {}
        for number in range(self.hosts):
            host = f"{self.host(number)}:80"
            record = HostRecord(host, state=HostState.READY, slot_secs=0.1, crawl_delay=1.0)
            if number % 20 == 3:
                record.state, record.until = HostState.PARKED, time.time() + 3600
                record.reason = f"5 failures in a row: {EVIL}"
            records[host] = pack_host(record)
            backend.put_note(f"robots {host}", ROBOTS)
        backend.put_hosts(records)
        backend.checkpoint(positions)
        backend.close()

    def _entry(self, number: int) -> QueuedUrl:
        url = self.url(number)
        return QueuedUrl(url, url, url_key(url), f"{self.host(number)}:80", depth=2, from_page=url)

    def _visit(self, number: int) -> tuple[bytes, FetchRecord]:
        broken = self.is_broken(number)
        visit = FetchRecord(
            UrlState.STORED, BEGAN + number / 100, 404 if broken else 200,
            digest=(number // 3).to_bytes(16, "big"),
        )  # fmt: skip
        return url_key(self.url(number)), visit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--links", type=int, default=40, help="of a page")
    options = parser.parse_args()
    began = time.perf_counter()
    LargeCrawl(options.directory, options.pages, options.hosts, options.links).write()
    print(f"{options.directory}: {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
