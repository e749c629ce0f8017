"""What a correct crawl of the demo intranet stores and refuses: expected.toml with a date put in.

    expected = load(date(2026, 11, 20))
    expected.stored["/wiki/"].title                      # "Wiki"
    expected.refused["/private/"]                        # "robots"
    expected.differences([("/", 200), ("/Wiki/", 404)])  # what is missing or wrong, in words

The calendar's part of it depends on the day, so that expected.toml states it as a rule.
"""

from __future__ import annotations

import tomllib
from calendar import month_name
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from examples.intranet.generated import month_after

EXPECTED = Path(__file__).with_name("expected.toml")


@dataclass(frozen=True, slots=True)
class Stored:
    """A page that is stored; the fields are those of expected.toml, ``title`` None where no title
    is to be compared."""

    status: int = 200
    mime: str = "text/html"
    title: str | None = None
    spellings: tuple[str, ...] = ()
    to: str | None = None
    noindex: bool = False


@dataclass(frozen=True, slots=True)
class Expected:
    """``stored`` by path, ``refused`` by link (a path, or a URL elsewhere) with the filter's name,
    ``searches`` by query with the paths that must be found."""

    stored: dict[str, Stored]
    refused: dict[str, str]
    searches: dict[str, tuple[str, ...]]

    def path_of(self, path: str) -> str | None:
        """The key in ``stored`` of ``path`` or of what it is a spelling of, None where none."""
        if path in self.stored:
            return path
        for key, page in self.stored.items():
            if path in page.spellings:
                return key
        return None

    def refused_by(self, link: str) -> str | None:
        """The name of the filter that refuses ``link``, None where none is to."""
        if link in self.refused:
            return self.refused[link]
        for key, name in self.refused.items():
            if key.endswith("*") and link.startswith(key[:-1]):
                return name
        return None

    def differences(self, fetched: Iterable[tuple[str, int]]) -> list[str]:
        """One line for each page that ``fetched`` (path and status) misses, has twice, has with
        another status or should not have. Empty for a correct crawl."""
        found: dict[str, int] = {}
        lines = []
        for path, status in fetched:
            key = self.path_of(path)
            if key is None:
                lines.append(f"not expected: {path} ({status})")
            elif key in found:
                lines.append(f"stored twice: {key}, again as {path}")
            else:
                found[key] = status
                if status != self.stored[key].status:
                    lines.append(f"status {status} instead of {self.stored[key].status}: {path}")
        return lines + [f"missing: {path}" for path in self.stored if path not in found]


def load(
    today: date | None = None, horizon: int | None = None, obey_nofollow: bool = True
) -> Expected:
    """What is expected of a crawl on ``today`` with LARM_CALENDAR_HORIZON_MONTHS=``horizon``.

    ``obey_nofollow`` says whether the filter "nofollow" is in the chain.
    """
    text = tomllib.loads(EXPECTED.read_text("utf-8"))
    stored = {path: _stored(fields) for path, fields in text["stored"].items()}
    refused = dict(text["refused"])
    for path, fields in text["nofollow"].items():
        if obey_nofollow:
            refused[path] = "nofollow"
        else:
            stored[path] = _stored(fields)
    _add_calendar(text["calendar"], today or date.today(), horizon, stored, refused)
    return Expected(stored, refused, {q: tuple(paths) for q, paths in text["searches"].items()})


def _stored(fields: dict[str, Any]) -> Stored:
    return Stored(**{**fields, "spellings": tuple(fields.get("spellings", ()))})


def _add_calendar(
    rule: dict[str, Any],
    today: date,
    horizon: int | None,
    stored: dict[str, Stored],
    refused: dict[str, str],
) -> None:
    """From each stored month there is one link to the next, and one that jumps ``ahead``."""
    last = rule["horizon_months"] if horizon is None else horizon
    reached = {(rule["next"]["path"], 0)}
    waiting = list(reached)
    while waiting:
        pattern, distance = waiting.pop()
        month = month_after(today, distance)
        path = pattern.format(month=f"{month:%Y-%m}")
        if abs(distance) > last:
            refused[path] = rule["filter"]
            continue
        title = rule["title"].format(name=month_name[month.month], year=month.year)
        stored[path] = Stored(title=title)
        for link in (rule["next"], rule["jump"]):
            target = (link["path"], distance + link["ahead"])
            if target not in reached:
                reached.add(target)
                waiting.append(target)
