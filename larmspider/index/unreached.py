"""Which pages of an index were not reached at their last visit, and since when.

A missing page stays in the search until its loss is confirmed (learned/deletes/table.py).
Meanwhile the search shows it as not reached, after others. The file ``unreached`` beside the
index has such pages by key, and hosts that do not answer, by origin::

    found = Unreached.read(Path("crawl/index"))
    found.since("http://wiki.example/old")         # seconds since the epoch, None: it was reached

    log = UnreachedLog(Path("crawl/index"))
    log.missed("http://wiki.example/old", "missing", at=1.9e9)
    log.reached("http://wiki.example/old")         # at the next visit
    log.write()

A crash may take back a visit that was written. The next visit then writes it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import NamedTuple, Self

import msgpack
import tantivy
from tantivy import Occur, Query

from larmspider.files import replace_file
from larmspider.index.queries import kind_of
from larmspider.items import split_part

NAME = "unreached"
UNREACHED_FACTOR = 0.3
"""Share of its score that counts for a page that was not reached."""
GONE = frozenset({"missing", "gone", "soft-404", "moved", "moved-to-one", "robots", "denied"})
"""Outcomes (Kept.kind) after which a page counts as not reached after one visit. Other failures
count if they last for LASTING_SECS, because a server may be out of order for an hour."""
LASTING_SECS = 64_800.0  # two nightly runs may be less than a day apart


@dataclass(frozen=True, slots=True)
class Unreached:
    """Since when ``pages``, by key, and all pages of ``hosts``, by origin, were not reached."""

    pages: Mapping[str, float] = field(default_factory=dict)
    hosts: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, directory: Path) -> Self:
        """The marks of the index in ``directory``; empty if they cannot be read."""
        visits, hosts = _read(directory) or ({}, {})
        return cls({key: one.since for key, one in visits.items() if one.counts}, hosts)

    def __bool__(self) -> bool:
        return bool(self.pages or self.hosts)

    def __or__(self, other: Unreached) -> Unreached:
        """The marks of two workers of one crawl."""
        return Unreached({**self.pages, **other.pages}, {**self.hosts, **other.hosts})

    def since(self, key: str) -> float | None:
        """The time since which a page, or a part of a page, was not reached; None if it was
        reached."""
        page = split_part(key)[0]
        found = self.pages.get(key, self.pages.get(page, inf))
        found = min(found, self.hosts.get(origin_of(page), inf)) if self.hosts else found
        return None if found == inf else found

    def query(self, schema: tantivy.Schema) -> Query | None:
        """A query for all pages that were not reached, without a score; None if there are none."""
        kind, found = kind_of(schema), list[Query]()
        if self.pages:
            keys = list(self.pages)
            found += [kind.term_set_query(schema, name, keys) for name in ("key", "container")]
        found += [
            kind.regex_query(schema, "key", f"{_escaped(origin)}/.*") for origin in self.hosts
        ]
        if not found:
            return None
        either = kind.boolean_query([(Occur.Should, query) for query in found])
        return kind.const_score_query(either, 0.0)


ALL_REACHED = Unreached()


class _Mark(NamedTuple):
    """The first and the last visit of a row of visits that did not reach a page. ``sure``: one of
    these visits ended in one of `GONE`."""

    since: float
    last: float
    sure: bool

    @property
    def counts(self) -> bool:
        return self.sure or self.last - self.since >= LASTING_SECS


class UnreachedLog:
    """The one writer of the marks of an index. Its methods belong to one thread, but `write`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        found = _read(directory)
        self.is_new = found is None
        """Whether the index has no readable marks. Then add the marks that the frontier knows."""
        self._pages, self._hosts = found or ({}, {})
        self._changed = self.is_new

    @property
    def keys(self) -> list[str]:
        """The pages that were not reached."""
        return list(self._pages)

    def missed(self, key: str, outcome: str, at: float, since: float = inf) -> None:
        """Note that a visit at this time did not reach the page, with this ``outcome`` (Kept.kind).
        ``since``: the time of the first visit with this outcome, if it is known."""
        before = self._pages.get(key)
        first = min(at, since if before is None else before.since)  # the clock may be set back
        sure = outcome in GONE or (before is not None and before.sure)
        self._pages[key] = _Mark(first, at, sure)
        self._changed = True

    def reached(self, key: str) -> None:
        """A page was reached, or has left the index."""
        if self._pages.pop(key, None) is not None:
            self._changed = True

    def set_hosts(self, hosts: Mapping[str, float]) -> None:
        """Origins of the hosts that do not answer, all of them, and since when."""
        if hosts != self._hosts:
            self._hosts, self._changed = dict(hosts), True

    def write(self) -> None:
        """Write the marks if they changed; they are on the disk when this returns. Raises
        OSError."""
        if self._changed:
            self._changed = False
            _write(self._directory, self._pages.copy(), self._hosts)


def carry_over(
    sources: Iterable[Path], target: Path, keep: Callable[[int, str], bool] = lambda _at, _key: True
) -> None:
    """Give the index in ``target`` the marks of others, if ``keep`` accepts the number of the index
    and the page. Raises OSError."""
    pages, hosts, is_known = dict[str, _Mark](), dict[str, float](), False
    for number, source in enumerate(sources):
        if (found := _read(source)) is not None:
            is_known = True
            pages |= {key: mark for key, mark in found[0].items() if keep(number, key)}
            hosts |= found[1]
    if is_known:
        _write(target, pages, hosts)


def origin_of(url: str) -> str:
    """``http://wiki.example:8080`` for a URL of it."""
    scheme, mark, rest = url.partition("://")
    return scheme + mark + rest.partition("/")[0]


def _write(directory: Path, pages: Mapping[str, _Mark], hosts: Mapping[str, float]) -> None:
    record = {"pages": pages, "hosts": hosts}
    replace_file(directory / NAME, msgpack.packb(record, unicode_errors="replace"))


def is_damaged(directory: Path) -> bool:
    """Whether the index in ``directory`` has marks that cannot be read."""
    return (directory / NAME).exists() and _read(directory) is None


def _read(directory: Path) -> tuple[dict[str, _Mark], dict[str, float]] | None:
    """The content of the file; None if it is missing or damaged."""
    try:
        found = msgpack.unpackb((directory / NAME).read_bytes())
        pages = {
            str(key): _Mark(float(since), float(last), bool(sure))
            for key, (since, last, sure) in found["pages"].items()
        }
        return pages, {str(origin): float(since) for origin, since in found["hosts"].items()}
    except (OSError, ValueError, TypeError, LookupError, AttributeError, msgpack.UnpackException):
        return None


def _escaped(text: str) -> str:
    """The text, escaped for Tantivy's regular expressions."""
    return "".join(f"\\{one}" if not (one.isalnum() or one in "_:/-") else one for one in text)
