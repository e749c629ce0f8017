"""How current is a crawl that may visit so many pages a day? Real change histories, replayed.

    python -m benchmarks.refresh --history GITDIR [--per-day 2] [--plot docs/internals/refresh.png]
    python -m benchmarks.refresh --history GITDIR --runs 60     # the crawler itself
    python -m benchmarks.refresh --unchanged 10000              # what a refresh of these costs

GITDIR is a git repository of Markdown or HTML files: each is a page, each commit that touches it a
version of that moment. Simulated are, on one budget of visits and a clock of six-hour steps, the
crawler's own policy (larmspider/learned/revisits/refresh.py; one visit in 40 is to a page chosen at
random, as in the crawler), one page after the other, and the rules of Nutch (AdaptiveFetchSchedule,
0.2/0.2, sync_delta) and StormCrawler (AdaptiveScheduler, x0.5/x1.5, 1 h to 14 days); each without
and with a feed that is asked once a day and names 95% of the changes. The feed's requests are not
part of the budget; new pages are fetched at once, beyond it, and a page that is gone is stale until
it was visited. Printed are the mean share of pages whose copy is current, and the mean time until a
change is seen.

With ``--runs`` the crawler refreshes a site that is served from the repository so many times
(``refresh=all``), two days of the history apart, at its busiest time; deletes that wait are
approved. Three more runs see the last of these states; then the crawl must equal a fresh one of it:
the pages in the index with their texts, and the texts and numbers of links to each.

With ``--unchanged`` a generated web is crawled, and visited again twice with ``refresh=all``: with
a server that answers 304, and with one that does not. Printed are the CPU seconds of each run (all
threads and processes), and what it adds to the directory, by file.
"""

from __future__ import annotations

import argparse
import csv
import random
import re
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from heapq import nlargest
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote, unquote

import tantivy

from benchmarks.generated_web import address, serving
from benchmarks.meter import crawl_command, crawl_environment, measure
from larmspider.index.anchors import AnchorTable
from larmspider.index.packed import PackedPages
from larmspider.index.schema import stored_fields
from larmspider.index.version import open_index
from larmspider.learned.revisits.plan import OLDEST_SHARE, OVERDUE
from larmspider.learned.revisits.refresh import DAY, KEPT_DAYS, SAMPLED, Pace, learned, prior, value
from tests.support.crawling import FAST, scrapy
from tests.support.servers.scripted import Reply, Request, ScriptedServer

HTML = {"Content-Type": "text/html; charset=utf-8"}
NOT_COMPARED = frozenset(
    {"fetched", "modified", "size", "digest", "depth", "breaks", "likeness", "apart"}
)
"""Index fields that differ with the markup although the text is the same; the depth, which is that
of the link by which a page was found first; and what depends on the order in which pages of a host
come, from which its navigation is learned: where sections begin, and the hashes of likeness."""
STEP = DAY / 4
EXTENSIONS = (".md", ".markdown", ".html", ".htm", ".md.erb", ".html.erb")
NAMED = 0.95
"""Of the changes, those that the feed names."""
HOUR = 3_600.0
HOSTS = 20
"""Of the web whose pages stay as they are."""


@dataclass(frozen=True, slots=True)
class Change:
    """A page has a new version, or is gone."""

    time: float
    path: str
    gone: bool


def history(repository: Path) -> list[Change]:
    """By time; the pages of all commits."""
    log = subprocess.run(
        ["git", "--git-dir", str(repository), "log", "--reverse", "--format=@%ct", "--name-status",
         "--no-renames", "-z"],
        check=True, capture_output=True,
    ).stdout.decode("utf-8", "replace")  # fmt: skip
    found, time, words = [], 0.0, iter(log.split("\0"))
    for raw in words:
        word = raw.strip("\n")
        while word.startswith("@"):
            stamp, _, word = word.partition("\n")
            time = float(stamp[1:])
            word = word.strip("\n")
        if word in ("A", "M", "D", "T"):
            path = next(words)
            if path.endswith(EXTENSIONS):
                found.append(Change(time, path, word == "D"))
    return sorted(found, key=lambda change: change.time)


