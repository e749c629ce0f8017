"""Hosts and the links between them as a picture: places by forces, computed here.

Hosts that link each other pull, all push (Fruchterman and Reingold, "Graph Drawing by
Force-directed Placement", 1991); the first places are on a circle, so the same crawl gives the
same picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import cos, hypot, log, pi, sin, sqrt

from larmspider.formatting import counted

WIDTH, HEIGHT = 1000.0, 640.0
MARGIN = 100.0
"""Left and right, where names stand; a third of it above and below."""
HOSTS = 30
ROUNDS = 150


@dataclass(frozen=True, slots=True)
class Node:
    """``links`` lead to it; ``radius`` in units of the picture."""

    host: str
    links: int
    x: float
    y: float
    radius: float


@dataclass(frozen=True, slots=True)
class Edge:
    """From the first place to the second; ``width`` grows with the logarithm of ``links``."""

    x1: float
    y1: float
    x2: float
    y2: float
    width: float
    links: int
    title: str


@dataclass(frozen=True, slots=True)
class HostGraph:
    """``hosts`` of which the ``nodes`` are those with most links."""

    nodes: Sequence[Node]
    edges: Sequence[Edge]
    hosts: int


def host_graph(links: Mapping[str, int], edges: Mapping[tuple[str, str], int]) -> HostGraph:
    """``links`` to each host; ``edges`` count those from one to another."""
    names = sorted(links, key=lambda name: (-links[name], name))[:HOSTS]
    known = set(names)
    between: dict[tuple[str, str], int] = {}
    for (source, target), count in edges.items():
        if source != target and source in known and target in known:
            pair = (source, target) if source < target else (target, source)
            between[pair] = between.get(pair, 0) + count
    places = _placed(names, between)
    most = max((links[name] for name in names), default=1)
    nodes = [
        Node(name, links[name], *places[name], 5 + 15 * sqrt(links[name] / max(1, most)))
        for name in names
    ]
    drawn = [
        Edge(
            *places[a], *places[b], 0.6 + log(count + 1) / 2, count,
            f"{a} – {b}: {counted(count, 'link')}",
        )
        for (a, b), count in sorted(between.items())
    ]  # fmt: skip
    return HostGraph(nodes, drawn, len(links))


def _placed(
    names: Sequence[str], between: Mapping[tuple[str, str], int]
) -> dict[str, tuple[float, float]]:
    number = max(1, len(names))
    at = {
        name: [WIDTH / 2 + WIDTH / 3 * cos(2 * pi * n / number),
               HEIGHT / 2 + HEIGHT / 3 * sin(2 * pi * n / number)]
        for n, name in enumerate(names)
    }  # fmt: skip
    ideal = 0.8 * sqrt(WIDTH * HEIGHT / number)
    crowd = max(1.0, 2 * len(between) / number)  # where all pull on all, each pulls less
    for turn in range(ROUNDS if len(names) > 1 else 0):
        moves = {name: [0.0, 0.0] for name in names}
        for n, a in enumerate(names):
            for b in names[n + 1 :]:
                pull = -ideal * ideal
                _move(at, moves, a, b, lambda distance, pull=pull: pull / distance)
        for (a, b), count in between.items():
            strength = (0.5 + log(count + 1) / 4) / crowd
            _move(at, moves, a, b, lambda d, strength=strength: strength * d * d / ideal)
        most = WIDTH / 10 * (1 - turn / ROUNDS) + 1
        for name in names:
            _step(at[name], moves[name], most)
    return _filling(at)


def _filling(at: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, float]]:
    """The places, stretched over the whole picture."""
    columns = []
    for axis, (side, margin) in enumerate(((WIDTH, MARGIN), (HEIGHT, MARGIN / 3))):
        values = [place[axis] for place in at.values()]
        low, span = min(values, default=0.0), max(values, default=0.0) - min(values, default=0.0)
        room = side - 2 * margin
        columns.append(
            [round(margin + (v - low) / span * room if span else side / 2, 1) for v in values]
        )
    return dict(zip(at, zip(*columns, strict=True), strict=True))


def _move(at, moves, a, b, force) -> None:  # type: ignore[no-untyped-def]
    dx, dy = at[b][0] - at[a][0], at[b][1] - at[a][1]
    distance = max(1.0, hypot(dx, dy))
    share = force(distance) / distance
    moves[a][0] += dx * share
    moves[a][1] += dy * share
    moves[b][0] -= dx * share
    moves[b][1] -= dy * share


def _step(place: list[float], move: list[float], most: float) -> None:
    length = max(1e-9, hypot(*move))
    part = min(length, most) / length
    place[0] = min(WIDTH, max(0.0, place[0] + move[0] * part))
    place[1] = min(HEIGHT, max(0.0, place[1] + move[1] * part))
