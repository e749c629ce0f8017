"""Visits a few well-known pages of a host before another page of it leaves: its canaries.

Canaries are the start page and the five pages with the most links to them. If half of them are
gone, too, the host is broken and its pages stay. If they redirect to stored pages of another host,
the host has moved (moves.py) and its pages may leave. They may leave, too, if the canaries only
have other URLs on the same host, or if some of them are on another host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, islice
from urllib.parse import urlsplit

from larmspider.formatting import counted
from larmspider.frontier.storage.records import FetchRecord, host_prefix
from larmspider.learned.deletes.moves import HostMove, Successor, are_renamed, moved_to
from larmspider.learned.deletes.notes import MOVED, DeleteNotes, HostVisits
from larmspider.learned.deletes.table import CANARIES

SOON = 2.0
"""Due time of the pages of a host that has moved: equal to SIGNALLED (revisits/plan.py)."""
ENOUGH_BACK = 5
"""Visits in a run, after which a host that had moved may count as back."""
FIRST = 0.5
"""Due time of canaries: before all other pages."""
MAX_SEARCHED = 20_000
"""URLs of a host that are searched for its canaries."""
ASKED_FIRST = "the start page and those that most pages link to are asked first"
"""Why a page waits for its host's canaries."""


class Canaries:
    """``schedule`` and ``links_to`` as in DeleteGate."""

    def __init__(
        self,
        notes: DeleteNotes,
        schedule: Callable[[str, Iterable[bytes], float], None],
        links_to: Callable[[Sequence[str]], Sequence[int]],
    ) -> None:
        self._notes, self._schedule, self._links_to = notes, schedule, links_to

    def __repr__(self) -> str:
        return f"<Canaries of {self._notes.visits!r}>"

    def save(self) -> None:
        """End the moves of hosts that are back."""
        for host in list(self._notes.moved):
            kept, visits = self._notes.kept.of(host), self._notes.visits.get(host)
            if visits is not None and kept.move and _is_back(kept.move, visits.visited):
                kept.move = None
                self._notes.kept.touch(host)

    def visited(
        self, host: str, key: bytes, successor: Successor | None, *, is_page: bool, is_well: bool
    ) -> None:
        """A visit is over. The last canary's answer makes the pages due that wait for it."""
        mine = self._notes.visits.of(host)
        mine.successors.pop(key, None)
        if successor is not None and len(mine.successors) < MAX_SEARCHED:
            mine.successors[key] = successor
        mine.again.discard(key)
        if is_page and (key in mine.visited or len(mine.visited) < MAX_SEARCHED):
            mine.visited[key] = is_well
        if mine.canaries is None or key not in mine.canaries:
            return
        was_open = mine.canaries[key] is None
        mine.canaries[key] = is_well
        if was_open and None not in mine.canaries.values():
            self._release(host, mine.held)
            for other, page in mine.guests:
                self._release(other, {page})
            mine.guests.clear()

    def _release(self, host: str, keys: Set[bytes]) -> None:
        """Visit pages once more that waited for canaries."""
        mine, keys = self._notes.visits.of(host), {*keys}
        self._schedule(host, keys, 1.0)
        mine.again |= keys
        mine.held -= keys

    def final(self, host: str, key: bytes) -> None:
        """Visit a page again that was judged before its host's canaries, if its visit ended after
        the canaries' visits."""
        mine = self._notes.visits.get(host)
        if mine is not None and key in mine.again:
            mine.again.discard(key)
            self._schedule(host, [key], 1.0)

    def is_held(self, host: str, key: bytes) -> bool:
        """Whether a judged page is visited again in this run, after its host's canaries."""
        mine = self._notes.visits.get(host)
        return mine is not None and (key in mine.held or key in mine.again)

    def left(self, host: str, key: bytes) -> None:
        """A page is removed: it counts for the move of its host."""
        successor = self._notes.visits.of(host).successors.get(key)
        move = self._notes.kept.of(host).move
        if move is not None and successor is not None:
            move.left += successor.is_there and successor.host in self._reached(move)

    def moved_to(self, host: str) -> tuple[str, ...]:
        """The hosts to which a host has moved."""
        kept = self._notes.kept.get(host)
        return () if kept is None or kept.move is None else kept.move.hosts

    def _has_start(self, canaries: Mapping[bytes, bool | None]) -> bool:
        """Whether the first canary is there. If it is not the root of its host, it is a page like
        the others, and may be the one that has gone."""
        key, is_there = next(iter(canaries.items()))
        visit = None if is_there else self._notes.backend.visit(key)
        return bool(is_there) or (visit is not None and not _is_root(visit.url))

    def _find_move(self, host: str, canaries: Sequence[bytes], now: float) -> bool:
        """Whether the host has moved as a whole, by its canaries in this run, and its pages may
        leave."""
        mine, kept = self._notes.visits.of(host), self._notes.kept.of(host)
        others = {key: one for key, one in mine.successors.items() if one.host != host}
        hosts = moved_to([others.get(key) for key in canaries])
        if not hosts:
            return False
        move = kept.move
        if move is None or move.to != hosts[0] or not {*hosts} <= {*move.hosts}:
            pages = self._notes.backend.counts(host).stored
            if pages <= MAX_SEARCHED:
                pages = sum(map(len, self._pages_of(host)))  # without its redirects
            kept.move = HostMove(host, hosts[0], now, pages, others=[*hosts[1:]])
            if move is not None and move.to == hosts[0]:
                kept.move.since, kept.move.pages, kept.move.left = move.since, move.pages, move.left
            self._notes.kept.touch(host)
            self._notes.moved.add(host)
            self._notes.tell(MOVED, host, f"{kept.move.in_words()}.")
            self._schedule(host, self._all_of(host, mine), SOON)
        return True

    def _all_of(self, host: str, mine: HostVisits) -> list[bytes]:
        """The pages of a host that were not visited in this run, and are not due before other
        pages."""
        pages = chain.from_iterable(self._pages_of(host))
        found = (key for key, one in pages if one.due > SOON and key not in mine.visited)
        return [*islice(found, MAX_SEARCHED)]

    def _pages_of(self, host: str) -> Iterator[list[tuple[bytes, FetchRecord]]]:
        """The pages of a host, some hundred at a time, without redirects."""
        after = prefix = host_prefix(host)[:4]
        while rows := self._notes.backend.visits(after, 500):
            after = rows[-1][0]
            yield [
                (key, visit)
                for key, visit in rows
                if visit is not None and visit.status == 200 and key.startswith(prefix)
            ]
            if not after.startswith(prefix):
                break

    def ask(self, host: str, key: bytes, now: float, *, is_well: bool) -> str:
        """ "" if the visits of this run show that the host works; else why its pages wait.
        ``is_well``: whether the page ``key`` was there."""
        mine, kept = self._notes.visits.of(host), self._notes.kept.of(host)
        if mine.canaries is None:
            self.begin(host, mine.visited | {key: is_well})
        assert mine.canaries is not None
        answers = list(mine.canaries.values())
        if None in answers:
            mine.held.add(key)
            return ASKED_FIRST
        well = sum(map(bool, answers))
        if self._find_move(host, list(mine.canaries), now):
            return ""
        is_well = not answers or (self._has_start(mine.canaries) and well * 2 > len(answers))
        if kept.move is not None and answers and is_well:
            kept.move = None  # the host is back
            self._notes.kept.touch(host)
        is_well = is_well or are_renamed(mine.canaries, mine.successors)
        if not is_well:
            if kept.move is not None:
                found = self._gone_over(kept.move, key, mine.successors.get(key))
                if found is not None:
                    return found
            what = "the start page and those that most pages link to"
            return f"only {well} of {counted(len(answers), 'page')} are there: {what}"
        return ""

    def _gone_over(self, move: HostMove, key: bytes, successor: Successor | None) -> str | None:
        """ "" if a page of a host that has moved may leave, though few canaries have a new URL:
        the page has a new URL itself. Or most pages have moved to a new host that works, and does
        not have the page: ASKED_FIRST before that host's canaries were visited. Else None."""
        hosts = self._reached(move)
        if successor is not None and successor.is_there and successor.host in hosts:
            return ""
        if move.left * 2 <= move.pages:
            return None
        last = next((host for host in hosts if not self.moved_to(host)), move.to)
        if successor is not None and successor.host in hosts:
            last = successor.host
        there = self._notes.visits.of(last)
        if there.canaries is None:
            self.begin(last, there.visited)
        answers = list((there.canaries or {}).values())
        if None in answers:
            there.guests.add((move.host, key))
            self._notes.visits.of(move.host).held.add(key)
            return ASKED_FIRST
        return "" if sum(map(bool, answers)) * 2 > len(answers) else None

    def _reached(self, move: HostMove) -> list[str]:
        """The hosts that have a host's pages now, or had them before they moved, too."""
        hosts = [*move.hosts]
        for host in hosts:  # the list grows
            hosts += [one for one in self.moved_to(host) if one not in (*hosts, move.host)]
        return hosts

    def begin(self, host: str, visited: Mapping[bytes, bool]) -> None:
        """Make the canaries due that this run has not ``visited``."""
        mine = self._notes.visits.of(host)
        mine.canaries = {one: visited.get(one) for one in self.find(host)}
        asked = [one for one, answer in mine.canaries.items() if answer is None]
        self._schedule(host, asked, FIRST)

    def find(self, host: str) -> list[bytes]:
        """The keys of the start page and of the pages with the most links to them. Among equals,
        pages near the start page win. 20 us a page. The start page is the root of the host, or the
        page with the smallest depth: a host may have been found by a link to any page."""
        first: list[tuple[bool, int, str, bytes]] = []
        linked: list[tuple[int, int, str, bytes]] = []
        for pages in islice(self._pages_of(host), MAX_SEARCHED // 500):
            links = self._links_to([visit.url for _, visit in pages])
            found = [
                (number, -visit.depth, visit.url, key)
                for number, (key, visit) in zip(links, pages, strict=True)
            ]
            near = [(not _is_root(url), -depth, url, key) for _, depth, url, key in found]
            first = sorted([*first, *near])[:1]
            linked = sorted([*linked, *found], key=lambda one: (-one[0], -one[1], one[2]))
            del linked[CANARIES:]
        return list(dict.fromkeys(one[3] for one in [*first, *linked]))[:CANARIES]


def _is_root(url: str) -> bool:
    return urlsplit(url).path in ("", "/")


def _is_back(move: HostMove, visited: Mapping[bytes, bool]) -> bool:
    """Whether most pages of a host that had moved were there in this run. A few may have stayed."""
    number = len(visited)
    return number >= min(ENOUGH_BACK, max(1, move.pages)) and 2 * sum(visited.values()) > number