@dataclass(slots=True, eq=False)
class Copy:
    """A page as the crawl has it. ``stale_since``: its first change that was not seen, None for a
    copy that is current."""

    visited: float
    changed: float
    due: float = 0.0
    stale_since: float | None = None
    gone: bool = False
    named: bool = False
    interval: float = 0.0
    a: float = 0.0
    b: float = 0.0


class Policy(ABC):
    """Which pages are visited first."""

    name: str
    sampled = 0
    """One visit in so many is to a page chosen at random, 0: none."""
    oldest = 0.0
    """The share of visits to the pages whose last visit is longest ago."""

    def visited(self, copy: Copy, now: float, *, changed: bool, passed: float) -> None:  # noqa: B027
        """Learn from a visit; ``copy.changed`` is the time of the page's last change."""

    @abstractmethod
    def urgency(self, copy: Copy, now: float) -> float:
        """Pages with the greatest one come first."""


class RoundRobin(Policy):
    name = "round robin"

    def urgency(self, copy: Copy, now: float) -> float:
        return now - copy.visited


class _Intervals(Policy):
    """Rules that give each page an interval: first come those that are overdue longest."""

    first: float

    def urgency(self, copy: Copy, now: float) -> float:
        return now - (copy.due or copy.visited + self.first)


class StormCrawler(_Intervals):
    name = "StormCrawler adaptive"
    first = DAY

    def visited(self, copy: Copy, now: float, *, changed: bool, passed: float) -> None:
        interval = (copy.interval or self.first) * (0.5 if changed else 1.5)
        copy.interval = min(14 * DAY, max(HOUR, interval))
        copy.due = now + copy.interval


class Nutch(_Intervals):
    name = "Nutch adaptive"
    first = 30 * DAY

    def visited(self, copy: Copy, now: float, *, changed: bool, passed: float) -> None:
        interval = (copy.interval or self.first) * (0.8 if changed else 1.2)
        delta = now - copy.changed
        copy.interval = min(365 * DAY, max(HOUR, interval, delta))
        copy.due = now - delta * 0.3 + copy.interval


class Value(Policy):
    """The crawler's own: the pages whose visit is worth most now."""

    sampled = SAMPLED
    oldest = OLDEST_SHARE

    def __init__(self, *, dated: bool) -> None:
        self.dated = dated
        self.name = "larmspider" if dated else "larmspider, no Last-Modified"
        self.changes = self.exposure = 0.0
        self.pace = Pace()

    @property
    def rate(self) -> float:
        return (self.changes + 1) / (self.exposure + 60 * DAY)

    def visited(self, copy: Copy, now: float, *, changed: bool, passed: float) -> None:
        at = copy.changed if changed and self.dated else None
        felt = self.pace.elapsed(now - passed, now)
        since = None if at is None else self.pace.elapsed(at, now)
        copy.a, copy.b = learned(
            copy.a, copy.b, passed=felt, changed=changed, since_change=since, rate=self.rate
        )
        self.pace.add(now - passed, now, changed=changed, at=at)
        self.changes, self.exposure = self.changes + changed, self.exposure + passed

    def urgency(self, copy: Copy, now: float) -> float:
        a, b = (copy.a, copy.b) if copy.b else prior(self.rate)
        return value(self.pace.elapsed(copy.visited, now) + 1, a, b)


@dataclass(slots=True)
class Outcome:
    """``fresh`` is a mean share, ``delays`` are seconds until a change was seen."""

    name: str
    fresh: float = 0.0
    delays: list[float] = field(default_factory=list)
    visits: int = 0
    days: float = 0.0
    by_month: list[tuple[float, float]] = field(default_factory=list)

    @property
    def delay(self) -> float:
        return sum(self.delays) / max(1, len(self.delays)) / DAY


