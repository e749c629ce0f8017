"""The contract of frontier/backend.py written down as plainly as possible: dicts and sorting.

It is the model that a real backend is compared with, and serves tests that need a frontier but no
disk. "Durable" is a deep copy that lives in a ``Disk`` which outlasts the backend.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from larmspider.frontier.storage.backend import Backend
from larmspider.frontier.storage.records import (
    Counts,
    FetchRecord,
    MergedUrl,
    QueuedUrl,
    Recovery,
    UrlState,
)


@dataclass
class Image:
    """Everything that a commit makes durable."""

    states: dict[bytes, UrlState] = field(default_factory=dict)
    entries: dict[bytes, QueuedUrl] = field(default_factory=dict)
    order: dict[bytes, tuple[int, int]] = field(default_factory=dict)  # priority, serial
    earliest: dict[bytes, float] = field(default_factory=dict)
    inlinks: dict[bytes, int] = field(default_factory=dict)
    visits: dict[bytes, FetchRecord] = field(default_factory=dict)
    again: dict[bytes, float] = field(default_factory=dict)  # leased visits; not durable
    held: dict[bytes, tuple[float, int]] = field(default_factory=dict)  # not durable
    groups: dict[bytes, int] = field(default_factory=dict)  # of held URLs
    owner: dict[bytes, str] = field(default_factory=dict)
    host_records: dict[str, bytes] = field(default_factory=dict)
    notes: dict[str, bytes] = field(default_factory=dict)
    positions: dict[str, bytes] = field(default_factory=dict)
    guesses: dict[bytes, list[bytes]] = field(default_factory=dict)
    merged: dict[bytes, MergedUrl] = field(default_factory=dict)
    serial: int = 0
    committed: bool = False


@dataclass
class Disk:
    image: Image = field(default_factory=Image)


class MemoryBackend(Backend):
    def __init__(self, disk: Disk | None = None) -> None:
        self.disk = disk or Disk()
        self.now = copy.deepcopy(self.disk.image)
        self.frozen: Image | None = None
        self.operations = 0

    def recover(self) -> Recovery:
        leased = [key for key, state in self.now.states.items() if state is UrlState.LEASED]
        for key in leased:
            self.now.states[key] = UrlState.QUEUED
        self.now.again.clear()
        self.now.held.clear()
        return Recovery(self.now.positions, len(leased), not self.now.committed)

    def check(self, keys: Sequence[bytes]) -> list[UrlState]:
        return [self.now.states.get(key, UrlState.UNKNOWN) for key in keys]

    def _serial(self) -> int:
        self.now.serial += 1
        self.operations += 1
        return self.now.serial

    def add(self, entries: Sequence[QueuedUrl]) -> list[bool]:
        added = []
        for entry in entries:
            new = entry.key not in self.now.states
            if new:
                self.now.states[entry.key] = UrlState.QUEUED
                self.now.entries[entry.key] = replace(entry)
                self.now.order[entry.key] = entry.priority, self._serial()
                self.now.inlinks[entry.key] = 1
                self.now.owner[entry.key] = entry.host
                if entry.guess:
                    self.now.guesses.setdefault(entry.guess, []).append(entry.key)
            added.append(new)
        return added

    def _queued(self, host: str) -> list[bytes]:
        return [
            key
            for key, state in self.now.states.items()
            if state is UrlState.QUEUED
            and self.now.owner[key] == host
            and key not in self.now.groups
        ]

    def pop(self, host: str, now: float, limit: int = 1) -> list[QueuedUrl]:
        earliest, order = self.now.earliest, self.now.order
        queued = self._queued(host)
        due = [key for key in queued if key in earliest and earliest[key] <= now]
        due.sort(key=lambda key: (earliest[key], order[key][1]))
        ready = sorted((key for key in queued if key not in earliest), key=order.__getitem__)
        chosen = (due + ready)[:limit]
        for key in chosen:
            self.now.states[key] = UrlState.LEASED
            self.operations += 1
        return [replace(self.now.entries[key]) for key in chosen]

    def next_time(self, host: str) -> float | None:
        return min((self.now.earliest.get(key, 0.0) for key in self._queued(host)), default=None)

    def _leased(self, key: bytes) -> None:
        if self.now.states.get(key) is not UrlState.LEASED:
            raise KeyError(key)

    def acknowledge(self, visits: Sequence[tuple[bytes, FetchRecord]]) -> None:
        for key, visit in visits:
            if self.now.again.pop(key, None) is not None:
                old = self.now.visits[key]
                self._finish(key, visit, self._revisit(key, old))
                continue
            self._leased(key)
            self._finish(key, visit, self.now.entries.pop(key))

    def _finish(self, key: bytes, visit: FetchRecord, entry: QueuedUrl) -> None:
        self.operations += 1
        self.now.states[key] = visit.state
        self.now.visits[key] = replace(
            visit,
            url=entry.url,
            depth=entry.depth,
            from_page=entry.from_page,
            link_type=entry.link_type,
        )
        self.now.owner[key] = entry.host
        self.now.earliest.pop(key, None)

    def release(self, items: Sequence[tuple[bytes, float, int]]) -> None:
        for key, earliest, attempts in items:
            if self.now.again.pop(key, None) is not None:
                if earliest:
                    self.now.held[key] = earliest, attempts
                continue
            self._leased(key)
            self.operations += 1
            self.now.states[key] = UrlState.QUEUED
            self.now.entries[key].attempts = attempts
            self.now.earliest.pop(key, None)
            if earliest > 0:
                self.now.earliest[key] = earliest

    def hold(self, items: Sequence[tuple[bytes, int]]) -> None:
        for key, group in items:
            self.release([(key, 0.0, self.now.entries[key].attempts)])
            self.now.groups[key] = group

    def unhold(self, host: str, group: int | None, limit: int) -> int:
        groups, owner = self.now.groups, self.now.owner
        found = [key for key in groups if owner[key] == host and group in (None, groups[key])][
            :limit
        ]
        for key in found:
            del groups[key]
        return len(found)

    def refuse(self, items: Sequence[tuple[QueuedUrl, str]]) -> None:
        for entry, reason in items:
            state = self.now.states.get(entry.key, UrlState.UNKNOWN)
            if state in (UrlState.UNKNOWN, UrlState.QUEUED):
                waiting = self.now.entries.pop(entry.key, entry)
                self.now.groups.pop(entry.key, None)
                self._finish(entry.key, FetchRecord(UrlState.REFUSED, reason=reason), waiting)

    def reopen(self, entries: Sequence[QueuedUrl]) -> list[bool]:
        reopened = []
        for entry in entries:
            refused = self.now.states.get(entry.key) is UrlState.REFUSED
            refused = refused and entry.key not in self.now.again
            reopened.append(refused)
            if refused:
                links = self.now.inlinks.get(entry.key, 1)
                del self.now.states[entry.key], self.now.visits[entry.key]
                self.add([entry])
                self.now.inlinks[entry.key] = links
        return reopened

    def guessed(self, guesses: Sequence[bytes]) -> list[list[bytes]]:
        return [list(self.now.guesses.get(guess, ())) for guess in guesses]

    def merge(self, items: Sequence[MergedUrl]) -> None:
        for item in items:
            key = item.entry.key
            state = self.now.states.get(key, UrlState.UNKNOWN)
            if state in (UrlState.UNKNOWN, UrlState.LEASED, UrlState.MERGED):
                self.operations += 1
                self.now.entries.pop(key, None)
                self.now.earliest.pop(key, None)
                self.now.states[key], self.now.merged[key] = UrlState.MERGED, item
                self.now.owner[key] = item.entry.host
                self.now.inlinks.setdefault(key, 1)

    def unmerge(self, keys: Sequence[bytes]) -> list[QueuedUrl]:
        queued = []
        for key in keys:
            if (item := self.now.merged.pop(key, None)) is not None:
                self.now.states[key] = UrlState.QUEUED
                self.now.entries[key] = replace(item.entry)
                self.now.order[key] = item.entry.priority, self._serial()
                queued.append(item.entry)
        return queued

    def merged(self, key: bytes) -> MergedUrl | None:
        return self.now.merged.get(key)

    def merged_of(self, host: str, limit: int) -> list[bytes]:
        items = self.now.merged.items()
        return sorted(k for k, item in items if item.entry.host == host and item.rules)[:limit]

    def merged_into(self, key: bytes, limit: int) -> list[bytes]:
        items = self.now.merged.items()
        return sorted(k for k, item in items if item.into == key and item.rules)[:limit]

    def count_links(self, keys: Sequence[bytes]) -> list[int]:
        counted = []
        for key in keys:
            queued = self.now.states.get(key) is UrlState.QUEUED
            if queued:
                self.now.inlinks[key] += 1
            counted.append(self.now.inlinks[key] if queued else 0)
        return counted

    def reprioritize(self, changes: Sequence[tuple[bytes, int]]) -> None:
        for key, priority in changes:
            if self.now.states.get(key) is UrlState.QUEUED:
                serial = self.now.order[key][1]
                if key not in self.now.earliest:
                    serial = self._serial()
                self.now.order[key] = priority, serial
                self.now.entries[key].priority = priority

    # visits again

    def _revisit(self, key: bytes, visit: FetchRecord) -> QueuedUrl:
        return QueuedUrl(
            url=visit.url,
            normalized=visit.url,
            key=key,
            host=self.now.owner[key],
            depth=visit.depth,
            link_type=visit.link_type,
            from_page=visit.from_page,
            visit=visit,
        )

    def schedule(self, items: Sequence[tuple[bytes, float]]) -> None:
        for key, due in items:
            if key in self.now.visits and key not in self.now.again:
                self.operations += 1
                self.now.visits[key] = replace(self.now.visits[key], due=due)
                self.now.held.pop(key, None)

    def _due(self, host: str, until: float) -> list[tuple[float, bytes]]:
        visits, taken = self.now.visits, (self.now.again, self.now.held)
        return sorted(
            (math.ceil(visit.due * 1000) / 1000, key)
            for key, visit in visits.items()
            if visit.due and self.now.owner[key] == host and not any(key in t for t in taken)
            if math.ceil(visit.due * 1000) / 1000 <= until
        )

    def _held(self, host: str) -> list[tuple[float, float, bytes]]:
        held, visits = self.now.held, self.now.visits
        return sorted(
            (until, visits[key].due, key)
            for key, (until, _) in held.items()
            if self.now.owner[key] == host
        )

    def due(
        self, host: str, now: float, limit: int = 1, until: float | None = None
    ) -> list[QueuedUrl]:
        keys = [key for earliest, _, key in self._held(host) if earliest <= now]
        keys += [key for _, key in self._due(host, now if until is None else until)]
        found = []
        for key in keys[:limit]:
            entry = self._revisit(key, self.now.visits[key])
            entry.attempts = self.now.held.pop(key, (0.0, 0))[1]
            self.now.again[key] = 1.0
            found.append(entry)
        return found

    def next_due(self, host: str, until: float = math.inf) -> float | None:
        if self._due(host, until):
            return 0.0
        return min((row[0] for row in self._held(host)), default=None)

    def visiting(self, host: str | None = None) -> int:
        return sum(host in (None, self.now.owner[key]) for key in self.now.again)

    def forget(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            if key in self.now.visits:
                self.operations += 1
                for kept in (self.now.visits, self.now.states, self.now.owner, self.now.inlinks):
                    kept.pop(key, None)  # type: ignore[attr-defined]
                self.now.again.pop(key, None)
                self.now.held.pop(key, None)

    def visits(self, after: bytes, limit: int) -> list[tuple[bytes, FetchRecord | None]]:
        keys = sorted(key for key in self.disk.image.states if key > after)
        return [(key, self.now.visits.get(key)) for key in keys[:limit]]

    def due_times(self) -> Iterator[float]:
        dues = (visit.due for visit in self.now.visits.values() if visit.due)
        return (math.ceil(due * 1000) / 1000 for due in dues)

    def entry(self, key: bytes) -> QueuedUrl | None:
        return self.now.entries.get(key)

    def visit(self, key: bytes) -> FetchRecord | None:
        return self.now.visits.get(key)

    def leases(self) -> list[QueuedUrl]:
        states = self.now.states
        new = [replace(self.now.entries[k]) for k in states if states[k] is UrlState.LEASED]
        return new + [self._revisit(key, self.now.visits[key]) for key in self.now.again]

    def put_hosts(self, records: Mapping[str, bytes]) -> None:
        self.now.host_records.update(records)

    def hosts(self) -> dict[str, bytes]:
        return dict(self.now.host_records)

    def put_note(self, name: str, value: bytes) -> None:
        self.now.notes[name] = value

    def note(self, name: str) -> bytes | None:
        return self.now.notes.get(name)

    def counts(self, host: str | None = None) -> Counts:
        counted: dict[str, Any] = dict.fromkeys(Counts.__slots__, 0)
        for key, state in self.now.states.items():
            asked_again = key in self.now.merged and not self.now.merged[key].rules
            if host in (None, self.now.owner[key]) and not asked_again:
                counted[state.name.lower()] += 1
                counted["discovered"] += 1
                counted["delayed"] += state is UrlState.QUEUED and key in self.now.earliest
                counted["held"] += key in self.now.groups
        return Counts(**counted)

    def host_names(self) -> list[str]:
        return list(dict.fromkeys(self.now.owner.values()))

    def audit(self) -> Counts:
        return self.counts()

    @property
    def pending(self) -> int:
        return self.operations

    def seal(self) -> None:
        self.frozen = copy.deepcopy(self.now)

    def commit(self, positions: Mapping[str, bytes]) -> None:
        assert self.frozen is not None
        self.now.positions = {**self.now.positions, **positions}
        self.frozen.positions = self.now.positions
        self.frozen.committed = True
        self.disk.image = copy.deepcopy(self.frozen)

    def discard(self) -> None:
        self.frozen = None
        self.operations = 0

    def close(self) -> None:
        pass
