"""What it costs that pages are compared: ``python -m benchmarks.merging [--rounds 3]``.

The pages of the JDK (openjdk-17-doc) go through what differs between LARM_CANONICAL_RULES=always
and proven, without a network: the forms of their links, the frontier's look at them, new URLs into
the frontier, the fingerprint, the record of the page, a commit every 200 pages. Printed is the CPU
of a page with each, in turns, the least of some rounds.

``--crawl 2000`` crawls so many of these pages, served by nginx, with the whole chain, with proven,
always and never in turns: all CPU of the crawl's processes, without what a crawl of one page takes,
and the median of the ratios of each round.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from contextlib import closing
from pathlib import Path

from benchmarks.complete import SETTINGS
from benchmarks.sites import SITES
from larmspider.extraction.pages.html import extract
from larmspider.extraction.texts.fingerprint import fingerprint
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.records import FetchRecord, UrlState
from larmspider.items import Page
from larmspider.learned.learning import Learning
from larmspider.learned.spellings.aliases import PROOFS
from larmspider.urls.canonical import Canonicalizer
from larmspider.urls.equivalence import ALWAYS, MODES, NEVER, PROVEN, EquivalenceRules
from larmspider.urls.host_resolver import HostResolver
from larmspider.urls.normalizer import UrlForms
from tests.support.frontier.simulation import Clock, build
from tests.support.servers.nginx import Nginx

ORIGIN = "http://wiki.example"
ADDRESS = "127.21.0.2"
_SETTINGS = SETTINGS | {"LARM_LANGUAGES": "", "REDIS_URL": ""}


def pages_of(folder: Path, number: int) -> list[Page]:
    walk = os.walk(folder, followlinks=True)
    files = sorted(Path(at, name) for at, _, names in walk for name in names)
    chosen = [file for file in files if file.suffix == ".html"][:: max(1, len(files) // number)]
    return [
        extract(file.read_bytes(), f"{ORIGIN}/{file.relative_to(folder)}", "text/html")
        for file in chosen[:number]
    ]


def crawl(pages: list[Page], rules: str, folder: Path) -> Counter[str]:
    """Nanoseconds: in all, and of parts."""
    modes = EquivalenceRules(EquivalenceRules.parse(rules))
    forms = UrlForms(Canonicalizer(rules=modes), HostResolver())
    used: Counter[str] = Counter()
    with closing(LmdbBackend(folder)) as backend:
        learning = Learning(forms, PROOFS if rules == PROVEN else 0)
        frontier = build(backend, Clock(), robots=False, delay=0.0, learning=learning)
        merger = frontier.merger if rules == PROVEN else None
        began = time.process_time_ns()
        for number, page in enumerate(pages):
            before = time.process_time_ns()
            urls = [link.url for link in page.links if link.url.startswith("http")]
            found = [(url, *forms(url)) for url in urls]
            used["forms of its links"] += time.process_time_ns() - before
            known = frontier.known([exact for _, _, exact in found])
            new = [
                frontier.entry(url, normalized, exact=exact, from_page=page.url)
                for (url, normalized, exact), is_known in zip(found, known, strict=True)
                if not is_known
            ]
            used["(number of new URLs)"] += 1000 * len(new)
            before = time.process_time_ns()
            frontier.add(new)
            used["new URLs"] += time.process_time_ns() - before
            normalized, exact = forms(page.url)
            entry = frontier.entry(page.url, normalized, exact=exact)
            digest = bytes(20)
            if merger is not None:
                before = time.process_time_ns()
                digest += fingerprint(page, merger.changing(entry.host))
                used["fingerprint"] += time.process_time_ns() - before
                merger.trials.recent.put(entry.key, page)
                merger.trials.expects(entry.key)
            for popped in backend.pop(entry.host, 0.0):
                visit = FetchRecord(UrlState.STORED, 1.0, 200, digest=digest)
                backend.acknowledge([(popped.key, visit)])
                if merger is not None:
                    merger.ended(popped.host, popped.key, visit)
            if number % 200 == 199:
                before = time.process_time_ns()
                frontier.checkpoint({})
                used["commit"] += time.process_time_ns() - before
        used["in all"] = time.process_time_ns() - began
    return used


def cpu_of(start: str, pages: int, rules: str) -> float:
    """Seconds of a crawl and the processes that it starts."""
    words = [f"-s{name}={value}" for name, value in _SETTINGS.items()]
    words += [f"-sLARM_MAX_PAGES={pages}", f"-sLARM_CANONICAL_RULES={rules}"]
    with tempfile.TemporaryDirectory(prefix="merging-") as folder:
        words.append(f"-sLARM_DIR={folder}/crawl")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "scrapy", "crawl", "intranet", "-a", f"start={start}", *words],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def crawls(pages: int, rounds: int) -> None:
    """Whole crawls in turns."""
    site, modes = SITES["openjdk-17-doc"], deque(MODES)
    ratios: dict[str, list[float]] = {ALWAYS: [], NEVER: []}
    site.warm()
    with Nginx({ADDRESS: site.folder}) as server:
        start = server.url(ADDRESS, site.start)
        begin = min(cpu_of(start, 1, PROVEN) for _ in range(3))
        print(f"milliseconds of CPU a page, of {pages:,}; {begin:.2f} s before the first one")
        for _ in range(rounds):
            used = {rules: (cpu_of(start, pages, rules) - begin) / pages * 1e3 for rules in modes}
            modes.rotate()
            for rules, found in ratios.items():
                found.append(used[PROVEN] / used[rules])
            print(", ".join(f"{rules} {used[rules]:.2f}" for rules in MODES), flush=True)
    for rules, found in ratios.items():
        print(f"{PROVEN} / {rules}: {statistics.median(found):.3f}, the median of {rounds} rounds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=20_000, help="at most")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--crawl", type=int, metavar="PAGES", help="whole crawls of so many pages")
    options = parser.parse_args()
    if options.crawl:
        crawls(options.crawl, options.rounds)
        return
    pages = pages_of(SITES["openjdk-17-doc"].folder, options.pages)
    links = sum(len(page.links) for page in pages) / len(pages)
    print(f"{len(pages):,} pages, {links:.0f} links each; microseconds a page")
    least: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory(prefix="merging-") as folder:
        for turn in range(options.rounds):
            for rules in (ALWAYS, PROVEN):
                used = crawl(pages, rules, Path(folder, f"{rules}-{turn}"))
                best = least.setdefault(rules, used)
                least[rules] = Counter({part: min(used[part], best[part]) for part in used})
    print(f"{'':20}{ALWAYS:>9}{PROVEN:>9}")
    for part in least[PROVEN]:
        costs = [least[rules][part] / len(pages) / 1e3 for rules in (ALWAYS, PROVEN)]
        print(f"{part:20}{costs[0]:9.1f}{costs[1]:9.1f}")


if __name__ == "__main__":
    main()
