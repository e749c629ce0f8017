"""A robots.txt as it was read, line by line: which lines are for us, and which one decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from larmspider.frontier.robots import RobotsRules, lines_of

SHOWN = 400
"""Lines; of longer files those that are for us, and the first others."""
WIDEST = 300


@dataclass(frozen=True, slots=True)
class RobotsLine:
    """``ours``: it names us, or is a rule for us. ``decides`` about the URL that was asked for."""

    number: int
    text: str
    ours: bool
    decides: bool


@dataclass(frozen=True, slots=True)
class RobotsText:
    """``left_out`` lines are not among ``lines``. ``allowed`` is None where no URL was given."""

    lines: Sequence[RobotsLine]
    left_out: int
    size: int
    crawl_delay: float | None
    allowed: bool | None


def robots_text(body: bytes, user_agent: str, url: str = "") -> RobotsText:
    """``user_agent`` as RobotsRules.parse has it; ``url`` "" for none."""
    rules, lines = RobotsRules.parse(body, user_agent), lines_of(body)
    if lines and not lines[-1]:
        lines.pop()
    deciding = rules.deciding_line(url) if url else None
    decides = deciding[0] if deciding else 0
    shown: list[RobotsLine] = []
    others = 0
    for number, text in enumerate(lines, 1):
        ours = number in rules.lines
        if not ours and number != decides:
            others += 1
            if others > SHOWN:
                continue
        if len(shown) < 2 * SHOWN or number == decides:
            cut = text if len(text) <= WIDEST else f"{text[:WIDEST]} …"
            shown.append(RobotsLine(number, cut, ours, number == decides))
    allowed = rules.allowed(url) if url else None
    return RobotsText(shown, len(lines) - len(shown), len(body), rules.crawl_delay, allowed)
