"""The last failed fetches of all crawls, from the ends of their fetch logs.

for one in failures([("wiki", directory)]):
    print(one.crawl, one.fetch.time, one.fetch.url, one.fetch.result)
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from larmspider.crawl.log_index.update import is_failure
from larmspider.crawl.reader import LoggedFetch, fetch_of
from larmspider.crawl.worker_dirs import open_crawl
from larmspider.errors import LarmspiderError
from larmspider.reports.documents import last_fetches

MAX_ROWS = 200
FETCHES = 500
"""The last fetches of each crawl that are read; 2 ms."""
SECONDS = 2.0
"""Seconds to read all crawls. Crawls that are not read by then are named."""


@dataclass(frozen=True, slots=True)
class Failure:
    crawl: str
    fetch: LoggedFetch


@dataclass(frozen=True, slots=True)
class Failures:
    """The newest first. ``left_out`` names crawls that time did not reach."""

    rows: list[Failure]
    left_out: list[str]


def failures(crawls: Iterable[tuple[str, Path]]) -> Failures:
    """The failed fetches among the last fetches of each crawl."""
    end, found, left_out = time.monotonic() + SECONDS, list[Failure](), list[str]()
    for name, directory in crawls:
        if time.monotonic() > end:
            left_out.append(name)
            continue
        try:
            rows = islice(last_fetches(open_crawl(directory), b""), FETCHES)
            fetches = [fetch_of(fields) for fields in rows]
        except (LarmspiderError, OSError):
            continue  # it has not begun
        found += [Failure(name, one) for one in fetches if is_failure(one.result)]
    found.sort(key=lambda one: one.fetch.time, reverse=True)
    return Failures(found[:MAX_ROWS], left_out)
