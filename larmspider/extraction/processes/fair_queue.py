"""Hosts share the readers' time: the next job belongs to the host that has used least.

    queue = FairQueue[str](places=2, each=1)
    queue.push("wiki:80", "a.pdf")
    turn = queue.next()                  # Turn: job "a.pdf"; None: no job may begin now
    queue.end(turn, cost=0.05)           # CPU seconds

First come, first served lets one host with 30 slow documents hold up the documents of all others.
Here each host has an account (start-time fair queueing, Goyal and others, 1996). A host that comes
back begins at the account of the host that was served last: it neither saves up time nor pays for
ever. Usage beyond that counts against the host, half of it after `HALF_LIFE` seconds.

At most ``each`` of the ``places`` are held by one host. Hosts whose jobs failed lately hold at most
``each`` places together, and so do hosts without a good job behind them while any host is failing.

This module knows neither processes nor the network. Turns is the same for coroutines.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")

HALF_LIFE = 600.0
"""Seconds after which half of a host's excess is forgotten."""
PROBATION = 600.0
"""Seconds after a failed job in which its host shares places with other failing hosts."""
MOST_HOSTS = 10_000
"""Accounts that are kept: 3 MB. The accounts that matter least are forgotten."""


@dataclass(slots=True, eq=False)
class Account:
    """The account of a host or of a group of hosts. ``used``: CPU seconds. All accounts count from
    one start. ``failures``: the number of failed jobs in a row. ``good``: whether the last job that
    was judged went well."""

    name: str
    used: float = 0.0
    since: float = 0.0
    waiting: int = 0
    running: int = 0
    failures: int = 0
    failed_at: float = float("-inf")
    good: bool = False


