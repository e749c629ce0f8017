"""What a crawl has counted over all its runs, kept in LARM_DIR/totals.json at each checkpoint.

Scrapy's stats begin at 0 with each run. A crash loses what was counted since the last checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from larmspider import stats
from larmspider.files import replace_file

TOTALS_FILE = "totals.json"
_NO_SUMS = (
    stats.FRONTIER.partition("{")[0],
    stats.LEFT.partition("{")[0],
    stats.FOLLOW_HOSTS,
    stats.PAGE_FILES_FILES,
    stats.BROKEN,
)


@dataclass(frozen=True, slots=True)
class Totals:
    """``counters`` by stats key."""

    runs: int = 0
    counters: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Those of the directory; empty where there is no such file, or one that cannot be read."""
        try:
            found = json.loads((directory / TOTALS_FILE).read_text("utf-8"))
            counters = {str(key): int(value) for key, value in found["counters"].items()}
            return cls(int(found["runs"]), counters)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls()

    def with_run(self, counters: Mapping[str, Any]) -> Totals:
        """These and the stats of one more run."""
        summed = dict(self.counters)
        for key, value in counters.items():
            if stats.is_ours(key) and isinstance(value, int) and not key.startswith(_NO_SUMS):
                summed[key] = summed.get(key, 0) + value
        return Totals(self.runs + 1, summed)

    @classmethod
    def together(cls, found: Iterable[Totals]) -> Totals:
        """The sums of workers that run side by side."""
        workers, summed = list(found), cls()
        for totals in workers:
            summed = summed.with_run(totals.counters)
        return cls(max((totals.runs for totals in workers), default=0), summed.counters)

    def write(self, directory: Path) -> None:
        """Replace the file of the directory at once. Raises OSError."""
        content = json.dumps({"runs": self.runs, "counters": dict(self.counters)})
        replace_file(directory / TOTALS_FILE, content.encode())

    def matching(self, template: str) -> dict[str, int]:
        """The counters of a key of stats.py with one part that varies, by that part, largest first.

        >>> totals.matching(stats.FILTER_REJECTED)
        {'visited': 812, 'scope': 77}
        """
        before, after = template[: template.index("{")], template[template.index("}") + 1 :]
        found = {}
        for key, value in self.counters.items():
            part = key[len(before) : len(key) - len(after)]
            if key.startswith(before) and key.endswith(after) and part and "/" not in part:
                found[part] = value
        return dict(sorted(found.items(), key=lambda item: -item[1]))
