"""Does a crawl slow down or swell as it grows? Pages/s and memory at 10k, 100k and 1M pages.

    python -m benchmarks.growth [--pages 20000]                   # two minutes
    python -m benchmarks.growth --pages 1100000 --plot docs/internals/growth.png
    python -m benchmarks.growth --pages 1100000 --dir DIR --seconds 60    # go on with that one
    python -m benchmarks.growth shapes                            # shapes.py: parts, one by one

One crawl, the whole chain on, politeness off, of a generated web of 1,000 hosts
(generated_web.py; its process shares the machine). Printed is, around each number of pages that it
passes (from half of it to one and a half times it, or the end), pages a second, CPU a page of the
crawler's main thread and of all its threads (which other work on the machine disturbs less), and
memory: anonymous, and mapped from files, of that the frontier's LMDB map and the index. Mapped
pages are the page cache's and go when others need the memory.

A million pages are 40 GB of page files and 15 GB of links.log, so what of them lies back is given
up while the crawl goes on (holes, by fallocate); --keep does not. The frontier takes some
1 GB, the index 5.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from benchmarks.generated_web import address, serving
from benchmarks.meter import Process, crawl_command, crawl_environment, measure
from larmspider.frontier.storage.lmdb_reader import FrontierReader

ROOT = Path(__file__).parents[1]
MARKS = (10_000, 100_000, 1_000_000)
_LOOK_SECS = 5.0
_KEPT_BYTES = 64 << 20
_WARM_SECS = 10.0


@dataclass
class Watch:
    """Looks at a crawl now and then: what it has mapped; makes holes in what it wrote long ago."""

    crawl: Path
    keep: bool
    maps: list[tuple[float, int, int]] = field(default_factory=list)
    """Time, resident bytes of the frontier's map, of the index's and anchor table's."""
    _next: float = 0.0
    _holes: dict[Path, int] = field(default_factory=dict)

    def __call__(self, pid: int) -> None:
        if time.time() < self._next:
            return
        self._next = time.time() + _LOOK_SECS
        self.maps.append((time.time(), *mapped(pid, self.crawl)))
        if not self.keep:
            for path in [*self.crawl.glob("pagefile_*.pfl"), self.crawl / "links.log"]:
                self._give_up(path)

    def _give_up(self, path: Path) -> None:
        """The contents of a file but its end; its length stays."""
        end = (path.stat().st_size - _KEPT_BYTES) >> 20 << 20 if path.exists() else 0
        done = self._holes.get(path, 0)
        if end > done:
            arguments = ["-p", "-o", str(done), "-l", str(end - done), str(path)]
            if subprocess.run(["fallocate", *arguments], check=False).returncode == 0:
                self._holes[path] = end


def mapped(pid: int, crawl: Path) -> tuple[int, int]:
    """Resident bytes of the process that are the frontier's map, and the index's files."""
    frontier = index = 0
    name = ""
    try:
        lines = Path("/proc", str(pid), "smaps").read_text().splitlines()
    except OSError:
        return 0, 0
    for line in lines:
        if line[:1].islower() or line[:1].isdigit():
            name = line.split(maxsplit=5)[-1]
        elif line.startswith("Rss:"):
            size = int(line.split()[1]) * 1024
            frontier += size if name.startswith(str(crawl / "frontier")) else 0
            index += size if name.startswith(str(crawl / "index")) else 0
    return frontier, index


def progress(crawl: Path, began: float) -> list[tuple[float, int]]:
    """Time and pages so far, of Monitor.log, in the run that began then."""
    lines = (crawl / "Monitor.log").read_text().splitlines()
    rows = [line.split("\t") for line in lines if line[:1].isdigit()]
    times = [datetime.fromisoformat(row[0]).timestamp() for row in rows]
    return [(at, int(row[1])) for at, row in zip(times, rows, strict=True) if at > began]


def stored(crawl: Path) -> int:
    """Pages of a crawl so far."""
    if not (crawl / "frontier" / "data.mdb").exists():
        return 0
    with FrontierReader(crawl / "frontier") as frontier:
        return frontier.counts().stored


