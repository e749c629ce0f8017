"""The workers of a crawl, and the partitions of hosts that each owns: the part in Redis.

    membership = Membership(redis, "intranet", "wiki-1", lease_secs=15, partitions=256)
    membership.join(description)
    while True:                     # every third of the lease, from a thread
        beat = membership.beat()    # renews; expires dead workers; hands out free partitions
        ...                         # load beat.given; release() beat.excess partitions at rest

A partition has at most one owner. It becomes free when its owner releases it, leaves, or has let a
whole lease pass without a beat and another worker has applied its last commit (reap). Each time a
partition is given out it gets a larger token, which fences off the owner before. A worker is known
by its epoch, new each time it joins; an older epoch is fenced. After a restart of Redis, and after
half a lease without any beat, no worker expires for a whole lease. After a restart no partition is
given out during this time, and workers report their partitions in their beats.

Times are Redis's times.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, NamedTuple

from larmspider.cluster.redis_client import name_of, sound
from larmspider.errors import LarmspiderError
from larmspider.frontier.storage.backend import Fenced

SCRIPTS = ("join", "beat", "release", "bury", "leave", "idle", "finish", "expire")
"""lua/NAME.lua, each appended to lua/membership.lua."""
KEYS = (
    "workers", "blocks", "token", "dead", "pulse", "commits", "idle", "totals", "description",
    "ended", "runs", "load", "moves", "refresh",
)  # fmt: skip
"""Names after ``<crawl>:{crawl}:``; docs/internals/workers.md describes their contents. Scripts
also get the commit record of a worker."""
PARTITIONS = 4_096
"""Partitions of a new crawl, if LARM_BLOCKS is 0."""
NOTHING_KNOWN = "0 "
"""Committer.known of a worker without a commit."""
WORKERS_NOTE = "workers"
"""The note in a worker's frontier with the names of all workers it has seen, one a line."""
MAX_NOTED = 1_000
"""Names in WORKERS_NOTE; in containers each start may bring a new name."""
MARGIN = 0.1
"""The part of a lease that its worker does not use."""


