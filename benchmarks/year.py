"""A year of nightly refreshes: does the search stay true without an operator?

    python -m benchmarks.year [--days 366] [--every 1] [--seed 1] [--per-day 0]
    python -m benchmarks.year --code ../before      # the same year with an older checkout
    python -m benchmarks.year --days 90 --events benchmarks/rare_events.tsv

The servers of benchmarks/year_world.py live through benchmarks/year_events.tsv and through random
edits, which depend on the seed alone. Each night ``scrapy crawl intranet -a refresh=due`` runs as a
process whose clock is set to 2 o'clock of that day (virtual_clock.c, which takes a C compiler).
No operator approves anything, unless an event says so. Each week the search index is compared with
the servers:

=========  ========================================================================================
shown      pages in the index
current    of them, those with the text that the server has
stale      those with an older text
dead       those whose page is gone, has moved, or may not be shown any more
marked     of the dead, those that the search shows as not reached
unnamed    of the dead that are not marked, those that were taken out alone: no section, sitemap or
           listing of the servers names them any more
login      pages that are a login form
missing    pages that the servers have listed for 14 days, and the index does not have
doubled    pages beyond the first with one text
told       lasting conditions so far that a notice or a list has named
untold     the others
=========  ========================================================================================

At the end: means of the year, the time from the first visit that misses a page to its removal,
pages that were removed while the server had them, and what an operator was told of each lasting
condition, and when. A host that fails is waited for some seconds, not for an hour. The numbers of
two runs with one seed differ by what the crawler draws at random.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.meter import ROOT
from benchmarks.year_world import DAY, PASSWORD, USER, Event, World, read_events
from tests.support.crawling import FAST
from tests.support.forking import ForkServer
from tests.support.recovery.synced_only import compiler

EVENTS = Path(__file__).with_name("year_events.tsv")
RARE_EVENTS = Path(__file__).with_name("rare_events.tsv")
CLOCK = Path(__file__).with_name("virtual_clock.c")
BEGIN = datetime(2030, 3, 1, 2, tzinfo=UTC).timestamp()
WEEK = 7
LISTED_DAYS = 14
"""Days after which a listed page should be in the index."""
LASTING = {
    "move-host": 366, "login": 20, "login-form": 8, "refuse": 90, "disallow": 20, "remove": 30,
    "forbidden": 10, "scope": 1, "move-below": 366, "split": 366, "wall": 8, "sso": 8,
    "ok-words": 8, "fault-words": 8, "ring": 8, "crawl-clock": -1,
    "self-redirect": 10, "consent": 10,
}  # fmt: skip
"""Conditions that the operator is to be told of, and the least number of days or pages of each."""
NAMES = (
    "shown", "current", "stale", "dead", "marked", "unnamed", "login", "missing", "doubled",
)  # fmt: skip
"""Counts of a week, in the order of the table."""
MISSED = frozenset(
    ("404", "410", "403", "401", "301", "302", "307", "308", "soft-404", "robots", "noindex")
)
"""Results in fetch.log of visits that did not show the page."""
PRESENT = frozenset(("same", "not-modified", "200"))
_READ = """
import json, sys, tantivy
from larmspider.index.packed import PackedPages
from larmspider.index.schema import stored_fields
from larmspider.index.version import open_index
index, _ = open_index(__import__("pathlib").Path("crawl/index")); index.reload()
searcher, packed = index.searcher(), PackedPages(__import__("pathlib").Path("crawl/index"))
try:
    from larmspider.index.unreached import Unreached
    missing = Unreached.read(__import__("pathlib").Path("crawl/index")).since
except ImportError:  # an older checkout
    missing = lambda key: None
for _, place in searcher.search(tantivy.Query.all_query(), searcher.num_docs or 1).hits:
    page = stored_fields(searcher.doc(place), packed)
    words = f"{page.get('body') or ''} {page.get('rest') or ''}".replace(".", " ").split()
    tokens = [word for word in words if word.startswith("qx")]
    print(json.dumps({"url": page["url"], "tokens": tokens, "missing": missing(page["key"])}))
