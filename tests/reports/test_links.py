"""CSV, and the picture of hosts."""

from __future__ import annotations

import csv
import io
from itertools import combinations
from math import hypot

from larmspider.reports.links import HEIGHT, HOSTS, WIDTH, host_graph, to_csv


def test_csv_shows_what_it_holds() -> None:
    """Characters that turn or hide text are escapes."""
    assert to_csv(("a",), [("x\u202efdp.exe",), ("a\u200bb\ufeff",)]) == (
        "a\r\nx\\u202efdp.exe\r\na\\u200bb\\ufeff\r\n"
    )


def test_quotes_and_commas_survive() -> None:
    """RFC 4180."""
    text = to_csv(("a", "b"), [('say "x", y', 3), ("two\nlines", -1)])
    assert list(csv.reader(io.StringIO(text))) == [
        ["a", "b"], ['say "x", y', "3"], ["two\nlines", "-1"]
    ]  # fmt: skip


# The picture of hosts: hosts that link each other are near, none lies outside or on another.


LINKS = {f"h{n}:80": 1000 - n for n in range(60)}


def test_the_hosts_with_most_links_are_drawn_apart() -> None:
    """Inside the picture; all that link all do not fall into one point."""
    edges = {(a, b): 500 for a in LINKS for b in LINKS}
    graph = host_graph(LINKS, edges)
    assert [node.host for node in graph.nodes] == [f"h{n}:80" for n in range(HOSTS)]
    assert graph.hosts == 60
    assert len(graph.edges) == HOSTS * (HOSTS - 1) // 2
    assert all(0 < node.x < WIDTH and 0 < node.y < HEIGHT for node in graph.nodes)
    nearest = min(hypot(a.x - b.x, a.y - b.y) for a, b in combinations(graph.nodes, 2))
    assert nearest > 30
    assert graph == host_graph(LINKS, edges)


def test_hosts_that_link_each_other_are_nearer() -> None:
    """Two circles of five, and one link between them."""
    links = {f"{side}{n}": 10 for side in "ab" for n in range(5)}
    edges = {(a, b): 50 for a in links for b in links if a != b and a[0] == b[0]}
    graph = host_graph(links, edges | {("a0", "b0"): 1})
    at = {node.host: (node.x, node.y) for node in graph.nodes}

    def mean(pairs: list[tuple[str, str]]) -> float:
        return sum(
            hypot(at[a][0] - at[b][0], at[a][1] - at[b][1]) for a, b in pairs
        ) / len(pairs)  # fmt: skip

    pairs = list(combinations(sorted(links), 2))
    inside = mean([pair for pair in pairs if pair[0][0] == pair[1][0]])
    assert inside < mean([pair for pair in pairs if pair[0][0] != pair[1][0]]) / 1.3


def test_one_host_or_none() -> None:
    """In the middle."""
    assert host_graph({}, {}).nodes == []
    (node,) = host_graph({"h:80": 3}, {("h:80", "h:80"): 3}).nodes
    assert (node.x, node.y) == (WIDTH / 2, HEIGHT / 2)
