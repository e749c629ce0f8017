"""The measures of the house: how large the package is, how its rooms import, and what a page meets.

    python -m benchmarks.house               # the table of docs/internals/measures.md
    python -m benchmarks.house --files       # and which files lie between two stored pages

A room is a folder of larmspider/, or a module that lies loose in it; benchmarks/ counts as one. The
floor of a room is one above the highest room that it imports. "Runs up" is an import that
pyproject.toml's import-linter contract forbids, were it not for its exceptions. Rooms form no
circle; nor do modules, but for imports that only annotations need.

The last lines come from a crawl of 300 pages of one host (generated_web.py), one request at a time:
between two stored pages each call of a function of larmspider/ is noted. A hop is a call from one
file to another. Pages of 30 to 50 links are looked at, once the crawl is steady; figures are
medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import FrameType
from typing import Any

import grimp
from scrapy import signals
from scrapy.crawler import CrawlerProcess
from scrapy.settings import Settings

from benchmarks.generated_web import address, serving

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "larmspider"
PAGES = 300
STEADY = 50
"""Stored pages after which the crawl is steady."""
LINKS = range(30, 51)
_SETTINGS = {
    "DOWNLOAD_DELAY": 0,
    "LARM_DELAY_RESPONSE_FACTOR": 0,
    "CONCURRENT_REQUESTS": 1,
    "LARM_CHECKPOINT_SECS": 600,  # none between two pages
    "LARM_MONITOR_SECS": 600,
    "LARM_WEB": False,
    "LARM_PROGRESS": False,
    "LOG_LEVEL": "ERROR",
    "REDIS_URL": "",
}


def sources(folder: Path) -> list[Path]:
    """All modules below a folder."""
    return [path for path in folder.rglob("*.py") if "__pycache__" not in path.parts]


def lines_of(paths: Sequence[Path]) -> int:
    return sum(len(path.read_bytes().splitlines()) for path in paths)


# --- rooms ---------------------------------------------------------------------------------------


def room(module: str) -> str:
    """``frontier`` for larmspider.frontier.storage.records, ``items`` for larmspider.items."""
    package, _, rest = module.partition(".")
    return rest.partition(".")[0] if package == "larmspider" else package


@dataclass(frozen=True)
class Rooms:
    """Rooms by what they import, and the imports between modules that should not be."""

    floors: int
    count: int
    circles: list[list[str]]
    up: list[str]

    @classmethod
    def of_the_checkout(cls) -> Rooms:
        graph = grimp.build_graph("larmspider", "benchmarks")
        modules = {
            name: graph.find_modules_directly_imported_by(name)
            for name in graph.modules
            if name not in ("larmspider", "benchmarks")
        }
        rooms: dict[str, set[str]] = {room(name): set() for name in modules}
        for name, imported in modules.items():
            rooms[room(name)] |= {room(other) for other in imported if other in modules}
        for name, imported_rooms in rooms.items():
            imported_rooms.discard(name)
        running = grimp.build_graph("larmspider", exclude_type_checking_imports=True)
        needed = {name: running.find_modules_directly_imported_by(name) for name in running.modules}
        circles = [circle for circle in (_circle(needed), _circle(rooms)) if circle]
        floors = 0 if _circle(rooms) else max(_floors(rooms).values())
        return cls(floors, len(rooms), circles, sorted(_running_up(modules)))


def _circle(graph: dict[str, set[str]]) -> list[str]:
    """A circle of imports; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _floors(rooms: dict[str, set[str]]) -> dict[str, int]:
    floors: dict[str, int] = {}
    for name in TopologicalSorter(rooms).static_order():
        floors[name] = 1 + max((floors[other] for other in rooms[name]), default=0)
    return floors


def _running_up(modules: dict[str, set[str]]) -> Iterator[str]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    layers = next(one["layers"] for one in contracts["contracts"] if one["type"] == "layers")
    layer = {name.strip(): at for at, line in enumerate(layers) for name in line.split(":")}
    for name, imported in modules.items():
        for other in imported:
            here, there = layer.get(room(name)), layer.get(room(other))
            if here is None or there is None or room(name) == room(other):
                continue
            if there < here:
                yield f"{name} -> {other}"


# --- between two stored pages --------------------------------------------------------------------