"""


@dataclass(slots=True)
class Week:
    """The state of the index at the end of a week, and the requests until then."""

    day: int
    counts: Counter[str]
    requests: int


@dataclass(slots=True)
class Told:
    """A lasting condition: on which days a notice named its host, and when a list first did."""

    day: int
    host: str
    what: str
    address: str
    notices: list[int] = field(default_factory=list)
    listed: int | None = None


class Year:
    """One crawl, kept current by one checkout of the code, in ``folder``."""

    def __init__(self, world: World, code: Path, folder: Path, per_day: int) -> None:
        self.world, self.code, self.folder = world, code, folder
        self.weeks: list[Week] = []
        self.conditions: list[Told] = []
        self.listed_since: dict[str, int] = {}
        self.dead: dict[str, int] = {}  # URL -> the day on which it was dead first
        self.nights: list[tuple[float, set[str]]] = []
        """The crawl's clock of each night, and the pages that the servers had."""
        self.on_list = set[str]()
        """URLs that `scrapy deletes` has listed at the end of a week."""
        self._notices = 0
        (folder / "seeds").write_text("".join(f"{one}\n" for one in world.seeds()))
        (folder / "told").touch()
        sites = folder / "sites.toml"
        sites.write_text(
            "".join(
                f'[[site]]\nhosts = "{host.base}"\nscheme = "http"\nauth = "basic"\n'
                f'user = "{USER}"\npassword = "{PASSWORD}"\n'
                if "credentials" in states
                else f'[[site]]\nhosts = "{host.base}"\nverify = false\n'
                for host, states in ((one, one.states) for one in world.hosts.values())
                if "credentials" in states or host.tls
            )
        )
        sites.chmod(0o600)
        self.settings = FAST | {
            "LARM_SITEMAPS": "yes",
            "LARM_TRAPS": "learn",
            "LARM_BACKOFF_MAX_SECS": "0.5",
            "LARM_HOST_PARK_SECS": "1",
            "LARM_SITES_FILE": str(sites),
            "LARM_NOTIFY": f"tee -a {folder / 'told'}",
            "LARM_REFRESH_PER_DAY": str(per_day),
        }
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(code),
            "LD_PRELOAD": str(virtual_clock(folder)),
        }
        self.environment["SCRAPY_SETTINGS_MODULE"] = "larmspider.settings"
        self.server = ForkServer(self.environment)

    def night(self, day: int) -> str:
        """Run the crawl, or its refresh, at 2 o'clock; what it said at its end."""
        now = BEGIN + day * DAY
        for event in self.world.go_to(day, now):
            if event.what == "crawl-clock":
                now += int(event.argument) * DAY
            elif event.what in ("list", "approve"):
                self._approve(event, now)
            self._condition(event, day)
        self.nights.append((now, self.world.there()))
        words = [f"-s{name}={value}" for name, value in self.settings.items()]
        words += [
            "-a",
            f"restrict={self.world.restrict()}",
            *(["-a", "refresh=due", "-a", "resume=anyway"] if day else []),
        ]
        out = self._run(now, "crawl", "intranet", "-a", "start=@seeds", *words)
        lines = (self.folder / "told").read_text().splitlines()
        for line in lines[self._notices :]:
            named = [one for one in self.conditions if one.address in line]
            first = min((line.index(one.address) for one in named), default=0)
            known = [one for one in named if line.index(one.address) == first]
            for one in known:
                if day - one.day < LASTING[one.what] + 120:
                    one.notices.append(day)
            print(f"  {day:3} told: {line}{'' if known else ' (of no condition)'}", flush=True)
        self._notices = len(lines)
        for url in self.world.urls():
            self.listed_since.setdefault(url, day)
        return out

    def _condition(self, event: Event, day: int) -> None:
        """Note a condition of which the operator should hear."""
        least = LASTING.get(event.what)
        if least is None or event.argument == "off":
            return
        lasts = int(event.argument) if event.argument.lstrip("-").isdigit() else 0
        if event.what in ("scope", "crawl-clock"):  # a clock that is ahead is set back the next day
            lasts = 366
        if (lasts or self._lasts(event.host, event.what, day)) >= least:
            address = self.world.hosts[event.host].base.partition("://")[2]
            if event.what == "crawl-clock":
                address = "clock was set back"
            self.conditions.append(Told(day, event.host, event.what, address))

    def _approve(self, event: Event, now: float) -> None:
        """The operator reads the lists, or approves the list of a host."""
        host = self.world.hosts[event.host].base.partition("://")[2]
        approve = ["--approve", host] if event.what == "approve" else []
        said = self._run(now, "deletes", "--dir", "crawl", *approve, may_fail=True)
        print(*(f"  {event.day:3} {event.what}: {one}" for one in said.splitlines()), sep="\n")

    def _lasts(self, host: str, what: str, day: int) -> int:
        ends = [
            event.day
            for event in self.world.events
            if (event.host, event.what, event.argument) == (host, what, "off") and event.day > day
        ]
        return min(ends, default=day + 366) - day

    def _run(self, now: float, *arguments: str, may_fail: bool = False) -> str:
        environment = self.environment | {"VIRTUAL_CLOCK_SECS": f"{now - time.time():.0f}"}
        status, out, err = self.server.run([*arguments], self.folder, environment, 900)
        if status and not may_fail:
            raise SystemExit(f"scrapy {' '.join(arguments)}: status {status}\n{err[-3_000:]}")
        return out + err

    def look(self, day: int) -> Week:
        """Compare the index with the servers."""
        rows = subprocess.run(
            [sys.executable, "-c", _READ],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.code)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.splitlines()
        counts: Counter[str] = Counter(shown=len(rows))
        found, tokens, dead = set[str](), set[str](), dict[str, int]()
        for row in map(json.loads, rows):
            url, truth = row["url"], self.world.truth(row["url"])
            found.add(url.partition(";")[0])  # without a session
            if "/login" in url or url.endswith("/feed.xml"):
                counts["login"] += 1
                continue
            if not truth.token:
                dead[url] = self.dead.get(url, truth.gone_on)
                counts["dead"] += 1
                counts["marked"] += bool(row["missing"])
                counts["unnamed"] += not row["missing"] and self.world.is_named_no_more(url)
                continue
            counts["current" if truth.token in row["tokens"] else "stale"] += 1
            if truth.token in tokens:
                counts["doubled"] += 1
            tokens.add(truth.token)
        self.dead = dead
        there = self.world.urls()
        for url in there:
            counts["missing"] += url not in found and day - self.listed_since[url] >= LISTED_DAYS
        listed = self._run(BEGIN + day * DAY, "deletes", "--dir", "crawl", "--json")
        self.on_list.update(re.findall(r'"url": "([^"]*)"', listed))
        for one in self.conditions:
            if one.listed is None and one.address in listed:
                one.listed = day
            told = one.listed is not None or bool(one.notices)
            counts["told" if told else "untold"] += 1
        week = Week(day, counts, self.world.requests)
        self.weeks.append(week)
        return week

    # --- from the logs ------------------------------------------------------------------------

    def removals(self) -> tuple[list[tuple[float, str]], list[str]]:
        """Days from the first visit that missed a page to its removal, each with the URL; and the
        removals of pages that the server has at the end, and had then. A URL that has no page since
        it was taken out, but redirects, is no page that waits."""
        first: dict[str, float] = {}
        last: dict[str, float] = {}  # removals, of pages that come and go
        without = set[str]()  # URLs that were taken out, and had no page since
        times: dict[str, list[tuple[float, str]]] = defaultdict(list)
        for fields in _rows(self.folder / "crawl" / "fetch.log"):
            times[fields[1]].append((_time(fields[0]), fields[4]))
        days, wrong = list[tuple[float, str]](), list[str]()
        for fields in _rows(self.folder / "crawl" / "deleted.log"):
            removed, url = _time(fields[0]), fields[1]
            first.pop(url, None)
            for at, outcome in times[url]:
                if at > removed + 60:
                    break
                if at <= last.get(url, 0.0) + 60:
                    continue
                if outcome in PRESENT:
                    first.pop(url, None)
                    without.discard(url)
                elif outcome in MISSED:
                    first.setdefault(url, at)
            if url in first and url not in without:
                days.append(((removed - first[url]) / DAY, url))
            without.add(url)
            last[url] = removed
            if self._was_there(url, removed):
                wrong.append(f"{url} {fields[-1]}")
        return days, wrong

    def _was_there(self, url: str, at: float) -> bool:
        """Whether the servers had the page in the night of that time, and in the one before. Where
        the clock was set back, two nights may have had one time."""
        nights = [number for number, (now, _) in enumerate(self.nights) if 0 <= at - now < DAY / 2]
        both = {max(0, number - before) for number in nights for before in (0, 1)}
        return bool(both) and all(url.partition(";")[0] in self.nights[one][1] for one in both)