class _Ledger:
    """The accounts of the hosts of one group, or of all groups."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}
        self.start = 0.0
        """The account of the host that was served last, when its job began."""

    def of(self, name: str) -> Account:
        account = self.accounts.get(name)
        if account is None:
            account = self.accounts[name] = Account(name, self.start)
        return account

    def enter(self, account: Account, now: float) -> None:
        """A job of it waits from now on."""
        if not (account.waiting or account.running):
            fade = 0.5 ** (max(0.0, now - account.since) / HALF_LIFE)
            account.used = self.start + max(0.0, account.used - self.start) * fade
        account.waiting += 1

    def begin(self, account: Account) -> None:
        account.waiting -= 1
        account.running += 1
        self.start = max(self.start, account.used)

    def charge(self, account: Account, cost: float, now: float) -> None:
        account.used += cost
        account.since = now


@dataclass(slots=True, eq=False)
class Turn(Generic[T]):
    """A job that waits or has begun."""

    job: T
    host: Account
    group: Account
    number: int
    begun: bool = False


@dataclass(slots=True)
class _Group:
    account: Account
    hosts: _Ledger = field(default_factory=_Ledger)


class FairQueue(Generic[T]):
    """``places``: jobs that run at a time; ``each``: jobs of one host that run at a time."""

    def __init__(self, places: int, each: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.places, self.each, self._clock = places, max(1, each), clock
        self._all = _Ledger()
        self._groups: dict[str, _Group] = {}
        self._waiting: dict[Account, deque[Turn[T]]] = {}
        self._begun: set[Turn[T]] = set()
        self._number = self._hosts = 0
        self._last_failure = float("-inf")

    def __len__(self) -> int:
        """Jobs that wait."""
        return sum(map(len, self._waiting.values()))

    def push(self, host: str, job: T, group: str = "") -> Turn[T]:
        """``group``: hosts that share as one, such as the names of one address; "": no others."""
        found, account = self._find(host, group or host)
        now = self._clock()
        self._all.enter(found.account, now)
        found.hosts.enter(account, now)
        self._number += 1
        turn = Turn(job, account, found.account, self._number)
        self._waiting.setdefault(account, deque()).append(turn)
        return turn

    def next(self) -> Turn[T] | None:
        """The job that begins now. O(hosts that wait)."""
        if len(self._begun) >= self.places or not self._waiting:
            return None
        now = self._clock()
        restricted = sum(self._is_restricted(turn.host, now) for turn in self._begun)
        best: Turn[T] | None = None
        for account, turns in self._waiting.items():
            if account.running >= self.each:
                continue
            if restricted >= self.each and self._is_restricted(account, now):
                continue
            if best is None or _rank(turns[0]) < _rank(best):
                best = turns[0]
        if best is None:
            return None
        self._take(best)
        self._begun.add(best)
        best.begun = True
        self._all.begin(best.group)
        self._groups[best.group.name].hosts.begin(best.host)
        return best

    def drop(self, turn: Turn[T]) -> None:
        """Drop a job that waits."""
        self._take(turn)
        turn.host.waiting -= 1
        turn.group.waiting -= 1

    def end(self, turn: Turn[T], cost: float, *, failed: bool | None = None) -> None:
        """A job that had begun has used ``cost`` CPU seconds; ``failed`` as in `judge`."""
        self._begun.remove(turn)
        turn.host.running -= 1
        turn.group.running -= 1
        now = self._clock()
        self._all.charge(turn.group, cost, now)
        self._groups[turn.group.name].hosts.charge(turn.host, cost, now)
        self._judge(turn.host, failed)

    def judge(self, host: str, failed: bool | None, group: str = "") -> None:
        """Judge a job that did not go through this queue. ``failed``: True for a failure as of a
        hostile document, False for a good job, None for no judgement."""
        self._judge(self._find(host, group or host)[1], failed)

    def debt(self, turn: Turn[T]) -> float:
        """The seconds that the host of a job, or its group, has used more than the last served
        host, plus one for each of its running jobs."""
        group = max(0.0, turn.group.used - self._all.start) + turn.group.running
        start = self._groups[turn.group.name].hosts.start
        return group + max(0.0, turn.host.used - start) + turn.host.running

    def failures(self, host: str, group: str = "") -> int:
        """Failed jobs in a row."""
        found = self._groups.get(group or host)
        account = None if found is None else found.hosts.accounts.get(host)
        return 0 if account is None else account.failures

    def waiting(self) -> list[Turn[T]]:
        return [turn for turns in self._waiting.values() for turn in turns]

    def _find(self, host: str, group: str) -> tuple[_Group, Account]:
        found = self._groups.get(group)
        if found is None:
            found = self._groups[group] = _Group(self._all.of(group))
        if host not in found.hosts.accounts:
            if self._hosts >= MOST_HOSTS:
                self._forget()
                self._groups[group] = found
                self._all.accounts[group] = found.account
            self._hosts += 1
        return found, found.hosts.of(host)

    def _is_restricted(self, account: Account, now: float) -> bool:
        if now - account.failed_at < PROBATION:
            return True
        return not account.good and now - self._last_failure < PROBATION

    def _judge(self, account: Account, failed: bool | None) -> None:
        if failed:
            account.failures += 1
            account.failed_at = self._last_failure = self._clock()
            account.good = False
        elif failed is not None:
            account.failures, account.good = 0, True

    def _take(self, turn: Turn[T]) -> None:
        turns = self._waiting[turn.host]
        turns.remove(turn)  # mostly the first
        if not turns:
            del self._waiting[turn.host]

    def _forget(self) -> None:
        """Forget half of the accounts: idle ones with the fewest failures and the least usage."""
        idle = [
            (one.failures, one.used - group.hosts.start, name, one.name)
            for name, group in self._groups.items()
            for one in group.hosts.accounts.values()
            if not (one.waiting or one.running)
        ]
        for _, _, group, host in sorted(idle)[: MOST_HOSTS // 2]:
            del self._groups[group].hosts.accounts[host]
            self._hosts -= 1
            if not self._groups[group].hosts.accounts:
                del self._groups[group], self._all.accounts[group]


def _rank(turn: Turn[T]) -> tuple[float, float, int]:
    return turn.group.used, turn.host.used, turn.number


class Turns:
    """A FairQueue for coroutines of one event loop.

    turn = turns.push("wiki:80")
    await turns.begin(turn)
    turns.end(turn, cost=0.05)
    """

    def __init__(self, places: int, each: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.queue: FairQueue[asyncio.Future[None]] = FairQueue(places, each, clock)

    def push(self, host: str, group: str = "") -> Turn[asyncio.Future[None]]:
        """Add a coroutine, which may begin at once. `begin` is called next in any case."""
        turn = self.queue.push(host, asyncio.get_running_loop().create_future(), group)
        self._go_on()
        return turn

    async def begin(self, turn: Turn[asyncio.Future[None]]) -> None:
        """Wait for the turn. Raises what `refuse` was given."""
        try:
            await turn.job
        except BaseException:
            if turn.begun:
                self.end(turn, 0.0)
            elif turn.job.cancelled():
                self.queue.drop(turn)
            raise

    def end(
        self, turn: Turn[asyncio.Future[None]], cost: float, *, failed: bool | None = None
    ) -> None:
        self.queue.end(turn, cost, failed=failed)
        self._go_on()

    def refuse(self, turn: Turn[asyncio.Future[None]], why: BaseException) -> None:
        """`begin` raises ``why`` for this turn; nothing happens once the turn has begun."""
        if not (turn.begun or turn.job.done()):
            self.queue.drop(turn)
            turn.job.set_exception(why)

    def _go_on(self) -> None:
        while (turn := self.queue.next()) is not None:
            if not turn.job.done():
                turn.job.set_result(None)