def replay(changes: Sequence[Change], policy: Policy, per_day: float, *, feed: bool) -> Outcome:
    """One policy over the whole history."""
    world = _World(policy, per_day, feed=feed)
    now, end, left = changes[0].time, changes[-1].time, list(reversed(changes))
    outcome, share_sum, steps = Outcome(policy.name), 0.0, 0
    month = [0.0, 0]
    while now <= end:
        while left and left[-1].time <= now:
            world.change(left.pop())
        world.step(now)
        share = world.fresh
        share_sum, steps = share_sum + share, steps + 1
        month = [month[0] + share, month[1] + 1]
        if month[1] == 30 * DAY // STEP:
            outcome.by_month.append((now, month[0] / month[1]))
            month = [0.0, 0]
        now += STEP
    outcome.fresh = share_sum / steps
    outcome.delays, outcome.visits = world.delays, world.visits
    outcome.days = (end - changes[0].time) / DAY
    return outcome


class _World:
    """The pages as they are, and as the crawl has them."""

    def __init__(self, policy: Policy, per_day: float, *, feed: bool) -> None:
        self.policy, self.per_day, self.feed = policy, per_day, feed
        self.copies: dict[str, Copy] = {}
        self.stale = 0
        self.delays: list[float] = []
        self.visits = 0
        self._credit = self._next_day = 0.0
        self._named: list[str] = []
        self._random, self._chance = random.Random(1), random.Random(2)

    @property
    def fresh(self) -> float:
        return 1 - self.stale / len(self.copies) if self.copies else 1.0

    def change(self, change: Change) -> None:
        copy = self.copies.get(change.path)
        if copy is None:
            if not change.gone:  # a new page is fetched at once
                self.copies[change.path] = Copy(change.time, change.time)
            return
        copy.gone, copy.changed = change.gone, change.time
        if copy.stale_since is None:
            copy.stale_since = change.time
            self.stale += 1
        if self.feed and self._random.random() < NAMED:
            self._named.append(change.path)

    def step(self, now: float) -> None:
        if now >= self._next_day:
            self._next_day = now + DAY
            for path in self._named:
                if path in self.copies:
                    self.copies[path].named = True
            self._named.clear()
        self._credit = min(self._credit + self.per_day * STEP / DAY, KEPT_DAYS * self.per_day)
        number = int(self._credit)
        self._credit -= number
        rank, pages = self.policy.urgency, self.copies.items()
        chosen = nlargest(number, pages, lambda item: (item[1].named, rank(item[1], now)))
        if self.policy.oldest and number:
            chosen = self._with_oldest(chosen, number, now)
        if self.policy.sampled:  # in place of those that are worth least
            for _ in range(int(number / self.policy.sampled + self._chance.random())):
                if chosen and not chosen[-1][1].named:
                    chosen[-1:] = []
                    left = [one for one in pages if one not in chosen]
                    chosen.insert(0, self._chance.choice(left))
        for path, copy in chosen:
            self._visit(path, copy, now)

    def _with_oldest(
        self, chosen: list[tuple[str, Copy]], number: int, now: float
    ) -> list[tuple[str, Copy]]:
        """Some of the chosen replaced by pages whose last visit is longest ago, as a plan does."""
        oldest = nlargest(number, self.copies.items(), key=lambda item: now - item[1].visited)
        least = int(number * self.policy.oldest + self._chance.random())
        overdue = now - OVERDUE * len(self.copies) / self.per_day * DAY
        forced = {
            path: copy
            for at, (path, copy) in enumerate(oldest)
            if at < least or copy.visited < overdue
        }
        named = [item for item in chosen if item[1].named and item[0] not in forced]
        others = [item for item in chosen if not item[1].named and item[0] not in forced]
        return [*named, *forced.items(), *others][: max(number, len(named))]

    def _visit(self, path: str, copy: Copy, now: float) -> None:
        self.visits += 1
        changed = copy.stale_since is not None
        if copy.stale_since is not None:
            self.delays.append(now - copy.stale_since)
            copy.stale_since = None
            self.stale -= 1
        if copy.gone:
            del self.copies[path]
            return
        passed, copy.visited, copy.named = now - copy.visited, now, False
        self.policy.visited(copy, now, changed=changed, passed=passed)