def virtual_clock(folder: Path) -> Path:
    """The library that sets the clock, compiled into ``folder``."""
    library, program = folder / "virtual_clock.so", compiler()
    assert program is not None
    command = [program, "-O2", "-Wall", "-shared", "-fPIC", "-o", str(library), str(CLOCK)]
    subprocess.run(command, check=True)
    return library


def _rows(path: Path) -> Iterator[list[str]]:
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        yield line.split("\t")


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def summary(year: Year, days: int) -> dict[str, Any]:
    """Means over the weeks, and the end."""
    weeks = year.weeks

    def share(name: str) -> float:
        return statistics.mean(week.counts[name] / week.counts["shown"] for week in weeks)

    waits, wrong = year.removals()
    unlisted = [one for one in waits if one[1] not in year.on_list]
    for_ever = sum(days - since > 45 for since in year.dead.values())
    return {
        "current": share("current"),
        "dead": share("dead"),
        "dead as if there": share("dead") - share("marked"),
        "dead as if there, and named no more": share("unnamed"),
        "doubled": share("doubled"),
        "missing at the end": weeks[-1].counts["missing"],
        "dead for more than 45 days at the end": for_ever,
        "removals": len(waits),
        "days to a removal, median": statistics.median([days for days, _ in waits] or [0.0]),
        "days to a removal, longest": max(waits, default=(0.0, "")),
        "the same of pages that were never listed": max(unlisted, default=(0.0, "")),
        "removals of pages that were there": len(wrong),
        "requests": year.world.requests,
        "wrong": wrong[:10],
    }