@dataclass
class Way:
    """What was called from one stored page to the next. ``links`` of the page stored last."""

    links: int = 0
    calls: int = 0
    hops: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Times that a file called another; the caller is "" where only the engine stands before."""

    @property
    def files(self) -> set[str]:
        return {called for _, called in self.hops}


class Trace:
    """Notes the calls in the crawler's thread, from one stored page to the next."""

    def __init__(self) -> None:
        self.ways: list[Way] = []
        self._own = f"{PACKAGE}{os.sep}"
        self._way: Way | None = None

    def stored(self, item: Any) -> None:
        """Scrapy's signal ``item_scraped``: every store has the page."""
        sys.setprofile(None)
        if self._way is not None:
            self._way.links = len(getattr(item, "links", ()))
            self.ways.append(self._way)
        self._way = Way()
        sys.setprofile(self._noted)

    def _noted(self, frame: FrameType, event: str, _: Any) -> None:
        called = frame.f_code.co_filename
        if event != "call" or not called.startswith(self._own) or self._way is None:
            return
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(self._own):
            caller = caller.f_back
        self._way.calls += 1
        before = "" if caller is None else caller.f_code.co_filename
        if before != called:
            self._way.hops[self._name(before), self._name(called)] += 1

    def _name(self, path: str) -> str:
        return path.removeprefix(self._own)


def crawl() -> list[Way]:
    """The ways of a crawl's pages, once it is steady."""
    trace = Trace()
    with serving(PAGES, 1) as port, tempfile.TemporaryDirectory(prefix="house-") as folder:
        settings = Settings()
        settings.setmodule("larmspider.settings")
        settings.setdict(_SETTINGS, priority="cmdline")
        settings.set("LARM_DIR", f"{folder}/crawl", priority="cmdline")
        settings.set("LARM_START", f"http://{address(0)}:{port}/", priority="cmdline")
        process = CrawlerProcess(settings)
        crawler = process.create_crawler("intranet")
        crawler.signals.connect(trace.stored, signal=signals.item_scraped)
        process.crawl(crawler)
        process.start()
        sys.setprofile(None)
    assert len(trace.ways) == PAGES - 1, f"{len(trace.ways)} pages"
    return [way for way in trace.ways[STEADY:] if way.links in LINKS]


# --- the table -----------------------------------------------------------------------------------


def table(rooms: Rooms, ways: Sequence[Way]) -> Iterator[tuple[str, str]]:
    """Each measure of docs/internals/measures.md, and its value in this checkout."""
    product, tests = sources(PACKAGE), sources(ROOT / "tests")
    named = [path for path in product if path.name != "__init__.py"]
    folders = Counter(path.parent for path in named)
    largest, files = folders.most_common(1)[0]
    yield (
        "product files without `__init__.py` / lines of all",
        f"{len(named)} / {lines_of(product):,}",
    )
    optional = [path for path in product if path.is_relative_to(PACKAGE / "plugins")]
    yield (
        "of these lines: the core / plugins",
        f"{lines_of(product) - lines_of(optional):,} / {lines_of(optional):,}",
    )
    yield (
        "rooms / floors / circles / imports that run up",
        f"{rooms.count} / {rooms.floors} / {len(rooms.circles)} / {len(rooms.up)}",
    )
    yield "loose modules at the top", str(folders[PACKAGE])
    yield "largest flat folder", f"{files} files ({largest.relative_to(PACKAGE)}/)"
    median = statistics.median_low
    own = median(len(way.files) for way in ways)
    frontier = median(sum(name.startswith("frontier/") for name in way.files) for way in ways)
    yield "own files touched between two stored pages", f"{own}, of frontier/ {frontier}"
    yield "hops from file to file there", str(median(way.hops.total() for way in ways))
    yield "calls of own functions there", str(median(way.calls for way in ways))
    yield "tests: lines, files", f"{lines_of(tests):,}, {len(tests)}"


def usual(ways: Sequence[Way]) -> Way:
    """A way of the median number of hops."""
    ordered = sorted(ways, key=lambda way: way.hops.total())
    return ordered[(len(ordered) - 1) // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--files", action="store_true", help="list the files between two stored pages too"
    )
    options = parser.parse_args()
    rooms = Rooms.of_the_checkout()
    ways = crawl()
    print("| | |\n|---|---|")
    for name, value in table(rooms, ways):
        print(f"| {name} | {value} |")
    for circle in rooms.circles:
        print(f"a circle: {' -> '.join(circle)}")
    for upward in rooms.up:
        print(f"runs up: {upward}")
    if options.files:
        way = usual(ways)
        print(f"\nBetween two stored pages ({way.links} links), file: hops into it, and whence")
        for name in sorted(way.files):
            into = Counter({a or "engine": n for (a, b), n in way.hops.items() if b == name})
            whence = ", ".join(f"{caller} {count}" for caller, count in into.most_common())
            print(f"  {name}: {into.total()} ({whence})")


if __name__ == "__main__":
    main()
