"""Settings of single hosts, by pattern: the old wiki gets one request in ten seconds, at night.

    [HostRule("wiki*", delay=10.0, window=(22, 6)), HostRule("*.lab.example:8080", connections=4)]

For each field the first rule that matches and sets it holds; what none sets is the general setting.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from larmspider.errors import ConfigError

_PATTERN = re.compile(r"[^\x00-\x20\x7f-\U0010ffff/\\@#%]+")
_WILD = {"*": ".*", "?": "."}


@dataclass(frozen=True, slots=True)
class HostRule:
    """``pattern`` is for ``host:port`` or the host alone, in any case: ``*`` stands for any
    characters, ``?`` for one. None: not set here.

    ``delay`` in seconds, ``connections`` at a time, ``budget`` in stored pages, ``window`` from and
    to in hours of the local day (0..24; (22, 6) passes midnight). ConfigError for a bad value.
    """

    pattern: str = "*"
    delay: float | None = None
    connections: int | None = None
    budget: int | None = None
    window: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        bad = None
        if not _PATTERN.fullmatch(self.pattern):
            bad = (
                "it matches no host: host and host:port are accepted, with * and ?"
                " (punycode for other letters)"
            )
        elif self.delay is not None and not _is_number(self.delay, 0):
            bad = f"delay {self.delay!r} is not accepted: 0 or more seconds are"
        elif self.connections is not None and not _is_whole(self.connections, 1):
            bad = f"connections {self.connections!r} is not accepted: 1 or more are"
        elif self.budget is not None and not _is_whole(self.budget, 0):
            bad = f"budget {self.budget!r} is not accepted: 0 or more pages are"
        elif self.window is not None and not _is_window(self.window):
            bad = f"window {self.window!r} is not accepted: two hours, 0 to 24, that differ, are"
        if bad:
            raise ConfigError(f"rule for host {self.pattern!r}: {bad}")

    def matches(self, host: str) -> bool:
        """``wiki`` and ``wiki:80`` both match wiki:80."""
        matches = _matcher(self.pattern)
        return bool(matches(host) or matches(host.rpartition(":")[0]))

    def opens(self, now: float, hour_of: Callable[[float], float]) -> float:
        """``now`` inside the window, else the time when it opens next."""
        if self.window is None:
            return now
        start, end = self.window
        hour = hour_of(now)
        inside = start <= hour < end if start <= end else hour >= start or hour < end
        return now if inside else now + (start - hour) % 24 * 3600

    def why_closed(self, at: float, hour_of: Callable[[float], float]) -> str:
        """``outside its hours, 22 to 6``; "" where it is open at that time."""
        if self.window is None or self.opens(at, hour_of) <= at:
            return ""
        return "outside its hours, {:g} to {:g}".format(*self.window)


@lru_cache(maxsize=16_384)
def _matcher(pattern: str) -> Callable[[str], object]:
    parts = [_WILD.get(char) or re.escape(char) for char in pattern]
    return re.compile("".join(parts), re.IGNORECASE).fullmatch


def _is_number(value: object, least: float, most: float = 1e9) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return least <= value <= most


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_window(value: object) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(_is_number(hour, 0, 24) for hour in value)
        and (value[0] % 24 != value[1] % 24 or (value[0], value[1]) == (0, 24))
    )


def local_hour(now: float) -> float:
    """Hour of the local day with its fraction."""
    local = time.localtime(now)
    return local.tm_hour + local.tm_min / 60 + (local.tm_sec + now % 1) / 3600


class HostRules:
    """All rules in order. ``default`` gives what no rule sets."""

    def __init__(self, rules: Sequence[HostRule], default: HostRule) -> None:
        self._rules = (*rules, default)
        self.of = lru_cache(maxsize=16_384)(self._of)

    def _of(self, host: str) -> HostRule:
        found = HostRule()
        for rule in self._rules:
            if rule is self._rules[-1] or rule.matches(host):
                found = replace(
                    found,
                    delay=rule.delay if found.delay is None else found.delay,
                    connections=found.connections or rule.connections,
                    budget=rule.budget if found.budget is None else found.budget,
                    window=found.window or rule.window,
                )
        return found
