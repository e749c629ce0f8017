"""Missing or changed pages that wait for the operator: their lists, shown and approved.

    waits = what_waits(frontier, now)       # lists {"wiki:80": [Row, ...], "scope": [...]} and more
    remember_shown(crawl.path, waits)
    approve(parts, "wiki:80", waits, digest)        # ConfigError if the list has changed

An approval is a file in LARM_DIR. The run under way, or the next one, takes it up: it visits each
page of the list once more, and removes the pages that are still gone. A host without an answer is
asked once more, and all of its pages are removed if it still does not answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from larmspider import program
from larmspider.errors import ConfigError
from larmspider.files import replace_file
from larmspider.formatting import counted
from larmspider.frontier.hosts import unpack_host
from larmspider.frontier.storage.records import Counts, FetchRecord, UrlState, host_of
from larmspider.learned.deletes.moves import HostMove
from larmspider.learned.deletes.notes import (
    SCOPE,
    UNDECIDED_SECS,
    WHOLE_HOST,
    HostDeletes,
    Waiting,
    digest_of,
    listed_as,
    note_of,
)
from larmspider.learned.deletes.table import DAY, DEAD_SECS, Observation
from larmspider.learned.revisits.budget import jumps_in
from larmspider.learned.revisits.revisiting import NOTE

SHOWN, APPROVED = "deletes-shown.json", "deletes-approved.json"
"""Files in LARM_DIR."""
MOVE_SHOWN_SECS = 30 * DAY
"""Seconds for which a moved host is listed after its last page has left."""


class _Frontier(Protocol):
    """The used methods of a frontier's reader, of one directory or of many workers."""

    def hosts(self) -> Mapping[str, tuple[bytes, Counts]]: ...

    def note(self, name: str) -> bytes | None: ...

    def visits(self) -> Iterator[tuple[bytes, FetchRecord]]: ...


@dataclass(frozen=True, slots=True)
class Row:
    """A page that waits."""

    host: str
    key: bytes
    page: Waiting