def opened(folder: Path | None, scratch: Path | None) -> AbstractContextManager[str]:
    """The folder itself, or one that goes again."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        return nullcontext(str(folder))
    return tempfile.TemporaryDirectory(prefix="growth-", dir=scratch)


def rows(
    run: Process, watch: Watch, grown: list[tuple[float, int]], before: int
) -> Iterator[dict[str, float]]:
    """Figures around each of MARKS that the crawl came to; of a crawl that went on, having
    ``before`` pages, of all but the first _WARM_SECS of this run."""
    last = grown[-1][1]
    for mark in [before + last] if before else [mark for mark in MARKS if mark <= last * 1.05]:
        window = [(at, pages) for at, pages in grown if mark / 2 <= pages <= mark * 1.5]
        if before:
            window = [(at, pages) for at, pages in grown if at > grown[0][0] + _WARM_SECS]
        (begin, first), (end, final) = window[0], window[-1]
        sample = min(run.samples, key=lambda one: abs(one.time - end))
        maps = min(watch.maps, key=lambda one: abs(one[0] - end))
        yield {
            "pages": mark,
            "rate": (final - first) / (end - begin),
            "main_ms": run.main_between(begin, end) * 1000 / (final - first),
            "all_ms": run.cpu_between(begin, end) * 1000 / (final - first),
            "anonymous": sample.anonymous / 1e6,
            "mapped": sample.mapped / 1e6,
            "frontier": maps[1] / 1e6,
            "index": maps[2] / 1e6,
        }


def plot(run: Process, watch: Watch, grown: list[tuple[float, int]], path: Path) -> None:
    """Pages/s and memory over pages, as a picture."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    step = max(1, len(grown) // 100)
    points = grown[::step]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6))
    pairs = [pair for pair in pairwise(points) if pair[1][0] > pair[0][0]]
    left.plot([b[1] for _, b in pairs], [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairs])
    left.set_ylabel("pages a second")
    at = [min(run.samples, key=lambda one, when=when: abs(one.time - when)) for when, _ in points]
    maps = [min(watch.maps, key=lambda one, when=when: abs(one[0] - when)) for when, _ in points]
    pages = [count for _, count in points]
    right.plot(pages, [one.anonymous / 1e6 for one in at], label="anonymous")
    right.plot(pages, [one[1] / 1e6 for one in maps], label="frontier's map")
    right.plot(pages, [one[2] / 1e6 for one in maps], label="index, mapped")
    right.set_ylabel("MB resident")
    right.legend()
    for axes in (left, right):
        axes.set_xlabel("pages crawled")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=90)


def main() -> None:
    if sys.argv[1:2] == ["shapes"]:
        from benchmarks import shapes

        sys.exit(shapes.main(sys.argv[2:]))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--scratch", type=Path, help="where the crawl lies; 7 GB for a million")
    parser.add_argument("--dir", type=Path, help="the crawl lies there, stays, and is gone on with")
    parser.add_argument("--keep", action="store_true", help="no holes in page files and links.log")
    parser.add_argument("--plot", type=Path, help="a picture of rate and memory")
    parser.add_argument("--seconds", type=float, default=36_000.0)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    told = options.dir / "port" if options.dir else None
    wanted = int(told.read_text()) if told is not None and told.exists() else 0
    with (
        opened(options.dir, options.scratch) as name,
        serving(options.pages, options.hosts, wanted) as port,
    ):
        folder = Path(name)
        (folder / "port").write_text(str(port))  # it is in every URL
        before = stored(folder / "crawl")
        seeds = [f"http://{address(host)}:{port}/" for host in range(options.hosts)]
        (folder / "seeds").write_text("\n".join(seeds))
        command = crawl_command({"LARM_MONITOR_SECS": 1, "LARM_KEPT_CONNECTIONS": options.hosts})
        environment = crawl_environment()
        watch = Watch(folder / "crawl", options.keep)
        run = measure(
            command, folder, seconds=options.seconds, environment=environment, watch=watch
        )
        grown = progress(watch.crawl, run.began)
        if run.status and not run.killed:
            raise SystemExit((folder / "output").read_text("utf-8", "replace")[-2000:])
    since = f" after {before:,}" if before else ""
    print(
        f"{grown[-1][1]:,} pages{since} on {options.hosts:,} hosts, {run.ended - run.began:.0f} s"
    )
    print(
        "around pages   pages/s  main thread ms    all threads   MB: anonymous    mapped"
        "  frontier     index"
    )
    for row in rows(run, watch, grown, before):
        print(
            f"{row['pages']:12,.0f}{row['rate']:10.0f}{row['main_ms']:16.2f}{row['all_ms']:15.2f}"
            f"{row['anonymous']:16.0f}{row['mapped']:10.0f}{row['frontier']:10.0f}"
            f"{row['index']:10.0f}"
        )
    if options.plot:
        plot(run, watch, grown, options.plot)


if __name__ == "__main__":
    main()
