"""What benchmarks/peers.py found, as tables, results.md, results.json and bar charts."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.peer_crawlers import Peer

STOCK = "Scrapy CrawlSpider"
OURS = "larmspider"

_WHAT = """\
`python -m benchmarks.peers`, {rounds} rounds in turns, medians; {machine}. {site} served by nginx
on the same machine, 16 connections, no delay, breadth first. Pages/s from the first page to the
last, by nginx's log. CPU in milliseconds a page: of the process with all its threads and children,
and of its main thread. Memory is that of the largest process, pages of mapped files included.
Several workers of larmspider are not among them, for one of them has a whole host:
[workers.md](workers.md).
"""


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one run: pages a second, CPU milliseconds a page in all and on the main thread, peak
    memory, and seconds in all."""

    pages: float
    rate: float
    cpu_ms: float
    main_ms: float
    peak_mb: float
    seconds: float


Found = Mapping[str, Sequence[Figures]]
"""Crawler -> one Figures a round."""


def median(found: Sequence[Figures]) -> Figures:
    """Each figure's median over the rounds."""
    return Figures(*(statistics.median(one) for one in zip(*map(astuple, found), strict=True)))


def ratio(found: Sequence[Figures], base: Sequence[Figures]) -> float:
    """How many times as fast, the median over the rounds."""
    pairs = zip(found, base, strict=True)
    return statistics.median(one.rate / other.rate for one, other in pairs)


def table(found: Found) -> list[str]:
    """A Markdown table, the fastest first."""
    base = found.get(STOCK)
    lines = [
        f"| crawler | pages | pages/s | x {STOCK} | CPU ms | of it main thread | MB | s in all |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, runs in sorted(found.items(), key=lambda item: -median(item[1]).rate):
        one = median(runs)
        times = f"{ratio(runs, base):.1f}" if base else ""
        lines.append(
            f"| {name} | {one.pages:,.0f} | {one.rate:,.0f} | {times} | {one.cpu_ms:.2f}"
            f" | {one.main_ms:.2f} | {one.peak_mb:.0f} | {one.seconds:.1f} |"
        )
    return lines


def features(peers: Sequence[Peer]) -> list[str]:
    """What each does and does not, as a Markdown table."""
    lines = [
        "| crawler | which links it takes | stores | index | politeness | goes on after a stop"
        " | remark |",
        "|---|---|---|---|---|---|---|",
    ]
    for peer in peers:
        answers = (peer.links, peer.stores, peer.index, peer.polite, peer.restart, peer.remark)
        lines.append(f"| {peer.name} | " + " | ".join(answer or "-" for answer in answers) + " |")
    return lines


def machine() -> str:
    return (
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()},"
        f" Scrapy {version('scrapy')}"
    )


def write(folder: Path, site: str, peers: Sequence[Peer], first: Found, whole: Found) -> None:
    """Print the tables, and write them with the charts into ``folder``. ``first`` is empty, or
    compares all over the first pages."""
    compared = first or whole
    rounds = len(next(iter(compared.values())))
    parts = [
        "# larmspider beside other crawlers",
        _WHAT.format(rounds=rounds, machine=machine(), site=site),
    ]
    title = f"the whole of {site}"
    if first:
        title = f"the first {median(next(iter(first.values()))).pages:,.0f} pages of {site}"
        parts += [f"## {title.capitalize()}\n", "\n".join(table(first)) + "\n"]
    parts += [
        "## The whole site, with start and end\n",
        "\n".join(table(whole)) + "\n",
        "## What they do\n",
        "\n".join(features(peers)) + "\n",
    ]
    print("\n".join(parts), flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.md").write_text("\n".join(parts))
    data: dict[str, Any] = {"site": site, "machine": machine()}
    for part, found in (("first", first), ("whole", whole)):
        data[part] = {name: [asdict(one) for one in runs] for name, runs in found.items()}
    (folder / "results.json").write_text(json.dumps(data, indent=1) + "\n")
    try:
        plot(compared, folder / "results", title)
    except ImportError:
        print("no chart: matplotlib is not installed (pip install -e '.[bench]')")


def plot(found: Found, path: Path, title: str) -> None:
    """Bars for pages/s and CPU a page, logarithmic, as ``path``.png and .svg."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    rows = sorted(((name, median(runs)) for name, runs in found.items()), key=lambda r: r[1].rate)
    names = [name for name, _ in rows]
    colours = ["#c44e52" if name.startswith(OURS) else "#8c8c8c" for name in names]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 0.6 + 0.45 * len(rows)), sharey=True)
    for axes, label, values in (
        (left, "pages a second", [one.rate for _, one in rows]),
        (right, "CPU milliseconds a page, all threads", [one.cpu_ms for _, one in rows]),
    ):
        bars = axes.barh(names, values, color=colours)
        axes.set_xscale("log")
        axes.set_xlabel(f"{label} (logarithmic)")
        labels = [f"{value:,.0f}" if value >= 20 else f"{value:.2f}" for value in values]
        axes.bar_label(bars, labels=labels, padding=3)
        axes.margins(x=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, fontsize=11)
    figure.tight_layout()
    for kind in ("png", "svg"):
        figure.savefig(path.with_suffix(f".{kind}"), dpi=100)
