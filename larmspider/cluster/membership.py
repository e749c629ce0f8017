"""Who works on a crawl, and which blocks of hosts each one owns: the part that lies in Redis.

    membership = Membership(redis, "intranet", "wiki-1", lease_secs=15, blocks=256)
    membership.join(description)
    while True:                     # every third of the lease, from a thread
        beat = membership.beat()    # renews; expires who is dead; hands out free blocks
        ...                         # load beat.given; release() beat.excess blocks when they rest

A block has at most one owner. It becomes free when its owner releases it, leaves, or has let a
whole lease pass without a beat and what it had committed last was carried out by another one
(bury). Each time it is given out it gets a larger token, which fences off the owner before. A
worker is known by its epoch, new each time it joins: with an older one it is fenced. After Redis
was started again, or has heard of nobody for half a lease, nobody expires for a lease; after it was
started again no block is given out for as long, and those who live tell in their beats what they
hold.

Times are those of Redis. All keys have one hash tag, so they lie together in a cluster.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from larmspider import options
from larmspider.errors import LarmspiderError
from larmspider.frontier.storage.backend import Fenced

if TYPE_CHECKING:
    from larmspider.options import Settings

# The scripts that Redis runs for membership.py: lua/NAME.lua behind lua/membership.lua.
#
# scripts = MembershipScripts(connection)
# scripts.run("beat", keys, arguments)

NAMES = ("join", "beat", "release", "bury", "leave", "idle", "finish", "expire")


MAX_BLOCKS = 16_384
"""Most LARM_BLOCKS: the number of slots of a Redis Cluster."""


class ClusterSettings(NamedTuple):
    """LARM_LEASE_SECS, LARM_KEEP_ALIVE, LARM_BLOCKS, LARM_BATCH_URLS, LARM_LOCAL_QUEUE."""

    lease_secs: float
    keep_alive: bool
    blocks: int
    batch_urls: int
    local_queue: int


def cluster_settings(settings: Settings) -> ClusterSettings:
    """How workers share a crawl."""
    return ClusterSettings(
        lease_secs=options.seconds(settings, "LARM_LEASE_SECS", minimum=1),
        keep_alive=options.boolean(settings, "LARM_KEEP_ALIVE"),
        blocks=options.integer(settings, "LARM_BLOCKS", minimum=1, maximum=MAX_BLOCKS),
        batch_urls=options.integer(settings, "LARM_BATCH_URLS", minimum=1),
        local_queue=options.integer(settings, "LARM_LOCAL_QUEUE", minimum=1),
    )


def _source(name: str) -> str:
    return files("larmspider.cluster").joinpath("lua", f"{name}.lua").read_text("utf-8")


class MembershipScripts:
    """``connection`` is a redis.Redis or RedisCluster, that decodes or not. Redis is told a script
    once, and again after it was restarted."""

    def __init__(self, connection: Any) -> None:
        common = _source("membership")
        self._scripts = {
            name: connection.register_script(f"{common}\n{_source(name)}") for name in NAMES
        }

    def run(self, name: str, keys: Sequence[str], arguments: Sequence[str | int]) -> list[Any]:
        """What the script returns, as text. Raises redis.RedisError."""
        said = self._scripts[name](keys=list(keys), args=list(arguments))
        return [_text(part) for part in said]


def _text(part: Any) -> Any:
    if isinstance(part, bytes):
        return part.decode()
    return [_text(inner) for inner in part] if isinstance(part, list) else part


# Whether this worker may still act, by its own clock: nobody else has its hosts as long as it may.
#
#     lease = WorkerLease(15.0)
#     sent = lease.now()
#     ...                            # Redis renews it, and says so
#     lease.renewed(sent)
#     lease.valid                    # for 13.5 s from ``sent`` on
#
# The clock counts on while the process is stopped and while the machine sleeps: a worker that
# wakes
# after an hour knows at once that its time is over. Redis lets others have its hosts a full lease
# after the renewal came there, which is later than it was sent; a tenth of the lease is left for
# clocks that run at different speeds and for what was begun just before.

MARGIN = 0.1
"""Part of the lease that is not used."""


def clock() -> float:
    """Seconds of a clock that nobody sets and that counts while process or machine are stopped."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class WorkerLease:
    """``seconds`` is LARM_LEASE_SECS. Not valid before it is renewed first."""

    def __init__(self, seconds: float, now: Callable[[], float] = clock) -> None:
        self.seconds, self.now = seconds, now
        self.until = float("-inf")
        self._ended = False

    def __repr__(self) -> str:
        left = "ended" if self._ended else f"{self.until - self.now():+.1f} s"
        return f"<WorkerLease {left}>"

    def renewed(self, sent: float) -> None:
        """Redis has renewed it; it was asked to at ``sent``, by now()."""
        self.until = max(self.until, sent + self.seconds * (1 - MARGIN))

    def end(self) -> None:
        """It is over for good: given up, or taken. A renewal that is under way changes nothing."""
        self._ended = True

    @property
    def valid(self) -> bool:
        """May hosts be asked now? 0.2 us."""
        return not self._ended and self.now() < self.until