@dataclass(frozen=True, slots=True)
class DeadHost:
    """A host that has not answered since a time, and how many of its pages are stored."""

    host: str
    since: float
    pages: int
    samples: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The digest of its list. It changes if the host answers, or has more pages."""
        return digest_of([f"{self.host} {self.since:.0f} {self.pages}".encode()])


@dataclass(frozen=True, slots=True)
class Waits:
    """Everything that waits for the operator: ``lists`` of pages by host or SCOPE; ``dead`` hosts,
    whose pages are one list each; and ``moves``, which need no approval."""

    lists: dict[str, list[Row]]
    dead: Sequence[DeadHost] = ()
    moves: Sequence[HostMove] = ()

    @property
    def digests(self) -> dict[str, str]:
        """A digest of each list."""
        return digests(self.lists) | {one.host: one.digest for one in self.dead}


def what_waits(frontier: _Frontier | None, now: float, samples: int = 0) -> Waits:
    """All lists. Pages of dead hosts are in no other list. ``samples``: URLs to read
    for each dead host."""
    if frontier is None:
        return Waits({})
    dead = silent_hosts(frontier, now)
    names = {one.host for one in dead}
    lists = waiting_lists(frontier, now)
    return Waits(
        {name: rows for name, rows in lists.items() if name not in names},
        _with_samples(frontier, dead, samples) if dead and samples else dead,
        moved_hosts(frontier, now),
    )


def _with_samples(frontier: _Frontier, dead: Sequence[DeadHost], number: int) -> list[DeadHost]:
    """Reads records until each host has its samples; 4 us each."""
    found: dict[str, list[str]] = {one.host: [] for one in dead}
    left = {one.host for one in dead}
    for _, visit in frontier.visits():
        urls = found.get(host_of(visit.url))
        if urls is None or len(urls) >= number or visit.state is not UrlState.STORED:
            continue
        urls.append(visit.url)
        if len(urls) == number:
            left.discard(host_of(visit.url))
            if not left:
                break
    return [replace_fields(one, samples=tuple(found[one.host])) for one in dead]


def dead_hosts(frontier: _Frontier, now: float, after: float = DEAD_SECS) -> list[DeadHost]:
    """Hosts with pages that have been silent for ``after`` seconds, the longest silent first."""
    found = [
        DeadHost(name, unpack_host(packed).silent_since, counts.stored)
        for name, (packed, counts) in frontier.hosts().items()
        if packed and counts.stored
    ]
    jumps = jumps_in(frontier.note(NOTE))
    dead = (
        one for one in found if one.since and jumps.now_for(one.since, now) - one.since >= after
    )
    return sorted(dead, key=lambda one: one.since)


def silent_hosts(frontier: _Frontier, now: float) -> list[DeadHost]:
    """Hosts with pages that have been silent for UNDECIDED_SECS."""
    return dead_hosts(frontier, now, UNDECIDED_SECS)


def moved_hosts(frontier: _Frontier, now: float) -> list[HostMove]:
    """Hosts that have moved as a whole and are not back, the last one first."""
    found = {}
    for host, (_, counts) in frontier.hosts().items():
        move = HostDeletes.unpack(frontier.note(note_of(host))).move
        if move is not None and (counts.stored or now - move.since < MOVE_SHOWN_SECS):
            found[host] = move
    return sorted(
        (
            move
            for move in found.values()
            if not (
                (back := found.get(move.to)) and back.to == move.host and back.since > move.since
            )
        ),
        key=lambda move: -move.since,
    )


def waiting_lists(frontier: _Frontier, now: float) -> dict[str, list[Row]]:
    """The waiting pages by host, and under SCOPE the pages of all hosts that are out of scope, with
    the pages whose removal has been undecided for long. Empty lists are left out."""
    found: dict[str, list[Row]] = {}
    jumps = jumps_in(frontier.note(NOTE))
    for host in sorted(frontier.hosts()):
        kept = HostDeletes.unpack(frontier.note(note_of(host)))
        waiting = kept.waiting
        undecided = {
            key: page
            for key, page in kept.undecided.items()
            if key not in waiting and page.is_listed(jumps.now_for(page.since, now))
        }
        times = {page.since for page in undecided.values()}
        longest = max((jumps.now_for(since, now) - since for since in times), default=0.0)
        for key, page in undecided.items():
            waiting[key] = _explained(page, longest)
        for name in (host, SCOPE):
            for key in listed_as(name, host, waiting):
                found.setdefault(name, []).append(Row(host, key, waiting[key]))
    return found


def _explained(page: Waiting, longest: float) -> Waiting:
    """An undecided page with why it stays. ``longest``: the seconds of the page of its host that is
    undecided for longest, so that pages with one reason have one sentence."""
    days = counted(int(longest // DAY), "day")
    return replace(page, why=f"not decided for up to {days}: {why_it_stays(page)}")


def why_it_stays(page: Waiting) -> str:
    """Why an undecided page stays, in words."""
    return _STAYS.get(page.seen) or page.why or page.reason or "its next visits decide"


_STAYS: Mapping[str, str] = {
    Observation.FAILED: "an error or no answer never removes a page by itself",
    Observation.LOCKED: "401 and 403 never remove a page by themselves",
    Observation.LOGIN: "a login form never removes a page by itself",
    Observation.EMPTY: "an empty answer never removes a page by itself",
}


def digests(lists: Mapping[str, Sequence[Row]]) -> dict[str, str]:
    """A digest of each list: of its pages, and of the last observation of each."""
    return {
        name: digest_of(row.key + row.page.seen.encode() for row in rows)
        for name, rows in lists.items()
    }


def remember_shown(path: Path, waits: Waits) -> None:
    """Keep the lists as shown to the operator now. Keeps nothing if the directory is read-only."""
    with suppress(OSError):
        replace_file(path / SHOWN, json.dumps(waits.digests).encode())


def approve(parts: Sequence[Path], name: str, waits: Waits, shown: str | None) -> str:
    """Approve a list, in the directories of all workers. Returns the result as a sentence.
    ``shown``: the digest of the list that the operator saw; None if the operator saw no list.
    Raises ConfigError for a name without a list, and for a list that has changed since it was
    shown.
    """
    known = waits.digests
    if name not in known:
        names = ", ".join(known) or "none waits"
        raise ConfigError(f"--approve {name}: expected one of the lists that wait: {names}")
    if shown is None:
        raise ConfigError(f"the list of {name} was not shown yet: see {program.NAME} deletes first")
    if shown != known[name]:
        raise ConfigError(
            f"the list of {name} has changed since it was shown: see {program.NAME} deletes again"
        )
    rows = waits.lists.get(name, ())
    dead = next((one for one in waits.dead if one.host == name), None)
    for path in parts:
        approved = approved_in(path)
        if dead is not None:
            approved.setdefault(name, {})[WHOLE_HOST] = dead.since
        for row in rows:
            approved.setdefault(row.host, {})[row.key] = row.page.since
        write_approved(path, approved)
    if dead is not None:
        return (
            f"{counted(dead.pages, 'page')} of {name} approved: the next refresh tries the host"
            " once more, and removes the pages if it still does not answer"
        )
    return (
        f"{counted(len(rows), 'page')} of {name} approved: the next refresh visits each once more,"
        " and removes the pages that are still gone"
    )


def shown_in(path: Path) -> dict[str, str]:
    """The digests of the lists that were shown last."""
    try:
        return {
            str(name): str(one) for name, one in json.loads((path / SHOWN).read_bytes()).items()
        }
    except (OSError, ValueError, AttributeError):
        return {}


def approved_in(path: Path) -> dict[str, dict[bytes, float]]:
    """The approved keys, by host, and since when their pages wait: a page that comes back and
    leaves again has to be approved again. WHOLE_HOST stands for all pages of a host that does
    not answer since then."""
    try:
        found = json.loads((path / APPROVED).read_bytes())
        return {
            host: {bytes.fromhex(key): float(since) for key, since in keys.items()}
            for host, keys in found.items()
        }
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def write_approved(path: Path, approved: Mapping[str, Mapping[bytes, float]]) -> None:
    """Write the approvals of a directory. Without approvals the file is removed."""
    found = {
        host: {key.hex(): keys[key] for key in sorted(keys)}
        for host, keys in approved.items()
        if keys
    }
    if found:
        replace_file(path / APPROVED, json.dumps(found).encode())
    else:
        (path / APPROVED).unlink(missing_ok=True)
