"""Which order finds the most-linked pages first?

    python -m benchmarks.orders [--site DIR] [--start PATH] [--plot docs/internals/orders.png]

The link graph of a documentation site on disk is read once; then a crawl of one host, a page at a
time, is played with the frontier itself for each LARM_STRATEGY. Printed is which share of the 100
most-linked pages (by the number of pages that link to them, in the whole graph) is fetched after 1,
5, 10, 25 and 50% of the crawl. The plot needs matplotlib.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlsplit

from larmspider.extraction.pages.html import extract
from larmspider.frontier.hosts import HostPace, HostRules
from larmspider.frontier.politeness import Limits, Politeness
from larmspider.frontier.slots import SlotPool
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.records import FetchRecord, UrlState, url_key
from larmspider.frontier.strategies import LinkTable
from larmspider.learned.factory import STRATEGIES
from larmspider.learned.learning import LearningFrontier

Graph = dict[str, list[str]]
HOST = "http://docs.example"
TOP = 100
SHARES = (0.01, 0.05, 0.10, 0.25, 0.50)


def read_graph(site: Path, start: str) -> Graph:
    """URL -> the distinct pages it links to, of all that can be reached; a page is an HTML file."""
    graph: Graph = {}
    todo = [f"{HOST}/{start}"]
    met = set(todo)
    for url in todo:
        body = (site / unquote(urlsplit(url).path[1:])).read_bytes()
        page = extract(body, url, "text/html; charset=utf-8")
        found = dict.fromkeys(link.url.partition("#")[0].partition("?")[0] for link in page.links)
        graph[url] = [
            link
            for link in found
            if link.startswith(f"{HOST}/")
            and link.endswith(".html")
            and (link in met or (site / unquote(urlsplit(link).path[1:])).is_file())
        ]
        new = [link for link in graph[url] if link not in met]
        met.update(new)
        todo += new
    return graph


def crawl(graph: Graph, start: str, strategy: str, folder: Path, every: int) -> list[str]:
    """The URLs in the order of fetching. Ranks are computed anew after ``every`` pages."""
    backend = LmdbBackend(folder)
    politeness = Politeness(
        Limits(response_factor=0.0),
        HostRules([], HostPace(delay=0.0, connections=1)),
        lambda: 0.5,
    )
    frontier = LearningFrontier(backend, politeness, STRATEGIES[strategy](), SlotPool(1))
    frontier.recover()
    frontier.add([frontier.entry(start, start)])
    order: list[str] = []
    ranked = LinkTable()
    try:
        while (lease := frontier.pop()) is not None:
            assert lease.entry is not None
            url, depth = lease.entry.url, lease.entry.depth
            frontier.answered(lease, 0.0)
            order.append(url)
            links = graph[url]
            known = frontier.known(links)
            frontier.add(
                [
                    frontier.entry(link, link, depth=depth + 1, from_page=url)
                    for link, met in zip(links, known, strict=True)
                    if not met
                ]
            )
            frontier.acknowledge(lease, FetchRecord(UrlState.STORED, time=time.time(), status=200))
            if strategy == "pagerank":
                ranked.add(url_key(url), [url_key(link) for link in links])
                if len(order) % every == 0:
                    frontier.reprioritize(ranked.priorities(ranked.ranks()))
            if frontier.wants_checkpoint:
                frontier.checkpoint({})
    finally:
        backend.close()
    return order


def found(order: list[str], best: set[str]) -> list[float]:
    """After each page, which share of ``best`` is fetched."""
    shares, count = [], 0
    for url in order:
        count += url in best
        shares.append(count / len(best))
    return shares


def plot(curves: dict[str, list[float]], path: Path, title: str) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    for name, curve in curves.items():
        step = max(1, len(curve) // 1000)
        done = [100 * (at + 1) / len(curve) for at in range(0, len(curve), step)]
        axes.plot(done, [100 * share for share in curve[::step]], label=name)
    axes.set_xlabel("% of the pages fetched")
    axes.set_ylabel(f"% of the {TOP} most-linked pages fetched")
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--site", type=Path, default=Path("/usr/share/doc/openjdk-17-doc/api"))
    parser.add_argument("--start", default="index.html", help="a page in the site's folder")
    parser.add_argument(
        "--every", type=int, default=250, help="pages between two rank computations"
    )
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    graph = read_graph(options.site, options.start)
    start = f"{HOST}/{options.start}"
    inlinks = Counter(link for links in graph.values() for link in links)
    best = {url for url, _ in inlinks.most_common(TOP)}
    total = sum(map(len, graph.values()))
    print(
        f"{options.site}: {len(graph):,} pages, {total:,} links; the {TOP} most-linked have", end=""
    )
    print(f" {min(inlinks[url] for url in best):,} to {max(inlinks.values()):,} links each")
    print(f"{'share fetched after':<20}", *(f"{share:>6.0%}" for share in SHARES), "  seconds")
    curves = {}
    for strategy in STRATEGIES:
        with tempfile.TemporaryDirectory(prefix="orders-") as folder:
            began = time.perf_counter()
            order = crawl(graph, start, strategy, Path(folder), options.every)
        assert len(order) == len(graph), "each page once"
        curves[strategy] = found(order, best)
        at = [curves[strategy][max(0, int(share * len(order)) - 1)] for share in SHARES]
        seconds = time.perf_counter() - began
        print(f"{strategy:<20}", *(f"{share:>6.0%}" for share in at), f"{seconds:>9.1f}")
    if options.plot:
        name = f"{options.site.parent.name}: {len(graph):,} pages"
        plot(curves, options.plot, name)


if __name__ == "__main__":
    main()
