"""What the workers of a crawl have done, each and together, read from their directories.

atlas-1    1,204 pages stored, 31 refused, 2 failed
atlas-2    1,187 pages stored, 12 refused, 0 failed
in all     2,391 pages stored, 43 refused, 2 failed, in /home/me/crawl over all runs

A worker's line is what it has done itself, over all runs, as its directory has it; "in all" is the
sum, in which a page counts twice that two workers have fetched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from larmspider.crawl.worker_dirs import CrawlShards
from larmspider.formatting import counted
from larmspider.frontier.storage.records import UrlState


@dataclass(frozen=True, slots=True)
class Outcome:
    """URLs by how they ended, of the whole crawl, by worker; ``left`` are queued yet, None where
    that is not known."""

    root: Path
    workers: dict[str, Counter[UrlState]]
    left: int | None = None

    @classmethod
    def of(cls, crawl: CrawlShards) -> Self:
        """Reads every record: a second for 300,000."""
        found = {}
        for shard in crawl.shards:
            with shard.frontier() as frontier:
                visits = () if frontier is None else frontier.visits()
                found[shard.path.name] = Counter(visit.state for _, visit in visits)
        with crawl.frontier() as frontier:
            counts = None if frontier is None else frontier.counts()
        return cls(crawl.path, found, None if crawl.remark or counts is None else counts.queued)

    @property
    def total(self) -> Counter[UrlState]:
        return sum(self.workers.values(), Counter())

    def lines(self) -> Iterator[str]:
        """For the end of a crawl."""
        width = max(9, *map(len, self.workers), 0)
        for name, counts in sorted(self.workers.items()):
            yield f"{name:<{width}} {_listed(counts)}"
        left = f"; {self.left:,} left for the same command to go on with" if self.left else ""
        yield f"{'in all':<{width}} {_listed(self.total)}, in {self.root} over all runs{left}"


def _listed(counts: Counter[UrlState]) -> str:
    states = (UrlState.STORED, UrlState.REFUSED, UrlState.FAILED)
    stored, refused, failed = (counts[state] for state in states)
    return f"{counted(stored, 'page')} stored, {refused:,} refused, {failed:,} failed"
