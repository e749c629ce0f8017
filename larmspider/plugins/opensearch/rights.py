"""The access lists of documents in OpenSearch: their slots, and the filter for a reader.

    rights = SentRights(crawl, crawl / "outbox" / "links" / "OpenSearchReceiver")
    rights.follow()
    rights.terms("file:///srv/hr/a.odt")      # ["9c0f41d2", "9c0f41d2:1f", ...]: of a document
    filter_for([(crawl, folder)], access)     # {"bool": ...}: the documents that a reader may see

The lists lie in the table beside our own index (access/table.py), OpenSearch has the numbers of the
slots. The terms of a document begin with a `_State.name`. If the table was made again, its numbers
mean something else: the documents then get another name, and until each is written again, only
operators find it. Documents without a list have the term ``open``. A document without any of these
terms is for operators.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from larmspider.access.table import FOLDERS, AccessTable, terms_of
from larmspider.access.verdicts import Verdicts, covering
from larmspider.files import make_folder, replace_file
from larmspider.index.access import Access
from larmspider.index.schema import FILES
from larmspider.urls.host_pattern import HostPattern

STATE = "slots.json"
OPEN = "open"
MAX_HIDDEN = 1_000
"""Documents that a filter names one by one, as OpenSearch has their former slots. If there are
more, it leaves out all documents of the crawl."""
MAX_TERMS = 60_000
"""Terms of one clause; OpenSearch takes 65,536."""
_SOURCES: dict[str, Any] = {
    "bool": {"should": [{"term": {"domains": FILES}}, {"wildcard": {"host": "*://*"}}]}
}
"""Documents of file systems and connectors, which Access.files decides about."""
_NOTHING: dict[str, Any] = {"match_none": {}}


class _State(Struct, frozen=True):
    """``table`` and ``moves`` of the table, up to which OpenSearch has all slots. ``former`` names
    are of documents that have to be written again."""

    name: str
    table: str
    moves: int
    former: list[str] = []


def _read_state(folder: Path) -> _State | None:
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode((folder / STATE).read_bytes(), type=_State)
    return None


class _Followed(AccessTable):
    """A table with the documents that have moved since a state."""

    def __init__(self, crawl: Path, state: _State | None) -> None:
        self.state = state
        super().__init__(crawl / "index")

    def _clear(self) -> None:
        super()._clear()
        self.since: set[str] = set()
        self.done: set[str] = set()
        self._base = 0

    def _apply(self, change: Sequence[Any]) -> None:
        super()._apply(change)
        if change[0] == "i":
            self._base = self.moves
        elif change[0] in "mw" and (self.state is None or self.moves > self.state.moves):
            self.since.update(change[1])
            self.done.difference_update(change[1])

    @property
    def changed(self) -> set[str]:
        """The documents whose slots may differ from the slots in OpenSearch, without the documents
        in `done`."""
        return (self.since | self.moved) - self.done

    @property
    def is_known(self) -> bool:
        """Whether the state is an earlier one of this very table, and nothing since is missing."""
        state = self.state
        return (
            state is not None and state.table == self.id and self._base <= state.moves <= self.moves
        )


class SentRights:
    """The access lists of a crawl that OpenSearch has. One process at a time uses them."""

    def __init__(self, crawl: Path, folder: Path) -> None:
        self.crawl, self.folder = crawl, folder
        self.table = _Followed(crawl, None)

    def follow(self) -> None:
        """Read what is new; a table that is another one gets another name. Raises CrawlDirError,
        OSError."""
        state = _read_state(self.folder)
        if state != self.table.state:
            self.table = _Followed(self.crawl, state)
        self.table.refresh()
        if self.table.id and not self.table.is_known:
            former = [] if state is None else [*state.former, state.name]
            self._write(secrets.token_hex(4), former)

    def terms(self, name: str) -> list[str]:
        """The terms of a document; none while there is no table."""
        state = self.table.state
        if state is None or not self.table.id:
            return []
        slot = self.table.slot_of(name)
        own = [OPEN] if slot is None else terms_of(slot)
        return [state.name, *(f"{state.name}:{one}" for one in own)]

    @property
    def former(self) -> list[str]:
        return [] if self.table.state is None else self.table.state.former

    @property
    def behind(self) -> int:
        """Documents that have to be written again, and names that documents may still have."""
        return len(self.table.changed) + len(self.former)

    def waiting(self, most: int) -> list[str]:
        """Some of the documents that have moved."""
        return list(islice(sorted(self.table.changed), most))

    def written(self, names: Collection[str]) -> None:
        """Searches have these documents with the slots that they had at the last `follow`."""
        table, state = self.table, self.table.state
        table.done.update(names)
        if state is not None and state.moves != table.moves and not table.since - table.done:
            self._write(state.name, state.former)

    def forget(self, name: str) -> None:
        """No document has this name any more."""
        state = self.table.state
        if state is not None:
            self._write(state.name, [one for one in state.former if one != name], state.moves)

    def _write(self, name: str, former: list[str], moves: int | None = None) -> None:
        """``moves`` None: OpenSearch has all slots of the table."""
        table = self.table
        state = _State(name, table.id, table.moves if moves is None else moves, former)
        make_folder(self.folder)
        replace_file(self.folder / STATE, msgspec.json.encode(state))
        table.state = state
        if moves is None:
            table.since.clear()
            table.done &= table.moved


def filter_for(crawls: Iterable[tuple[Path, Path]], access: Access) -> dict[str, Any]:
    """The part of a query that only documents match that a reader may see. ``crawls``: directories,
    each with the folder of its `SentRights`. Raises CrawlDirError."""
    if access.reader is None:
        seen: dict[str, Any] = {"match_all": {}}
    else:
        found = [_of_crawl(crawl, folder, access) for crawl, folder in crawls]
        seen = {"bool": {"should": found, "minimum_should_match": 1}} if found else _NOTHING
    return {"bool": {"filter": [seen], "must_not": _hidden_hosts(access)}}


def _of_crawl(crawl: Path, folder: Path, access: Access) -> dict[str, Any]:
    """The documents of a crawl whose lists admit the reader."""
    assert access.reader is not None
    state = _read_state(folder)
    table = _Followed(crawl, state)
    table.refresh()
    if state is None or not table.is_known:
        return _NOTHING
    slots = [one for one in table.slots if one < FOLDERS]
    hidden = Verdicts(table).hidden(slots, access.reader)
    changed = sorted(table.changed)
    if len(changed) > MAX_HIDDEN:
        return _NOTHING
    terms = [OPEN, *covering({*slots}.difference(hidden), hidden)]
    named = [f"{state.name}:{one}" for one in terms]
    some = [named[start : start + MAX_TERMS] for start in range(0, len(named), MAX_TERMS)]
    seen = {"should": [{"terms": {"slot": one}} for one in some], "minimum_should_match": 1}
    moving = [{"terms": {field: changed}} for field in ("key", "container")] if changed else []
    return {"bool": {**seen, "must_not": moving}}


def _hidden_hosts(access: Access) -> list[dict[str, Any]]:
    """Queries for documents that their hosts hide, as in `Access.hidden`."""
    restricted, allowed = (
        [one for text in patterns if text != FILES for one in _of_pattern(text, exact=exact)]
        for patterns, exact in ((access.restricted, False), (access.allowed, True))
    )
    found: list[dict[str, Any]] = [] if access.files else [_SOURCES]
    if restricted:
        hosts = {"bool": {"should": restricted, "minimum_should_match": 1}}
        found.append({"bool": {"filter": [hosts], "must_not": [*allowed, _SOURCES]}})
    return found


def _of_pattern(text: str, *, exact: bool) -> list[dict[str, Any]]:
    """Queries for the hosts of a pattern. Unless ``exact``, these may be a few more."""
    host = HostPattern.parse(text).host
    if "*" not in host and "?" not in host:
        return [{"term": {"host": host.strip("[]")}}]
    query: dict[str, Any] = {"wildcard": {"host": host}}
    if exact and host.replace(".", "").replace("*", "").replace("?", "").isdigit():
        # an address matches addresses alone: 10.1.* is not 10.1.example
        return [{"bool": {"filter": [query, {"regexp": {"host": "[0-9.]+"}}]}}]
    return [query]