def clock() -> float:
    """Seconds of a clock that cannot be set and that runs on while process or machine sleep."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class WorkerLease:
    """Whether this worker may act, by its own clock: until then no other worker gets its hosts.

        lease = WorkerLease(15.0)
        sent = lease.now()
        ...                            # Redis renews the lease
        lease.renewed(sent)
        lease.valid                    # for 13.5 s from ``sent`` on

    The clock runs on while the process is stopped and while the machine sleeps: a worker that wakes
    after an hour knows at once that its time is over. Redis gives its hosts to other workers a full
    lease after it got the renewal, which is later than ``sent``. A tenth of the lease is left for
    clocks of different speeds and for requests that were sent just before.

    ``seconds`` is LARM_LEASE_SECS. Not valid before the first renewal.
    """

    def __init__(self, seconds: float, now: Callable[[], float] = clock) -> None:
        self.seconds, self.now = seconds, now
        self.until = float("-inf")
        self._ended = False

    def __repr__(self) -> str:
        left = "ended" if self._ended else f"{self.until - self.now():+.1f} s"
        return f"<WorkerLease {left}>"

    def renewed(self, sent: float) -> None:
        """Redis has renewed the lease; the request was sent at ``sent``, by now()."""
        self.until = max(self.until, sent + self.seconds * (1 - MARGIN))

    def end(self) -> None:
        """End the lease for good: it is given up, or taken. A renewal under way changes nothing."""
        self._ended = True

    @property
    def valid(self) -> bool:
        """0.2 us."""
        return not self._ended and self.now() < self.until


class NameTaken(LarmspiderError):  # noqa: N818 - named for what happened
    """A worker of this name, in this epoch, has a lease for another ``seconds``."""

    def __init__(self, name: str, epoch: int, seconds: float) -> None:
        super().__init__(f"a worker called {name} is running")
        self.epoch, self.seconds = epoch, seconds


class OtherCrawl(LarmspiderError):  # noqa: N818 - named for what happened
    """The crawl has another description, ``known``, which ``living`` workers use."""

    def __init__(self, known: str, living: int) -> None:
        super().__init__("the crawl in Redis is another one")
        self.known, self.living = known, living


class Load(NamedTuple):
    """The load of a worker, for its next beat. ``hosts``: hosts with work. ``candidates``: the
    partitions of such hosts that may move to a worker with fewer, with their numbers of hosts.
    ``arrived``: partitions that came by such a move and count now."""

    hosts: int = 0
    candidates: Mapping[int, int] = {}
    arrived: tuple[int, ...] = ()


NO_LOAD = Load()


@dataclass(frozen=True, slots=True)
class Beat:
    """The answer of Redis to a sign of life.

    ``workers``: the number of living workers, including this one. ``quiet``: no worker expires for
    now. ``given``: partitions that are this worker's from now on, with their tokens; ``fresh``: the
    given partitions that had no owner before in this run. ``held``: all partitions of this worker.
    ``excess``: the number of held partitions to give up. ``dead``: epoch and name of workers whose
    last commit may have to be applied. ``silent``: workers that have not renewed their lease for
    half of it, and the seconds until they count as dead. ``ended``: the crawl is at its end.
    ``moving``: this worker has more or less than its share of partitions, or some are on their way
    to it. ``moved``: the given partitions that another worker gives up because they keep it too
    busy. ``going``: partitions that this worker should give up for other workers. ``arrived``: as
    in the load that was sent.
    """

    workers: int = 1
    quiet: bool = False
    given: Mapping[int, int] = field(default_factory=dict)
    fresh: frozenset[int] = frozenset()
    held: Mapping[int, int] = field(default_factory=dict)
    excess: int = 0
    dead: Mapping[int, str] = field(default_factory=dict)
    silent: Mapping[str, float] = field(default_factory=dict)
    ended: bool = False
    moving: bool = False
    moved: frozenset[int] = frozenset()
    going: frozenset[int] = frozenset()
    arrived: tuple[int, ...] = ()


class Membership:
    """``crawl`` is the spider's name, with which the keys begin. ``connection``, a
    redis.Redis, belongs to this object.

    ``server`` gives the time in milliseconds and the run of Redis, for tests; None: Redis does.
    Methods may be called from any thread, one at a time. They raise redis.RedisError where Redis
    does not answer, Fenced where others have taken over, and Lost where a key is not the crawl's.
    """

    def __init__(
        self,
        connection: Any,
        crawl: str,
        name: str,
        *,
        lease_secs: float,
        partitions: int,
        server: Callable[[], tuple[int, str]] | None = None,
    ) -> None:
        self.name, self.lease_secs, self.partitions = name, lease_secs, partitions
        self.epoch = 0
        self.held: dict[int, int] = {}
        """This worker's partitions, and their tokens."""
        self._version = ""  # of the partitions in the last beat
        self._known = self._excess = 0
        self._server = server
        self._prefix = f"{crawl}:{{crawl}}:"
        self._keys = [self._prefix + key for key in KEYS]
        self._connection = connection
        common = _source("membership")
        self._scripts = {
            name: connection.register_script(f"{common}\n{_source(name)}") for name in SCRIPTS
        }
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<Membership {self.name} epoch {self.epoch}, {len(self.held)} partitions>"

    def join(self, description: str, instead_of: str = "") -> tuple[int, int]:
        """Become a worker. Returns the number of other living workers, and the epoch of an earlier
        run of this worker that did not leave, to reap() once its last commit is applied, or 0.

        ``instead_of`` is an earlier description that may be replaced while no worker uses it.
        Raises NameTaken, OtherCrawl.
        """
        with self._lock:
            answer = self._run("join", description, instead_of)
            if answer[0] == "TAKEN":
                raise NameTaken(self.name, int(answer[1]), int(answer[2]) / 1000)
            if answer[0] == "OTHER":
                raise OtherCrawl(answer[1], int(answer[2]))
            self.epoch, self.held, self._version = int(answer[1]), {}, ""
            return int(answer[2]), int(answer[3] or 0)

    def beat(self, load: Load = NO_LOAD) -> Beat:
        """Renew the lease. Reports the held partitions only if they have changed since the last
        beat; otherwise the size of a beat does not depend on the number of partitions."""
        with self._lock:
            candidates = _named(load.candidates)
            arrived = " ".join(map(str, load.arrived))
            more = (str(load.hosts), candidates, arrived)
            answer: list[Any] = ["TELL"]
            if self._version and len(self.held) == self._known:
                answer = self._checked("beat", self._version, "-", *more)
            if answer[0] == "TELL":
                answer = self._checked("beat", "", _named(self.held), *more)
            kind, workers, quiet, given, excess, dead, ended, silent = answer[:8]
            version, going, coming = answer[8:]
            found = {int(partition): int(token) for partition, token, *_ in given}
            self.held.update(found)
            self._version, self._known = version, len(self.held)
            if kind != "SAME":
                self._excess = int(excess)
            fair = self.partitions // int(workers)
            return Beat(
                workers=int(workers),
                quiet=bool(quiet),
                given=found,
                fresh=frozenset(int(partition) for partition, _, fresh, _ in given if fresh),
                held=dict(self.held),
                excess=self._excess,
                dead={int(dead[at]): dead[at + 1] for at in range(0, len(dead), 2)},
                silent={silent[at]: silent[at + 1] / 1000 for at in range(0, len(silent), 2)},
                ended=bool(ended),
                moving=bool(self._excess or going or int(coming)) or len(self.held) < fair,
                moved=frozenset(int(partition) for partition, _, _, move in given if move),
                going=frozenset(map(int, going)),
                arrived=load.arrived,
            )

    def release(self, partitions: Iterable[int]) -> None:
        """Give up partitions whose changes are all committed."""
        with self._lock:
            gone = {at: self.held[at] for at in partitions if at in self.held}
            self._version = ""  # the next beat tells, and hears, everything
            self._run("release", _named(gone))
            for partition in gone:
                del self.held[partition]

    def reap(self, epoch: int, name: str = "") -> bool:
        """The last commit of a dead worker, this one in an earlier run if without a name, was
        applied: its partitions are free. False where Redis has forgotten that it was."""
        with self._lock:
            return bool(self._run("bury", str(epoch), record=name)[0] == "DONE")

    def stored(self) -> int:
        """The number of pages that all workers together have stored and committed."""
        key = self._keys[KEYS.index("totals")]
        with sound(self._connection, name_of(self._connection), [key]):
            return int(self._connection.hget(key, "stored") or 0)

    def expire(self, names: Iterable[str]) -> None:
        """Expire the leases of these workers, whose processes have ended."""
        with self._lock:
            self._run("expire", " ".join(names))

    def names(self) -> list[str]:
        """Names of all workers that have not left, and are not known to be dead."""
        with sound(self._connection, name_of(self._connection), self._keys[:1]):
            return [name.decode() for name in self._connection.hkeys(self._keys[0])]

    def living(self) -> list[str]:
        """Names of the workers whose lease has not run out."""
        with self._lock:
            return sorted(self._run("expire", "")[1])

    def leave(self, known: str = "") -> bool:
        """Free the partitions and the name of this worker, after its last commit. ``known`` is
        Committer.known, or "" if the worker has broken off. Returns False if Redis has lost a
        commit."""
        with self._lock:
            answer = self._checked("leave", known)
            self.held = {}
            return bool(answer[0] == "DONE")

    def idle(self, taken: int, known: str = NOTHING_KNOWN) -> tuple[str, bool]:
        """This worker has no work and has committed everything, until its next commit or partition.
        ``taken``: the number of partitions that it knows; it is not idle where it was given others.
        ``known``: Committer.known; it is fenced where Redis knows less.

        The number of commits where all are idle and every partition has a living owner, else ""; if
        all inboxes are empty then, and finish() finds the same number, the crawl is at its end. And
        whether the crawl was found to be at its end before.
        """
        with self._lock:
            version = self._version if taken == len(self.held) == self._known else ""
            _, commits, ended = self._checked("idle", str(taken), known, version)
            return str(commits), bool(ended)

    def finish(self, commits: str) -> bool:
        """Whether all are still idle, at this number of commits; then every beat reports the
        end."""
        with self._lock:
            return bool(self._run("finish", commits)[1])

    def _checked(self, script: str, *arguments: str) -> list[Any]:
        answer = self._run(script, *arguments)
        if answer[0] == "FENCED":
            raise Fenced(f"other workers took over from worker {self.name}: {answer[1]}")
        return answer

    def _run(self, script: str, *arguments: str, record: str = "") -> list[Any]:
        """``record``: the worker whose commit record the script reads; "" stands for this
        worker."""
        now, run = ("", "") if self._server is None else self._server()
        lease = int(self.lease_secs * 1000)
        common: list[str | int] = [self.name, self.epoch, lease, self.partitions, now, run]
        keys = [*self._keys, f"{self._prefix}commit:{record or self.name}"]
        with sound(self._connection, name_of(self._connection), keys):
            answer = self._scripts[script](keys=keys, args=[*common, *arguments])
            return [_text(part) for part in answer]


def _named(partitions: Mapping[int, int]) -> str:
    return " ".join(f"{partition}:{token}" for partition, token in partitions.items())


def _source(name: str) -> str:
    return files("larmspider.cluster").joinpath("lua", f"{name}.lua").read_text("utf-8")


def _text(part: Any) -> Any:
    if isinstance(part, bytes):
        return part.decode()
    return [_text(inner) for inner in part] if isinstance(part, list) else part