def live(
    world: World, code: Path, folder: Path, *, days: int, every: int = 1, per_day: int = 0
) -> Year:
    """The whole time; prints a line a week."""
    year = Year(world, code, folder, per_day)
    names = (*NAMES, "told", "untold")
    print("  day  " + "".join(f"{name:>9}" for name in (*names, "requests")))
    for day in range(0, days, every):
        year.night(day)
        if day // WEEK != (day + every) // WEEK or day + every >= days:
            week = year.look(day)
            numbers = [*(week.counts[name] for name in names), week.requests]
            line = "".join(f"{number:9,}" for number in numbers)
            print(f"{day:5}  {line}", flush=True)
    return year


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--days", type=int, default=366)
    parser.add_argument("--every", type=int, default=1, help="days between two refreshes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-day", type=int, default=0, help="LARM_REFRESH_PER_DAY")
    parser.add_argument("--code", type=Path, default=ROOT, help="a checkout; this one if not given")
    parser.add_argument("--events", type=Path, default=EVENTS, help="a table of events")
    parser.add_argument("--keep", type=Path, help="a folder for the crawl")
    options = parser.parse_args()
    if compiler() is None:
        parser.error("there is no C compiler: apt-get install gcc libc6-dev")
    folder = options.keep or Path(tempfile.mkdtemp(prefix="year-"))
    folder.mkdir(exist_ok=True)
    try:
        with World(options.seed, read_events(options.events)) as world:
            year = live(
                world,
                options.code.resolve(),
                folder,
                days=options.days,
                every=options.every,
                per_day=options.per_day,
            )
            for name, value in summary(year, options.days).items():
                shown = f"{value:.4f}" if isinstance(value, float) else value
                print(f"{name}: {shown}")
            for one in year.conditions:
                print(
                    f"{one.day:4} {one.host} {one.what}: notices {one.notices}, list {one.listed}"
                )
    finally:
        if not options.keep:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
