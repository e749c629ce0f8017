"""Curves as SVG paths: drawn here, so that they are there without JavaScript too.

>>> curve([0.0, 1.0, 2.0], [0.0, 5.0, 3.0]).path
'M0,100L300,16.7L600,50'
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 600, 100
"""Of the viewBox; it is stretched to its place."""


@dataclass(frozen=True, slots=True)
class Curve:
    """``path`` is the line, ``area`` what lies under it, ``top`` the value at the upper edge."""

    path: str
    area: str
    top: float


def curve(times: Sequence[float], values: Sequence[float]) -> Curve:
    """From the first to the last time, from 0 to a round value above the highest."""
    top = above(max(values, default=0.0))
    if not times:
        return Curve("", "", top)
    first, span = times[0], (times[-1] - times[0]) or 1.0
    places = [
        f"{_short((at - first) / span * WIDTH)},{_short(HEIGHT - value / top * HEIGHT)}"
        for at, value in zip(times, values, strict=True)
    ]
    if len(places) == 1:
        places.append(f"{WIDTH},{places[0].partition(',')[2]}")
    path = "M" + "L".join(places)
    return Curve(path, f"{path}L{WIDTH},{HEIGHT}L0,{HEIGHT}Z", top)


def above(value: float) -> float:
    """The next of 1, 2, 3, 4, 5, 6, 8, 10 times a power of ten."""
    if value <= 0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(n * power for n in (1, 2, 3, 4, 5, 6, 8, 10, 20) if n * power >= value)


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
