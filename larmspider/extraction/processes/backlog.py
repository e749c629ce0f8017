"""Bodies that wait for a reader: a limit for all of them, and a smaller one for each host.

    backlog = Backlog(32_000_000, hold)
    waiting = backlog.enter("wiki:80", len(body), give_back)
    backlog.begin(waiting)               # a reader has it
    backlog.leave(waiting)

Documents may wait for minutes. If their bodies counted like the bodies of other pages
(SCRAPER_SLOT_MAX_ACTIVE_SIZE), two large documents would stop every fetch of the crawl. Documents
therefore have separate room. A host that fills this room is held: ``hold(host, True)`` stops
fetches of the host, ``hold(host, False)`` allows them again. A body without room goes back to the
frontier, which fetches it again later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

LEAST_BYTES = 16_384
"""The least that a body counts: a response and its coroutine take as much."""
SHARE = 4
"""A host whose waiting bodies fill this part of the room (1/4) is held."""


@dataclass(slots=True, eq=False)
class Waiting:
    """A body. ``begun``: a reader has it. ``returned``: it went back because there was no room."""

    host: str
    size: int
    give_back: Callable[[], None]
    debt: Callable[[], float]
    begun: bool = False
    returned: bool = False


class _Host:
    """The waiting bodies of a host, oldest first."""

    def __init__(self) -> None:
        self.bodies: dict[Waiting, None] = {}
        self.size = 0


class Backlog:
    """``most``: the bytes that may wait. A single body may always wait."""

    def __init__(self, most: float, hold: Callable[[str, bool], None]) -> None:
        self.most, self._hold = most, hold
        self._hosts: dict[str, _Host] = {}
        self._size = self._inside = 0
        self._to_refetch: dict[str, None] = {}
        """Hosts that are held because a body was given back; the first one goes on first."""
        self._held: set[str] = set()

    def enter(
        self,
        host: str,
        size: int,
        give_back: Callable[[], None],
        debt: Callable[[], float] = float,
        *,
        begun: bool = False,
    ) -> Waiting:
        """``begun``: a reader has it already. Otherwise ``give_back`` may be called, at once or
        until `begin`. ``debt``: the host's excess of used time, as in FairQueue."""
        waiting = Waiting(host, max(size, LEAST_BYTES), give_back, debt, begun)
        self._inside += 1
        if not begun:
            self._hosts.setdefault(host, _Host()).bodies[waiting] = None
            self._add(host, waiting.size)
            while self._size > self.most and not self._is_alone(waiting):
                self._make_room()
        return waiting

    def begin(self, waiting: Waiting) -> None:
        """A reader has it."""
        self._end_wait(waiting)

    def leave(self, waiting: Waiting) -> None:
        """The body was read or given back, or its fetch was cancelled."""
        self._end_wait(waiting)
        self._inside -= 1
        if waiting.returned and self._inside:
            return  # it has freed nothing: what goes on now would be given back, too
        for host in list(self._to_refetch):
            del self._to_refetch[host]
            self._look_at(host)
            if self._inside and host not in self._held:
                break  # one fetch for each body that is read

    def _is_alone(self, waiting: Waiting) -> bool:
        return len(self._hosts) == 1 and list(self._hosts[waiting.host].bodies) == [waiting]

    def _make_room(self) -> None:
        """Give back the newest body of the host that has used most time; among hosts with equal
        times, of the host with most bytes."""

        def rank(name: str) -> tuple[float, int]:
            waiting = next(reversed(self._hosts[name].bodies))
            return waiting.debt(), self._hosts[name].size

        host = max(self._hosts, key=rank)
        waiting = next(reversed(self._hosts[host].bodies))
        self._to_refetch[host] = None
        self._end_wait(waiting)
        waiting.returned = True
        waiting.give_back()

    def _end_wait(self, waiting: Waiting) -> None:
        if waiting.begun:
            return
        waiting.begun = True
        bodies = self._hosts[waiting.host].bodies
        del bodies[waiting]
        self._add(waiting.host, -waiting.size)
        if not bodies:
            del self._hosts[waiting.host]

    def _add(self, host: str, size: int) -> None:
        self._hosts[host].size += size
        self._size += size
        self._look_at(host)

    def _look_at(self, host: str) -> None:
        """Hold the host, or let it go on."""
        waiting = self._hosts.get(host)
        full = waiting is not None and waiting.size * SHARE > self.most
        held = full or host in self._to_refetch
        if held is not (host in self._held):
            (self._held.add if held else self._held.discard)(host)
            self._hold(host, held)
