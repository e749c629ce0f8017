"""Pages that are gone or differ, and wait for the operator: their lists, shown and approved.

    lists = waiting_lists(frontier)                     # {"wiki:80": [Row, ...], "scope": [...]}
    remember_shown(crawl.path, lists)
    approve(parts, "wiki:80", lists, crawl.path)        # ConfigError where the list has changed

An approval is a file in LARM_DIR, which the next run, or the one that is under way, takes up: it
visits each page of the list once more, and takes out those that are still gone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from larmspider.errors import ConfigError
from larmspider.files import replace_file
from larmspider.formatting import counted
from larmspider.frontier.delete_gate import (
    SCOPE,
    UNDECIDED_SECS,
    Waiting,
    digest_of,
    listed_as,
    note_of,
    undecided_note_of,
    waiting_of,
)
from larmspider.frontier.deletes import DAY, DEAD_SECS, Observation
from larmspider.frontier.hosts import unpack_host
from larmspider.frontier.moves import HostMove, move_of, note_of_move
from larmspider.frontier.storage.records import Counts

SHOWN, APPROVED = "deletes-shown.json", "deletes-approved.json"
"""Files in LARM_DIR."""
MOVE_SHOWN_SECS = 30 * DAY
"""A host that has moved is listed for that long after its last page has left."""


class _Frontier(Protocol):
    """What is asked of a frontier's reader, of one directory or of many workers."""

    def hosts(self) -> Mapping[str, tuple[bytes, Counts]]: ...

    def note(self, name: str) -> bytes | None: ...


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


def dead_hosts(frontier: _Frontier, now: float, after: float = DEAD_SECS) -> list[DeadHost]:
    """Those with pages that have not answered for so long, the longest silent first."""
    found = [
        DeadHost(name, unpack_host(packed).silent_since, counts.stored)
        for name, (packed, counts) in frontier.hosts().items()
        if packed and counts.stored
    ]
    dead = (one for one in found if one.since and now - one.since >= after)
    return sorted(dead, key=lambda one: one.since)


def silent_hosts(frontier: _Frontier, now: float) -> list[DeadHost]:
    """Those with pages that have not answered for UNDECIDED_SECS."""
    return dead_hosts(frontier, now, UNDECIDED_SECS)


def moved_hosts(frontier: _Frontier, now: float) -> list[HostMove]:
    """Hosts that have moved as a whole, the last one first; not those that are back since."""
    found = {}
    for host, (_, counts) in frontier.hosts().items():
        move = move_of(frontier.note(note_of_move(host)))
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


def waiting_lists(frontier: _Frontier, now: float | None = None) -> dict[str, list[Row]]:
    """By host, and under SCOPE those of all hosts that are out of scope; empty ones are left
    out. With the pages whose removal was not decided for long."""
    found: dict[str, list[Row]] = {}
    now = time.time() if now is None else now
    for host in sorted(frontier.hosts()):
        waiting = waiting_of(frontier.note(note_of(host)))
        for key, page in waiting_of(frontier.note(undecided_note_of(host))).items():
            if key not in waiting and page.is_listed(now):
                waiting[key] = _explained(page, now)
        for name in (host, SCOPE):
            for key in listed_as(name, host, waiting):
                found.setdefault(name, []).append(Row(host, key, waiting[key]))
    return found


def _explained(page: Waiting, now: float) -> Waiting:
    """An undecided page with why it stays."""
    days = counted(int((now - page.since) // DAY), "day")
    return replace(page, why=f"not decided for {days}: {why_it_stays(page)}")


def why_it_stays(page: Waiting) -> str:
    """Why an undecided page stays, in words."""
    return _STAYS.get(page.seen) or page.why or page.reason or "its next visits decide"


_STAYS: Mapping[str, str] = {
    Observation.FAILED: "an error or no answer never takes a page out by itself",
    Observation.LOCKED: "401 and 403 never take a page out by themselves",
    Observation.LOGIN: "a login form never takes a page out by itself",
    Observation.EMPTY: "an empty answer never takes a page out by itself",
}


def digests(lists: Mapping[str, Sequence[Row]]) -> dict[str, str]:
    """A digest of each list: of its pages, and of the last observation of each."""
    return {
        name: digest_of(row.key + row.page.seen.encode() for row in rows)
        for name, rows in lists.items()
    }


def remember_shown(path: Path, lists: Mapping[str, Sequence[Row]]) -> None:
    """The lists as somebody sees them now. A directory that cannot be written keeps nothing."""
    with suppress(OSError):
        replace_file(path / SHOWN, json.dumps(digests(lists)).encode())


def approve(
    parts: Sequence[Path], name: str, lists: Mapping[str, Sequence[Row]], shown: str | None
) -> str:
    """Approve a list, in the directories of all workers; what was done, in a sentence. ``shown``:
    the digest of the list as somebody has seen it, None where nobody has.

    Raises ConfigError for a name that has no list, and where the list is not as it was shown.
    """
    if name not in lists:
        names = ", ".join(lists) or "none waits"
        raise ConfigError(f"--approve {name}: expected one of the lists that wait: {names}")
    rows = lists[name]
    if shown is None:
        raise ConfigError(f"the list of {name} was not shown yet: see scrapy deletes first")
    if shown != digests({name: rows})[name]:
        raise ConfigError(
            f"the list of {name} has changed since it was shown: see scrapy deletes again"
        )
    for path in parts:
        approved = approved_in(path)
        for row in rows:
            approved.setdefault(row.host, {})[row.key] = row.page.since
        write_approved(path, approved)
    return (
        f"{counted(len(rows), 'page')} of {name} approved: the next refresh visits each once more,"
        " and takes out those that are still gone"
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
    """The keys that are approved, by host, and since when their pages wait: one that comes back,
    and is gone again, has to be approved anew. 0.0 in a file of an earlier version."""
    try:
        found = json.loads((path / APPROVED).read_bytes())
        rows = {
            host: keys if isinstance(keys, dict) else dict.fromkeys(keys, 0.0)
            for host, keys in found.items()
        }
        return {
            host: {bytes.fromhex(key): float(since) for key, since in keys.items()}
            for host, keys in rows.items()
        }
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def write_approved(path: Path, approved: Mapping[str, Mapping[bytes, float]]) -> None:
    """No file where nothing is approved."""
    found = {
        host: {key.hex(): keys[key] for key in sorted(keys)}
        for host, keys in approved.items()
        if keys
    }
    if found:
        replace_file(path / APPROVED, json.dumps(found).encode())
    else:
        (path / APPROVED).unlink(missing_ok=True)