KEYS = (
    "workers", "blocks", "token", "dead", "pulse", "commits", "idle", "totals", "description",
    "ended", "runs",
)  # fmt: skip
"""Below ``<crawl>:{crawl}:``; docs/workers.md says what each holds."""


class NameTaken(LarmspiderError):  # noqa: N818 - named for what happened
    """A worker of this name has a lease for ``seconds`` yet; ``epoch`` is its own."""

    def __init__(self, name: str, epoch: int, seconds: float) -> None:
        super().__init__(f"a worker called {name} is running")
        self.epoch, self.seconds = epoch, seconds


class OtherCrawl(LarmspiderError):  # noqa: N818 - named for what happened
    """The crawl was described by ``known``, which is another text; ``living`` workers go by it."""

    def __init__(self, known: str, living: int) -> None:
        super().__init__("the crawl in Redis is another one")
        self.known, self.living = known, living


@dataclass(frozen=True, slots=True)
class Beat:
    """What Redis answers to a sign of life.

    ``workers`` that live, this one included. ``quiet``: nobody expires for now. ``given``:
    blocks that are this worker's from now on, with their tokens; ``fresh`` are those of them that
    nobody had before in this run. ``held``: all that it has, with those. ``excess``: so many of
    them it should give up. ``dead``: epoch and name of workers whose last commit may have to be
    carried out. ``silent``: workers that have not renewed their lease for half of it, and the
    seconds until they count as dead. ``ended``: the crawl is at its end. ``moving``: it has more
    than its share of blocks, or less.
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


class Membership:
    """``crawl`` begins the keys: the spider's name. ``connection`` belongs to this object.

    ``server`` gives the time in milliseconds and the run of Redis, for tests; None: Redis says.
    Methods may be called from any thread, one at a time. They raise redis.RedisError where Redis
    does not answer, and Fenced where others have taken over.
    """

    def __init__(
        self,
        connection: Any,
        crawl: str,
        name: str,
        *,
        lease_secs: float,
        blocks: int,
        server: Callable[[], tuple[int, str]] | None = None,
    ) -> None:
        self.name, self.lease_secs, self.blocks = name, lease_secs, blocks
        self.epoch = 0
        self.held: dict[int, int] = {}
        """Blocks that are this worker's, and their tokens."""
        self._server = server
        self._keys = [f"{crawl}:{{crawl}}:{key}" for key in KEYS]
        self._connection = connection
        self._scripts = MembershipScripts(connection)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<Membership {self.name} epoch {self.epoch}, {len(self.held)} blocks>"

    def join(self, description: str, instead_of: str = "") -> tuple[int, int]:
        """Become a worker: the number of others that live, and the own epoch of an earlier run that
        ended without leaving, to bury() once its last commit is carried out, or 0.

        ``instead_of`` is an earlier description that this one may replace while nobody works by it.
        Raises NameTaken, OtherCrawl.
        """
        with self._lock:
            said = self._run("join", description, instead_of)
            if said[0] == "TAKEN":
                raise NameTaken(self.name, int(said[1]), int(said[2]) / 1000)
            if said[0] == "OTHER":
                raise OtherCrawl(said[1], int(said[2]))
            self.epoch, self.held = int(said[1]), {}
            return int(said[2]), int(said[3] or 0)

    def beat(self) -> Beat:
        """Renew the lease."""
        with self._lock:
            said = self._checked("beat", self._named(self.held))
            _, workers, quiet, given, excess, dead, ended, silent = said
            found = {int(block): int(token) for block, token, _ in given}
            self.held.update(found)
            fair = self.blocks // int(workers)
            return Beat(
                workers=int(workers),
                quiet=bool(quiet),
                given=found,
                fresh=frozenset(int(block) for block, _, fresh in given if fresh),
                held=dict(self.held),
                excess=int(excess),
                dead={int(dead[at]): dead[at + 1] for at in range(0, len(dead), 2)},
                silent={silent[at]: silent[at + 1] / 1000 for at in range(0, len(silent), 2)},
                ended=bool(ended),
                moving=bool(excess) or len(self.held) < fair,
            )

    def release(self, blocks: Iterable[int]) -> None:
        """Give up blocks of which everything is committed."""
        with self._lock:
            gone = {block: self.held[block] for block in blocks if block in self.held}
            self._run("release", self._named(gone))
            for block in gone:
                del self.held[block]

    def bury(self, epoch: int) -> None:
        """The last commit of a dead worker was carried out: its blocks are free."""
        with self._lock:
            self._run("bury", str(epoch))

    def stored(self) -> int:
        """Pages that were stored by all workers, as committed."""
        return int(self._connection.hget(self._keys[KEYS.index("totals")], "stored") or 0)

    def expire(self, names: Iterable[str]) -> None:
        """The processes of these workers have ended: nobody has to wait for their leases."""
        with self._lock:
            self._run("expire", " ".join(names))

    def names(self) -> list[str]:
        """Of all workers that have not left, and are not known to be dead."""
        return [name.decode() for name in self._connection.hkeys(self._keys[0])]

    def living(self) -> list[str]:
        """Names of the workers whose lease has not run out."""
        seconds, _ = self._connection.time()
        found = self._connection.hgetall(self._keys[KEYS.index("workers")])
        return sorted(
            name.decode()
            for name, worker in found.items()
            if int(worker.split()[1]) >= seconds * 1000
        )

    def leave(self) -> None:
        """Everything is committed: blocks and name are free."""
        with self._lock:
            self._checked("leave")
            self.held = {}

    def idle(self, taken: int) -> tuple[str, bool]:
        """This worker has no work and everything committed, until its next commit or block.
        ``taken``: of how many blocks it knows that; where it was given others, it is not idle.

        Where that is so of all, and every block has a living owner: the number of commits, else "".
        If no block has mail then, and finish() finds the same number, the crawl is at its end.
        And whether it was found to be already.
        """
        with self._lock:
            _, commits, ended = self._checked("idle", str(taken))
            return str(commits), bool(ended)

    def finish(self, commits: str) -> bool:
        """Whether all are at rest yet, at that number of commits; then every beat says so."""
        with self._lock:
            return bool(self._run("finish", commits)[1])

    def _checked(self, script: str, *arguments: str) -> list[Any]:
        said = self._run(script, *arguments)
        if said[0] == "FENCED":
            raise Fenced(f"others have taken over from worker {self.name}: {said[1]}")
        return said

    def _run(self, script: str, *arguments: str) -> list[Any]:
        now, run = ("", "") if self._server is None else self._server()
        lease = int(self.lease_secs * 1000)
        common: list[str | int] = [self.name, self.epoch, lease, self.blocks, now, run]
        return self._scripts.run(script, self._keys, [*common, *arguments])

    @staticmethod
    def _named(blocks: Mapping[int, int]) -> str:
        return " ".join(f"{block}:{token}" for block, token in blocks.items())
