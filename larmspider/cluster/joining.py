"""Joining the crawl in Redis, if it is the same crawl: same seeds, scope, filters and budgets.

    epoch = join(membership, link, keys, crawler)    # ConfigError: it is another crawl
    SharedCrawl.of(crawler).refuse_other(crawler)    # the same before the crawl opens anything

The first worker writes the description of the crawl to Redis. While workers run, a worker with
another description is refused. While none runs, budgets and pace may change; everything else needs
-a resume=anyway, as with one process.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from larmspider import __version__, options
from larmspider.cluster.heartbeat import Heartbeat
from larmspider.cluster.keys import Keys
from larmspider.cluster.loading import begun_with, partitions_of, refuse_other_format
from larmspider.cluster.lost_parts import stored_pages
from larmspider.cluster.membership import (
    Membership,
    NameTaken,
    OtherCrawl,
    WorkerLease,
)
from larmspider.cluster.redis_client import (
    UNREACHABLE,
    RedisLink,
    insist,
    link_to,
    pairs,
    sound,
)
from larmspider.cluster.shared_settings import cluster_settings
from larmspider.errors import ConfigError, CrawlDirError, LarmspiderError
from larmspider.fetch.sites.lookup import Sites
from larmspider.formatting import counted
from larmspider.frontier.storage.backend import Fenced
from larmspider.frontier.storage.records import unpack_visit
from larmspider.workdir.directory import asked_fresh, check_free
from larmspider.workdir.manifest import EXACT_FORM, LOCK, differing, identity_of, shortened
from larmspider.workdir.restricted import restricted_hosts

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)


_AT_ONCE = 1_000


def wipe(link: RedisLink, keys: Keys) -> int:
    """Delete all keys of a crawl without workers, for any number of partitions. Returns the number
    of deleted keys. Seeds in ``start_urls`` stay. O(keys of the database)."""
    pattern = re.sub(r"([*?\[\]\\^-])", r"\\\1", keys.prefix) + ":*{*}*"
    found: list[bytes] = []
    deleted = 0
    ours = re.compile(re.escape(keys.prefix.encode()) + rb":(\w+:\{\d+\}|\{crawl\}:)")
    for key in link.client.scan_iter(match=pattern, count=_AT_ONCE):
        if ours.match(key):
            found.append(key)
        if len(found) == _AT_ONCE:
            deleted += _unlink(link, found)
            found = []
    return deleted + _unlink(link, found)


def _unlink(link: RedisLink, found: list[bytes]) -> int:
    return sum(map(int, link.run([("UNLINK", key) for key in found])))


SHARED = (
    "LARM_MAX_PAGES", "LARM_HOST_MAX_PAGES", "LARM_HOST_RULES", "DOWNLOAD_DELAY",
    "CONCURRENT_REQUESTS_PER_DOMAIN", "LARM_CRAWL_DELAY_MAX_SECS", "LARM_DELAY_RESPONSE_FACTOR",
    "LARM_STRATEGY", "LARM_LEASE_SECS", "USER_AGENT", "ROBOTSTXT_USER_AGENT", "LARM_GROUP_BY",
    "LARM_REFRESH", "LARM_REFRESH_PER_DAY", "LARM_REFRESH_ORDER", "LARM_FIELDS",
    "LARM_FILE_ROOTS", "LARM_TRAPS", "LARM_ACCESS_RULES", "LARM_ACCESS_SENT",
)  # fmt: skip
"""Settings in which workers that run at the same time may not differ: hosts pass between them."""
LIMITS = (
    "DOWNLOAD_TIMEOUT", "LARM_CONNECT_TIMEOUT_SECS", "LARM_LOW_SPEED_BYTES", "LARM_LOW_SPEED_SECS",
    "DOWNLOAD_MAXSIZE", "LARM_HEADER_BYTES", "LARM_HEADER_LINES", "LARM_EXTRACTION_SECS",
    "LARM_EXTRACTION_BYTES", "LARM_DOCUMENT_MAXSIZE_BYTES", "LARM_BLOB_BYTES",
    "LARM_DOCUMENT_SECS", "LARM_DOCUMENT_BYTES", "LARM_RETRY_TIMES", "LARM_BACKOFF_SECS",
    "LARM_BACKOFF_MAX_SECS", "LARM_RETRY_AFTER_MAX_SECS", "LARM_HOST_MAX_FAILURES",
    "LARM_HOST_PARK_SECS", "LARM_HOST_MAX_PARKS", "LARM_ROBOTS_EXPIRES_SECS",
)  # fmt: skip
"""Settings in which they may differ, with a warning: machines and networks differ."""


def join(membership: Membership, link: RedisLink, keys: Keys, crawler: Crawler) -> int:
    """The epoch of an earlier run of this worker that did not leave, or 0; waits until the lease of
    that run is over. Raises ConfigError."""
    settings = crawler.settings
    if fresh := asked_fresh(settings):
        insist(lambda: refuse_to_wipe(membership, link.name, fresh), link.name)
        insist(lambda: wipe(link, keys), link.name)
    anyway = options.choice(settings, "LARM_RESUME", ("", "anyway")) == "anyway"
    ours = description(crawler)
    text, before, waited_for = json.dumps(ours, sort_keys=True), "", 0

    def ask() -> int:
        others, earlier = membership.join(text, before)
        if not others:
            _count_again(link, keys)
        return earlier

    asked = [("EXISTS", keys.crawl(name)) for name in ("id", "description")]
    is_described = link.run(asked) != [1, 0]

    while True:
        try:
            earlier = insist(ask, link.name)
        except NameTaken as taken:
            if taken.epoch == waited_for:
                raise ConfigError(
                    f"LARM_WORKER={membership.name}: a worker of this name is running;"
                    " each needs its own"
                ) from None
            waited_for = taken.epoch
            logger.warning(
                "Waiting up to %.0f s for the lease of worker %s, whose last run ended without"
                " giving up its partitions",
                taken.seconds + 0.5,
                membership.name,
            )
            time.sleep(taken.seconds + 0.05)
        except OtherCrawl as other:
            known = _described(other.known, link)
            refuse_other(known, ours, link.name, other.living, anyway=anyway)
            if other.living:  # the same crawl, e.g. with filters that have moved to other modules
                warn_of_limits(known, ours)
                text = other.known
            else:
                before = other.known
        else:
            if not is_described:
                logger.warning(
                    "Redis at %s has no description of the crawl, as after a rebuild: it gets this"
                    " worker's",
                    link.name,
                )
            return earlier


def _described(text: str | bytes, link: RedisLink) -> dict[str, Any]:
    with sound(link.client, link.name):
        return dict(json.loads(text))


def _count_again(link: RedisLink, keys: Keys) -> None:
    """Count the stored pages by the counters of the hosts, if the totals are gone."""
    with sound(link.client, link.name):
        total, stored = stored_pages(link.run, keys)
    if total < stored:
        logger.warning(
            "Redis at %s has lost %s: it counts %s of %s, and gets their number again",
            link.name, keys.crawl("totals").decode(), f"{total:,}", counted(stored, "stored page"),
        )  # fmt: skip
        link.run([("HSET", keys.crawl("totals"), "stored", stored)])


def description(crawler: Crawler) -> dict[str, Any]:
    """The common settings of all workers of a crawl, for Redis."""
    settings = crawler.settings
    shared: dict[str, Any] = {"larmspider version": __version__}
    shared |= {name: options.typed(settings, name) for name in SHARED}
    sites = Sites.from_settings(settings)
    shared["hosts in LARM_SITES_FILE"] = sites.hosts
    if restricted_hosts((), settings):
        shared["LARM_SITES_FILE"] = "with credentials"  # all fetched pages are restricted then
    limits = {name: options.typed(settings, name) for name in LIMITS}
    return {"crawl": identity_of(crawler), "shared": shared, "limits": limits}


def warn_of_limits(known: dict[str, Any], ours: dict[str, Any]) -> None:
    """Log the limits that differ between this worker and the description of the crawl."""
    was, now = known.get("limits") or {}, ours["limits"]
    differ = [name for name in now if name in was and was[name] != now[name]]
    if differ:
        logger.warning(
            "Other workers of this crawl have other limits, and hosts pass between them: %s",
            ", ".join(f"{name}={now[name]!r} here, {was[name]!r} there" for name in differ),
        )


def refuse_to_wipe(membership: Membership, where: str, fresh: str) -> None:
    """Raise ConfigError if starting over would disturb running workers, or delete stored pages of
    any machine without ``fresh`` "force"."""
    if living := membership.living():
        raise ConfigError(
            f"-a fresh=yes would delete the crawl in Redis at {where}, and"
            f" {', '.join(living)} work on it: stop them first"
        )
    if fresh != "force" and (stored := membership.stored()):
        raise ConfigError(
            f"the crawl in Redis at {where} has {counted(stored, 'stored page')}: -a fresh=force"
            " deletes them; use another Redis database for another crawl"
        )


def refuse_other(
    known: dict[str, Any], ours: dict[str, Any], where: str, living: int, *, anyway: bool
) -> None:
    """Raise ConfigError unless this crawl may continue the crawl in Redis."""
    for part in ("crawl", *(["shared"] if living else [])):
        was, now = known.get(part) or {}, ours[part]
        if anyway and not living:
            was, now = ({name: of[name] for name in EXACT_FORM if name in of} for of in (was, now))
        if name := differing(was, now):
            how = "-a resume=anyway continues it, -a fresh=yes starts over"
            if name in EXACT_FORM:
                how = "URLs have other keys: set the old value, or -a fresh=yes starts over"
            if living:
                how = "the running workers have that, and all need the same"
            raise ConfigError(
                f"the crawl in Redis at {where} has other {name}:"
                f" {shortened(was.get(name))} there, {shortened(now.get(name))} here; {how}"
            )


class SharedCrawl:
    """The crawl of a spider in Redis, for reading it before any worker joins.

    Raises ConfigError if this Redis cannot be used.
    """

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        """The crawl that ``crawler`` would join."""
        assert crawler.spider is not None
        return cls(crawler.settings, crawler.spider.name)

    def __init__(self, settings: BaseSettings, spider: str) -> None:
        self.link = link_to(settings)
        self.where = self.link.name
        """The server, without its password."""
        shared = cluster_settings(settings)
        partitions = partitions_of(self.link, spider, shared.partitions)
        self.keys = Keys(spider, partitions)
        self._membership = Membership(
            self.link.client,
            spider,
            "",
            lease_secs=shared.lease_secs,
            partitions=partitions,
        )

    def refuse_other(self, crawler: Crawler) -> None:
        """Raise ConfigError, as join() would, if this is not the crawl of ``crawler``."""
        self.refuse_other_partitions()
        # first: a worker that begins in between changes the description that was there
        living = len(insist(self._membership.living, self.link.name))
        (known,) = self.link.run([("GET", self.keys.crawl("description"))])
        if known is not None:
            anyway = options.choice(crawler.settings, "LARM_RESUME", ("", "anyway")) == "anyway"
            ours = description(crawler)
            was = _described(known, self.link)
            refuse_other(was, ours, self.link.name, living, anyway=anyway)

    def living(self) -> list[str]:
        """Names of the workers whose leases have not run out."""
        return insist(self._membership.living, self.where)

    @contextmanager
    def joined(self, name: str) -> Iterator[tuple[Membership, int]]:
        """Be the worker ``name``, by the crawl's own description, while no other worker is alive.
        Yields the membership, and the epoch of an earlier run that did not leave, or 0. Raises
        CrawlDirError if Redis does not have the crawl."""
        (known,) = self.link.run([("GET", self.keys.crawl("description"))])
        if known is None:
            raise CrawlDirError(f"there is no crawl in Redis at {self.where}")
        ours = self._membership
        membership = Membership(
            self.link.client, self.keys.prefix, name,
            lease_secs=ours.lease_secs, partitions=ours.partitions,
        )  # fmt: skip
        earlier = insist(lambda: membership.join(known.decode())[1], self.where)
        heart = Heartbeat(membership, WorkerLease(ours.lease_secs), _unheard, _unheard)
        heart.start()
        try:
            yield membership, earlier
        finally:
            heart.stop()
            with suppress(Fenced, *UNREACHABLE):  # else its lease runs out
                membership.leave()

    def has_ended(self) -> bool | None:
        """Whether the crawl has ended once; None for a crawl that Redis does not have."""
        totals, ended, known = map(self.keys.crawl, ("totals", "ended", "description"))
        found, now, begun = self.link.run(
            [("HGET", totals, "ended"), ("EXISTS", ended), ("EXISTS", known)]
        )
        return bool(found or now) if begun else None

    def urls(self) -> Iterator[str]:
        """URLs that may be visited again, in no order."""
        for partition in range(self.keys.partitions):
            name, cursor = self.keys.partition("visits", partition), b"0"
            while True:
                ((cursor, found),) = self.link.run([("HSCAN", name, cursor, "COUNT", _AT_ONCE)])
                yield from (unpack_visit(record).url for record in pairs(found).values())
                if int(cursor) == 0:
                    break

    def refuse_other_partitions(self) -> None:
        """Raise OtherFormatError for a crawl of another format, ConfigError for another number of
        partitions."""
        (known,) = self.link.run([("GET", self.keys.crawl("format"))])
        refuse_other_format(known, self.where)
        begun = begun_with(known)
        if begun and begun != self.keys.partitions:
            raise ConfigError(
                f"LARM_BLOCKS={self.keys.partitions}: expected {begun}, with which the"
                f" crawl in Redis at {self.link.name} was begun; -a fresh=yes starts over"
            )

    def refuse_to_wipe(self, fresh: str) -> None:
        """See refuse_to_wipe()."""
        where = self.link.name
        insist(lambda: refuse_to_wipe(self._membership, where, fresh), where)

    def expire_ended(self, root: Path) -> None:
        """Expire the leases of workers whose directories in ``root`` no process holds: they were
        killed. For a Redis that only workers of this machine can reach."""
        names = insist(self._membership.names, self.link.name)
        ended = [name for name in names if _has_ended(root / name / LOCK)]
        insist(lambda: self._membership.expire(ended), self.link.name)

    def wipe(self) -> None:
        insist(lambda: wipe(self.link, self.keys), self.where)


def _unheard(_: object) -> None:
    """A fenced worker learns of it at its next commit."""


def _has_ended(lock: Path) -> bool:
    """Whether the lock is there and no process holds it."""
    try:
        check_free(lock)
    except LarmspiderError:
        return False
    return lock.exists()