POLICIES: Sequence[Callable[[], Policy]] = (
    RoundRobin,
    StormCrawler,
    Nutch,
    lambda: Value(dated=False),
    lambda: Value(dated=True),
)


def table(changes: Sequence[Change], per_day: float) -> list[tuple[Outcome, Outcome]]:
    """Each policy without and with a feed."""
    return [
        (
            replay(changes, make(), per_day, feed=False),
            replay(changes, make(), per_day, feed=True),
        )
        for make in POLICIES
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--history", type=Path, metavar="GITDIR")
    parser.add_argument("--unchanged", type=int, metavar="PAGES")
    parser.add_argument("--per-day", type=float, default=2.0, metavar="N")
    parser.add_argument("--plot", type=Path, metavar="FILE")
    parser.add_argument("--runs", type=int, default=0, metavar="N")
    options = parser.parse_args()
    if options.unchanged:
        for validators in (True, False):
            unchanged(options.unchanged, validators=validators)
        return
    if options.history is None:
        parser.error("expected --history or --unchanged")
    changes = history(options.history)
    if not changes:
        parser.error(f"--history {options.history}: no Markdown or HTML file in any commit")
    if options.runs:
        raise SystemExit(refresh_in_earnest(options.history, changes, options.runs))
    pages = len({change.path for change in changes})
    print(f"{len(changes)} changes, {pages} pages, {options.per_day:g} visits a day")
    print(f"{'':30} {'current':>8} {'delay':>8}   {'with a feed':>11} {'delay':>8}")
    rows = table(changes, options.per_day)
    for plain, fed in rows:
        print(
            f"{plain.name:30} {plain.fresh:8.1%} {plain.delay:6.1f} d   {fed.fresh:11.1%}"
            f" {fed.delay:6.1f} d"
        )
    if options.plot:
        plot(rows, options.plot)


class Site:
    """The pages of the repository at a time, rendered one by one."""

    def __init__(self, repository: Path) -> None:
        self.repository = repository
        self.pages: dict[str, tuple[float, bytes]] = {}

    def show(self, now: float) -> None:
        """The state of that time."""
        commit = self._git("rev-list", "-1", f"--before={now:.0f}", "HEAD").decode().strip()
        rows = self._git("ls-tree", "-r", "-z", commit).decode("utf-8", "replace").split("\0")
        blobs = {
            f"/{path}": words.split()[2]
            for words, _, path in (row.partition("\t") for row in rows)
            if path.endswith(EXTENSIONS)
        }
        known = {page[1]: page for page in self.pages.values()}
        self.pages = {
            path: known.get(blob.encode(), (now, blob.encode())) for path, blob in blobs.items()
        }

    def _git(self, *words: str) -> bytes:
        command = ["git", "--git-dir", str(self.repository), *words]
        return subprocess.run(command, check=True, capture_output=True).stdout

    def answer(self, request: Request) -> Reply:
        path = unquote(request.path)
        if path == "/":
            rows = (f'<li><a href="{quote(one)}">{one}</a>' for one in sorted(self.pages))
            return Reply(200, HTML, f"<title>All pages</title><ul>{''.join(rows)}</ul>".encode())
        if path not in self.pages:
            return Reply(404, HTML, b"<h1>Not found</h1>")
        changed, blob = self.pages[path]
        text = self._git("cat-file", "blob", blob.decode()).decode("utf-8", "replace")
        headers = HTML | {"Last-Modified": formatdate(changed, usegmt=True)}
        return Reply(200, headers, rendered(path, text).encode())


def rendered(path: str, text: str) -> str:
    """As much of Markdown as makes titles, links and paragraphs; HTML stays as it is."""
    if path.endswith((".html", ".htm")):
        return text
    text = escape(text, quote=False)
    text = re.sub(r"(?m)^(#{1,6}) (.+)$", r"<h2>\2</h2>", text)
    text = re.sub(r"\[([^\]]*)\]\(([^)\s]+)[^)]*\)", r'<a href="\2">\1</a>', text)
    text = re.sub(r"\n{2,}", "\n<p>", text)
    return f"<title>{escape(path)}</title>{text}"


def busiest(changes: Sequence[Change], days: int) -> float:
    """The beginning of the time of so many days with the most changes."""
    times = [change.time for change in changes]
    return max(times, key=lambda begin: sum(begin <= at < begin + days * DAY for at in times))


def refresh_in_earnest(repository: Path, changes: Sequence[Change], runs: int) -> int:
    """0 where the crawl equals a fresh one."""
    begin, site = busiest(changes, 2 * runs), Site(repository)
    with TemporaryDirectory() as name, ScriptedServer({"*": site.answer}) as server:
        folder, fresh = Path(name, "kept"), Path(name, "fresh")
        for one in (folder, fresh):
            one.mkdir()
        seen = set()
        for number in range(runs + 4):
            now = begin + min(number, runs) * 2 * DAY
            site.show(now)
            seen |= set(site.pages)
            crawl(folder, server.url("/"), begin + number * 2 * DAY, refresh=bool(number))
            approve_all(folder)
        crawl(fresh, server.url("/"), now, refresh=False)
        kept, new = contents(folder), contents(fresh)
        differ = [url for url in kept.keys() & new.keys() if kept[url] != new[url]]
        print(f"{runs} runs over {len(seen)} pages, {len(new)} at the end:")
        print(f"{len(kept.keys() - new.keys())} pages too many", *sorted(kept.keys() - new.keys()))
        print(f"{len(new.keys() - kept.keys())} missing", *sorted(new.keys() - kept.keys()))
        print(f"{len(differ)} with other texts, link texts or numbers of links")
        for url in differ:
            mine, its = kept[url], new[url]
            for name in sorted(mine.keys() | its.keys()):
                if mine.get(name) != its.get(name):
                    print(f"  {url} {name}: {mine.get(name)!r:.200} {its.get(name)!r:.200}")
        return int(kept != new)


def unchanged(pages: int, *, validators: bool) -> None:
    """What a refresh of so many pages that stay as they are costs."""
    print(f"{pages:,} pages, {'304' if validators else '200'}")
    settings = {"LARM_RETRY_TIMES": 0}
    with TemporaryDirectory() as name, serving(pages, HOSTS, validators=validators) as port:
        folder = Path(name)
        seeds = [f"http://{address(host)}:{port}/\n" for host in range(HOSTS)]
        (folder / "seeds").write_text("".join(seeds))
        first, before = 0.0, dict[str, int]()
        for refresh in ("", "all", "all"):
            arguments = [f"refresh={refresh}"] if refresh else []
            run = measure(
                crawl_command(settings, *arguments),
                folder,
                seconds=3_600,
                environment=crawl_environment(),
            )
            if run.status:
                raise SystemExit((folder / "output").read_text()[-2_000:])
            first, sizes = first or run.cpu, _sizes(folder / "crawl")
            whole = sum(sizes.values())
            added = whole - sum(before.values())
            print(
                f"{refresh or 'crawl':6} {run.cpu:7.1f} s CPU ({run.cpu / first:.2f}),"
                f" {whole / 1e6:7.1f} MB, added {added / 1e6:6.2f} MB ({added / whole:.2%})"
            )
            more = {one: size - before.get(one, 0) for one, size in sizes.items()}
            for one in nlargest(8, more, key=lambda one: abs(more[one])):
                print(f"       {more[one] / 1e6:8.2f} MB  {one}", flush=True)
            before = sizes


def _sizes(crawl: Path) -> dict[str, int]:
    """Bytes on disk by file, those of the index together."""
    found: dict[str, int] = {}
    for path in crawl.rglob("*"):
        if path.is_file():
            one = str(path.relative_to(crawl))
            if one.startswith("index/") and "anchors" not in one:
                one = "index/*"
            found[one] = found.get(one, 0) + path.stat().st_blocks * 512
    return found


def crawl(folder: Path, start: str, now: float, *, refresh: bool) -> None:
    """A crawl, or a refresh, at a time by the crawl's own clock."""
    (folder / "at.py").write_text(
        "import time\nfrom larmspider.settings import *\n"
        f"_AHEAD = {now} - time.time()\n"
        "def FRONTIER_CLOCK(): return time.time() + _AHEAD\n"
    )
    words = [f"-s{name}={value}" for name, value in FAST.items()]
    words += ["-a", "refresh=all"] if refresh else []
    arguments = ("crawl", "intranet", "-a", f"start={start}", *words)
    ran = scrapy(*arguments, cwd=folder, settings_module="at", timeout=600)
    if ran.status:
        raise SystemExit(ran.err)
    lines = [line for line in ran.out.splitlines() if "changed" in line]
    print(f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d}", *lines, flush=True)


def approve_all(folder: Path) -> None:
    """Look at what waits, and approve it."""
    found = scrapy("deletes", "--dir", "crawl", "--json", cwd=folder)
    for name in found.json["lists"]:
        scrapy("deletes", "--dir", "crawl", "--approve", name, cwd=folder)


def contents(folder: Path) -> dict[str, dict[str, object]]:
    """URL -> what the index has of each page, the texts of the links to it, and how many pages link
    to it."""
    index, _ = open_index(folder / "crawl" / "index")
    index.reload()
    searcher = index.searcher()
    hits = searcher.search(tantivy.Query.all_query(), searcher.num_docs or 1).hits
    ran = scrapy("links", "--dir", "crawl", "--csv", "-n", "1000", cwd=folder)
    counts = {row["url"]: row["pages"] for row in csv.DictReader(ran.out.splitlines())}
    anchors = AnchorTable(folder / "crawl" / "index" / "anchors")
    found: dict[str, dict[str, object]] = {}
    packed = PackedPages(folder / "crawl" / "index")
    for _, place in hits:
        document = stored_fields(searcher.doc(place), packed)
        url = document["url"]
        found[url] = {name: document[name] for name in document if name not in NOT_COMPARED}
        # which blocks are navigation is learned from the pages of a host, in their order
        found[url]["words"] = sorted(f"{found[url].pop('body')} {found[url].pop('rest')}".split())
        found[url] |= {"links": counts.get(url), "link texts": anchors.texts(document["key"])}
    found["link texts"] = {"all": anchors.sizes()["pairs"], "stale": anchors.changed(1, False)}
    anchors.close()
    return found


def plot(rows: Sequence[tuple[Outcome, Outcome]], path: Path) -> None:
    """Needs matplotlib."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (upper, lower) = pyplot.subplots(2, 1, figsize=(9, 7), sharex=True, sharey=True)
    for axes, which, title in ((upper, 0, "without a feed"), (lower, 1, "with a daily feed")):
        for row in rows:
            times = [datetime.fromtimestamp(at, UTC) for at, _ in row[which].by_month]
            shares = [100 * share for _, share in row[which].by_month]
            axes.plot(times, shares, label=row[which].name, linewidth=1)
        axes.set_title(f"Pages that are current, {title} (%)")
        axes.set_ylim(50, 101)
        axes.grid(alpha=0.3)
    lower.legend(loc="lower right", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main()
