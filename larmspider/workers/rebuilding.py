"""scrapy workers --rebuild: this machine's part in filling a Redis that has lost the crawl.

    done = rebuild(settings, complete=True, say=print)
    done.lines()                                   # ["w1: 1,204 records", ...]

cluster/rebuild.py fills Redis. This module chooses and locks the directories, and makes each worker
judge the links of its pages again at its next start.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from scrapy.settings import BaseSettings

from larmspider import options, program
from larmspider.crawl.reader import CrawlDir, read_manifest
from larmspider.errors import ConfigError, CrawlDirError, InvalidURL
from larmspider.formatting import counted
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import FetchRecord, UrlState
from larmspider.urls.normalizer import UrlForms
from larmspider.workdir.directory import (
    REDIS_DIR,
    locked,
    waited_for,
    worker_dirs,
    write_manifest,
)
from larmspider.workdir.manifest import LOCK, REJUDGE, is_shared
from larmspider.workdir.removals import REASON, Removals
from larmspider.workdir.worker_name import same_worker

SAY_SECS = 2.0  # between two lines of progress
_SHOWN = 5  # partitions in a line


@dataclass(slots=True)
class Rebuilt:
    """``brought``: the number of records of each worker of this machine. ``in_redis``: all workers
    whose records are in Redis. ``made``: the cluster.rebuild.Report, None before ``--complete``."""

    brought: dict[str, int] = field(default_factory=dict)
    in_redis: list[str] = field(default_factory=list)
    made: Any = None

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        made = None if self.made is None else asdict(self.made)
        return {"brought": self.brought, "in_redis": self.in_redis, "made": made}

    def lines(self) -> Iterator[str]:
        """The lines at the end of the command."""
        for worker, number in self.brought.items():
            yield f"{worker}: {counted(number, 'record')} brought"
        if self.made is None:
            yield (
                f"In Redis now: {', '.join(self.in_redis)}. Run `{program.NAME} workers"
                " --rebuild` on every"
                f" other machine, then once: {program.NAME} workers --rebuild --complete"
            )
            return
        made = self.made
        yield (
            f"The crawl is in Redis again: {made.visited:,} visited URLs, {made.queued:,} queued,"
            f" {made.merged:,} merged, of {', '.join(made.workers)}"
        )
        for worker, number in sorted(made.again.items()):
            yield (
                f"{worker}: its directory was not brought; {counted(number, 'page')} of it"
                f" {'is' if number == 1 else 'are'} fetched again"
            )
        if others := [name for name in made.absent if name not in made.again]:
            yield (
                f"{', '.join(others)}: directory not brought; URLs that no other directory has"
                " begin from their hosts' seeds and links"
            )
        lost = sorted(made.lost.items())
        for partition, number in lost[:_SHOWN]:
            yield (
                f"partition {partition}: no directory has {counted(number, 'URL')} of it; they"
                " begin from their hosts' seeds and links"
            )
        if lost[_SHOWN:]:
            yield f"... and {counted(len(lost) - _SHOWN, 'more partition')} (--json has all)"
        yield "Start the workers with the command that started them before"


def rebuild(settings: BaseSettings, *, complete: bool, say: Callable[[str], object]) -> Rebuilt:
    """Bring the directories in LARM_DIR to Redis, and with ``complete`` let workers go on. Raises
    ConfigError, CrawlDirError, TemporaryError."""
    from larmspider.cluster.rebuild import Rebuild  # 0.1 s, which no other command should take

    root = options.crawl_root(settings)
    crawl = CrawlDir(root)
    if not is_shared(crawl.manifest):
        raise ConfigError(
            f"LARM_DIR={root} is the crawl of one process: it has no Redis to rebuild"
        )
    done = Rebuilt()
    with ExitStack() as stack:
        stack.enter_context(waited_for(root / LOCK))
        found = [path for path in worker_dirs(root) if (path / "frontier" / "data.mdb").exists()]
        for one, other in same_worker(found):
            raise ConfigError(
                f"{one.name} and {other.name} in {root} are the directory of one worker twice:"
                " move one of them away"
            )
        for path in found:
            stack.enter_context(locked(path / LOCK))
        readers = {path: stack.enter_context(FrontierReader(path / "frontier")) for path in found}
        manifests = {path: read_manifest(path) for path in found}
        crawl_id = _one_crawl(root, readers)
        begun = _partitions(root, [crawl.manifest, *manifests.values()], settings)
        spider = str(crawl.manifest["spider"])
        link, keys = stack.enter_context(_redis_of(root, spider, settings, begun))
        rebuilding = Rebuild(link, keys)
        rebuilding.refuse_beside_another()
        rebuilding.begin(crawl_id)
        stack.callback(rebuilding.end)
        is_removed = _removed(root, crawl)
        for path, reader in readers.items():
            if not reader.shared_crawl()[0]:
                continue  # it has committed nothing
            told = time.monotonic()
            for number in rebuilding.bring(path.name, reader, is_removed):
                done.brought[path.name] = number
                if time.monotonic() > told + SAY_SECS:
                    told = time.monotonic()
                    say(f"{path.name}: {counted(number, 'record')} so far")
            write_manifest(path, manifests[path] | {REJUDGE: True})
        done.in_redis = rebuilding.brought()
        if complete:
            forms = UrlForms.from_settings(settings)
            told = time.monotonic()

            def progress(number: int, of: int) -> None:
                nonlocal told
                if time.monotonic() > told + SAY_SECS:
                    told = time.monotonic()
                    say(f"{number:,} of {counted(of, 'partition')} made")

            done.made = rebuilding.complete(forms if forms.has_guesses else None, progress)
    return done


def _one_crawl(root: Path, readers: dict[Path, FrontierReader]) -> str:
    """The id of the crawl in Redis that all directories were of."""
    ids = {path.name: reader.shared_crawl()[0] for path, reader in readers.items()}
    known = {crawl_id: name for name, crawl_id in ids.items() if crawl_id}
    if not known:
        raise CrawlDirError(
            f"no worker's directory in {root} has a commit: there is nothing to bring"
        )
    if len(known) > 1:
        raise ConfigError(
            f"{' and '.join(sorted(known.values()))} in {root} are of different crawls: expected"
            " the directories of one crawl"
        )
    return next(iter(known))


def _removed(root: Path, crawl: CrawlDir) -> Callable[[FetchRecord], bool]:
    removals = Removals.read(root)

    def is_removed(visit: FetchRecord) -> bool:
        if visit.state is not UrlState.REFUSED or visit.reason != REASON:
            return False
        try:
            return removals.has(crawl.forms(visit.url))
        except InvalidURL:
            return True

    return is_removed


def _partitions(root: Path, manifests: Iterable[Mapping[str, Any]], settings: BaseSettings) -> int:
    """LARM_BLOCKS of the crawl, as crawl.json names it; 0 if it does not."""
    wanted = options.integer(settings, "LARM_BLOCKS", minimum=0)
    begun = max(int((one.get("settings") or {}).get("LARM_BLOCKS") or 0) for one in manifests)
    if wanted and begun and wanted != begun:
        raise ConfigError(
            f"LARM_BLOCKS={wanted}: expected {begun}, with which the crawl in {root} was begun"
        )
    return begun


@contextmanager
def _redis_of(
    root: Path, spider: str, settings: BaseSettings, begun: int
) -> Iterator[tuple[Any, Any]]:
    """A link to the Redis of the crawl, and its keys. The server is the one that REDIS_URL names,
    or the private server, which runs meanwhile. ``begun``: the number of partitions, 0 if
    unknown."""
    from larmspider.cluster.keys import Keys
    from larmspider.cluster.loading import begun_with, refuse_other_format
    from larmspider.cluster.membership import PARTITIONS
    from larmspider.cluster.redis_client import link_to
    from larmspider.cluster.redis_server import PrivateRedis
    from larmspider.cluster.shared_settings import cluster_settings

    wanted = settings.copy()
    with ExitStack() as stack:
        if not options.many_workers(settings):
            private = stack.enter_context(PrivateRedis(root / REDIS_DIR))
            wanted.set("REDIS_URL", private.url, priority="cmdline")
        link = link_to(wanted)
        stack.callback(link.client.close)
        (known,) = link.run([("GET", Keys(spider, 1).crawl("format"))])
        refuse_other_format(known, link.name)
        partitions = cluster_settings(wanted).partitions or begun or begun_with(known) or PARTITIONS
        yield link, Keys(spider, partitions)
