"""What it costs that pages are compared: ``python -m benchmarks.merging [--rounds 3]``.

The pages of the JDK (openjdk-17-doc) go through what differs between LARM_CANONICAL_RULES=always
and proven, without a network: the forms of their links, the frontier's look at them, new URLs into
the frontier, the fingerprint, the record of the page, a commit every 200 pages. Printed is the CPU
of a page with each, in turns, the least of some rounds.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from benchmarks.sites import SITES
from larmspider.extraction.fingerprint import fingerprint
from larmspider.extraction.html import extract
from larmspider.frontier.merging import Merger
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.records import FetchRecord, UrlState
from larmspider.items import Page
from larmspider.urls.canonical import Canonicalizer
from larmspider.urls.equivalence import ALWAYS, PROVEN, EquivalenceRules
from larmspider.urls.host_resolver import HostResolver
from larmspider.urls.normalizer import UrlForms
from tests.support.frontier.simulation import Clock, build

ORIGIN = "http://wiki.example"


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
        frontier = build(backend, Clock(), robots=False, delay=0.0)
        merger = None
        if rules == PROVEN:
            merger = frontier.merger = Merger(frontier, forms)
        began = time.process_time_ns()
        for number, page in enumerate(pages):
            before = time.process_time_ns()
            found = [(link.url, *forms(link.url)) for link in page.links]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=20_000, help="at most")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
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
