"""How much of sites without end is fetched, and whether healthy hosts beside them lose anything.

    python -m benchmarks.traps [--healthy 20] [--traps off --most 2000]
    python -m benchmarks.traps --classes 100000

The 13 sites of tests/support/servers/generators.py and so many healthy ones, each a host of its
own, are crawled together without delay, by the spider with its default rules. Prints how often each
site was asked, and what the healthy ones lost. Exit status 0: each site ended or was asked less
than 500 times, and nothing is missing; 1 otherwise.

With --classes URLs of so many classes are met, 2,000 a host, with a checkpoint after every 1,000.
Prints the memory that is taken; 1 if it is more than 20 MB.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import tracemalloc
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.records import QueuedUrl, url_key
from larmspider.learned.learning import Learning
from larmspider.learned.traps.host_traps import MAX_CLASSES
from larmspider.learned.traps.trap_watch import LEARN
from tests.support.crawling import Ran, crawl
from tests.support.frontier.simulation import Clock, build
from tests.support.servers.generators import GENERATORS, answer, document, page
from tests.support.servers.scripted import Reply, Request, ScriptedServer

MOST = 500
"""Requests to a site without end."""
MEMORY = 20_000_000
"""Bytes of what is known of 100,000 classes."""
PAGES, VIEWS = 40, ("print", "edit")
"""Of a healthy site, and the views of each page, which repeat it."""


class Counted(NamedTuple):
    """Requests by generator; missing pages of healthy hosts; and what the crawl said."""

    asked: dict[str, int]
    missing: list[str]
    ran: Ran


def healthy(number: int, request: Request) -> Reply:
    """Pages that say different things, each with views."""
    name = request.target.partition("?")[0]
    at = int(name.removeprefix("/page") or 0) if name != "/robots.txt" else PAGES
    if at >= PAGES:
        return Reply(404)
    links = [f"/page{n}" for n in (2 * at + 1, 2 * at + 2) if n < PAGES]
    views = [f"/page{at}?do={view}" for view in VIEWS]
    return page(f"Page {at}", document(1_000 * number + at), *links, *views)


def count(folder: Path, names: Sequence[str], hosts: int, **settings: str) -> Counted:
    """Crawl these generators and so many healthy hosts into ``folder``."""
    with ExitStack() as stack:
        endless = {
            name: stack.enter_context(ScriptedServer({"*": answer(name)}, host=f"127.0.2.{at + 1}"))
            for at, name in enumerate(names)
        }
        others = [
            stack.enter_context(
                ScriptedServer(
                    {"*": lambda request, number=number: healthy(number, request)},
                    host=f"127.0.3.{number + 1}",
                )
            )
            for number in range(hosts)
        ]
        seeds = [server.url("/") for server in endless.values()]
        seeds += [server.url("/page0") for server in others]
        own = {"LARM_TRAPS": "learn"} | settings
        ran = crawl(" ".join(seeds), folder, timeout=1800, **own)
        asked = {name: len(server.log) for name, server in endless.items()}
        missing = [
            server.url(f"/page{at}")
            for server in others
            for at in range(PAGES)
            if not server.requests(f"/page{at}")
        ]
    return Counted(asked, missing, ran)


def memory(classes: int) -> tuple[int, int]:
    """Bytes that so many classes take, after the last checkpoint and at most."""
    with tempfile.TemporaryDirectory(prefix="traps-") as folder:
        backend = LmdbBackend(Path(folder) / "frontier")
        frontier = build(backend, Clock(), robots=False, learning=Learning(traps=LEARN))
        watch = frontier.traps
        tracemalloc.start()
        for at in range(classes):
            host, n = divmod(at, MAX_CLASSES)
            url = f"http://h{host}/a{n % 15}/b{n // 15 % 15}/c{n // 225}?id=1"
            watch.admits(QueuedUrl(url, url, url_key(url), f"h{host}:80", from_page="http://h/"))
            if at % 1_000 == 999:
                watch.save()
                frontier.notes.trim()
        found = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        backend.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--healthy", type=int, default=20, help="hosts (default 20)")
    parser.add_argument("--traps", default="learn", help="LARM_TRAPS")
    parser.add_argument("--most", type=int, default=0, help="LARM_HOST_MAX_PAGES; 0: all")
    parser.add_argument("--classes", type=int, default=0, help="of URLs: measures memory")
    options = parser.parse_args()
    if options.classes:
        taken, most = memory(options.classes)
        print(f"{options.classes:,} classes: {taken / 1e6:.1f} MB, at most {most / 1e6:.1f} MB")
        return int(most > MEMORY)
    limit = {"LARM_HOST_MAX_PAGES": str(options.most)} if options.most else {}
    with tempfile.TemporaryDirectory(prefix="traps-") as folder:
        found = count(
            Path(folder), list(GENERATORS), options.healthy, LARM_TRAPS=options.traps, **limit
        )
    for name, asked in found.asked.items():
        print(f"{name:28}{asked:>6}")
    print(f"{'missing of healthy hosts':28}{len(found.missing):>6}")
    print(found.ran.out[-1500:] if found.ran.status == 0 else found.ran.err[-3000:])
    return int(found.ran.status or max(found.asked.values()) >= MOST or bool(found.missing))


if __name__ == "__main__":
    sys.exit(main())
